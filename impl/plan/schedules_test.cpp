// SPDX-License-Identifier: Apache-2.0
// What every generator makes, proven over a grid of shapes.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/timeline.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;
using Counts = std::vector<std::int64_t>;

Schedule of(std::string_view name, const ScheduleShape& shape) { return generate(schedule_generator(name), shape); }

/// Stages 1-8, microbatches 1 to 2 p + 1, chunks 1-3, slices 1-3.
template <class Visit>
void for_each_shape(const Visit& visit) {
  for (std::int64_t p = 1; p <= 8; ++p)
    for (std::int64_t m = 1; m <= 2 * p + 1; ++m)
      for (std::int64_t chunks = 1; chunks <= 3; ++chunks)
        for (std::int64_t slices = 1; slices <= 3; ++slices)
          visit(ScheduleShape{.ranks = p, .microbatches = m, .chunks = chunks, .slices = slices});
}
std::string text_of(const ScheduleShape& s) {
  return "p " + std::to_string(s.ranks) + " m " + std::to_string(s.microbatches) + " chunks " +
         std::to_string(s.chunks) + " slices " + std::to_string(s.slices);
}

TEST(Schedules, AreThoseOfTheTable) {
  std::vector<std::string_view> names;
  for (const auto* generator : schedules()) names.push_back(generator->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"naive", "gpipe", "one_f_one_b", "interleaved", "zb_h1", "zb_h2",
                                                  "zb_v", "dualpipe", "pipedream", "pipedream_2bw"}));
  EXPECT_EQ(schedule_generator("gpipe").name, "gpipe");
  EXPECT_EQ(schedule_generator("1f1b").name, "one_f_one_b");
  EXPECT_THROW(schedule_generator("gpip"), BadInput);
  EXPECT_THROW(schedule_generator(""), BadInput);
}

TEST(Schedules, AreProvenAndParseBackOverTheGrid) {
  std::map<std::string_view, int> proven;
  std::map<std::string, int> refused;  // by schedule and what of the shape
  for_each_shape([&](const ScheduleShape& shape) {
    for (const auto* generator : schedules()) {
      if (const std::string why = generator->refusal(shape); !why.empty()) {
        EXPECT_THROW(generate(*generator, shape), NotSupported);
        ++refused[std::string(generator->name) + " " + why.substr(0, why.find(' '))];
        continue;
      }
      Schedule schedule = generator->generate(shape);
      ++proven[generator->name];
      EXPECT_EQ(parse_schedule(print(schedule)).ranks, schedule.ranks);
      const std::int64_t depth = schedule.send_depth;
      for (const std::int64_t more : {0, 1, 3}) {
        schedule.send_depth = depth + more;
        EXPECT_EQ(texts_of(prove(schedule, extent_of(shape))), std::vector<std::string>())
            << generator->name << " " << text_of(shape);
      }
    }
  });
  const int shapes = 80;  // sum over p of 2 p + 1
  EXPECT_EQ(proven["naive"], 3 * shapes);
  EXPECT_EQ(proven["gpipe"], 3 * shapes);
  EXPECT_EQ(proven["one_f_one_b"], 3 * shapes);
  EXPECT_EQ(proven["interleaved"], 2 * shapes);
  for (const char* name : {"zb_h1", "zb_h2"}) EXPECT_EQ(proven[name], 3 * shapes) << name;
  for (const char* name : {"zb_v", "pipedream"}) EXPECT_EQ(proven[name], shapes) << name;
  EXPECT_EQ(proven["dualpipe"], 4) << "2 p of 2, 4, 6 and 8 ranks";
  EXPECT_EQ(proven["pipedream_2bw"], 8 * 2 + 1) << "p and 2 p; of one rank 3 too";
  const std::map<std::string, int> reasons = {
      {"naive chunks", 6 * shapes},         {"gpipe chunks", 6 * shapes},
      {"one_f_one_b chunks", 6 * shapes},   {"interleaved chunks", 3 * shapes},
      {"interleaved slices", 4 * shapes},   {"zb_h1 chunks", 6 * shapes},
      {"zb_h2 chunks", 6 * shapes},         {"zb_v chunks", 6 * shapes},
      {"zb_v slices", 2 * shapes},          {"dualpipe ranks", 9 * 36},
      {"dualpipe microbatches", 9 * 40},    {"dualpipe chunks", 6 * 4},
      {"dualpipe slices", 2 * 4},           {"pipedream chunks", 6 * shapes},
      {"pipedream slices", 2 * shapes},     {"pipedream_2bw chunks", 6 * shapes},
      {"pipedream_2bw slices", 2 * shapes}, {"pipedream_2bw microbatches", shapes - 17}};
  EXPECT_EQ(refused, reasons);
}

