// SPDX-License-Identifier: Apache-2.0
#include "harness/shrink.hpp"

#include <gtest/gtest.h>

#include "harness/check_case.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/device.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::harness {
namespace {

const Case large{"w05",
                 {"dropout=0.2", "clip=0.5", "unused=1,7"},
                 "dp2 pp3 order=dp,tp,pp schedule=gpipe microbatches=5 layers=3,3,1",
                 6,
                 Track::exact};

/// What a predicate of the case needs stays, everything else goes.
TEST(Shrink, KeepsOnlyWhatTheFailureNeeds) {
  const auto needs = [](const Case& value) {
    const auto s = plan::parse_strategy(value.strategy, value.ranks);
    const auto w = workload_of(value);
    return s.pp >= 2 && s.microbatches >= 3 && w.batch >= 4 && w.dropout > 0;
  };
  ASSERT_TRUE(needs(large));
  const Shrunk small = shrink(large, needs, 1000);
  EXPECT_EQ(small.value.strategy, "pp2 microbatches=3");
  EXPECT_EQ(small.value.ranks, 2);
  const auto w = workload_of(small.value);
  EXPECT_EQ(w.batch, 4);
  EXPECT_EQ(w.steps, 1);
  EXPECT_EQ(w.layers, 1);
  EXPECT_EQ(w.hidden, 1);
  EXPECT_EQ(w.sequence, 1);
  EXPECT_EQ(w.clip, 0);
  EXPECT_EQ(w.dropout, 0.2);
  EXPECT_TRUE(w.unused.empty());
  EXPECT_TRUE(w.shared_block.empty());
}

TEST(Shrink, ReturnsTheCaseWhereNothingSmallerFailsOrNothingMayBeTried) {
  EXPECT_EQ(shrink(
                large, [](const Case&) { return false; }, 1000)
                .value,
            large);
  const Shrunk none = shrink(
      large, [](const Case&) { return true; }, 0);
  EXPECT_EQ(none.value, large);
  EXPECT_EQ(none.tried, 0);
}

/// The lowest bit of an element of the gradient that rank 1 holds, whatever it holds, in every step.
TEST(Shrink, AWrongBitOnOneRankEndsAtTwoRanksAndOneOfEverything) {
  CheckOptions options{.disturbance = {}};
  options.tamper.tensor = [](std::int64_t, Observed kind, const std::string&, Queue& queue, const Tensor& tensor) {
    if (kind != Observed::gradient || queue.device().rank() != Rank{1} || tensor.elements() == 0) return;
    queue.submit("flip", [=](KernelScope& scope) { scope.update<Fixed>(tensor)[0].raw ^= 1; });
  };
  const auto check = [&](const Case& value) { return check_case(value, std::vector{Shown::gradient}, {}, options); };
  const auto fails = [&](const Case& value) { return check(value).record.verdict == Verdict::fail; };
  const Case value{"tiny", {"layers=3", "clip=0.5"}, "dp3 pp2 schedule=gpipe microbatches=2", 6, Track::exact};
  ASSERT_TRUE(fails(value));
  const Shrunk small = shrink(value, fails, 300);
  EXPECT_EQ(small.value.ranks, 2);
  EXPECT_EQ(check(small.value).record.verdict, Verdict::fail);
  const auto w = workload_of(small.value);
  EXPECT_EQ(w.layers, 1);
  EXPECT_EQ(w.steps, 1);
  EXPECT_EQ(w.hidden, 1);
  EXPECT_EQ(w.clip, 0);
}

}  // namespace
}  // namespace shardproof::harness
