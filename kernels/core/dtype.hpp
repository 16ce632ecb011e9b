// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/core/dims.hpp"
#include "kernels/core/scalar.hpp"

namespace shardproof {

enum class Dtype : std::uint8_t { fixed, f64, f32, bf16, f16, i64, i32, u8 };

std::size_t size_of(Dtype dtype);
/// "q23.40", "f64", ...: as digests and messages write it.
std::string_view name_of(Dtype dtype);

template <class T>
constexpr Dtype dtype_of();
template <>
constexpr Dtype dtype_of<Fixed>() {
  return Dtype::fixed;
}
template <>
constexpr Dtype dtype_of<double>() {
  return Dtype::f64;
}
template <>
constexpr Dtype dtype_of<float>() {
  return Dtype::f32;
}
template <>
constexpr Dtype dtype_of<std::int64_t>() {
  return Dtype::i64;
}
template <>
constexpr Dtype dtype_of<std::int32_t>() {
  return Dtype::i32;
}
template <>
constexpr Dtype dtype_of<std::uint8_t>() {
  return Dtype::u8;
}

/// The product of the dims; 1 for no dims. Throws BadInput for a negative dim or a product above 2^59 (whose bytes
/// would not fit 63 bits).
std::int64_t elements_of(const Dims& dims);

/// Throws NotSupported: "NAME is not the scalar of a track (q23.40, f64, f32)".
[[noreturn]] void refuse_scalar(Dtype dtype);

/// Calls f(S{}) with the scalar type of a track's dtype; throws NotSupported for any other.
template <class F>
decltype(auto) dispatch(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::fixed: return f(Fixed{});
    case Dtype::f64: return f(double{});
    case Dtype::f32: return f(float{});
    default: refuse_scalar(dtype);
  }
}

}  // namespace shardproof
