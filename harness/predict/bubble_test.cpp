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
  EXPECT_DOUBLE_EQ(*bubble_overhead("gpipe", 4, 8, 1), 3.0 / 8);
  EXPECT_DOUBLE_EQ(bubble_fraction(*bubble_overhead("gpipe", 4, 8, 1)), 3.0 / 11);
  EXPECT_LT(bubble_fraction(*bubble_overhead("gpipe", 8, 32, 1)), 0.2);
  EXPECT_DOUBLE_EQ(bubble_fraction(*bubble_overhead("naive", 4, 7, 1)), 3.0 / 4);
  EXPECT_FALSE(bubble_overhead("unknown", 2, 2, 1));
}

// Huang et al. 2019: of equal stages (m+p-1)(f+b). By hand: F0 of three stages ends at 1, 4, 6; the middle one ends F1
// at 7 and F2 at 10, the last F2 at 12. Backward 2, 1, 1: 4 for the first, and 2 for each of two more.
TEST(Bubble, GpipeOfUnequalStages) {
  const StageSeconds stages[] = {{1, 2}, {3, 1}, {2, 1}};
  EXPECT_EQ(gpipe_seconds(stages, 3), 12 + 8);
  EXPECT_EQ(gpipe_seconds(stages, 1), 6 + 4);
  EXPECT_EQ(gpipe_seconds(std::vector<StageSeconds>(4, {1, 2}), 8), (8 + 4 - 1) * 3);
}

// Every form is that of its schedule wherever it is given, and it is given for most shapes. Where it does not ask for
// equal times, F, I and W take 1 to 3 units: sums of small integers, so exact but for the quotients.
TEST(Bubble, IsThatOfEverySchedule) {
  for (const auto* generator : plan::schedules()) {
    if (generator->stale != workload::StaleProgram::Rule::none) continue;
    const bool is_of_equal_times = generator->name.starts_with("zb_") || generator->name == "dualpipe";
    const plan::ActionCosts costs = is_of_equal_times ? plan::ActionCosts{} : plan::ActionCosts{1, 2, 3};
    std::int64_t with = 0, all = 0;
    for (std::int64_t p = 1; p <= 8; ++p) {
      for (std::int64_t m = 1; m <= 2 * p + 9; ++m) {
        for (std::int64_t v = 1; v <= 3; ++v) {
          const plan::ScheduleShape shape{.ranks = p, .microbatches = m, .chunks = v};
          if (!generator->refusal(shape).empty()) continue;
          ++all;
          const auto form = bubble_overhead(generator->name, p, m, v);
          if (!form) continue;
          ++with;
          const auto line = plan::timeline(generator->generate(shape), costs);
          ASSERT_NEAR(line.bubble_overhead(), *form, 1e-9) << generator->name << " p " << p << " m " << m << " v " << v;
          ASSERT_NEAR(line.bubble_fraction(), bubble_fraction(*form), 1e-9);
        }
      }
    }
    EXPECT_GT(4 * with, all) << generator->name;
  }
}

}  // namespace
}  // namespace shardproof::predict