TEST(Schedules, SayWhatTheyCannotServe) {
  const auto why = [](std::string_view name, const ScheduleShape& shape) {
    return schedule_generator(name).refusal(shape);
  };
  EXPECT_EQ(why("gpipe", {.ranks = 2, .microbatches = 2, .chunks = 2}), "chunks 2: a rank holds 1 stage");
  EXPECT_EQ(why("zb_v", {.ranks = 2, .microbatches = 2}), "chunks 1: a rank holds 2 stages");
  EXPECT_EQ(why("interleaved", {.ranks = 2, .microbatches = 2}),
            "chunks 1: a rank holds at least 2 stages, chunks 2; with one it is one_f_one_b");
  EXPECT_EQ(why("pipedream", {.ranks = 2, .microbatches = 2, .slices = 2}),
            "slices 2: it takes whole sequences, slices 1");
  EXPECT_EQ(why("dualpipe", {.ranks = 3, .microbatches = 6}),
            "ranks 3: it needs an even number, as 4, and at least two microbatches a rank, as 8");
  EXPECT_EQ(why("dualpipe", {.ranks = 4, .microbatches = 6}),
            "microbatches 6: it needs an even number of at least two a rank, as 8");
  EXPECT_EQ(why("dualpipe", {.ranks = 4, .microbatches = 11}),
            "microbatches 11: it needs an even number of at least two a rank, as 12");
  EXPECT_EQ(why("pipedream_2bw", {.ranks = 4, .microbatches = 10}),
            "microbatches 10: a multiple of the 4 of an update, as 8 or 12");
  EXPECT_EQ(why("pipedream_2bw", {.ranks = 4, .microbatches = 3}),
            "microbatches 3: a multiple of the 4 of an update, as 4");
  EXPECT_EQ(why("pipedream_2bw", {.ranks = 4, .microbatches = 9, .microbatches_per_update = 3}),
            "microbatches per update 3: at least one a rank, 4");
  EXPECT_EQ(why("pipedream", {.ranks = 4, .microbatches = 9, .replicas = {2, 1}}),
            "replicas 2,1: their sum is 3, and the ranks are 4");
  EXPECT_EQ(why("pipedream", {.ranks = 3, .microbatches = 9, .replicas = {1, 0, 2}}),
            "replicas 1,0,2: a stage is on at least 1 rank, not 0");
  const std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(why("pipedream", {.ranks = 1, .microbatches = 9, .replicas = {greatest, greatest, 3}}),
            "replicas 9223372036854775807,9223372036854775807,3: they are more than the 1 rank");
  EXPECT_EQ(why("pipedream", {.ranks = 3, .microbatches = 9, .replicas = {2, 1}}),
            "microbatches 9: stage 0 takes 2 in turn, a multiple of that as 10");
  EXPECT_EQ(
      why("pipedream", {.ranks = 3, .microbatches = 8, .replicas = {1, 2}, .vertical_sync = true}),
      "vertical sync with replicas 1,2: an update of stage 1 is of 2 minibatches, which must divide those of stage "
      "0, 1, as 1 does");
  EXPECT_EQ(why("gpipe", {.ranks = 2, .microbatches = 9, .replicas = {1, 1}}),
            "replicas 1,1: a stage is on one rank but in pipedream");
  EXPECT_EQ(why("gpipe", {.ranks = 2, .microbatches = 9, .vertical_sync = true}),
            "vertical sync on: it is of pipedream alone, off");
  EXPECT_THROW(generate(schedule_generator("gpipe"), {.ranks = 0}), BadInput);
  EXPECT_THROW(generate(schedule_generator("gpipe"), {.microbatches = -1}), BadInput);
  EXPECT_THROW(generate(schedule_generator("pipedream_2bw"), {.microbatches_per_update = -1}), BadInput);
}

