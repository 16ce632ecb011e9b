// SPDX-License-Identifier: Apache-2.0
// Faults planted in what every generator makes, and what must be said of each.
#include <algorithm>

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;

constexpr std::int64_t ranks = 4, microbatches = 8;

ScheduleShape shape_of(const ScheduleGenerator& generator) {
  return {.ranks = ranks, .microbatches = microbatches, .chunks = generator.chunks};
}
std::vector<Action>& last(Schedule& s) { return s.ranks.back(); }
auto first_of(std::vector<Action>& actions, bool (*is)(const Action&)) { return std::ranges::find_if(actions, is); }
std::string print(Action a, ActionKind kind) {
  a.kind = kind;
  return print(a);
}

/// Plants it, and returns what must be said of it.
struct Planted {
  const char* fault;
  std::string (*plant)(Schedule&);
};

const Planted planted[] = {
    {"missing",
     [](Schedule& s) {
       auto at = last(s).end() - 1;
       while (at->kind == update) --at;
       const std::string name = print(*at, at->kind == backward ? backward_input : at->kind);
       last(s).erase(at);
       return "rank 3: " + name + " is missing";
     }},
    {"doubled",
     [](Schedule& s) {
       last(s).push_back(last(s).front());
       return "rank 3: " + print(last(s).front()) + " is doubled";
     }},
    {"early",
     [](Schedule& s) {
       const auto at = first_of(last(s), is_input_backward);
       std::string text = "rank 3: " + print(*at) + " comes before " + print(*at, forward);
       std::rotate(last(s).begin(), at, at + 1);
       return text;
     }},
    {"weights first",
     [](Schedule& s) {
       const Action a = *first_of(last(s), is_weight_backward);
       last(s).insert(last(s).begin(), {a.stage, backward_weight, a.microbatch});
       return "rank 3: " + print(a, backward_weight) + " comes before " + print(a, backward_input);
     }},
    {"another rank, of dualpipe the mirror",
     [](Schedule& s) {
       const auto at = first_of(last(s), is_weight_backward);
       std::string text = "rank 0: " + print(*at) + " belongs on rank 3, where " + print(*at, forward) + " is";
       s.ranks.front().push_back(*at);
       last(s).erase(at);
       return text;
     }},
    {"no such stage",
     [](Schedule& s) {
       std::int64_t stages = 0;
       for (const Action& a : s.ranks.front()) stages = std::max(stages, a.stage + 1);
       for (const Action& a : last(s)) stages = std::max(stages, a.stage + 1);
       last(s).front().stage += 1000;
       return "rank 3: " + print(last(s).front()) + " is of stage " + std::to_string(last(s).front().stage) +
              ": they are 0 to " + std::to_string(stages - 1);
     }},
    {"no such microbatch",
     [](Schedule& s) {
       last(s).front().microbatch += 1000;
       return "rank 3: " + print(last(s).front()) + " is of microbatch " + std::to_string(last(s).front().microbatch) +
              ": they are 0 to 7";
     }},
    {"updated twice",
     [](Schedule& s) {
       for (auto& actions : s.ranks)
         if (s.weights == WeightRule::flushed)
           for (const Action& a : std::vector<Action>(actions))
             if (a.kind == forward &&
                 std::ranges::find(actions, Action{a.stage, update, a.microbatch}) == actions.end() &&
                 std::ranges::none_of(actions, [&](const Action& u) { return u.kind == update && u.stage == a.stage; }))
               actions.push_back({a.stage, update, a.microbatch});
       const auto u = std::find_if(last(s).rbegin(), last(s).rend(), [](const Action& a) { return a.kind == update; });
       const auto count =
           std::ranges::count_if(last(s), [&](const Action& a) { return a.kind == update && a.stage == u->stage; });
       const Action again = *u;
       last(s).push_back(again);
       return "rank 3: " + print(again) + " is one more than the " + std::to_string(count) + " update" +
              (count == 1 ? "" : "s") + " of the stage";
     }},
};

TEST(Schedules, PlantedFaultsAreRejected) {
  for (const auto* generator : schedules())
    for (const Planted& one : planted) {
      Schedule schedule = generate(*generator, shape_of(*generator));
      const std::string says = one.plant(schedule);
      const auto texts = texts_of(prove(schedule, extent_of(shape_of(*generator))));
      EXPECT_NE(std::ranges::find(texts, says), texts.end())
          << generator->name << ", " << one.fault << ": " << says << "\n"
          << (texts.empty() ? "accepted" : texts.front());
    }
}

