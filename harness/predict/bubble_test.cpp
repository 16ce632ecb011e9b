// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/bubble.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "impl/plan/schedule.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::predict {
namespace {

// Narayanan et al. 2021, section 2.2.1: (p-1)/m. Huang et al. 2019, section 2.3: (K-1)/(M+K-1), "negligible when
// M >= 4 x K".
TEST(Bubble, OfThePapers) {
  EXPECT_DOUBLE_EQ(*bubble_overhead("gpipe", 4, 8), 3.0 / 8);
  EXPECT_DOUBLE_EQ(bubble_fraction(*bubble_overhead("gpipe", 4, 8)), 3.0 / 11);
  EXPECT_LT(bubble_fraction(*bubble_overhead("gpipe", 8, 32)), 0.2);
  EXPECT_DOUBLE_EQ(bubble_fraction(*bubble_overhead("naive", 4, 7)), 3.0 / 4);
  EXPECT_FALSE(bubble_overhead("unknown", 2, 2));
}

// Huang et al. 2019: of equal stages (m+p-1)(f+b). By hand: F0 of three stages ends at 1, 4, 6; the middle one ends F1
// at 7 and F2 at 10, the last F2 at 12. Backward 2, 1, 1: 4 for the first, and 2 for each of two more.
TEST(Bubble, GpipeOfUnequalStages) {
  const StageSeconds stages[] = {{1, 2}, {3, 1}, {2, 1}};
  EXPECT_EQ(gpipe_seconds(stages, 3), 12 + 8);
  EXPECT_EQ(gpipe_seconds(stages, 1), 6 + 4);
  EXPECT_EQ(gpipe_seconds(std::vector<StageSeconds>(4, {1, 2}), 8), (8 + 4 - 1) * 3);
}

// With 1 to 3 units for F and, of each, I and W: sums of small integers, so exact but for the quotients.
TEST(Bubble, EqualsTheReplayOfEverySchedule) {
  for (const auto* generator : plan::schedules()) {
    if (!generator->runs) continue;
    for (std::int64_t p = 1; p <= 8; ++p)
      for (std::int64_t m = 1; m <= 32; ++m) {
        const auto line = plan::timeline(generator->generate({.ranks = p, .microbatches = m}), {1, 2, 3});
        const auto form = bubble_overhead(generator->name, p, m);
        ASSERT_TRUE(form) << generator->name;
        EXPECT_NEAR(line.bubble_overhead(), *form, 1e-9) << generator->name << " " << p << " " << m;
        EXPECT_NEAR(line.bubble_fraction(), bubble_fraction(*form), 1e-9);
      }
  }
}

}  // namespace
}  // namespace shardproof::predict
