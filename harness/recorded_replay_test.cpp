// SPDX-License-Identifier: Apache-2.0
#include "harness/recorded_replay.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "harness/predict/bubble.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/timeline.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using plan::ActionKind;

/// What ranks that share one processor would record of a schedule: any order of times, but each action takes `cost`
/// microseconds, and between what it does each rank waits for no known time.
class Recorder {
 public:
  Recorder(const plan::Schedule& schedule, const std::function<std::int64_t(std::int64_t stage, ActionKind)>& cost)
      : stages_(std::ssize(schedule.ranks)) {
    for (std::int64_t r = 0; r < stages_; ++r) {
      Spans& rank = ranks.emplace_back();
      std::int64_t now = 1'000'000 * r;
      sent_.clear(), received_.clear(), cpu_ = 0;
      const auto start = now;
      for (const auto& action : schedule.ranks[static_cast<std::size_t>(r)]) {
        const std::int64_t way = action.kind == ActionKind::forward ? 1 : -1;
        exchange(rank, "receive", r, r - way, way, now);
        const auto took = 1000 * cost(action.stage, action.kind);
        rank.actions.push_back({{now, now + took, cpu_, cpu_ + took, {}}, 'F', action.stage, action.microbatch});
        now += took, cpu_ += took;
        exchange(rank, "send", r, r + way, way, now);
      }
      rank.steps.push_back({{start, now, 0, cpu_, {}}, 1});
    }
  }

  std::vector<Spans> ranks;

 private:
  void exchange(Spans& rank, std::string_view kind, std::int64_t own, std::int64_t peer, std::int64_t way,
                std::int64_t& now) {
    if (peer < 0 || peer >= stages_) return;
    auto& numbers = kind == "send" ? sent_ : received_;
    const auto number = ++numbers[way];
    const auto end = now + 12345;  // a wait: the sender's time lies anywhere
    rank.exchanges.push_back({{now, end, cpu_, cpu_, {}},
                              kind,
                              "stage_output",
                              way > 0 ? forward_ : backward_,
                              stages_,
                              own,
                              peer,
                              number,
                              1000});
    now = end;
  }

  std::int64_t stages_, cpu_ = 0;
  std::map<std::int64_t, std::int64_t> sent_, received_;
  std::shared_ptr<const std::string> forward_ = std::make_shared<const std::string>("forward"),
                                     backward_ = std::make_shared<const std::string>("backward");
};

plan::Schedule schedule(std::string_view name, std::int64_t p, std::int64_t m) {
  return plan::schedule_generator(name).generate({.ranks = p, .microbatches = m});
}

// Waits of the recording are dropped with processor time, in which they take none.
const ReplayOptions alone = {.processor_time = true};

TEST(RecordedReplay, HasTheTimesOfTheSchedule) {
  for (const char* name : {"gpipe", "naive"})
    for (std::int64_t p = 1; p <= 8; ++p)
      for (std::int64_t m = 1; m <= 32; ++m) {
        const auto actions = schedule(name, p, m);
        const auto cost = [](std::int64_t, ActionKind kind) { return kind == ActionKind::forward ? 1000 : 2000; };
        const auto replayed = replay_recorded(Recorder(actions, cost).ranks, alone);
        const auto line = plan::timeline(actions, {1e-3, 1e-3, 1e-3});
        ASSERT_EQ(replayed.pipeline.size(), 1u);
        EXPECT_NEAR(replayed.pipeline[0].makespan, line.makespan, 1e-9) << name << " " << p << " " << m;
        EXPECT_NEAR(replayed.step_seconds[0], line.makespan, 1e-9);
        EXPECT_NEAR(replayed.pipeline[0].bubble_fraction(p), line.bubble_fraction(), 1e-9);
        EXPECT_NEAR(replayed.pipeline[0].bubble_overhead(p), line.bubble_overhead(), 1e-9);
        const auto form = predict::bubble_overhead(name, p, m, 1).value();
        EXPECT_NEAR(replayed.pipeline[0].bubble_overhead(p), form, 1e-9) << name << " " << p << " " << m;
        EXPECT_NEAR(replayed.pipeline[0].bubble_fraction(p), predict::bubble_fraction(form), 1e-9);
      }
}

