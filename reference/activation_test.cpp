// SPDX-License-Identifier: Apache-2.0
#include "reference/activation.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;
using workload::Activation;

template <class S>
class Activate : public ::testing::Test {};
TYPED_TEST_SUITE(Activate, testing::Scalars);

TYPED_TEST(Activate, Relu) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto x = array<S>(1, 4, {-1, 0, 0.5, 3});
  expect(activate(arithmetic, Activation::relu, x), {0, 0, 0.5, 3});
  expect(activate_input(arithmetic, Activation::relu, x, array<S>(1, 4, {5, 6, 7, -8})), {0, 0, 7, -8});
}

// x = 1: u = 0.7978845608*(1+0.044715) = 0.8335619689, t = tanh u = 0.6823839812, gelu = (1+t)/2,
// gelu' = (1+t)/2 + (1-t*t)/2 * 0.7978845608*(1+0.134145). x = -1/2: u = -0.4034019564, t = -0.3828560393.
// Fixed: one rounding, and the functions' own error far below it; float and double: some ten roundings.
TYPED_TEST(Activate, Gelu) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto x = array<S>(1, 3, {0, 1, -0.5});
  expect(activate(arithmetic, Activation::gelu, x), {0, 0.8411919906082768, -0.15428599017485606}, 2);
  expect(activate_input(arithmetic, Activation::gelu, x, array<S>(1, 3, {4, 2, -1})),
         {2, 2 * 1.0829640838457826, -0.13263009646535764}, 2);
}

// dy*gelu'(x) is rounded once: rounding gelu' first would leave an error of up to 512 units under dy = 1024.
TEST(ActivateExact, OneRounding) {
  Arithmetic<Fixed> arithmetic;
  const auto dx =
      activate_input(arithmetic, Activation::gelu, array<Fixed>(1, 2, {1, -0.5}), array<Fixed>(1, 2, {1024, 1024}));
  expect(dx, {1024 * 1.0829640838457826, 1024 * 0.13263009646535764}, 2);
}

}  // namespace
}  // namespace shardproof::reference
