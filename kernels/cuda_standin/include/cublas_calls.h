// SPDX-License-Identifier: Apache-2.0
// The calls of cuBLAS that this project makes; as cudart_calls.h.
#pragma once

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
const char* cublasGetStatusString(cublasStatus_t status);

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int a_stride, const float* b, int b_stride,
                              const float* beta, float* c, int c_stride);
cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const double* alpha, const double* a, int a_stride, const double* b, int b_stride,
                              const double* beta, double* c, int c_stride);
}
