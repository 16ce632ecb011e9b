// SPDX-License-Identifier: Apache-2.0
// Arrays of a device, for tests of CUDA kernels: to it and back, each call to its end.
#pragma once

#include <span>
#include <vector>

#include "kernels/core/cuda.hpp"

namespace shardproof::testing {

template <class T>
cuda::Buffer<T> on_device(cuda::Stream& stream, const std::vector<T>& values) {
  cuda::Buffer<T> buffer(std::ssize(values));
  buffer.upload(stream, values);
  stream.synchronize();
  return buffer;
}

/// After the stream's work so far.
template <class T>
std::vector<T> from_device(cuda::Stream& stream, const cuda::Buffer<T>& buffer) {
  std::vector<T> values(static_cast<std::size_t>(buffer.size()));
  buffer.download(stream, std::span<T>(values));
  stream.synchronize();
  return values;
}

}  // namespace shardproof::testing
