// SPDX-License-Identifier: Apache-2.0
#include "reference/dropout.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

template <class S>
class DropoutSites : public ::testing::Test {};
TYPED_TEST_SUITE(DropoutSites, testing::Scalars);

TYPED_TEST(DropoutSites, KeepsByElementAndScales) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const RandomStream stream(7, "dropout.embedding.step.3");
  constexpr std::uint32_t threshold = 0x40000000;  // p = 1/4
  const auto dropout = draw_dropout(arithmetic, stream, threshold, 0.25, 33, 3, 5);
  expect(std::vector<S>{dropout.factor}, {4.0 / 3}, 1);
  ASSERT_TRUE(dropout.on());
  const auto y = dropped(arithmetic, dropout, Array<S>(3, 5, std::vector<S>(15, round_to<S>(3))));
  int kept = 0;
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t c = 0; c < 5; ++c) {
      const bool keep = stream.word(static_cast<std::uint64_t>(33 + 5 * r + c)) >= threshold;
      kept += keep;
      EXPECT_EQ(dropout.kept[r][c], keep);
      EXPECT_NEAR(real(y[r][c]), keep ? 4 : 0, 4 * testing::unit<S>());  // 3 * the factor's rounding, and one more
    }
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 15);
}

// At the threshold an element is kept.
TYPED_TEST(DropoutSites, KeepsTheThreshold) {
  Arithmetic<TypeParam> arithmetic;
  const RandomStream stream(1, "site");
  const auto word = stream.word(5);
  EXPECT_EQ(draw_dropout(arithmetic, stream, word, 0.5, 5, 1, 1).kept[0][0], 1);
  EXPECT_EQ(draw_dropout(arithmetic, stream, word + 1, 0.5, 5, 1, 1).kept[0][0], 0);
}

// 1/(1-p) in double, then C. In float throughout, 0.9 would give 9.99999809 and 0.15 1.17647052.
TYPED_TEST(DropoutSites, TheFactorIsOneOfDouble) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  for (const auto& [p, factor] : {std::pair{0.9, 10.000000000000002}, {0.15, 1.1764705882352942}, {0.5, 2.0}}) {
    const auto dropout = draw_dropout(arithmetic, RandomStream(1, "site"), 0, p, 0, 1, 1);
    EXPECT_EQ(real(dropout.factor), real(round_to<S>(static_cast<Real<S>>(factor)))) << p;
  }
}

TYPED_TEST(DropoutSites, WithoutAMaskNothingIsDone) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  expect(dropped(arithmetic, Dropout<S>{}, array<S>(1, 2, {1, -2})), {1, -2});
}

}  // namespace
}  // namespace shardproof::reference
