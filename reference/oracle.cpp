// SPDX-License-Identifier: Apache-2.0
#include "reference/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/core/wide.hpp"
#include "reference/model.hpp"
#include "reference/optimizer.hpp"
#include "reference/stale.hpp"

namespace shardproof::reference {
namespace {

enum Skip : std::int64_t { taken = 0, non_finite = 1, no_label = 2 };

/// A wide sum of losses or of squares (section 1.5), as a value.
template <class S>
double sum_of(const std::vector<S>& values) {
  if constexpr (std::is_same_v<S, Fixed>) {
    WideSum sum;
    for (const Fixed value : values) sum.add(value.raw);
    return to_double(sum) * 0x1p-40;
  } else {
    double sum = 0;
    for (const S value : values) sum += static_cast<double>(value);
    return sum;
  }
}

/// Names and gradients, in the order of workload::parameters.
template <class S>
using Gradients = std::vector<std::pair<std::string, Array<S>>>;

template <class S>
double sum_of_squares(const Gradients<S>& gradients) {
  WideSum wide;
  double sum = 0;
  for (const auto& [name, gradient] : gradients) {
    for (const S value : gradient.values()) {
      if constexpr (std::is_same_v<S, Fixed>) {
        wide.add(static_cast<int128>(value.raw) * value.raw);
      } else {
        sum += static_cast<double>(value) * static_cast<double>(value);
      }
    }
  }
  return std::is_same_v<S, Fixed> ? to_double(wide) * 0x1p-80 : sum;
}

template <class S>
class Sequential final : public Oracle {
 public:
  explicit Sequential(const workload::Workload& workload)
      : workload_(workload),
        scale_(std::is_same_v<S, Fixed> ? workload.loss_scale : 1.0),
        parameters_(initial_parameters<S>(workload)),
        history_(workload_) {
    for (const auto& info : workload::parameters(workload)) {
      if (info.trainable) trainable_.push_back(info.name);
    }
  }

  std::vector<Observable> step(const workload::Batch& batch, const Replace& replace) override {
    Arithmetic<S> arithmetic;
    if (workload_.stale) history_.begin(batch.step, parameters_);
    std::map<std::string, Array<S>> replaced;
    for (auto& [name, parameter] : parameters_) {
      if (replace) {
        replaced[name] = parameter.value;
        parameter.value =
            array_of<S>(replace(name, parameter.value.values()), parameter.value.rows(), parameter.value.columns());
      }
      for (const S value : parameter.value.values()) arithmetic.checked(value);
      parameter.gradient = Array<Sum<S>>(parameter.value.rows(), parameter.value.columns());
    }
    const auto labels = static_cast<double>(batch.label_count);
    std::vector<S> losses;
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      train_sample(arithmetic, workload_, batch, b, scale_ / labels, parameters_, losses);
    }
    for (auto& [name, value] : replaced) parameters_.at(name).value = std::move(value);
    if (workload_.stale) history_.end(batch.step, parameters_);
    keep_part(batch);
    Gradients<S> gradients;
    for (const auto& name : trainable_) {
      if (is_updated(name, batch.step)) gradients.emplace_back(name, arithmetic.finish(gradient_sum(name, batch.step)));
    }

    // A non-finite gradient makes the norm non-finite.
    const double norm = std::sqrt(sum_of_squares(gradients)) / scale_;
    const Skip skipped = arithmetic.overflow() || !std::isfinite(norm) ? non_finite
                         : batch.label_count == 0                      ? no_label
                                                                       : taken;
    const double clip = workload_.clip > 0 ? std::min(1.0, workload_.clip / (norm + 1e-6)) : 1.0;
    if (skipped != non_finite) {
      Gradients<S> labelled = gradients;
      std::erase_if(labelled, [&](const auto& gradient) { return labels_of_update(gradient.first, batch.step) == 0; });
      apply(batch.step, labelled, clip);
    }

    std::vector<Observable> out;
    if (skipped == taken) out.push_back(scalar(batch.step, Observed::loss, sum_of(losses) / labels));
    if (skipped == no_label) out.push_back({batch.step, Observed::loss, "loss", {0}, std::vector<double>()});
    if (skipped != non_finite) {
      for (const auto& [name, gradient] : gradients) {
        out.push_back({batch.step, Observed::gradient, name, parameters_.at(name).info.dims, gradient.values()});
      }
      out.push_back(scalar(batch.step, Observed::norm, norm));
      out.push_back(scalar(batch.step, Observed::clip, clip));
    }
    out.push_back({batch.step, Observed::skipped, "skipped", {1}, std::vector<std::int64_t>{skipped}});
    observe(batch.step, out);
    return out;
  }

  std::vector<Observable> update(std::int64_t step, const std::map<std::string, Values>& values,
                                 double clip_factor) override {
    Gradients<S> gradients;
    for (const auto& [name, gradient] : values) {
      const auto parameter = parameters_.find(name);
      if (parameter == parameters_.end() || !parameter->second.info.trainable)
        throw InternalError("oracle: a gradient of " + name + ", which is no trainable parameter");
      const auto& value = parameter->second.value;
      gradients.emplace_back(name, array_of<S>(gradient, value.rows(), value.columns()));
    }
    apply(step, gradients, clip_factor);
    std::vector<Observable> out;
    observe(step, out);
    return out;
  }

