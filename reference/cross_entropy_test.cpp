// SPDX-License-Identifier: Apache-2.0
#include "reference/cross_entropy.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

constexpr double ln2 = 0.69314718055994531;

template <class S>
class CrossEntropy : public ::testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, testing::Scalars);

// Equal logits of two classes: p = 1/2 each, loss ln 2, dz = (p - [j=t]) * factor. The second position has no label.
TYPED_TEST(CrossEntropy, TwoClasses) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  std::vector<S> losses;
  const std::vector<std::int32_t> labels{1, -1, 0};
  const auto saved = cross_entropy(arithmetic, array<S>(3, 2, {5, 5, 1, 2, -3, -3}), labels, 0, losses);
  expect(saved.max, {5, 2, -3});
  expect(losses, {ln2, ln2}, 1);
  expect(cross_entropy_input(arithmetic, saved, labels, 0, 64), {32, -32, 0, 0, -32, 32});
}

// z = [0 ln2 0]: e = [1/2 1 1/2], Z = 2, p = [1/4 1/2 1/4], log Z + m = 2 ln2. Label 0: loss 2 ln2 - 0.
// Smoothing 0.3: loss = 2 ln2 - 0.7*0 - 0.1*(0 + ln2 + 0); dz = p - 0.7*[j=0] - 0.1.
// Errors in units: ln2 1, e 1.5, Z 3, log Z 1.5, the loss 1.5 + 1 + 1 and a last rounding in one of its forms.
TYPED_TEST(CrossEntropy, ThreeClassesWithAndWithoutSmoothing) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto logits = array<S>(1, 3, {0, ln2, 0});
  const std::vector<std::int32_t> labels{0};
  std::vector<S> losses;
  const auto saved = cross_entropy(arithmetic, logits, labels, 0, losses);
  cross_entropy(arithmetic, logits, labels, 0.3, losses);
  expect(losses, {2 * ln2, 1.9 * ln2}, 4.5);
  // Errors: p 1.5/2 + 3/8, times the factor 2, and one rounding.
  expect(cross_entropy_input(arithmetic, saved, labels, 0, 2), {-1.5, 1, 0.5}, 3.25);
  expect(cross_entropy_input(arithmetic, saved, labels, 0.3, 2), {-1.1, 0.8, 0.3}, 3.25);
}

// A label beside the largest logit: loss = log Z + m - z_t with Z = 1 + e^-2^10 = 1, so 1024 exactly.
TYPED_TEST(CrossEntropy, FarLogits) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  std::vector<S> losses;
  const std::vector<std::int32_t> labels{1};
  const auto saved = cross_entropy(arithmetic, array<S>(1, 2, {1024, 0}), labels, 0, losses);
  expect(losses, {1024});
  expect(cross_entropy_input(arithmetic, saved, labels, 0, 1), {1, -1}, 1);
}

TYPED_TEST(CrossEntropy, OneClass) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  std::vector<S> losses;
  const std::vector<std::int32_t> labels{0};
  const auto saved = cross_entropy(arithmetic, array<S>(1, 1, {3}), labels, 0, losses);
  expect(losses, {0});
  expect(cross_entropy_input(arithmetic, saved, labels, 0, 1), {0});
}

// p = 1/3 meets the factor 2^16 before it is rounded: 2^56/3 with the 53 bits of the double 1/3. A p in units of 2^-40
// would leave a multiple of 2^16.
TEST(CrossEntropyExact, OneRounding) {
  Arithmetic<Fixed> arithmetic;
  std::vector<Fixed> losses;
  const std::vector<std::int32_t> labels{2};
  const auto saved = cross_entropy(arithmetic, array<Fixed>(1, 3, {1, 1, 1}), labels, 0, losses);
  const auto dz = cross_entropy_input(arithmetic, saved, labels, 0, 0x1p16);
  EXPECT_EQ(dz[0][0].raw, 0x15555555555555 * 4);
}

// m, e and Z belong to every position, the loss only to those with a label.
TEST(CrossEntropyExact, OverflowCountsAtPositionsWithoutLabel) {
  const auto overflows = [](double z, std::int32_t label) {
    Arithmetic<Fixed> arithmetic;
    std::vector<Fixed> losses;
    cross_entropy(arithmetic, array<Fixed>(1, 2, {z, -z}), std::vector{label}, 0, losses);
    return arithmetic.overflow();
  };
  EXPECT_TRUE(overflows(0x1p21, -1));  // -z - z = -2^22
  EXPECT_FALSE(overflows(0x1p20, -1));
  EXPECT_FALSE(overflows(0x1p20, 1));  // the loss is 2^21
}

}  // namespace
}  // namespace shardproof::reference
