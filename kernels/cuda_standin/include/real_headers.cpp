// SPDX-License-Identifier: Apache-2.0
// Compiled where there is a toolkit: a call whose types are not those of its headers is an error.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "kernels/cuda_standin/include/cublas_calls.h"
#include "kernels/cuda_standin/include/cudart_calls.h"

static_assert(cudaErrorInvalidValue == 1 && cudaErrorMemoryAllocation == 2 && cudaErrorInvalidConfiguration == 9 &&
              cudaErrorInvalidMemcpyDirection == 21 && cudaErrorInvalidResourceHandle == 400 &&
              cudaErrorIllegalAddress == 700 && cudaErrorLaunchFailure == 719 && cudaErrorNotSupported == 801);
static_assert(cudaMemcpyHostToDevice == 1 && cudaMemcpyDeviceToHost == 2 && cudaMemcpyDeviceToDevice == 3);
static_assert(cudaStreamNonBlocking == 1 && cudaEventDisableTiming == 2);
static_assert(CUBLAS_STATUS_INVALID_VALUE == 7 && CUBLAS_STATUS_EXECUTION_FAILED == 13 && CUBLAS_OP_T == 1 &&
              CUBLAS_PEDANTIC_MATH == 2);
