// SPDX-License-Identifier: Apache-2.0
#include "reference/layer_norm.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

template <class S>
class LayerNorm : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNorm, testing::Scalars);

// x = [0 0 4 4]: mean 2, d = [-2 -2 2 2], variance 4, rstd 1/2, xh = [-1 -1 1 1]. All exact.
TYPED_TEST(LayerNorm, FourElements) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  NormSaved<S> saved;
  const auto w = array<S>(1, 4, {1, 2, 1, 2});
  const auto y = layer_norm(arithmetic, array<S>(1, 4, {0, 0, 4, 4}), w, array<S>(1, 4, {0.5, 0, 0, -0.25}), 0, saved);
  expect(y, {-0.5, -2, 1, 1.75});
  expect(saved.mean, {2});
  expect(saved.rstd, {0.5});

  // g = dy*w = [1 4 3 8]; m1 = 16/4; m2 = (-1-4+3+8)/4 = 1.5; dx = (g - 4 - 1.5 xh)/2
  const auto dy = array<S>(1, 4, {1, 2, 3, 4});
  expect(layer_norm_input(arithmetic, saved, w, dy), {-0.75, 0.75, -1.25, 1.25});
  Array<Sum<S>> dw(1, 4), db(1, 4);
  layer_norm_weight(arithmetic, saved, dy, dw, db);
  layer_norm_weight(arithmetic, saved, dy, dw, db);
  expect(arithmetic.finish(dw), {-2, -4, 6, 8});
  expect(arithmetic.finish(db), {2, 4, 6, 8});
}

// Two rows with epsilon 3: x = [1 3]: mean 2, variance 1, rstd 1/sqrt(1+3) = 1/2, xh = [-.5 .5]; x = [5 5]: variance 0,
// rstd 1/sqrt(3), xh = 0.
TYPED_TEST(LayerNorm, EpsilonIsInsideTheRoot) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  NormSaved<S> saved;
  const auto w = array<S>(1, 2, {1, 1});
  const auto y = layer_norm(arithmetic, array<S>(2, 2, {1, 3, 5, 5}), w, array<S>(1, 2, {0, 1}), 3, saved);
  expect(y, {-0.5, 1.5, 0, 1});
  expect(saved.mean, {2, 5});
  expect(saved.rstd, {0.5, 0.57735026918962576}, 1);

  // dy = [1 0]: m1 = .5, m2 = -.25, dx = ([1 0] - .5 + .25 xh)/2; second row: xh = 0, dx = ([1 0] - .5)/sqrt(3)
  const auto dx = layer_norm_input(arithmetic, saved, w, array<S>(2, 2, {1, 0, 1, 0}));
  expect(dx, {0.1875, -0.1875, 0.28867513459481288, -0.28867513459481288}, 2);
}

// Gradients of a sum over rows: dw = sum of dy*xh with xh of each row's own mean and rstd.
TYPED_TEST(LayerNorm, WeightGradientSumsRows) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  NormSaved<S> saved;
  const auto one = array<S>(1, 2, {1, 1});
  layer_norm(arithmetic, array<S>(2, 2, {-1, 1, 8, 4}), one, array<S>(1, 2, {0, 0}), 0, saved);
  Array<Sum<S>> dw(1, 2), db(1, 2);
  layer_norm_weight(arithmetic, saved, array<S>(2, 2, {1, 2, 3, 5}), dw, db);
  expect(arithmetic.finish(dw), {-1 + 3, 2 - 5});
  expect(arithmetic.finish(db), {4, 7});
}

// H = 1: the only element is its own mean.
TYPED_TEST(LayerNorm, OneFeature) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  NormSaved<S> saved;
  const auto w = array<S>(1, 1, {3});
  expect(layer_norm(arithmetic, array<S>(1, 1, {7}), w, array<S>(1, 1, {0.5}), 0.25, saved), {0.5});
  expect(saved.rstd, {2});
  expect(layer_norm_input(arithmetic, saved, w, array<S>(1, 1, {5})), {0});
}

// The means of raw [1 0] and [2 1] are 1/2 and 3/2 units.
TEST(LayerNormExact, MeanIsRoundedOnceTiesToEven) {
  Arithmetic<Fixed> arithmetic;
  NormSaved<Fixed> saved;
  const auto zero = array<Fixed>(1, 2, {0, 0});
  layer_norm(arithmetic, Array<Fixed>(2, 2, {Fixed{1}, Fixed{0}, Fixed{2}, Fixed{1}}), zero, zero, 1, saved);
  EXPECT_EQ(saved.mean, (std::vector{Fixed{0}, Fixed{2}}));
}

}  // namespace
}  // namespace shardproof::reference
