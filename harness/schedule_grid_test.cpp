// SPDX-License-Identifier: Apache-2.0
// Generators that the grid must not let pass.
#include "harness/schedule_grid.hpp"

#include <array>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using Counts = std::map<std::string, std::int64_t>;
using Failures = std::vector<std::string>;

/// Of 2 ranks and 2 microbatches alone.
std::string one_shape(const plan::ScheduleShape& s) {
  const bool plain = s.chunks == 1 && s.slices == 1 && s.replicas.empty() && !s.vertical_sync;
  return plain && s.microbatches_per_update == 0 && s.ranks == 2 && s.microbatches == 2 ? "" : "shape other than one";
}
std::string no_shape(const plan::ScheduleShape&) { return "ranks 1: none will do"; }

ScheduleGrid grid_of(plan::Schedule (*generate)(const plan::ScheduleShape&),
                     std::string (*refusal)(const plan::ScheduleShape&) = one_shape) {
  const plan::ScheduleGenerator generator{.name = "planted", .paper = "none", .refusal = refusal, .generate = generate};
  const std::array all = {&generator};
  return check_grid(all);
}

plan::Schedule right(const plan::ScheduleShape&) { return plan::parse_schedule("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n"); }

TEST(ScheduleGrid, CountsWhatIsProvenAndRefused) {
  const ScheduleGrid grid = grid_of(right);
  EXPECT_EQ(grid.proven, (Counts{{"planted", 1}}));
  // Of 80 shapes (sum over 8 ranks of 2 p + 1) 9 are of chunks and slices and 7 special, 3 on one rank.
  const std::map<ScheduleGrid::Refused, ScheduleGrid::Refusals> refused = {
      {{"planted", "shape"}, {80 * 16 - 4 * 3 - 1, "shape other than one"}}};
  EXPECT_EQ(grid.refused, refused);
  EXPECT_EQ(grid.failures, Failures());
}

TEST(ScheduleGrid, RejectsWhatIsNotProven) {
  EXPECT_EQ(grid_of([](const plan::ScheduleShape& shape) {
              plan::Schedule schedule = right(shape);
              std::swap(schedule.ranks[1][0], schedule.ranks[1][1]);
              return schedule;
            }).failures.front(),
            "planted ranks 2 microbatches 2 chunks 1 slices 1 depth 0: rank 1: 1B0 comes before 1F0");
  const ScheduleGrid thrown = grid_of([](const plan::ScheduleShape&) -> plan::Schedule { throw BadInput("no luck"); });
  EXPECT_EQ(thrown.failures,
            (Failures{"planted ranks 2 microbatches 2 chunks 1 slices 1 no luck", "planted: no shape is proven"}));
}

TEST(ScheduleGrid, RejectsAGeneratorThatRefusesAll) {
  const ScheduleGrid grid = grid_of(right, no_shape);
  EXPECT_EQ(grid.failures, Failures{"planted: no shape is proven"});
}

// Without these the schedules that update without a flush would be proven in their plainest form alone.
TEST(ScheduleGrid, TriesWhatOnlySomeSchedulesTake) {
  const std::array only = {&plan::schedule_generator("pipedream"), &plan::schedule_generator("pipedream_2bw")};
  const ScheduleGrid grid = check_grid(only);
  EXPECT_EQ(grid.failures, Failures());
  // Plain and synchronous; one stage on p ranks, with 2 multiples of p microbatches up to 2 p + 1 (3 of one rank);
  // stages of p - 1 and 1 ranks, either first, with 19 multiples of p - 1; synchronous only where the larger one comes
  // first, or both are equal, with 5.
  EXPECT_EQ(grid.proven.at("pipedream"), 2 * 80 + (7 * 2 + 3) + 2 * 19 + (19 + 5));
  // p and 2 p (3 too of one rank); with updates of p + 1, those and on one rank none more.
  EXPECT_EQ(grid.proven.at("pipedream_2bw"), 8 * 2 + 1 + 8);
}

}  // namespace
}  // namespace shardproof::harness
