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

  std::vector<Observable> step(const workload::Batch& batch) override {
    Arithmetic<S> arithmetic;
    if (workload_.stale) history_.begin(batch.step, parameters_);
    for (auto& [name, parameter] : parameters_) {
      for (const S value : parameter.value.values()) arithmetic.checked(value);
      parameter.gradient = Array<Sum<S>>(parameter.value.rows(), parameter.value.columns());
    }
    const auto labels = static_cast<double>(batch.label_count);
    std::vector<S> losses;
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      train_sample(arithmetic, workload_, batch, b, scale_ / labels, parameters_, losses);
    }
    if (workload_.stale) history_.end(batch.step, parameters_);
    Gradients<S> gradients;
    for (const auto& name : trainable_) gradients.emplace_back(name, arithmetic.finish(parameters_.at(name).gradient));

    // A non-finite gradient makes the norm non-finite.
    const double norm = std::sqrt(sum_of_squares(gradients)) / scale_;
    const Skip skipped = arithmetic.overflow() || !std::isfinite(norm) ? non_finite
                         : batch.label_count == 0                      ? no_label
                                                                       : taken;
    const double clip = workload_.clip > 0 ? std::min(1.0, workload_.clip / (norm + 1e-6)) : 1.0;
    if (skipped == taken) apply(batch.step, gradients, clip);

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

  std::vector<Observable> update(std::int64_t step, const std::vector<Values>& values, double clip_factor) override {
    if (values.size() != trainable_.size()) {
      throw InternalError("oracle: " + std::to_string(values.size()) + " gradients for " +
                          std::to_string(trainable_.size()) + " trainable parameters");
    }
    Gradients<S> gradients;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto& value = parameters_.at(trainable_[k]).value;
      gradients.emplace_back(trainable_[k], array_of<S>(values[k], value.rows(), value.columns()));
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

  void apply(std::int64_t step, const Gradients<S>& gradients, double clip_factor) {
    ++taken_;
    Arithmetic<S> arithmetic;  // an overflow here shows in the parameters: the next step finds it there
    const Update update{workload::learning_rate(workload_, step), taken_, scale_, clip_factor};
    for (const auto& [name, gradient] : gradients) {
      optimize(arithmetic, workload_, update, gradient, parameters_.at(name));
    }
  }

  /// Appends parameters and state, and puts all in the order of the digest.
  void observe(std::int64_t step, std::vector<Observable>& out) {
    for (auto& [name, parameter] : parameters_) {
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
  std::int64_t taken_ = 0;
};

}  // namespace

std::unique_ptr<Oracle> make_oracle(const workload::Workload& workload, Track track) {
  std::string all;
  for (const auto& finding : workload::findings(workload)) all += (all.empty() ? "" : "\n") + finding;
  if (!all.empty()) throw BadInput(all);
  return dispatch(scalar_of(track), [&](auto scalar) -> std::unique_ptr<Oracle> {
    return std::make_unique<Sequential<decltype(scalar)>>(workload);
  });
}

}  // namespace shardproof::reference
