// SPDX-License-Identifier: Apache-2.0
// The products behind linear maps and attention, on memory that a kernel has opened. FLOPs are the callers' to count.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/core/accumulator.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::matmul {

/// A matrix in memory: element (i, j) at data[i * row_stride + j * column_stride]; one of the strides is 1.
template <class S>
struct View {
  const S* data;
  std::int64_t row_stride, column_stride;
};

/// Memory that one kernel's products share, allocated when a product needs it and kept until the kernel ends. One
/// product needs at most 4 MiB.
class Workspace {
 public:
  explicit Workspace(KernelScope& scope) : scope_(scope) {}

  KernelScope& scope() { return scope_; }
  /// Room for n elements, contents unspecified; valid until the next call.
  double* panels(std::int64_t n);
  FixedSum* totals(std::int64_t n);

 private:
  template <class T>
  struct Buffer {
    T* data = nullptr;
    std::int64_t size = 0;
  };
  template <class T>
  T* grown(Buffer<T>& buffer, std::int64_t n);

  KernelScope& scope_;
  Buffer<double> panels_;
  Buffer<FixedSum> totals_;
};

/// c[i * c_stride + j] = fin(bias[j] + sum_k product(a(i,k), b(k,j))) for i < m, j < n; bias may be nullptr, k may be
/// 0. exact: an FMA and an integer add per product where the operands' magnitudes allow it (fma_fits of kernels/core),
/// 128-bit products where not; out-of-range totals are written as fixed_invalid, and true is returned if there is one.
/// f64: CBLAS; f32: oneDNN; false is returned.
template <class S>
bool multiply(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<S> a, View<S> b, const S* bias,
              S* c, std::int64_t c_stride);

/// An accumulator that one kernel adds several products to, on one or more levels: no two products of a level add to
/// the same element. It grows by the largest bound of each level, not by the sum over all products.
template <class S>
class Sums {
 public:
  Sums(KernelScope& scope, Accumulator sum, std::int64_t levels = 1)
      : scope_(scope), sum_(std::move(sum)), bounds_(static_cast<std::size_t>(levels)) {}

  /// The level of the products that follow; 0 at first.
  void enter(std::int64_t level) { level_ = static_cast<std::size_t>(level); }
  std::int64_t elements() const { return sum_.elements(); }
  /// For a product whose sums are within `bound` (as AccumulatorView takes it, and `assigns`); valid until the next
  /// call.
  AccumulatorView<S>& view(double bound, bool assigns = false) {
    auto& largest = bounds_.at(level_);
    if (!view_ || bound > largest) {
      view_.emplace(scope_, sum_, bound - largest, assigns);
      largest = bound;
    }
    return *view_;
  }

 private:
  KernelScope& scope_;
  Accumulator sum_;
  std::optional<AccumulatorView<S>> view_;
  std::vector<double> bounds_;  // by level
  std::size_t level_ = 0;
};

/// sums[first + i * stride + j] += sum_k product(a(i,k), b(k,j)), an unfinished sum.
template <class S>
void multiply_add(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<S> a, View<S> b,
                  Sums<S>& sums, std::int64_t first, std::int64_t stride);

/// totals[i * stride + j] += sum_k product(a(i,k), b(k,j)), true totals.
void multiply_add(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<Fixed> a, View<Fixed> b,
                  FixedSum* totals, std::int64_t stride);

}  // namespace shardproof::matmul
