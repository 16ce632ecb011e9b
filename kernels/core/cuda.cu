// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "kernels/core/cuda.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/launch.cuh"

namespace shardproof::cuda {

namespace {

void require_size(const char* call, std::int64_t has, std::int64_t given) {
  if (has == given) return;
  throw InternalError(std::string(call) + ": device memory of " + std::to_string(has) + " bytes and host memory of " +
                      std::to_string(given));
}

}  // namespace

void check(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return;
  throw DeviceError(std::string(call) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

// Of the default stream's implicit order nothing is wanted, nor are times taken with events.
Stream::Stream() { check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking)); }
Stream::~Stream() { cudaStreamDestroy(handle_); }
void Stream::wait(const Event& event) { check("cudaStreamWaitEvent", cudaStreamWaitEvent(handle_, event.handle_, 0)); }
void Stream::synchronize() { check("cudaStreamSynchronize", cudaStreamSynchronize(handle_)); }

Event::Event() { check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming)); }
Event::~Event() { cudaEventDestroy(handle_); }
void Event::record(Stream& stream) { check("cudaEventRecord", cudaEventRecord(handle_, stream.handle())); }

Memory::Memory(std::int64_t bytes) : bytes_(bytes) {
  check("cudaMalloc", cudaMalloc(&data_, static_cast<std::size_t>(bytes)));
}
Memory::~Memory() { cudaFree(data_); }

void Memory::upload(Stream& stream, const void* from, std::int64_t bytes) {
  require_size("upload", bytes_, bytes);
  if (bytes == 0) return;
  check("cudaMemcpyAsync",
        cudaMemcpyAsync(data_, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream.handle()));
}

void Memory::download(Stream& stream, void* to, std::int64_t bytes) const {
  require_size("download", bytes_, bytes);
  if (bytes == 0) return;
  check("cudaMemcpyAsync",
        cudaMemcpyAsync(to, data_, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream.handle()));
}

void Memory::zero(Stream& stream) {
  if (bytes_ == 0) return;
  check("cudaMemsetAsync", cudaMemsetAsync(data_, 0, static_cast<std::size_t>(bytes_), stream.handle()));
}

}  // namespace shardproof::cuda
