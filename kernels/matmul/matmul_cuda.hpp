// SPDX-License-Identifier: Apache-2.0
// Products of matrices in device memory.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.hpp"
#include "kernels/matmul/exact_product_row.hpp"

struct cublasContext;

namespace shardproof::matmul {

/// exact: rows 0..m-1. Out-of-range totals are written as fixed_invalid.
void launch(cuda::Stream& stream, const ExactProductRow& row, std::int64_t m);

/// f64 and f32 by cuBLAS, without its shorter formats (TF32). An element with K products differs from the exact sum by
/// at most gamma_(K+1) times the sum of the products' magnitudes, as matmul.hpp says of the CPU's.
class CuBlas {
 public:
  CuBlas();
  ~CuBlas();
  CuBlas(const CuBlas&) = delete;
  CuBlas& operator=(const CuBlas&) = delete;

  /// c[i * n + j] = sum_k a(i,k) b(k,j) for i < m, j < n. A matrix is row-major without gaps or the transpose of one
  /// that is. Sizes are below 2^31 (InternalError).
  template <class S>
  struct Matrix {
    const S* data;
    bool transposed = false;
  };
  template <class S>
  void multiply(cuda::Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k, Matrix<S> a, Matrix<S> b, S* c);

 private:
  cublasContext* handle_ = nullptr;
};

}  // namespace shardproof::matmul
