// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/core/dtype.hpp"

namespace shardproof {

/// What carries a run's numbers (reference/ARITHMETIC.md, section 1).
enum class Track : std::uint8_t { exact, f64, native };

constexpr std::string_view name_of(Track track) {
  constexpr std::string_view names[] = {"exact", "f64", "native"};
  return names[static_cast<std::size_t>(track)];
}
/// The dtype of parameters, activations and gradients, and that of optimizer state.
constexpr Dtype scalar_of(Track track) {
  constexpr Dtype types[] = {Dtype::fixed, Dtype::f64, Dtype::f32};
  return types[static_cast<std::size_t>(track)];
}
constexpr Dtype state_of(Track track) { return track == Track::native ? Dtype::f32 : Dtype::f64; }

}  // namespace shardproof
