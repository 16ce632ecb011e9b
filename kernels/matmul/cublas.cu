// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include <cublas_v2.h>

#include "kernels/core/errors.hpp"
#include "kernels/matmul/matmul_cuda.hpp"

namespace shardproof::matmul {

namespace {

void check(const char* call, cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + ": " + cublasGetStatusString(status));
}

int size_of(std::int64_t n) {
  if (n < 0 || n > std::numeric_limits<int>::max()) {
    throw InternalError("cuBLAS: a matrix with " + std::to_string(n) + " rows or columns");
  }
  return static_cast<int>(n);
}

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const float* a, int a_stride, const float* b, int b_stride, float* c) {
  const float one = 1, zero = 0;
  return cublasSgemm(handle, op_a, op_b, m, n, k, &one, a, a_stride, b, b_stride, &zero, c, m);
}
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                    const double* a, int a_stride, const double* b, int b_stride, double* c) {
  const double one = 1, zero = 0;
  return cublasDgemm(handle, op_a, op_b, m, n, k, &one, a, a_stride, b, b_stride, &zero, c, m);
}

}  // namespace

CuBlas::CuBlas() {
  check("cublasCreate", cublasCreate(&handle_));
  check("cublasSetMathMode", cublasSetMathMode(handle_, CUBLAS_PEDANTIC_MATH));
}
CuBlas::~CuBlas() { cublasDestroy(handle_); }

template <class S>
void CuBlas::multiply(cuda::Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k, Matrix<S> a, Matrix<S> b,
                      S* c) {
  const int rows = size_of(m), columns = size_of(n), depth = size_of(k);
  if (rows == 0 || columns == 0) return;
  // Column-major, row-major matrices are their transposes: c^T = b^T a^T.
  const auto op = [](const Matrix<S>& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const auto stride = [](int own, int other, bool transposed) {
    const int length = transposed ? other : own;
    return length > 0 ? length : 1;
  };
  check("cublasSetStream", cublasSetStream(handle_, stream.handle()));
  check("cublasGemm", gemm(handle_, op(b), op(a), columns, rows, depth, b.data, stride(columns, depth, b.transposed),
                           a.data, stride(depth, rows, a.transposed), c));
}

template void CuBlas::multiply(cuda::Stream&, std::int64_t, std::int64_t, std::int64_t, Matrix<float>, Matrix<float>,
                               float*);
template void CuBlas::multiply(cuda::Stream&, std::int64_t, std::int64_t, std::int64_t, Matrix<double>, Matrix<double>,
                               double*);

}  // namespace shardproof::matmul
