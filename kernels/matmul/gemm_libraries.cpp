// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <string>

#include <cblas.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include "kernels/core/errors.hpp"
#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {

namespace {

/// How BLAS takes a view of so many columns.
struct Operand {
  bool transposed;
  std::int64_t leading;
};
template <class S>
Operand operand(View<S> v, std::int64_t rows, std::int64_t columns) {
  if (v.column_stride == 1) return {false, std::max({v.row_stride, columns, std::int64_t{1}})};
  return {true, std::max({v.column_stride, rows, std::int64_t{1}})};
}

/// BLAS would take a size that it cannot hold for another one, or print and do nothing.
blasint blas_size(std::int64_t size) {
  if (size <= std::numeric_limits<blasint>::max()) return static_cast<blasint>(size);
  throw NotSupported("f64 matmul: a matrix has " + std::to_string(size) +
                     " rows, columns or elements from row to row; " + "this BLAS takes at most " +
                     std::to_string(std::numeric_limits<blasint>::max()));
}

/// c = (or +=) a b
void library_product(std::int64_t m, std::int64_t n, std::int64_t k, View<double> a, View<double> b, bool add,
                     double* c, std::int64_t c_stride) {
  [[maybe_unused]] static const bool once = (openblas_set_num_threads(1), true);
  const auto op = [](Operand o) { return o.transposed ? CblasTrans : CblasNoTrans; };
  const auto oa = operand(a, m, k), ob = operand(b, k, n);
  cblas_dgemm(CblasRowMajor, op(oa), op(ob), blas_size(m), blas_size(n), blas_size(k), 1.0, a.data,
              blas_size(oa.leading), b.data, blas_size(ob.leading), add ? 1.0 : 0.0, c, blas_size(c_stride));
}

void library_product(std::int64_t m, std::int64_t n, std::int64_t k, View<float> a, View<float> b, bool add, float* c,
                     std::int64_t c_stride) {
  // OpenMP keeps the number of threads per calling thread.
  [[maybe_unused]] thread_local const bool once = (omp_set_num_threads(1), true);
  const auto oa = operand(a, m, k), ob = operand(b, k, n);
  // A deep product of a transposed matrix, which every gradient of a weight is, goes a quarter faster in parts: of the
  // depths from 256 to 2048, 512 was the best for all of `laptop`'s shapes.
  const auto depth = oa.transposed ? std::int64_t{512} : k;
  for (std::int64_t first = 0; first < k; first += depth) {
    const auto status =
        dnnl_sgemm(oa.transposed ? 'T' : 'N', ob.transposed ? 'T' : 'N', m, n, std::min(depth, k - first), 1.0f,
                   a.data + first * a.column_stride, oa.leading, b.data + first * b.row_stride, ob.leading,
                   add || first > 0 ? 1.0f : 0.0f, c, c_stride);
    if (status == dnnl_success) continue;
    throw DeviceError("dnnl_sgemm failed with status " + std::to_string(status) + " for " + std::to_string(m) + "x" +
                      std::to_string(n) + "x" + std::to_string(k));
  }
}

template <class S>
bool multiply_by_library(std::int64_t m, std::int64_t n, std::int64_t k, View<S> a, View<S> b, const S* bias, S* c,
                         std::int64_t c_stride) {
  const bool is_sum = m > 0 && n > 0 && k > 0;
  for (std::int64_t i = 0; i < m && (bias != nullptr || !is_sum); ++i) {
    bias != nullptr ? std::copy_n(bias, n, c + i * c_stride) : std::fill_n(c + i * c_stride, n, S{});
  }
  if (is_sum) library_product(m, n, k, a, b, bias != nullptr, c, c_stride);
  return false;
}

template <class S>
void add_by_library(std::int64_t m, std::int64_t n, std::int64_t k, View<S> a, View<S> b, Sums<S>& sums,
                    std::int64_t first, std::int64_t stride) {
  const bool is_sum = m > 0 && n > 0 && k > 0;
  auto& view = sums.view(0, is_sum && stride == n && m * n == sums.elements());
  if (is_sum) library_product(m, n, k, a, b, !view.take_blank(), view.data() + first, stride);
}

}  // namespace

template <>
bool multiply(Workspace&, std::int64_t m, std::int64_t n, std::int64_t k, View<double> a, View<double> b,
              const double* bias, double* c, std::int64_t c_stride) {
  return multiply_by_library(m, n, k, a, b, bias, c, c_stride);
}
template <>
bool multiply(Workspace&, std::int64_t m, std::int64_t n, std::int64_t k, View<float> a, View<float> b,
              const float* bias, float* c, std::int64_t c_stride) {
  return multiply_by_library(m, n, k, a, b, bias, c, c_stride);
}
template <>
void multiply_add(Workspace&, std::int64_t m, std::int64_t n, std::int64_t k, View<double> a, View<double> b,
                  Sums<double>& sums, std::int64_t first, std::int64_t stride) {
  add_by_library(m, n, k, a, b, sums, first, stride);
}
template <>
void multiply_add(Workspace&, std::int64_t m, std::int64_t n, std::int64_t k, View<float> a, View<float> b,
                  Sums<float>& sums, std::int64_t first, std::int64_t stride) {
  add_by_library(m, n, k, a, b, sums, first, stride);
}

}  // namespace shardproof::matmul
