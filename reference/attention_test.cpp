// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

constexpr double ln3 = 1.0986122886681098;

template <class S>
class Attention : public ::testing::Test {};
TYPED_TEST_SUITE(Attention, testing::Scalars);

template <class S>
AttentionSaved<S> attended(Arithmetic<S>& arithmetic, const AttentionShape& shape, Array<S> q, Array<S> k, Array<S> v,
                           Dropout<S> dropout = {}) {
  AttentionSaved<S> saved{std::move(q), std::move(k), std::move(v), std::move(dropout), {}, {}, {}};
  attend(arithmetic, shape, saved);
  return saved;
}

// One head of size 4 (scale 1/2), two positions. Query 1 is [2 0 0 0], keys [0 ..] and [ln3 ..]: scores 0 and
// 2*ln3/2 = ln3, weights 1:3, p = [1/4 3/4]. Values 1 and 5 in the first feature, output 1/4 + 15/4 = 4.
// Errors in units: ln3 1, the score 2, e_0 = 1/3 2/3 + 1, p (5/3)*(9/16) + 1 < 2, the output 3*(5/3)*(3/4) + 1 < 5.
TYPED_TEST(Attention, TwoPositions) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> documents{0, 0};
  const AttentionShape shape{1, 1, 0, documents};
  const auto saved = attended(arithmetic, shape, array<S>(2, 4, {9, 0, 0, 0, 2, 0, 0, 0}),
                              array<S>(2, 4, {0, 1, 0, 0, ln3, 0, 1, 0}), array<S>(2, 4, {1, 0, 0, 2, 5, 0, 0, 2}));
  expect(saved.probability, {1, 0, 0.25, 0.75}, 2);
  expect(saved.output, {1, 0, 0, 2, 4, 0, 0, 2}, 5);

  // dout of query 1 is [1 0 0 0]: Di = 4, t = [1 5], ds = [1/4*(1-4) 3/4*(5-4)]*scale = [-3/8 3/8].
  // Query 0 (dout [7 0 0 0]) sees itself only: p = 1, dp = Di, ds = 0; it adds 7 to dv of key 0.
  // Errors: Di 6, ds (3*2 + 6/4 + 1)/2 + 1 < 6, dq 6*ln3 + 3/8 + 1 < 8, dk 2*6.
  const auto gradient = attend_input(arithmetic, shape, saved, array<S>(2, 4, {7, 0, 0, 0, 1, 0, 0, 0}));
  expect(gradient.query, {0, 0, 0, 0, 0.375 * ln3, -0.375, 0.375, 0}, 8);
  expect(gradient.key, {-0.75, 0, 0, 0, 0.75, 0, 0, 0}, 12);
  expect(gradient.value, {7.25, 0, 0, 0, 0.75, 0, 0, 0}, 3);
}

// Queries of zeros weigh all visible keys alike; the probabilities show who is visible.
TYPED_TEST(Attention, Visibility) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const auto probabilities = [&](std::int64_t window, std::vector<std::int32_t> documents) {
    const AttentionShape shape{1, 1, window, documents};
    return attended(arithmetic, shape, Array<S>(4, 1), Array<S>(4, 1), Array<S>(4, 1)).probability;
  };
  const double third = 1.0 / 3;
  expect(probabilities(0, {0, 0, 0, 0}), {1, 0, 0, 0, 0.5, 0.5, 0, 0, third, third, third, 0, 0.25, 0.25, 0.25, 0.25},
         1);
  expect(probabilities(2, {0, 0, 0, 0}), {1, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5});
  expect(probabilities(1, {0, 0, 0, 0}), {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  expect(probabilities(0, {0, 0, 1, 1}), {1, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 0, 1, 0, 0, 0, 0.5, 0.5});
  expect(probabilities(3, {0, 1, 0, 1}), {1, 0, 0, 0, 0, 1, 0, 0, 0.5, 0, 0.5, 0, 0, 0.5, 0, 0.5});
}

// Invisible keys add nothing to any gradient: document 1 begins at position 1.
TYPED_TEST(Attention, BackwardStaysInTheDocument) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> documents{0, 1, 1};
  const AttentionShape shape{1, 1, 0, documents};
  const auto saved =
      attended(arithmetic, shape, array<S>(3, 1, {1, 2, 4}), array<S>(3, 1, {0, 0, 0}), array<S>(3, 1, {100, 3, 7}));
  expect(saved.output, {100, 3, 5});
  // Query 2: p = 1/2 each, Di = 5, t = [3 7], ds = [-1 1], dk = 4*ds.
  const auto gradient = attend_input(arithmetic, shape, saved, array<S>(3, 1, {0, 0, 1}));
  expect(gradient.key, {0, -4, 4});
  expect(gradient.value, {0, 0.5, 0.5});
}