  void set(Observed kind, std::string_view name, const Values& values) override {
    for (auto& [own, parameter] : parameters_) {
      const auto rows = parameter.value.rows(), columns = parameter.value.columns();
      if (kind == Observed::parameter && name == own) {
        parameter.value = array_of<S>(values, rows, columns);
        return;
      }
      for (const auto& [suffix, state] : states(parameter)) {
        if (kind == Observed::state && name == own + suffix) {
          *state = array_of<Real<S>>(values, rows, columns);
          return;
        }
      }
    }
    throw InternalError("oracle: no " + std::string(name_of(kind)) + " named " + std::string(name));
  }

 private:
  static Observable scalar(std::int64_t step, Observed kind, double value) {
    return {step, kind, std::string(name_of(kind)), {1}, std::vector<double>{value}};
  }

  template <class T>
  static Array<T> array_of(const Values& values, std::int64_t rows, std::int64_t columns) {
    const auto* own = std::get_if<std::vector<T>>(&values);
    if (own == nullptr) throw InternalError("oracle: values of another track");
    return Array<T>(rows, columns, *own);
  }

  /// The state of a trainable parameter, by the suffix of its name.
  std::vector<std::pair<const char*, Array<Real<S>>*>> states(Parameter<S>& parameter) const {
    if (!parameter.info.trainable || workload_.optimizer == workload::OptimizerKind::sgd) return {};
    if (workload_.optimizer == workload::OptimizerKind::momentum) return {{".momentum", &parameter.first}};
    return {{".first_moment", &parameter.first}, {".second_moment", &parameter.second}};
  }

  bool is_updated(std::string_view name, std::int64_t step) const { return steps_of_update(workload_, name, step) > 0; }

  /// What the step adds to its updates.
  void keep_part(const workload::Batch& batch) {
    Part& part = parts_[batch.step];
    part.labels = batch.label_count;
    for (const auto& name : trainable_) part.gradients[name] = std::move(parameters_.at(name).gradient);
    std::int64_t longest = 1;
    for (const std::int64_t steps : workload_.stale.replicas) longest = std::max(longest, steps);
    std::erase_if(parts_, [&](const auto& old) { return old.first <= batch.step - longest; });
  }
  std::int64_t labels_of_update(std::string_view name, std::int64_t step) const {
    std::int64_t labels = 0;
    for (std::int64_t k = step; k > step - steps_of_update(workload_, name, step); --k) labels += parts_.at(k).labels;
    return labels;
  }
  Array<Sum<S>> gradient_sum(const std::string& name, std::int64_t step) const {
    const std::int64_t steps = steps_of_update(workload_, name, step);
    Array<Sum<S>> sum = parts_.at(step - steps + 1).gradients.at(name);
    for (std::int64_t k = step - steps + 2; k <= step; ++k) {
      const auto& term = parts_.at(k).gradients.at(name);
      for (std::int64_t i = 0; i < sum.rows(); ++i) {
        for (std::int64_t j = 0; j < sum.columns(); ++j) sum[i][j] += term[i][j];
      }
    }
    return sum;
  }

  void apply(std::int64_t step, const Gradients<S>& gradients, double clip_factor) {
    Arithmetic<S> arithmetic;  // an overflow here shows in the parameters: the next step finds it there
    for (const auto& [name, gradient] : gradients) {
      auto& parameter = parameters_.at(name);
      const Update update{workload::learning_rate(workload_, step), ++parameter.taken, scale_, clip_factor};
      optimize(arithmetic, workload_, update, gradient, parameter);
    }
  }

  /// Appends parameters and state, and puts all in the order of the digest.
  void observe(std::int64_t step, std::vector<Observable>& out) {
    for (auto& [name, parameter] : parameters_) {
      if (!is_updated(name, step)) continue;
      out.push_back({step, Observed::parameter, name, parameter.info.dims, parameter.value.values()});
      for (const auto& [suffix, state] : states(parameter)) {
        out.push_back({step, Observed::state, name + suffix, parameter.info.dims, state->values()});
      }
    }
    std::ranges::stable_sort(out, {}, [](const Observable& o) { return std::tie(o.kind, o.name); });
  }

  workload::Workload workload_;
  double scale_;
  Parameters<S> parameters_;
  History<S> history_;                  // of a stale program
  std::vector<std::string> trainable_;  // in the order of workload::parameters
  struct Part {
    std::map<std::string, Array<Sum<S>>, std::less<>> gradients;
    std::int64_t labels = 0;
  };
  std::map<std::int64_t, Part> parts_;  // by step: those that an update may still be of
};

}  // namespace

std::unique_ptr<Oracle> make_oracle(const workload::Workload& workload, Track track) {
  std::string all;
  for (const auto& finding : workload::findings(workload)) all += (all.empty() ? "" : "\n") + finding;
  if (!all.empty()) throw BadInput(all);
  if (workload.stale && workload.clip > 0) throw BadInput("clip: no stage of a stale program has the whole gradient");
  return dispatch(scalar_of(track), [&](auto scalar) -> std::unique_ptr<Oracle> {
    return std::make_unique<Sequential<decltype(scalar)>>(workload);
  });
}

}  // namespace shardproof::reference
