// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Takes elements in order and keeps the worst.
class Worst {
 public:
  void add(std::size_t i, double candidate, double oracle, double error, double bound) {
    const bool inside = error <= bound;  // false for a NaN
    const double over = inside && error == 0 ? 0 : (error / bound <= infinity ? error / bound : infinity);
    keep(i, candidate, oracle, error, bound, inside, over);
  }
  /// Of an element that may not differ and does, however small the error is as a double.
  void add_difference(std::size_t i, double candidate, double oracle, double error) {
    keep(i, candidate, oracle, error, 0, false, infinity);
  }
  Comparison result;

 private:
  void keep(std::size_t i, double candidate, double oracle, double error, double bound, bool inside, double over) {
    if (!inside) ++result.outside;
    if (over > result.worst) {
      result = {result.outside, static_cast<std::int64_t>(i), candidate, oracle, error, bound, over};
    }
  }
};

template <class T>
bool same_bits(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a + 0.0) == std::bit_cast<std::uint64_t>(b + 0.0);  // -0 + 0 is +0
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(a + 0.0f) == std::bit_cast<std::uint32_t>(b + 0.0f);
  } else {
    return a == b;
  }
}

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, Fixed>)
    return real(x);
  else
    return static_cast<double>(x);
}

/// Of values that differ; raw ones and counts may do so and be equal as doubles.
template <class T>
double distance(T a, T b) {
  if constexpr (std::is_same_v<T, Fixed>)
    return static_cast<double>(a.raw > b.raw ? int128{a.raw} - b.raw : int128{b.raw} - a.raw) * 0x1p-40;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return static_cast<double>(a > b ? int128{a} - b : int128{b} - a);
  else
    return std::fabs(number(a) - number(b));
}

}  // namespace

Comparison compare_bits(const Values& candidate, const Values& oracle) {
  if (candidate.index() != oracle.index() || size_of(candidate) != size_of(oracle)) {
    throw InternalError("compare_bits: tensors of different type or size");
  }
  return std::visit(
      [&]<class T>(const std::vector<T>& c) {
        const auto& o = std::get<std::vector<T>>(oracle);
        Worst worst;
        for (std::size_t i = 0; i < c.size(); ++i) {
          if (same_bits(c[i], o[i])) continue;
          worst.add_difference(i, number(c[i]), number(o[i]), distance(c[i], o[i]));
        }
        return worst.result;
      },
      candidate);
}

Comparison compare_bounded(std::span<const double> candidate, std::span<const double> oracle,
                           std::span<const double> bounds) {
  if (candidate.size() != oracle.size() || (bounds.size() != 1 && bounds.size() != oracle.size())) {
    throw InternalError("compare_bounded: tensors of different sizes");
  }
  Worst worst;
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    worst.add(i, candidate[i], oracle[i], std::fabs(candidate[i] - oracle[i]), bounds[bounds.size() == 1 ? 0 : i]);
  }
  return worst.result;
}

double greatest_magnitude(std::span<const double> values) {
  double greatest = 0;
  for (const double x : values) {
    if (!(std::fabs(x) <= greatest)) greatest = std::fabs(x);
  }
  return greatest;
}

double greatest_difference(std::span<const double> a, std::span<const double> b) {
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;
    if (difference > greatest) greatest = difference;
  }
  return greatest;
}

std::optional<double> constant_ratio(std::span<const double> candidate, std::span<const double> oracle, double slack) {
  std::size_t at = 0, telling = 0;
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    if (std::fabs(oracle[i]) > std::fabs(oracle[at])) at = i;
    if (std::fabs(oracle[i]) > 16 * slack) ++telling;
  }
  if (telling < 2) return std::nullopt;
  const double ratio = candidate[at] / oracle[at];
  if (!(std::fabs(candidate[at] - oracle[at]) > 4 * slack)) return std::nullopt;  // no ratio but 1
  for (std::size_t i = 0; i < oracle.size(); ++i) {
    // The ratio itself is known to slack/|oracle[at]|, and |oracle[i]| <= |oracle[at]|.
    if (!(std::fabs(candidate[i] - ratio * oracle[i]) <= (2 + std::fabs(ratio)) * slack)) return std::nullopt;
  }
  return ratio;
}

std::optional<CommonRatio> common_ratio(std::vector<double> ratios) {
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  const double middle = ratios[ratios.size() / 2];
  return CommonRatio{middle, std::ranges::count_if(
                                 ratios, [&](double r) { return std::fabs(r - middle) <= 1e-4 * std::fabs(middle); })};
}

}  // namespace shardproof::harness
