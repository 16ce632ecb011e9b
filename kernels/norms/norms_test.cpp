// SPDX-License-Identifier: Apache-2.0
#include "kernels/norms/norms.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 2, 63, 65, 10007};

TEST(NormsFixed, IsTheWideSumOfSquares) {
  Device device;
  ImmediateQueue queue(device);
  for (const std::int64_t n : sizes) {
    // Magnitudes up to the limit, where one square has 124 bits; the extremes lead.
    auto x = testing::random<Fixed>("x", n, -4194303, 4194303);
    const Fixed extremes[] = {Fixed{fixed_limit - 1}, Fixed{1 - fixed_limit}, Fixed{-1},
                              Fixed{(std::int64_t{1} << 32) - 1}};
    for (std::size_t i = 0; i < std::min<std::size_t>(x.size(), 4); ++i) x[i] = extremes[i];
    for (std::size_t i = 9; i < x.size(); i += 7) x[i].raw >>= 31;
    const auto tensor = testing::put(queue, "x", {n}, x);
    const WideTotal total(queue, Dtype::fixed, "total");
    norms::sum_of_squares(queue, tensor, total);
    norms::sum_of_squares(queue, tensor, total);  // adds

    // Independent of WideSum's lanes: 128-bit terms in base 2^64.
    uint128 low = 0, high = 0;
    for (const Fixed v : x) {
      const uint128 square = static_cast<uint128>(static_cast<int128>(v.raw) * v.raw);
      low += 2 * static_cast<uint128>(static_cast<std::uint64_t>(square));
      high += 2 * (square >> 64);
    }
    WideSum expected;
    expected.add(static_cast<int128>(low));
    expected.lane[2] += static_cast<std::int64_t>(high & 0xffffffffu);
    expected.lane[3] += static_cast<std::int64_t>(high >> 32);
    WideSum found;
    const auto lanes = fetch<std::int64_t>(queue, total.tensor());
    std::copy(lanes.begin(), lanes.end(), found.lane.begin());
    // Lanes may be carried differently: compare the integers.
    const auto canonical = [](WideSum sum) {
      for (std::size_t k = 0; k < 3; ++k) {
        sum.lane[k + 1] += sum.lane[k] >> 32;
        sum.lane[k] &= 0xffffffff;
      }
      return sum;
    };
    EXPECT_EQ(canonical(found), canonical(expected)) << n;
    EXPECT_EQ(total.fetch(queue), to_double(expected)) << n;
  }
}

template <class S>
class NormsRows : public ::testing::Test {};
using AllScalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(NormsRows, AllScalars);

TYPED_TEST(NormsRows, CountNoOtherRows) {
  using S = TypeParam;
  Device device;
  ImmediateQueue queue(device);
  const std::int64_t rows = 6, columns = 31;
  const auto x = testing::random<S>("x", rows * columns);
  const auto tensor = testing::put(queue, "x", {rows, columns}, x);
  const auto sum = [&](const Tensor& t) {
    const WideTotal total(queue, dtype_of<S>(), "total");
    norms::sum_of_squares(queue, t, total);
    return total.fetch(queue);
  };
  const auto alone = [&](std::int64_t begin, std::int64_t count) {
    const std::vector<S> part(x.begin() + begin * columns, x.begin() + (begin + count) * columns);
    return sum(testing::put(queue, "part", {count, columns}, part));
  };
  for (const std::int64_t begin : {0, 2, 5}) {
    for (const std::int64_t count : {0, 1}) {
      EXPECT_EQ(sum(tensor.rows(begin, count)), alone(begin, count)) << begin << "+" << count;
    }
  }
  EXPECT_EQ(sum(tensor.rows(1, 4)), alone(1, 4));
  EXPECT_EQ(sum(tensor.rows(6, 0)), 0);
  EXPECT_EQ(sum(testing::blank<S>(queue, "none", {0, columns}).rows(0, 0)), 0);
}

template <class S>
class NormsTest : public ::testing::Test {};
using Scalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(NormsTest, Scalars);

TYPED_TEST(NormsTest, IsWithinGammaOfTheSum) {
  using S = TypeParam;
  Device device;
  ImmediateQueue queue(device);
  for (const std::int64_t n : sizes) {
    const auto x = testing::random<S>("x", n, -30, 30);
    const WideTotal total(queue, dtype_of<S>(), "total");
    norms::sum_of_squares(queue, testing::put(queue, "x", {n}, x), total);
    long double expected = 0;
    for (const S v : x) expected += static_cast<long double>(v) * static_cast<long double>(v);
    // n squares, each rounded once (exact for a float), summed in double in some order: gamma_(n+1) of the sum.
    const double bound = 1.01 * static_cast<double>(n + 1) * 0x1p-53 * static_cast<double>(expected);
    EXPECT_NEAR(total.fetch(queue), static_cast<double>(expected), bound) << n;
  }
}

TEST(NormsFloat, ALargeFloatDoesNotOverflowItsSquare) {
  Device device;
  ImmediateQueue queue(device);
  const WideTotal total(queue, Dtype::f32, "total");
  norms::sum_of_squares(queue, testing::put<float>(queue, "x", {1}, {0x1p100f}), total);
  EXPECT_EQ(total.fetch(queue), 0x1p200);
}

}  // namespace
}  // namespace shardproof
