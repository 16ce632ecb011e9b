// SPDX-License-Identifier: Apache-2.0
// cuBLAS on the host ("cublas<t>gemm()" of its manual): column-major, c = alpha op(a) op(b) + beta c, where c is not
// read if beta is 0. An element is the sum of its products in ascending k, each operation rounded once; the library's
// own order is its secret, so that results are judged by a bound.
#include <algorithm>
#include <cstdint>

#include <cublas_v2.h>

#include "kernels/cuda_standin/runtime.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace shardproof::cuda_standin {

namespace {

template <class S>
struct Gemm {
  cublasOperation_t op_a, op_b;
  int m, n, k;
  S alpha;
  const S* a;
  std::int64_t a_stride;
  const S* b;
  std::int64_t b_stride;
  S beta;
  S* c;
  std::int64_t c_stride;

  void run() const {
    const auto at = [](const S* x, std::int64_t stride, cublasOperation_t op, std::int64_t i, std::int64_t j) {
      return op == CUBLAS_OP_N ? x[j * stride + i] : x[i * stride + j];
    };
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        S sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += at(a, a_stride, op_a, i, l) * at(b, b_stride, op_b, l, j);
        S& element = c[j * c_stride + i];
        element = beta == 0 ? alpha * sum : alpha * sum + beta * element;
      }
    }
  }
};

template <class S>
cublasStatus_t submit(cublasHandle_t handle, const Gemm<S>& g) {
  const auto is_op = [](cublasOperation_t op) { return op == CUBLAS_OP_N || op == CUBLAS_OP_T; };
  if (handle == nullptr || !is_op(g.op_a) || !is_op(g.op_b) || g.m < 0 || g.n < 0 || g.k < 0 ||
      g.a_stride < std::max(1, g.op_a == CUBLAS_OP_N ? g.m : g.k) ||
      g.b_stride < std::max(1, g.op_b == CUBLAS_OP_N ? g.k : g.n) || g.c_stride < std::max(1, g.m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  auto& runtime = Runtime::get();
  if (!runtime.has(handle->stream) || runtime.failed()) return CUBLAS_STATUS_EXECUTION_FAILED;
  runtime.push(*handle->stream, [g] { g.run(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr || !Runtime::get().has(stream)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

// Both modes that the stand-in's header names compute in the matrices' own type.
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t) {
  return handle != nullptr ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
  }
  return "unknown status";
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int a_stride, const float* b, int b_stride,
                              const float* beta, float* c, int c_stride) {
  return submit<float>(handle, {op_a, op_b, m, n, k, *alpha, a, a_stride, b, b_stride, *beta, c, c_stride});
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const double* alpha, const double* a, int a_stride, const double* b, int b_stride,
                              const double* beta, double* c, int c_stride) {
  return submit<double>(handle, {op_a, op_b, m, n, k, *alpha, a, a_stride, b, b_stride, *beta, c, c_stride});
}

}  // extern "C"

}  // namespace shardproof::cuda_standin
