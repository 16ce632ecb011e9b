// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "impl/comm/element.hpp"
#include "impl/comm/inject.hpp"
#include "impl/comm/slow_queue.hpp"

namespace shardproof::comm {

namespace {

bool contributes(const Call& call, std::int64_t place) {
  if (call.kind == Kind::broadcast) return call.peer == place;
  return call.kind != Kind::barrier && call.kind != Kind::receive;
}
bool has_result(const Call& call, std::int64_t place) {
  if (call.kind == Kind::broadcast) return call.peer != place;
  return call.kind != Kind::barrier && call.kind != Kind::send;
}

/// The side that the fault acts on, if this call has it.
std::optional<Side> side_of(const Injection& injection, const Group& group, const Call& call) {
  const bool in = contributes(call, group.place), out = has_result(call, group.place);
  const bool reduces = call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter;
  switch (injection.fault) {
    case Fault::delay:
    case Fault::fail: return Side::input;
    case Fault::mismatch:
      return call.kind != Kind::send && call.kind != Kind::receive ? std::optional(Side::input) : std::nullopt;
    case Fault::slow: return std::nullopt;
    case Fault::repeat:
      return reduces && call.op == Operator::sum && group.size() > 1 ? std::optional(Side::output) : std::nullopt;
    case Fault::wrong_group: {
      const bool parts = call.kind == Kind::all_gather || call.kind == Kind::all_to_all;
      return (reduces || parts) && group.size() > 1 ? std::optional(Side::output) : std::nullopt;
    }
    case Fault::skip:
      if (!injection.at) return out ? std::optional(Side::output) : in ? std::optional(Side::input) : std::nullopt;
      break;
    default:
      if (!injection.at) return in ? std::optional(Side::input) : out ? std::optional(Side::output) : std::nullopt;
  }
  return (*injection.at == Side::input ? in : out) ? injection.at : std::nullopt;
}

template <class T>
T scaled(T value, double factor) {
  if constexpr (std::is_same_v<T, Fixed>) {
    return mul(value, round_to<Fixed>(factor));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(value) * factor);
  } else if (factor == std::trunc(factor)) {  // doubles would round what is beyond 2^53
    T product{};
    return __builtin_mul_overflow(value, static_cast<std::int64_t>(factor), &product) ? value : product;
  } else {
    const double product = std::trunc(static_cast<double>(value) * factor);
    const bool fits = product > static_cast<double>(std::numeric_limits<T>::min()) - 1 &&
                      product < static_cast<double>(std::numeric_limits<T>::max());
    return fits ? static_cast<T>(product) : value;
  }
}

template <class T>
T without(T total, T part) {
  if constexpr (std::is_same_v<T, Fixed>) {
    return Fixed{
        static_cast<std::int64_t>(static_cast<std::uint64_t>(total.raw) - static_cast<std::uint64_t>(part.raw))};
  } else if constexpr (std::is_integral_v<T>) {
    using Word = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Word>(static_cast<Word>(total) - static_cast<Word>(part)));
  } else {
    return total - part;
  }
}

/// What changes no reduction by this operator.
template <class T>
T neutral(Operator op) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, Fixed>) {
    return Fixed{op == Operator::max ? 1 - fixed_limit : op == Operator::min ? fixed_limit - 1 : 0};
  } else {
    return op == Operator::max ? Limits::lowest() : op == Operator::min ? Limits::max() : T{};
  }
}

/// Calls f(T*) on the tensor's elements, which are not scanned: they may be results whose flags are not yet up.
template <class F>
void edit(KernelScope& scope, const Tensor& tensor, F f) {
  with_element(tensor.dtype(), [&]<class T>(T) { f(scope.accumulate<T>(tensor)); });
}

class InjectedChannel final : public Channel {
 public:
  InjectedChannel(std::unique_ptr<Channel> inner, Injector& injector) : inner_(std::move(inner)), injector_(injector) {}

  const Group& group() const override { return inner_->group(); }

  void execute(KernelScope& scope, const Call& call) override {
    const auto injections = call.internal ? std::vector<const Injection*>{} : injector_.meet(group(), call);
    if (injections.empty()) return inner_->execute(scope, call);
    Call changed = call;
    for (const auto* injection : injections) before(scope, *injection, changed);
    const Tensor mine = contribution(scope, changed);
    inner_->execute(scope, changed);
    for (const auto* injection : injections) after(scope, *injection, call, mine);
  }

 private:
  static Tensor copy_of(KernelScope& scope, const Tensor& tensor) {
    Tensor copied =
        scope.allocate({tensor.name() + ".injected", tensor.dtype(), tensor.dims(), Category::communication});
    with_element(tensor.dtype(), [&]<class T>(T) {
      std::copy_n(scope.read<T>(tensor), tensor.elements(), scope.accumulate<T>(copied));
    });
    return copied;
  }

  /// A copy of what this rank adds to a reduction's result, if it is one.
  Tensor contribution(KernelScope& scope, const Call& call) const {
    if (call.kind == Kind::all_reduce) return copy_of(scope, call.output);
    if (call.kind != Kind::reduce_scatter) return {};
    const auto begin = std::accumulate(call.inputs.begin(), call.inputs.begin() + group().place, std::int64_t{0});
    return copy_of(scope, call.input.reshaped({call.input.elements()}).rows(begin, call.output.elements()));
  }