/// Two forwards of the first rank exchanged: the one that arrives first is not the one that rank 1 waits for, at any
/// depth. Only naive has gone back in between.
TEST(Schedules, SwappedForwardsAreADeadlock) {
  for (const auto* generator : schedules()) {
    Schedule schedule = generate(*generator, shape_of(*generator));
    schedule.send_depth = 9;
    auto& actions = schedule.ranks.front();
    std::iter_swap(std::ranges::find(actions, Action{0, forward, 0}),
                   std::ranges::find(actions, Action{0, forward, 1}));
    const auto texts = texts_of(prove(schedule, extent_of(shape_of(*generator))));
    ASSERT_EQ(texts.size(), 1u) << generator->name;
    EXPECT_EQ(texts[0],
              generator->name == "naive"
                  ? "rank 0: 0B0 comes before 0F0"
                  : "rank 1: deadlock with sends of depth 9: rank 1 waits in 1F0 for 0F0 of rank 0, which sent "
                    "0F1 first")
        << generator->name;
  }
}

TEST(Schedules, NeighboursThatBothSendFirstAreADeadlockUnderRendezvous) {
  for (const auto* generator : schedules()) {
    Schedule schedule = generate(*generator, shape_of(*generator));
    if (schedule.send_depth == 0) continue;
    schedule.send_depth = 0;
    const auto texts = texts_of(prove(schedule, extent_of(shape_of(*generator))));
    ASSERT_EQ(texts.size(), 1u) << generator->name;
    EXPECT_NE(texts[0].find(": deadlock with rendezvous sends:"), std::string::npos) << texts[0];
  }
}

/// Two copies of a stage that each hold what the other one's sums need.
TEST(Schedules, MirrorsThatFinishInAnotherOrderAreRejected) {
  const ScheduleGenerator& dualpipe = schedule_generator("dualpipe");
  Schedule schedule = generate(dualpipe, shape_of(dualpipe));
  auto& actions = last(schedule);
  for (const std::int64_t stage : {0, 3}) {  // the last W of rank 3 is then of the other stage
    const auto is_last = [&](const Action& a) { return a.kind == backward_weight && a.stage == stage; };
    const auto at = std::find_if(actions.rbegin(), actions.rend(), is_last);
    if (&*at == &actions.back()) continue;
    std::rotate(at.base() - 1, at.base(), actions.end());
    break;
  }
  const auto texts = texts_of(prove(schedule, extent_of(shape_of(dualpipe))));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("sums over copies of stages wait for each other"), std::string::npos) << texts[0];
}

TEST(Schedules, UpdatesThatTheRuleDoesNotGiveAreRejected) {
  const auto says = [](std::string_view name, const ScheduleShape& shape, const auto& plant) {
    Schedule schedule = generate(schedule_generator(name), shape);
    plant(schedule);
    const auto texts = texts_of(prove(schedule, extent_of(shape)));
    return texts.empty() ? "accepted" : texts.front();
  };
  const ScheduleShape stale{.ranks = 4, .microbatches = 12},
      synced{.ranks = 4, .microbatches = 12, .vertical_sync = true};
  const ScheduleShape buffered{.ranks = 4, .microbatches = 16};
  EXPECT_EQ(says("pipedream", stale, [](Schedule& s) { s.weights = WeightRule::flushed; }),
            "rank 0: 0U0 comes before 0W1, which is of the same update");
  EXPECT_EQ(says("gpipe", stale, [](Schedule& s) { s.weights = WeightRule::stashed; }), "rank 0: 0U0 is missing");
  const auto never = [](Schedule& s) { std::erase_if(last(s), [](const Action& a) { return a.kind == update; }); };
  EXPECT_EQ(says("pipedream", stale, never), "rank 3: 3U0 is missing");
  EXPECT_EQ(says("pipedream_2bw", buffered, never), "rank 3: 3U3 is missing");
  const auto late = [](Schedule& s) {  // the last rank's first update moves behind its second
    const auto at = last(s).begin() + 2;
    std::rotate(at, at + 1, at + 4);
  };
  EXPECT_EQ(says("pipedream", stale, late),
            "rank 3: 3U1 is not the update that is due: 3U0, after every 1 of the stage's microbatches");
  const auto at_the_end = [](Schedule& s) {
    std::stable_partition(last(s).begin(), last(s).end(), [](const Action& a) { return a.kind != update; });
  };
  EXPECT_EQ(says("pipedream", stale, at_the_end), "accepted") << "stashed: the latest, however old";
  EXPECT_EQ(says("pipedream", synced, at_the_end),
            "rank 3: 3F4 reads version 1 of stage 3's weights before it is written: there have been 0 updates");
  EXPECT_EQ(says("pipedream_2bw", buffered, at_the_end),
            "rank 3: 3F8 reads version 1 of stage 3's weights before it is written: there have been 0 updates");
}

}  // namespace
}  // namespace shardproof::plan
