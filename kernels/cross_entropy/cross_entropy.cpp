// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <string>

#include "kernels/core/require.hpp"
#include "kernels/cross_entropy/cross_entropy_row.hpp"

namespace shardproof::cross_entropy {

namespace {

/// Throws unless the row kernels may run; returns the vocabulary's size.
std::int64_t require_shapes(std::string_view kernel, const Tensor& logits, const Tensor& labels, const Tensor& row_max,
                            const Tensor& row_sum) {
  const auto vocab = logits.dim(1);
  constexpr auto most = std::int64_t{1} << 22;
  if (vocab < 1 || vocab >= most) {
    throw NotSupported(std::string(kernel) + ": a vocabulary of " + std::to_string(vocab) + "; it must be 1 to " +
                       std::to_string(most - 1) + ", so that a sum of exponentials is in range");
  }
  require_elements(kernel, labels, logits.dim(0));
  require_elements(kernel, row_max, logits.dim(0));
  require_elements(kernel, row_sum, logits.dim(0));
  return vocab;
}

void require_labels(const std::int32_t* labels, std::int64_t n, std::int64_t vocab) {
  for (std::int64_t r = 0; r < n; ++r) {
    if (labels[r] >= -1 && labels[r] < vocab) continue;
    throw DeviceError("cross_entropy: label " + std::to_string(labels[r]) + " at row " + std::to_string(r) +
                      " is outside -1.." + std::to_string(vocab - 1));
  }
}

void add(KernelScope& scope, const WideSum& sum, const WideTotal& total) {
  auto* const lane = scope.update<std::int64_t>(total.tensor());
  for (std::size_t k = 0; k < sum.lane.size(); ++k) lane[k] += sum.lane[k];
}
void add(KernelScope& scope, double sum, const WideTotal& total) { *scope.update<double>(total.tensor()) += sum; }

}  // namespace

void forward(Queue& queue, const Tensor& logits, const Tensor& labels, double smoothing, const Tensor& row_max,
             const Tensor& row_sum, const WideTotal& loss) {
  const auto vocab = require_shapes("cross_entropy_forward", logits, labels, row_max, row_sum);
  dispatch(logits.dtype(), [&]<class S>(S) {
    queue.submit("cross_entropy_forward", [=](KernelScope& scope) {
      const auto* const label = scope.read<std::int32_t>(labels);
      require_labels(label, labels.elements(), vocab);
      const ForwardRow<S> row{scope.read<S>(logits), scope.write<S>(row_max), scope.write<S>(row_sum), vocab,
                              Smoothing<S>(smoothing, vocab)};
      std::conditional_t<std::is_same_v<S, Fixed>, WideSum, double> sum{};
      for (std::int64_t r = 0; r < labels.elements(); ++r) {
        const auto [value, overflow] = row(HostTeam<row_lanes<S>>{}, r, label[r]);
        if (overflow) scope.raise_overflow();
        if constexpr (std::is_same_v<S, Fixed>) {
          sum.add(value.raw);
        } else {
          sum += double{value};
        }
      }
      add(scope, sum, loss);
    });
  });
}

void backward(Queue& queue, const Tensor& logits, const Tensor& labels, const Tensor& row_max, const Tensor& row_sum,
              double smoothing, double factor, const Tensor& dlogits) {
  const auto vocab = require_shapes("cross_entropy_backward", logits, labels, row_max, row_sum);
  require_elements("cross_entropy_backward", dlogits, logits.elements());
  dispatch(logits.dtype(), [&]<class S>(S) {
    queue.submit("cross_entropy_backward", [=](KernelScope& scope) {
      const auto* const label = scope.read<std::int32_t>(labels);
      require_labels(label, labels.elements(), vocab);
      const BackwardRow<S> row{scope.read<S>(logits),
                               scope.read<S>(row_max),
                               scope.read<S>(row_sum),
                               scope.write<S>(dlogits),
                               vocab,
                               Smoothing<S>(smoothing, vocab),
                               static_cast<Real<S>>(factor)};
      for (std::int64_t r = 0; r < labels.elements(); ++r) row(HostTeam<row_lanes<S>>{}, r, label[r]);
    });
  });
}

}  // namespace shardproof::cross_entropy
