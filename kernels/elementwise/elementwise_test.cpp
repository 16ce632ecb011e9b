// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using testing::bits;

template <class S>
class ElementwiseTest : public ::testing::Test {
 protected:
  Device device;
  ImmediateQueue queue{device};
};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(ElementwiseTest, Scalars);

TYPED_TEST(ElementwiseTest, AddIsTheFinishedSumOfEachPair) {
  using S = TypeParam;
  for (const std::int64_t n : {0, 1, 7, 64, 131}) {
    const auto x = testing::random<S>("x", n, -5e5, 5e5), y = testing::random<S>("y", n, -1e-6, 1e-6);
    const auto a = testing::put(this->queue, "a", {n}, x), b = testing::put(this->queue, "b", {n}, y);
    const auto z = testing::blank<S>(this->queue, "z", {n});
    elementwise::add(this->queue, a, b, z);
    const auto found = fetch<S>(this->queue, z);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(bits(found[i]), bits(add(x[i], y[i]))) << i;
  }
}

TYPED_TEST(ElementwiseTest, AddMayWriteOverAnOperand) {
  using S = TypeParam;
  const std::int64_t n = 37;
  const auto x = testing::random<S>("x", n), y = testing::random<S>("y", n);
  for (const bool over_x : {true, false}) {
    const auto a = testing::put(this->queue, "a", {n}, x), b = testing::put(this->queue, "b", {n}, y);
    elementwise::add(this->queue, a, b, over_x ? a : b);
    const auto found = fetch<S>(this->queue, over_x ? a : b);
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(bits(found[i]), bits(add(x[i], y[i]))) << i;
  }
}

TYPED_TEST(ElementwiseTest, AddRefusesOtherSizes) {
  using S = TypeParam;
  const auto a = testing::put(this->queue, "a", {2}, testing::random<S>("a", 2));
  const auto b = testing::put(this->queue, "b", {3}, testing::random<S>("b", 3));
  EXPECT_THROW(elementwise::add(this->queue, a, b, a), InternalError);
}

TEST(ElementwiseFixed, OverflowStartsAtTwoToTheTwentyTwo) {
  Device device;
  ImmediateQueue queue(device);
  const Fixed top{fixed_limit - 1}, unit{1};
  for (const auto& [x, y, overflow] : {std::tuple{top, Fixed{0}, false},
                                       {top, unit, true},
                                       {top, top, true},
                                       {Fixed{-top.raw}, Fixed{-1}, true},
                                       {Fixed{-top.raw}, top, false}}) {
    const auto a = testing::put<Fixed>(queue, "a", {1}, {x}), b = testing::put<Fixed>(queue, "b", {1}, {y});
    const auto z = testing::blank<Fixed>(queue, "z", {1});
    elementwise::add(queue, a, b, z);
    EXPECT_EQ(fetch_overflow(queue, z), overflow) << x.raw << " + " << y.raw;
    EXPECT_EQ(fetch<Fixed>(queue, z)[0].raw, overflow ? fixed_invalid : x.raw + y.raw);
  }
}

}  // namespace
}  // namespace shardproof
