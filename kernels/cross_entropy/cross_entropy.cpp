// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "kernels/core/require.hpp"
#include "kernels/cross_entropy/cross_entropy_row.hpp"

namespace shardproof::cross_entropy {

namespace {

void require_vocab(std::string_view kernel, std::int64_t vocab) {
  constexpr auto most = std::int64_t{1} << 22;
  if (vocab >= 1 && vocab < most) return;
  throw NotSupported(std::string(kernel) + ": a vocabulary of " + std::to_string(vocab) + "; it must be 1 to " +
                     std::to_string(most - 1) + ", so that a sum of exponentials is in range");
}

void require_slice(std::string_view kernel, const Tensor& logits, const Slice& slice) {
  require_vocab(kernel, slice.vocab);
  if (slice.first >= 0 && logits.dim(1) <= slice.vocab - slice.first) return;
  throw InternalError(std::string(kernel) + ": no columns " + std::to_string(slice.first) + "+" +
                      std::to_string(logits.dim(1)) + " in a vocabulary of " + std::to_string(slice.vocab));
}

void require_rows(std::string_view kernel, std::int64_t rows, std::initializer_list<const Tensor*> tensors) {
  for (const auto* tensor : tensors) require_elements(kernel, *tensor, rows);
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

/// The largest magnitude of n sums, as a value; 0 but for Fixed.
template <class S>
double greatest([[maybe_unused]] const Sum<S>* sums, [[maybe_unused]] std::int64_t n) {
  double top = 0;
  if constexpr (std::is_same_v<S, Fixed>) {
    for (std::int64_t r = 0; r < n; ++r) top = std::max(top, std::fabs(static_cast<double>(sums[r].raw)) * 0x1p-40);
  }
  return top;
}

}  // namespace

void row_max(Queue& queue, const Tensor& logits, const Tensor& row_max) {
  constexpr auto name = "cross_entropy_row_max";
  const auto rows = logits.dim(0), columns = logits.dim(1);
  require_rows(name, rows, {&row_max});
  dispatch(logits.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const MaximumRow<S> row{scope.read<S>(logits), scope.write<S>(row_max), columns};
      for (std::int64_t r = 0; r < rows; ++r) row(HostTeam<row_lanes<S>>{}, r);
    });
  });
}

void row_sums(Queue& queue, const Tensor& logits, const Tensor& labels, const Slice& slice, const Tensor& row_max,
              const Tensor& row_sum, const Tensor& target, const Accumulator& logit_sum) {
  constexpr auto name = "cross_entropy_row_sums";
  const auto rows = logits.dim(0), columns = logits.dim(1);
  require_slice(name, logits, slice);
  require_rows(name, rows, {&labels, &row_max, &row_sum, &target});
  if (logit_sum) require_elements(name, "logit_sum", logit_sum.elements(), rows);
  dispatch(logits.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const auto* const label = scope.read<std::int32_t>(labels);
      require_labels(label, rows, slice.vocab);
      SumsRow<S> row{};
      row.logits = scope.read<S>(logits);
      row.row_max = scope.read<S>(row_max);
      row.row_sum = scope.write<S>(row_sum);
      row.target = scope.write<S>(target);
      row.logit_sum = logit_sum ? scope.scratch<Sum<S>>(rows) : nullptr;
      row.columns = columns;
      row.first = slice.first;
      for (std::int64_t r = 0; r < rows; ++r) {
        if (row(HostTeam<row_lanes<S>>{}, r, label[r])) scope.raise_overflow();
      }
      if (!logit_sum) return;
      AccumulatorView<S> view(scope, logit_sum, greatest<S>(row.logit_sum, rows));
      for (std::int64_t r = 0; r < rows; ++r) view.add(r, row.logit_sum[r]);
    });
  });
}

void loss(Queue& queue, const Tensor& labels, const Tensor& row_max, const Tensor& row_sum, const Tensor& target,
          const Tensor& logit_sum, double smoothing, std::int64_t vocab, const WideTotal& loss) {
  constexpr auto name = "cross_entropy_loss";
  const auto rows = labels.elements();
  require_vocab(name, vocab);
  require_rows(name, rows, {&row_max, &row_sum, &target});
  if (smoothing > 0) require_rows(name, rows, {&logit_sum});
  dispatch(row_max.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const auto* const label = scope.read<std::int32_t>(labels);
      require_labels(label, rows, vocab);
      const S *const top = scope.read<S>(row_max), *const total = scope.read<S>(row_sum);
      const S *const hit = scope.read<S>(target), *const z = smoothing > 0 ? scope.read<S>(logit_sum) : nullptr;
      const Smoothing<S> weights(smoothing, vocab);
      std::conditional_t<std::is_same_v<S, Fixed>, WideSum, double> sum{};
      for (std::int64_t r = 0; r < rows; ++r) {
        if (label[r] < 0) continue;
        const S value = loss_of(weights, top[r], total[r], hit[r], z != nullptr ? z[r] : S{});
        if (!in_range(value)) scope.raise_overflow();
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

void backward(Queue& queue, const Tensor& logits, const Tensor& labels, const Slice& slice, const Tensor& row_max,
              const Tensor& row_sum, double smoothing, double factor, const Tensor& dlogits) {
  constexpr auto name = "cross_entropy_backward";
  const auto rows = logits.dim(0), columns = logits.dim(1);
  require_slice(name, logits, slice);
  require_rows(name, rows, {&labels, &row_max, &row_sum});
  require_elements(name, dlogits, logits.elements());
  dispatch(logits.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const auto* const label = scope.read<std::int32_t>(labels);
      require_labels(label, rows, slice.vocab);
      const BackwardRow<S> row{scope.read<S>(logits),
                               scope.read<S>(row_max),
                               scope.read<S>(row_sum),
                               scope.write<S>(dlogits),
                               columns,
                               slice.first,
                               Smoothing<S>(smoothing, slice.vocab),
                               static_cast<Real<S>>(factor)};
      for (std::int64_t r = 0; r < rows; ++r) row(HostTeam<row_lanes<S>>{}, r, label[r]);
    });
  });
}

}  // namespace shardproof::cross_entropy