// Four query heads read two key/value heads: 0 and 1 the first, 2 and 3 the second.
TYPED_TEST(Attention, GroupedHeads) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> documents{0, 0};
  const AttentionShape shape{4, 2, 0, documents};
  const auto saved = attended(arithmetic, shape, array<S>(2, 4, {1, 1, 1, 1, 1, 2, 3, 4}), Array<S>(2, 2),
                              array<S>(2, 2, {3, 7, 5, 15}));
  expect(saved.output, {3, 3, 7, 7, 4, 4, 11, 11});
  // dout of position 1 is [1 10 100 1000]: dv = sums over each group, halved by p = 1/2;
  // head h: Di = dout*o, ds = 1/2*dout*([v0 v1] - o), that is dout*[-1/2 1/2] in group 0 and dout*[-2 2] in group 1;
  // dk = sum over the group of ds*q: group 0: (1*1 + 10*2)/2, group 1: (100*3 + 1000*4)*2.
  const auto gradient = attend_input(arithmetic, shape, saved, array<S>(2, 4, {0, 0, 0, 0, 1, 10, 100, 1000}));
  expect(gradient.value, {5.5, 550, 5.5, 550});
  expect(gradient.key, {-10.5, -8600, 10.5, 8600});
}

// p = [1/2 1/2], key 1 dropped, factor 2: the denominator still counts key 1, so o = (1*v0)*2/2 = v0.
// Backward: pd = [1 0]; dp = [2*v0*dout 0]; Di = v0*dout; ds = 1/2*[v0 -v0]*dout.
TYPED_TEST(Attention, DroppedProbabilities) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> documents{0, 0};
  const AttentionShape shape{1, 1, 0, documents};
  const Dropout<S> dropout{Array<std::uint8_t>(2, 2, {1, 1, 1, 0}), round_to<S>(2)};
  const auto saved =
      attended(arithmetic, shape, array<S>(2, 1, {0, 3}), Array<S>(2, 1), array<S>(2, 1, {4, 64}), dropout);
  expect(saved.probability, {1, 0, 0.5, 0.5});
  expect(saved.probability_dropped, {2, 0, 1, 0});
  expect(saved.output, {8, 4});
  const auto gradient = attend_input(arithmetic, shape, saved, array<S>(2, 1, {0, 1}));
  expect(gradient.value, {1, 0});
  expect(gradient.key, {6, -6});
  expect(gradient.query, {0, 0});
}

// Scores of +-2^20 would overflow exp but for the maximum; e of the far key is R(e^-690) = 0.
TYPED_TEST(Attention, FarScores) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> documents{0, 0};
  const auto saved = attended(arithmetic, {1, 1, 0, documents}, array<S>(2, 1, {1, 1024}),
                              array<S>(2, 1, {-1024, 1024}), array<S>(2, 1, {3, 5}));
  expect(saved.probability, {1, 0, 0, 1}, 1);
  expect(saved.output, {3, 5}, 1);
  EXPECT_FALSE(arithmetic.overflow());
}

// Three keys alike, p = R(1/3) = 1/3 - 1/3 unit: 3 p is not 1, so the output 3 and Di = 3 show that neither is a sum
// over p, and ds = p*(3 - 3) is 0.
TEST(AttentionExact, DividesAfterTheSumAndTakesDiFromTheOutput) {
  Arithmetic<Fixed> arithmetic;
  const std::vector<std::int32_t> documents{0, 0, 0};
  const AttentionShape shape{1, 1, 0, documents};
  const auto saved =
      attended(arithmetic, shape, array<Fixed>(3, 1, {0, 0, 1}), Array<Fixed>(3, 1), array<Fixed>(3, 1, {3, 3, 3}));
  ASSERT_EQ(3 * saved.probability[2][0].raw, (std::int64_t{1} << 40) - 1);
  expect(saved.output, {3, 3, 3});
  expect(attend_input(arithmetic, shape, saved, array<Fixed>(3, 1, {0, 0, 1})).key, {0, 0, 0});
}

// Head size 4: scale 1/2. v = [4 -2 -2] units: o = Di = 0, ds_0 = mul(mul(1/3, 4 units), 1/2): 4/3 rounds to 1, half of
// it to 0. With the scale taken first it would be 2/3, 1.
TEST(AttentionExact, ProbabilityBeforeScale) {
  Arithmetic<Fixed> arithmetic;
  const std::vector<std::int32_t> documents{0, 0, 0};
  const AttentionShape shape{1, 1, 0, documents};
  Array<Fixed> value(3, 4);
  value[0][0] = Fixed{4};
  value[1][0] = value[2][0] = Fixed{-2};
  const auto saved =
      attended(arithmetic, shape, array<Fixed>(3, 4, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}), Array<Fixed>(3, 4), value);
  Array<Fixed> dout(3, 4);
  dout[2][0] = round_to<Fixed>(1);
  EXPECT_EQ(attend_input(arithmetic, shape, saved, dout).key[0][0], Fixed{0});
}

}  // namespace
}  // namespace shardproof::reference
