// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/observation.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "impl/engine/slice.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::engine {

namespace {

/// What a rank holds of one observable tensor.
struct Copy {
  Observed kind;
  const plan::ParameterLayout* layout;
  std::string name;
  Tensor tensor;  ///< empty on ranks that only know of it
};

Values fetch_values(Queue& queue, const Tensor& tensor) {
  return dispatch(tensor.dtype(), [&]<class S>(S) -> Values { return fetch<S>(queue, tensor); });
}

/// The bits of element i, for a comparison that knows no NaN and no signed zero.
std::int64_t bits_of(const Values& values, std::size_t i) {
  return std::visit(
      [i](const auto& v) -> std::int64_t {
        using T = std::decay_t<decltype(v[i])>;
        if constexpr (std::is_same_v<T, Fixed>) return v[i].raw;
        if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::int64_t>(v[i]);
        if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::int32_t>(v[i]);
        if constexpr (std::is_same_v<T, std::int64_t>) return v[i];
      },
      values);
}

double double_of(const Values& values, std::size_t i) {
  return std::visit([i](const auto& v) { return as_doubles(Values(std::vector{v[i]}))[0]; }, values);
}

/// The range of the logical tensor that tp coordinate t holds, and the dim it is cut along.
std::pair<std::int64_t, plan::Range> held(const plan::ParameterLayout& layout, const std::vector<plan::Range>& ranges,
                                          std::int64_t tp) {
  return {std::max<std::int64_t>(layout.split_dim, 0), ranges.at(static_cast<std::size_t>(tp))};
}

constexpr std::size_t scalar_words = 5;

std::vector<std::int64_t> words_of(const Scalars& s) {
  const auto word = [](double x) { return std::bit_cast<std::int64_t>(x); };
  return {s.loss.has_value(), word(s.loss.value_or(0)), word(s.norm), word(s.clip_factor),
          static_cast<std::int64_t>(s.skipped)};
}

constexpr const char* scalar_names[scalar_words] = {"loss", "loss", "norm", "clip", "skipped"};
constexpr Observed scalar_kinds[scalar_words] = {Observed::loss, Observed::loss, Observed::norm, Observed::clip,
                                                 Observed::skipped};

class Gathering {
 public:
  Gathering(const Observer& observer, ParameterStore& store, std::int64_t step, bool everything)
      : o_(observer),
        store_(store),
        step_(step),
        everything_(everything),
        device_({.rank = self(), .poison = observer.queue.device().poison()}) {}

  /// What a rank holds, in the order in which it is sent.
  std::vector<Copy> copies_of(const plan::Place& place) const {
    std::vector<Copy> copies;
    for (const auto& layout : o_.plan.layout.parameters) {
      const auto holders = o_.plan.holders(layout);
      if (std::ranges::find(holders, place.pp) == holders.end()) continue;
      if (everything_ && !o_.plan.is_updated(layout, step_)) continue;
      const auto& name = layout.parameter.name;
      if (everything_ && layout.parameter.trainable) {
        copies.push_back({Observed::gradient, &layout, name, {}});
        for (const auto state : o_.optimizer.states)
          copies.push_back({Observed::state, &layout, name + "." + std::string(state), {}});
      }
      copies.push_back({Observed::parameter, &layout, name, {}});
    }
    return copies;
  }

  /// The same for this rank, with its tensors.
  std::vector<Copy> own_copies() const {
    auto copies = copies_of(place_of(self()));
    for (auto& copy : copies) {
      auto& slot = store_[copy.layout->parameter.name];
      if (copy.kind == Observed::parameter) copy.tensor = slot.value;
      if (copy.kind == Observed::gradient) copy.tensor = slot.gradient.finish(o_.queue);
      if (copy.kind != Observed::state) continue;
      for (std::size_t k = 0; k < slot.state.size(); ++k) {
        if (copy.name.ends_with("." + std::string(o_.optimizer.states[k]))) copy.tensor = slot.state[k];
      }
    }
    return copies;
  }

