// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"

#include <gtest/gtest.h>

#include "kernels/core/functions.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using activation::Kind;
using testing::bits;

// Section 5 and 7 of ARITHMETIC.md, element by element. In f64 and f32 nothing is summed, so these too are equal.
template <class S>
S forward_of(Kind kind, S x) {
  if (kind == Kind::relu) return x > S{0} ? x : S{0};
  return round_to<S>(gelu_of(real(x)));
}
template <class S>
S backward_of(Kind kind, S x, S dy) {
  if (kind == Kind::relu) return x > S{0} ? dy : S{0};
  return round_to<S>(real(dy) * gelu_derivative_of(real(x)));
}

template <class S>
class ActivationTest : public ::testing::Test {
 protected:
  Device device;
  ImmediateQueue queue{device};

  void expect_equal(const std::vector<S>& x, const std::vector<S>& dy) {
    const auto n = std::ssize(x);
    const auto in = testing::put(queue, "x", {n}, x), gradient = testing::put(queue, "dy", {n}, dy);
    for (const Kind kind : {Kind::gelu, Kind::relu}) {
      const auto y = testing::blank<S>(queue, "y", {n}), dx = testing::blank<S>(queue, "dx", {n});
      activation::forward(queue, kind, in, y);
      activation::backward(queue, kind, in, gradient, dx);
      const auto found = fetch<S>(queue, y), found_dx = fetch<S>(queue, dx);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(bits(found[i]), bits(forward_of(kind, x[i]))) << i;
        ASSERT_EQ(bits(found_dx[i]), bits(backward_of(kind, x[i], dy[i]))) << i;
      }
    }
  }
};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(ActivationTest, Scalars);

TYPED_TEST(ActivationTest, EqualsTheDefinition) {
  for (const std::int64_t n : {0, 1, 5, 63, 10007}) {
    this->expect_equal(testing::random<TypeParam>("x", n, -6, 6), testing::random<TypeParam>("dy", n, -70000, 70000));
  }
}

TYPED_TEST(ActivationTest, HoldsAtZeroAndFarOut) {
  using S = TypeParam;
  std::vector<S> x, dy;
  for (const double v : {0.0, 1e-12, -1e-12, 1e-3, -1e-3, 40.0, -40.0, 3e6, -3e6}) {
    x.push_back(round_to<S>(static_cast<Real<S>>(v)));
    dy.push_back(round_to<S>(Real<S>(-0.75)));
  }
  this->expect_equal(x, dy);
}

TEST(ActivationFixed, GradientBeyondTheRangeRaisesOverflow) {
  Device device;
  ImmediateQueue queue(device);
  // gelu'(1.4) is 1.13, so 4e6 leaves the range; at 3.5e6 it does not.
  for (const double dy : {3.5e6, 4e6}) {
    const auto x = testing::make(queue, "x", {1}, std::vector{1.4}, Dtype::fixed);
    const auto gradient = testing::make(queue, "dy", {1}, std::vector{dy}, Dtype::fixed);
    const auto dx = testing::blank<Fixed>(queue, "dx", {1});
    activation::backward(queue, Kind::gelu, x, gradient, dx);
    EXPECT_EQ(fetch_overflow(queue, dx), dy == 4e6);
  }
}

}  // namespace
}  // namespace shardproof