TEST(Schedules, PipeDreamGivesMinibatchesToReplicasInTurn) {
  const Schedule schedule = of("pipedream", {.ranks = 3, .microbatches = 6, .replicas = {2, 1}});
  EXPECT_EQ(print(schedule),
            "0F0,0F2,0B0,0U0,0F4,0B2,0U2,0B4,0U4\n"
            "0F1,0F3,0B1,0U1,0F5,0B3,0U3,0B5,0U5\n"
            "1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2,1F3,1B3,1U3,1F4,1B4,1U4,1F5,1B5,1U5\n");
}

/// Every way to put up to 7 ranks on up to 4 stages, with and without vertical sync: what is not refused is proven, and
/// keeps no more versions in a long run than in a short one.
TEST(Schedules, PipeDreamIsProvenOverItsReplicas) {
  int proven = 0, refused = 0;
  std::vector<Counts> lists = {{}};
  for (std::size_t k = 0; k < lists.size(); ++k) {
    const Counts list = lists[k];
    const std::int64_t sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
    if (list.size() < 4)
      for (std::int64_t r = 1; r <= 7 - sum; ++r) lists.push_back(list), lists.back().push_back(r);
    if (list.empty()) continue;
    for (const bool sync : {false, true}) {
      Counts versions;
      for (const std::int64_t rounds : {1, 3, 9}) {
        const ScheduleShape shape{.ranks = sum, .microbatches = 60 * rounds, .replicas = list, .vertical_sync = sync};
        if (const std::string why = schedule_generator("pipedream").refusal(shape); !why.empty()) {
          ++refused;
          continue;
        }
        ++proven;
        const Schedule schedule = of("pipedream", shape);
        EXPECT_EQ(texts_of(prove(schedule, extent_of(shape))), std::vector<std::string>()) << print(schedule);
        const Counts kept = weight_versions(schedule, {schedule, extent_of(shape)}).most_kept;
        versions.push_back(std::ranges::max(kept));
      }
      for (const std::int64_t most : versions) EXPECT_EQ(most, versions[0]);
    }
  }
  EXPECT_GT(proven, 300);
  EXPECT_GT(refused, 100);
}

// Random costs: every action starts as soon as what it needs has ended, not before and not after, and the makespan is
// at least the busiest rank's time and the longest chain's. Dependencies are written here again, from the actions'
// names alone.
TEST(Schedules, EveryActionStartsWhenWhatItNeedsIsThere) {
  std::uint64_t draw = 0;
  const RandomStream random(7, "schedules");
  const auto cost = [&] { return static_cast<double>(1 + random.word(draw++) % 1000) / 100; };
  for_each_shape([&](const ScheduleShape& shape) {
    if (shape.microbatches % 3 != 0) return;
    for (const auto* generator : schedules()) {
      if (!generator->refusal(shape).empty()) continue;
      const Schedule schedule = generator->generate(shape);
      ActionCosts costs{cost(), cost(), cost(), cost()};
      for (std::int64_t s = 0; s < shape.stages(); ++s) costs.stages.push_back(cost());
      const Timeline line = timeline(schedule, costs);
      struct Done {
        double end = 0, chain = 0;  // chain: the longest that leads to it, whatever ranks do in between
        std::size_t rank = 0;
      };
      std::map<std::tuple<std::int64_t, char, std::int64_t, std::int64_t>, Done> done;
      struct Next {
        double start;
        std::size_t rank, at;
      };
      std::vector<Next> order;
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
        for (std::size_t k = 0; k < schedule.ranks[r].size(); ++k) order.push_back({line.ranks[r][k].start, r, k});
      std::ranges::stable_sort(order, {}, &Next::start);
      std::vector<double> free(schedule.ranks.size()), busy(schedule.ranks.size());
      double longest = 0, last = 0;
      for (const Next& next : order) {
        const std::size_t r = next.rank, k = next.at;
        const Action& a = schedule.ranks[r][k];
        const Span& span = line.ranks[r][k];
        if (a.kind == update) continue;  // takes no time
        double earliest = free[r], chain = 0;
        const auto after = [&](std::int64_t stage, char kind, std::int64_t slice) {
          const auto before = done.find({stage, kind, a.microbatch, slice});
          ASSERT_NE(before, done.end()) << generator->name << " " << print(a);
          const double hop = before->second.rank == r ? 0 : costs.message;
          earliest = std::max(earliest, before->second.end + hop);
          chain = std::max(chain, before->second.chain + hop);
        };
        if (a.kind == forward && a.stage > 0) after(a.stage - 1, 'F', a.slice);
        if (a.kind == forward && a.slice > 0) after(a.stage, 'F', a.slice - 1);
        if (is_input_backward(a)) after(a.stage, 'F', a.slice);
        if (is_input_backward(a) && a.stage + 1 < shape.stages()) after(a.stage + 1, 'I', a.slice);
        if (is_input_backward(a) && a.slice != Action::whole && a.slice + 1 < shape.slices)
          after(a.stage, 'I', a.slice + 1);
        if (a.kind == backward_weight) after(a.stage, 'I', a.slice);
        EXPECT_NEAR(span.start, earliest, 1e-12 * earliest) << generator->name << " " << print(a);
        const double taken = span.end - span.start;
        const Done now{span.end, chain + taken, r};
        for (const char kind : {'F', 'I', 'W'})
          if (letter_of(a.kind) == kind || (a.kind == backward && kind != 'F'))
            done[{a.stage, kind, a.microbatch, a.slice}] = now;
        free[r] = span.end, busy[r] += taken;
        longest = std::max(longest, now.chain), last = std::max(last, span.end);
      }
      EXPECT_EQ(line.makespan, last);
      EXPECT_GE(line.makespan, std::ranges::max(busy) * (1 - 1e-12));
      EXPECT_GE(line.makespan, longest * (1 - 1e-12));
    }
  });
}

