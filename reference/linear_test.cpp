// SPDX-License-Identifier: Apache-2.0
#include "reference/linear.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

template <class S>
class Linear : public ::testing::Test {};
TYPED_TEST_SUITE(Linear, testing::Scalars);

// Every number below is a small multiple of 1/4: exact in all scalars.
TYPED_TEST(Linear, Forward) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto x = array<S>(2, 2, {1, 2, 3, -1});
  const auto w = array<S>(3, 2, {1, 0.5, 2, -1, 0, 4});
  const auto b = array<S>(1, 3, {0.25, 0, -1});
  // [1*1+2*.5, 1*2-2*1, 2*4; 3*1-1*.5, 3*2+1*1, -1*4]
  expect(linear<S>(arithmetic, x, w, nullptr), {2, 0, 8, 2.5, 7, -4});
  expect(linear(arithmetic, x, w, &b), {2.25, 0, 7, 2.75, 7, -5});
  EXPECT_FALSE(arithmetic.overflow());
}

TYPED_TEST(Linear, BackwardAddsToWhatIsThere) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto x = array<S>(2, 2, {1, 2, 3, -1});
  const auto w = array<S>(3, 2, {1, 0.5, 2, -1, 0, 4});
  const auto dy = array<S>(2, 3, {1, 0, 2, 0, -1, 0.5});
  Array<Sum<S>> dx(2, 2), dw(3, 2), db(1, 3);
  for (int times = 1; times <= 2; ++times) {
    linear_input(dy, w, dx);
    linear_weight(dy, x, dw);
    linear_bias(dy, db);
    const double n = times;
    // dx: [1*w0 + 2*w2; -1*w1 + .5*w2]; dw: [1*x0; -1*x1; 2*x0 + .5*x1]
    expect(arithmetic.finish(dx), {n * 1, n * 8.5, n * -2, n * 3});
    expect(arithmetic.finish(dw), {n * 1, n * 2, n * -3, n * 1, n * 3.5, n * 3.5});
    expect(arithmetic.finish(db), {n * 1, n * -1, n * 2.5});
  }
}

TYPED_TEST(Linear, NoRowsAndNoInputs) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto b = array<S>(1, 2, {3, -1});
  EXPECT_EQ(linear(arithmetic, Array<S>(0, 3), Array<S>(2, 3), &b).rows(), 0);
  expect(linear(arithmetic, Array<S>(2, 0), Array<S>(2, 0), &b), {3, -1, 3, -1});
}

// Raw units times 1/2: each product is rounded alone, ties to even, so 1/2 + 1/2 = 0 and 3/2 + 3/2 = 4.
TEST(LinearExact, RoundsEachProductOnce) {
  Arithmetic<Fixed> arithmetic;
  const Array<Fixed> x(2, 2, {Fixed{1}, Fixed{1}, Fixed{3}, Fixed{3}});
  const Array<Fixed> w = array<Fixed>(1, 2, {0.5, 0.5});
  EXPECT_EQ(linear<Fixed>(arithmetic, x, w, nullptr).values(), (std::vector{Fixed{0}, Fixed{4}}));
  Array<FixedSum> dw(1, 2);
  linear_weight(array<Fixed>(2, 1, {0.5, 0.5}), x, dw);
  EXPECT_EQ(arithmetic.finish(dw).values(), (std::vector{Fixed{2}, Fixed{2}}));  // 0 + 2
}

// Only the total counts: 2^21 + 2^21 leaves the range, and comes back.
TEST(LinearExact, OverflowIsOfTheTotal) {
  const auto ones = array<Fixed>(1, 4, {1, 1, 1, 1});
  Arithmetic<Fixed> back, out;
  expect(linear<Fixed>(back, array<Fixed>(1, 4, {0x1p21, 0x1p21, -0x1p21, -0x1p21}), ones, nullptr), {0});
  EXPECT_FALSE(back.overflow());
  const auto y = linear<Fixed>(out, array<Fixed>(1, 4, {0x1p21, 0x1p21, 0, 0}), ones, nullptr);
  EXPECT_EQ(y[0][0].raw, fixed_invalid);
  EXPECT_TRUE(out.overflow());
}

// A parameter's gradient is one sum over the samples of a step.
TEST(LinearExact, GradientLeavesTheRangeAndReturns) {
  Arithmetic<Fixed> arithmetic;
  Array<FixedSum> dw(1, 1), db(1, 1);
  for (const double dy : {0x1p21, 0x1p21, 0x1p21, -0x1p21, -0x1p21}) {
    linear_weight(array<Fixed>(1, 1, {dy}), array<Fixed>(1, 1, {2}), dw);
    linear_bias(array<Fixed>(1, 1, {dy}), db);
  }
  expect(arithmetic.finish(db), {0x1p21});
  EXPECT_FALSE(arithmetic.overflow());
  EXPECT_EQ(arithmetic.finish(dw)[0][0].raw, fixed_invalid);  // 2^22
}

}  // namespace
}  // namespace shardproof::reference