// Stages of unequal cost, each of them slowed in turn, at any depth of sends: costs are whole microseconds.
TEST(RecordedReplay, ASlowStageSetsThePace) {
  for (std::int64_t p = 2; p <= 8; ++p)
    for (const std::int64_t m : {1, 2, 5, 32})
      for (std::int64_t slow = 0; slow < p; ++slow) {
        const auto cost = [&](std::int64_t stage, ActionKind kind) -> std::int64_t {
          return (kind == ActionKind::forward ? 1000 + 70 * (stage * 5 % 8) : 2100 - 30 * stage) *
                 (stage == slow ? 3 : 1);
        };
        std::vector<predict::StageSeconds> stages;
        for (std::int64_t s = 0; s < p; ++s)
          stages.push_back({1e-6 * static_cast<double>(cost(s, ActionKind::forward)),
                            1e-6 * static_cast<double>(cost(s, ActionKind::backward))});
        const Recorder recorded(schedule("gpipe", p, m), cost);
        for (const std::int64_t depth : {1, 2, 40}) {
          auto options = alone;
          options.send_depth = depth;
          EXPECT_NEAR(replay_recorded(recorded.ranks, options).pipeline[0].makespan, predict::gpipe_seconds(stages, m),
                      1e-9)
              << p << " " << m << " " << slow << " " << depth;
        }
      }
}

TEST(RecordedReplay, AFabricCarriesTheMessages) {
  constexpr std::int64_t p = 3, m = 1;
  const auto cost = [](std::int64_t, ActionKind) -> std::int64_t { return 1000; };
  auto options = alone;
  options.fabric = Fabric{"test", 5e-6, 1e9};  // 1000 bytes: 1 microsecond
  const auto replayed = replay_recorded(Recorder(schedule("gpipe", p, m), cost).ranks, options);
  EXPECT_NEAR(replayed.pipeline[0].makespan, 2 * p * 1e-3 + 2 * (p - 1) * 6e-6, 1e-9);
}

TEST(RecordedReplay, ASenderIsAheadByTheDepthAlone) {
  // The first stage sends three times at once; the second takes each after a second of its own.
  const auto group = std::make_shared<const std::string>("g");
  Spans from, to;
  const auto at = [](std::int64_t start, std::int64_t end) { return TimeSpan{start, end, start, end, {}}; };
  for (std::int64_t k = 1; k <= 3; ++k) {
    from.exchanges.push_back({at(k, k), "send", "x", group, 2, 0, 1, k, 8});
    to.exchanges.push_back({at(1'000'000'000 * k, 1'000'000'000 * k), "receive", "x", group, 2, 1, 0, k, 8});
  }
  from.steps.push_back({at(0, 4), 1});
  to.steps.push_back({at(0, 3'000'000'001), 1});
  const auto end_of_sender = [&](std::int64_t depth) {
    Spans sender = from;
    sender.actions = {{at(0, 0), 'F', 0, 0}, {at(4, 4), 'F', 0, 1}};  // before its sends and after them
    return replay_recorded(std::vector{sender, to}, {.processor_time = true, .fabric = {}, .send_depth = depth})
        .pipeline[0]
        .makespan;
  };
  EXPECT_NEAR(end_of_sender(1), 2.0, 1e-6);
  EXPECT_NEAR(end_of_sender(2), 1.0, 1e-6);
  EXPECT_NEAR(end_of_sender(3), 0.0, 1e-6);
  from.exchanges.erase(from.exchanges.begin());
  EXPECT_THROW(end_of_sender(1), BadInput);  // a receive without its send
}

TEST(RecordedReplay, PartsOnTheWallAreThoseOfTheClock) {
  Spans a, b;
  const auto at = [](std::int64_t start, std::int64_t end) { return TimeSpan{start, end, 0, 0, {}}; };
  a.steps.push_back({at(0, 100), 2}), b.steps.push_back({at(0, 100), 2});
  a.steps.push_back({at(100, 200), 3}), b.steps.push_back({at(100, 200), 3});
  a.actions = {{at(10, 30), 'F', 0, 0}, {at(110, 120), 'F', 0, 0}};
  b.actions = {{at(30, 50), 'F', 1, 0}, {at(120, 130), 'F', 1, 0}};
  const auto parts = pipeline_on_wall(std::vector{a, b});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_NEAR(parts[0].makespan, 40e-9, 1e-15);
  EXPECT_NEAR(parts[0].bubble_fraction(2), 0.5, 1e-12);
  EXPECT_NEAR(parts[1].bubble_overhead(2), 1.0, 1e-12);
}

}  // namespace
}  // namespace shardproof::harness
