// SPDX-License-Identifier: Apache-2.0
// The runtime's calls, by "CUDA Runtime API" (the manual's sections are named). Stricter than CUDA in that
//   - the default stream is no stream: what it orders implicitly would hide what the program does not;
//   - copies between host and host, or of a direction that the pointers decide, are refused;
//   - a copy from or to the host's memory is never done when the call returns, as with pinned memory.
#include <cstring>
#include <new>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda_standin/grid.hpp"
#include "kernels/cuda_standin/runtime.hpp"

namespace shardproof::cuda_standin {

namespace {

using Where = Memory::Where;

thread_local cudaError_t last_error = cudaSuccess;

Runtime& runtime() { return Runtime::get(); }

/// What every call returns once a kernel has failed.
cudaError_t sticky() {
  if (!runtime().failed()) return cudaSuccess;
  return runtime().failed_by_address() ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
}

/// "Error Handling": a call returns its own error, or one of earlier work, and the thread remembers it.
cudaError_t result(cudaError_t own) {
  const auto error = sticky() != cudaSuccess ? sticky() : own;
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// f(), which gives an error, where the stream is one.
template <class F>
cudaError_t on(cudaStream_t stream, F f) {
  if (!runtime().has(stream)) return result(cudaErrorInvalidResourceHandle);
  return sticky() != cudaSuccess ? result(sticky()) : result(f());
}

bool within_limits(const dim3& grid, const dim3& block) {
  constexpr unsigned most_threads = 1024, most_z = 64, most_blocks = 65535;
  // A dimension past its own limit first: the product cannot wrap.
  return block.x - 1 < most_threads && block.y - 1 < most_threads && block.z - 1 < most_z &&
         block.x * block.y * block.z <= most_threads && grid.x - 1 < (1u << 31) - 1 && grid.y - 1 < most_blocks &&
         grid.z - 1 < most_blocks;
}

}  // namespace

cudaError_t launch(const cudaLaunchConfig_t& config, std::function<void()> kernel) {
  return on(config.stream, [&] {
    if (config.numAttrs != 0 || config.dynamicSmemBytes != 0) return cudaErrorNotSupported;
    if (!within_limits(config.gridDim, config.blockDim)) return cudaErrorInvalidConfiguration;
    runtime().push(*config.stream, [grid = config.gridDim, block = config.blockDim, kernel = std::move(kernel)] {
      run_grid(grid, block, runtime().options().order, kernel);
    });
    return cudaSuccess;
  });
}

extern "C" {

// "Memory Management"
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (memory == nullptr) return result(cudaErrorInvalidValue);
  *memory = bytes == 0 ? nullptr : runtime().memory().allocate(bytes);
  return result(bytes != 0 && *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Frees once all work that may use it has run.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return result(cudaSuccess);
  runtime().drain_streams();
  return result(runtime().memory().release(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return on(stream, [&] {
    if (bytes == 0) return cudaSuccess;
    // Which way a copy goes is said, not guessed from the pointers.
    if (kind < cudaMemcpyHostToDevice || kind > cudaMemcpyDeviceToDevice) return cudaErrorInvalidMemcpyDirection;
    const auto target = kind == cudaMemcpyDeviceToHost ? Where::outside : Where::inside;
    const auto source = kind == cudaMemcpyHostToDevice ? Where::outside : Where::inside;
    if (runtime().memory().where(to, bytes) != target || runtime().memory().where(from, bytes) != source) {
      return cudaErrorInvalidValue;
    }
    runtime().push(*stream, [=] { std::memcpy(to, from, bytes); });
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return on(stream, [&] {
    if (bytes == 0) return cudaSuccess;
    if (runtime().memory().where(memory, bytes) != Where::inside) return cudaErrorInvalidValue;
    runtime().push(*stream, [=] { std::memset(memory, value, bytes); });
    return cudaSuccess;
  });
}

// "Stream Management"
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (stream == nullptr || flags != cudaStreamNonBlocking) return result(cudaErrorInvalidValue);
  *stream = runtime().make_stream();
  return result(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return result(runtime().end_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!runtime().has(stream)) return result(cudaErrorInvalidResourceHandle);
  stream->drain();
  return result(cudaSuccess);
}

// "If cudaEventRecord() has not been called on event, this call acts as if the record has already completed." The
// record that counts is the last before this call.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (event == nullptr || flags != 0) return result(cudaErrorInvalidValue);
  return on(stream, [&] {
    const auto record = event->last;
    if (record.number == 0) return cudaSuccess;
    stream->push([record, progress = event->progress] {
      runtime().demand(record.stream, record.work);
      progress->wait(record.number);
    });
    return cudaSuccess;
  });
}

// "Event Management"
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (event == nullptr || flags != cudaEventDisableTiming) return result(cudaErrorInvalidValue);
  *event = new CUevent_st;
  return result(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  delete event;
  return result(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  return on(stream, [&] {
    const auto number = event->last.number + 1;
    const auto work = stream->push([progress = event->progress, number] { progress->reach(number); });
    event->last = {stream, work, number};
    return cudaSuccess;
  });
}

// "Error Handling"
cudaError_t cudaPeekAtLastError() { return sticky() != cudaSuccess ? sticky() : last_error; }

cudaError_t cudaGetLastError() {
  const auto error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported: return "cudaErrorNotSupported";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:  // CUDA cannot say more than that it failed
      return runtime().failed() ? runtime().failure().c_str() : "a kernel failed";
    case cudaErrorNotSupported: return "operation not supported";
  }
  return "unrecognized error code";
}

}  // extern "C"

}  // namespace shardproof::cuda_standin