  /// Messages lend live parameters and gradients: returns when all are delivered, so that the next step may write them.
  void send() const {
    for (const auto& copy : own_copies()) o_.world.send(o_.queue, copy.tensor, 0, "observe");
    delivered();
  }

  /// On rank 0: all copies of all ranks, primary holders first.
  Observation receive() {
    for (std::int64_t r = 0; r < o_.world.size(); ++r) {
      const auto place = place_of(Rank{static_cast<std::int32_t>(r)});
      auto copies = r == 0 ? own_copies() : copies_of(place);
      for (auto& copy : copies) {
        if (r != 0) copy.tensor = received(copy, place);
        Queue& queue = r == 0 ? o_.queue : queue_;
        by_tensor_[{copy.kind, copy.name}].push_back({place, copy.layout, fetch_values(queue, copy.tensor)});
      }
    }
    delivered();
    Observation result;
    for (auto& [key, held_copies] : by_tensor_) {
      const auto& layout = *held_copies.front().layout;
      Values logical = assembled(layout, held_copies);
      compare(key.first, key.second, layout, held_copies, logical, result.differences);
      result.observables.push_back({step_, key.first, key.second, layout.parameter.dims, std::move(logical)});
    }
    return result;
  }

 private:
  struct Held {
    plan::Place place;
    const plan::ParameterLayout* layout;
    Values values;
  };

  void delivered() const { o_.world.barrier(o_.queue, "observe").wait(); }
  Rank self() const { return o_.queue.device().rank(); }
  plan::Place place_of(Rank rank) const { return plan::place_of(o_.plan.mesh, rank); }

  Tensor received(const Copy& copy, const plan::Place& from) {
    const Dtype dtype = copy.kind == Observed::state ? state_of(o_.track) : scalar_of(o_.track);
    Tensor tensor(queue_, {copy.name, dtype, copy.layout->held_dims(from.tp), Category::communication});
    o_.world.receive(queue_, tensor, static_cast<std::int64_t>(from.rank), "observe");
    return tensor;
  }

  Values assembled(const plan::ParameterLayout& layout, const std::vector<Held>& copies) const {
    const auto& dims = layout.parameter.dims;
    Values logical = std::visit(
        [&](const auto& v) -> Values { return std::decay_t<decltype(v)>(static_cast<std::size_t>(elements_of(dims))); },
        copies.front().values);
    for (const auto& copy : copies) {
      if (!plan::is_primary(o_.plan, layout, copy.place)) continue;
      const auto slice = held(layout, layout.held, copy.place.tp);
      const auto dim = slice.first;
      const auto range = slice.second;
      const auto owned = layout.owned.at(static_cast<std::size_t>(copy.place.tp));
      std::visit(
          [&]<class V>(V& to) {
            const V& from = std::get<V>(copy.values);
            std::vector<typename V::value_type> whole(to.size());
            for_each_run(dims, dim, range, [&](std::int64_t at, std::int64_t slice_at, std::int64_t n) {
              std::copy_n(from.begin() + slice_at, n, whole.begin() + at);
            });
            for_each_run(dims, dim, owned, [&](std::int64_t at, std::int64_t, std::int64_t n) {
              std::copy_n(whole.begin() + at, n, to.begin() + at);
            });
          },
          logical);
    }
    return logical;
  }

  void compare(Observed kind, const std::string& name, const plan::ParameterLayout& layout,
               const std::vector<Held>& copies, const Values& logical,
               std::vector<ReplicaDifference>& differences) const {
    for (const auto& copy : copies) {
      const auto [dim, range] = held(layout, layout.held, copy.place.tp);
      std::optional<ReplicaDifference> found;
      for_each_run(layout.parameter.dims, dim, range, [&](std::int64_t at, std::int64_t slice_at, std::int64_t n) {
        for (std::int64_t i = 0; i < n && !found; ++i) {
          const auto ours = static_cast<std::size_t>(slice_at + i), theirs = static_cast<std::size_t>(at + i);
          if (bits_of(copy.values, ours) == bits_of(logical, theirs)) continue;
          found = {
              step_, kind, name, copy.place.rank, at + i, double_of(copy.values, ours), double_of(logical, theirs)};
        }
      });
      if (found) differences.push_back(*found);
    }
  }