  void before(KernelScope& scope, const Injection& injection, Call& call) const {
    if (injection.fault == Fault::delay) return injector_.pause(injection.ms / 1000);
    if (injection.fault == Fault::fail)
      throw InternalError("--inject " + to_text(injection) + ": " + std::string(name_of(call.kind)) + " " +
                          std::to_string(call.number) + " of axis " + group().axis + " (purpose " +
                          std::string(call.purpose) + ")");
    if (injection.fault == Fault::mismatch) {
      call.purpose = "injected";
      return;
    }
    const auto side = side_of(injection, group(), call);
    if (injection.fault == Fault::skip && side == Side::output) {
      call.overflow = call.overflow || (call.kind == Kind::all_reduce && scope.overflow_of(call.output));
      if (call.kind == Kind::all_reduce) {
        call.output = copy_of(scope, call.output);
      } else {
        call.output = scope.allocate(
            {call.output.name() + ".injected", call.output.dtype(), call.output.dims(), Category::communication});
      }
      return;
    }
    if (side != Side::input) return;
    auto& given = call.input ? call.input : call.output;
    if (call.kind != Kind::all_reduce) {  // only an all-reduce may write what it is given
      call.overflow = call.overflow || scope.overflow_of(given);
      given = copy_of(scope, given);
    }
    alter(scope, injection, call.op, given);
  }

  static void alter(KernelScope& scope, const Injection& injection, Operator op, const Tensor& tensor) {
    edit(scope, tensor, [&]<class T>(T* data) {
      const auto n = tensor.elements();
      if (injection.fault == Fault::skip) std::fill_n(data, n, neutral<T>(op));
      if (injection.fault == Fault::scale) {
        std::transform(data, data + n, data, [&](T v) { return scaled(v, injection.factor); });
      }
      if (injection.fault == Fault::corrupt && n > 0) {
        auto* low = reinterpret_cast<unsigned char*>(data + injection.element % n);
        *low = static_cast<unsigned char>(*low ^ 1u);
      }
    });
  }

  void after(KernelScope& scope, const Injection& injection, const Call& call, const Tensor& mine) const {
    if (side_of(injection, group(), call) != Side::output || injection.fault == Fault::skip) return;
    if (injection.fault == Fault::repeat) {
      const double times = call.kind == Kind::all_reduce ? static_cast<double>(group().size()) : 2;
      return alter(scope, {.fault = Fault::scale, .factor = times}, call.op, call.output);
    }
    if (injection.fault != Fault::wrong_group) return alter(scope, injection, call.op, call.output);
    edit(scope, call.output, [&]<class T>(T* data) {
      const auto n = call.output.elements();
      if (!mine) {
        std::rotate(data, data + n - call.outputs.back(), data + n);
        return;
      }
      const T* own = scope.accumulate<T>(mine);
      for (std::int64_t i = 0; i < n; ++i) data[i] = call.op == Operator::sum ? without(data[i], own[i]) : own[i];
    });
  }

  std::unique_ptr<Channel> inner_;
  Injector& injector_;
};

}  // namespace

Injector::Injector(const std::vector<Injection>& injections, Rank rank, std::function<void(double)> pause,
                   std::function<bool()> goes_on)
    : injections_(injections),
      rank_(rank),
      pause_(std::move(pause)),
      goes_on_(std::move(goes_on)),
      seen_(injections.size()),
      hits_(injections.size()) {}

std::unique_ptr<Channel> Injector::wrap(std::unique_ptr<Channel> channel) {
  if (injections_.empty()) return channel;
  return std::make_unique<InjectedChannel>(std::move(channel), *this);
}

std::unique_ptr<Queue> Injector::queue(Device& device) {
  double factor = 1;
  for (std::size_t i = 0; i < injections_.size(); ++i) {
    const auto own = static_cast<std::int64_t>(rank_);
    if (injections_[i].fault != Fault::slow || injections_[i].rank.value_or(own) != own) continue;
    factor *= injections_[i].factor;
    ++hits_[i];
  }
  if (factor == 1) return std::make_unique<ImmediateQueue>(device);
  return std::make_unique<SlowQueue>(device, factor, goes_on_);
}

std::vector<const Injection*> Injector::meet(const Group& group, const Call& call) {
  std::vector<const Injection*> met;
  for (std::size_t i = 0; i < injections_.size(); ++i) {
    const auto& injection = injections_[i];
    if (injection.axis.value_or(group.axis) != group.axis || injection.kind.value_or(call.kind) != call.kind ||
        (injection.purpose && *injection.purpose != call.purpose) ||
        injection.rank.value_or(static_cast<std::int64_t>(rank_)) != static_cast<std::int64_t>(rank_) ||
        !side_of(injection, group, call)) {
      continue;
    }
    const auto number = ++seen_[i];
    if (injection.call.value_or(number) != number) continue;
    ++hits_[i];
    met.push_back(&injection);
  }
  return met;
}

}  // namespace shardproof::comm
