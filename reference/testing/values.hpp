// SPDX-License-Identifier: Apache-2.0
// Writing hand-computed cases once for all scalars.
#pragma once

#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "reference/arithmetic.hpp"

namespace shardproof::reference::testing {

using Scalars = ::testing::Types<Fixed, double, float>;

/// The largest error of rounding a value of magnitude up to 8 once. Cases count roundings in this unit.
template <class S>
constexpr double unit() {
  if constexpr (std::is_same_v<S, Fixed>) return 0x1p-41;
  return std::is_same_v<S, double> ? 0x1p-50 : 0x1p-21;
}

template <class S>
std::vector<S> scalars(std::initializer_list<double> values) {
  std::vector<S> out;
  for (const double value : values) out.push_back(round_to<S>(static_cast<Real<S>>(value)));
  return out;
}

template <class S>
Array<S> array(std::int64_t rows, std::int64_t columns, std::initializer_list<double> values) {
  return Array<S>(rows, columns, scalars<S>(values));
}

/// Each element within so many units. 0: the very value.
template <class S>
void expect(const std::vector<S>& got, std::initializer_list<double> want, double units = 0) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(real(got[i])), want.begin()[i], units * unit<S>()) << "element " << i;
  }
}
template <class S>
void expect(const Array<S>& got, std::initializer_list<double> want, double units = 0) {
  expect(got.values(), want, units);
}

}  // namespace shardproof::reference::testing
