// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_yardstick.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::harness {
namespace {

/// The same for every tensor, technique and device; judge_test.cpp shows that other orders of summation stay under
/// half.
constexpr double yardstick_factor = 8;

constexpr std::array table = {
    Precision{Dtype::f64, "f32", 0x1p-53, 0x1p-29, 0x1p-1074}, Precision{Dtype::f32, "f32", 0x1p-24, 1, 0x1p-149},
    Precision{Dtype::f16, "f16", 0x1p-11, 1, 0x1p-24}, Precision{Dtype::bf16, "bf16", 0x1p-8, 1, 0x1p-133}};

/// x, or one of its neighbours.
float moved(float x, std::uint32_t random) {
  if (random % 3 == 0) return x;
  return std::nextafter(
      x, random % 3 == 1 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
}

}  // namespace

std::vector<float> moved_by_an_ulp(std::span<const double> values, std::string_view name, std::int64_t draw,
                                   std::int64_t step) {
  std::vector<float> rough(values.begin(), values.end());
  if (draw == 0) return rough;
  const RandomStream stream(static_cast<std::uint64_t>(draw), fmt::format("{}.step.{}", name, step));
  for (std::size_t i = 0; i < rough.size(); ++i) rough[i] = moved(rough[i], stream.word(i));
  return rough;
}

std::span<const Precision> precisions() { return table; }

const Precision& precision_of(Dtype dtype) {
  const auto* const found = std::ranges::find(table, dtype, &Precision::dtype);
  if (found == table.end()) throw InternalError(fmt::format("{} is no precision", name_of(dtype)));
  return *found;
}

double Yardstick::bound(Observed kind, std::string_view name, double greatest, double e, bool zero, bool used) const {
  if (kind == Observed::skipped) return 0;
  const double unit = precision.unit;
  double bound = yardstick_factor * (e * precision.shrink + unit * greatest);
  if (kind == Observed::loss) bound += labels * 0x1p-53 * greatest;
  if (kind == Observed::norm || kind == Observed::clip) bound += elements * 0x1p-53 * greatest;
  // A parameter that is used nowhere has no terms.
  if (kind != Observed::gradient || !used) return bound;
  // Zero by terms that cancel to the last bit in the oracle's order, as where a query sees one key only: in another
  // order what is left is a rounding of terms that the model's gradients bound.
  if (zero || name.ends_with(".attention.key.bias")) bound = std::max(bound, yardstick_factor * unit * model);
  return bound + terms * precision.tiny;
}

}  // namespace shardproof::harness