  const Observer& o_;
  ParameterStore& store_;
  std::int64_t step_;
  bool everything_;
  Device device_;  // for what is received: it is no part of the training, nor of its device's limit
  ImmediateQueue queue_{device_};
  std::map<std::pair<Observed, std::string>, std::vector<Held>> by_tensor_;
};

}  // namespace

std::string print(const ReplicaDifference& d) {
  return fmt::format("step {}: {} of {}, element {}: rank {} has {:.17g}, its primary holder {:.17g}", d.step,
                     name_of(d.kind), d.name, d.index, static_cast<int>(d.rank), d.value, d.primary);
}

Observation Observer::all(ParameterStore& store, const Scalars& scalars) {
  const auto words = words_of(scalars);
  const Tensor own(queue, {"scalars", Dtype::i64, {std::ssize(words)}, Category::communication});
  upload<std::int64_t>(queue, own, words);
  Gathering gathering(*this, store, scalars.step, true);
  if (world.place() != 0) {
    world.send(queue, own, 0, "observe");
    gathering.send();
    return {};
  }
  std::vector<ReplicaDifference> differences;
  // Each rank sends its scalars before its tensors: channels keep the order of each pair of ranks.
  for (std::int64_t r = 1; r < world.size(); ++r) {
    const Tensor theirs(queue, {"scalars", Dtype::i64, {std::ssize(words)}, Category::communication});
    world.receive(queue, theirs, r, "observe");
    const auto got = fetch<std::int64_t>(queue, theirs);
    for (std::size_t k = 0; k < scalar_words; ++k) {
      if (got[k] == words[k]) continue;
      const auto value = [&](std::int64_t word) {
        return k == 1 || k == 2 || k == 3 ? std::bit_cast<double>(word) : static_cast<double>(word);
      };
      differences.push_back({scalars.step, scalar_kinds[k], scalar_names[k], Rank{static_cast<std::int32_t>(r)}, 0,
                             value(got[k]), value(words[k])});
    }
  }
  Observation result = gathering.receive();
  result.differences.insert(result.differences.begin(), differences.begin(), differences.end());

  auto& all = result.observables;
  const auto scalar = [&](Observed kind, const char* name, auto value) {
    all.push_back({scalars.step, kind, name, {1}, std::vector{value}});
  };
  if (scalars.skipped == Skipped::non_finite) {
    std::erase_if(all, [](const Observable& o) { return o.kind == Observed::gradient; });
    std::erase_if(result.differences, [](const ReplicaDifference& d) { return d.kind == Observed::gradient; });
  } else {
    if (scalars.loss) scalar(Observed::loss, "loss", *scalars.loss);
    if (!scalars.loss) all.push_back({scalars.step, Observed::loss, "loss", {0}, std::vector<double>{}});
    scalar(Observed::norm, "norm", scalars.norm);
    scalar(Observed::clip, "clip", scalars.clip_factor);
  }
  scalar(Observed::skipped, "skipped", static_cast<std::int64_t>(scalars.skipped));
  std::ranges::stable_sort(all, {},
                           [](const Observable& o) { return std::pair<Observed, const std::string&>(o.kind, o.name); });
  return result;
}

Observation Observer::parameters(ParameterStore& store, std::int64_t step) {
  Gathering gathering(*this, store, step, false);
  if (world.place() == 0) return gathering.receive();
  gathering.send();
  return {};
}

}  // namespace shardproof::engine