/// A chain of so many ranks in which one works at a time: what grew with the square of them would take minutes here.
TEST(Schedules, LongPipelinesAreProvenInLinearTime) {
  for (const auto* generator : schedules()) {
    const std::int64_t ranks = 1 << 16;
    const bool ends =
        generator->name == "dualpipe" || generator->name == "pipedream_2bw";  // they need many microbatches
    const ScheduleShape shape{.ranks = ends ? 256 : ranks, .microbatches = ends ? 512 : 1, .chunks = generator->chunks};
    EXPECT_EQ(prove(generate(*generator, shape), extent_of(shape)).size(), 0u) << generator->name;
  }
  const ScheduleShape many{.ranks = 2, .microbatches = 2, .chunks = 1 << 16};
  EXPECT_EQ(prove(of("interleaved", many), extent_of(many)).size(), 0u);
}

/// With one message less ahead some shape of each schedule that has a depth is a deadlock.
TEST(Schedules, TheirDepthIsTheLeast) {
  for (const auto* generator : schedules()) {
    bool has_depth = false, needs_it = false;
    for (const std::int64_t m : {8, 9, 10, 11}) {
      const ScheduleShape shape{.ranks = 4, .microbatches = m, .chunks = generator->chunks};
      if (!generator->refusal(shape).empty()) continue;
      Schedule schedule = generator->generate(shape);
      if (schedule.send_depth == 0) continue;
      has_depth = true;
      --schedule.send_depth;
      const auto texts = texts_of(prove(schedule, extent_of(shape)));
      needs_it = needs_it || (texts.size() == 1 && texts[0].find(": deadlock with ") != std::string::npos);
    }
    EXPECT_EQ(needs_it, has_depth) << generator->name;
  }
}

TEST(Schedules, InterleavedStatesTheLeastDepthOfEachShape) {
  for (std::int64_t p = 2; p <= 8; ++p)
    for (std::int64_t m = 2; m < 4 * p; ++m)
      for (const std::int64_t v : {2, 3, 5}) {
        const ScheduleShape shape{.ranks = p, .microbatches = m, .chunks = v};
        Schedule schedule = of("interleaved", shape);
        EXPECT_EQ(prove(schedule, extent_of(shape)).size(), 0u) << text_of(shape);
        --schedule.send_depth;
        EXPECT_EQ(prove(schedule, extent_of(shape)).size(), 1u) << text_of(shape);
      }
}

}  // namespace
}  // namespace shardproof::plan
