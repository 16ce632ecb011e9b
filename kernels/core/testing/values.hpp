// SPDX-License-Identifier: Apache-2.0
// For typed tests over Fixed, double and float: scalars in, scalars out.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/sha256.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof::testing {

/// R of uniform numbers in [low, high).
template <class S>
std::vector<S> random(std::string_view name, std::int64_t n, double low = -1, double high = 1) {
  std::vector<S> values;
  for (const double v : uniform(7, name, n, low, high)) values.push_back(round_to<S>(static_cast<Real<S>>(v)));
  return values;
}

/// A device tensor with these elements.
template <class T>
Tensor put(Queue& queue, std::string name, Dims dims, const std::vector<T>& values) {
  Tensor tensor(queue, {std::move(name), dtype_of<T>(), dims, Category::workspace});
  upload<T>(queue, tensor, values);
  return tensor;
}
/// One without: poison until a kernel writes it.
template <class T>
Tensor blank(Queue& queue, std::string name, Dims dims) {
  return Tensor(queue, {std::move(name), dtype_of<T>(), dims, Category::workspace});
}

/// SHA-256 of the elements' bytes: pins the bits of a kernel.
template <class T>
std::string bytes_digest(const std::vector<T>& values) {
  return Sha256().add(std::as_bytes(std::span(values))).finish_hex();
}

/// The exact bits, for EXPECT_EQ and its messages.
inline std::int64_t bits(Fixed a) { return a.raw; }
inline std::int64_t bits(double a) {
  std::int64_t word;
  std::memcpy(&word, &a, sizeof word);
  return word;
}
inline std::int32_t bits(float a) {
  std::int32_t word;
  std::memcpy(&word, &a, sizeof word);
  return word;
}

/// Unit roundoff of the floating-point tracks.
template <class S>
inline constexpr double roundoff = sizeof(S) == 4 ? 0x1p-24 : 0x1p-53;

}  // namespace shardproof::testing
