// SPDX-License-Identifier: Apache-2.0
#include "harness/recorded_replay.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
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
      auto start = now, cpu_start = cpu_;
      const auto end_step = [&] {
        rank.steps.push_back({{start, now, cpu_start, cpu_, {}}, std::ssize(rank.steps) + 1});
        start = now, cpu_start = cpu_;
      };
      const auto& actions = schedule.ranks[static_cast<std::size_t>(r)];
      const bool has_updates = schedule.weights != plan::WeightRule::flushed;
      for (const auto& action : actions) {
        if (action.kind == ActionKind::update) {
          rank.actions.push_back({{now, now + 10, cpu_, cpu_, {}}, 'U', action.stage, action.microbatch});
          now += 10;
          end_step();
          continue;
        }
        const std::int64_t way = action.kind == ActionKind::forward ? 1 : -1;
        exchange(rank, "receive", r, r - way, way, now);
        const auto took = 1000 * cost(action.stage, action.kind);
        rank.actions.push_back(
            {{now, now + took, cpu_, cpu_ + took, {}}, plan::letter_of(action.kind), action.stage, action.microbatch});
        now += took, cpu_ += took;
        exchange(rank, "send", r, r + way, way, now);
      }
      if (!has_updates) end_step();
    }
  }

  /// Leaves what was recorded of the steps from `first` to `last`, counted from 1, on each rank.
  std::vector<Spans> of_steps(std::int64_t first, std::int64_t last) const {
    auto some = ranks;
    for (auto& rank : some) {
      const auto begin = rank.steps[static_cast<std::size_t>(first - 1)].start,
                 end = rank.steps[static_cast<std::size_t>(last - 1)].end;
      const auto is_outside = [&](const TimeSpan& span) { return span.start < begin || span.end > end; };
      std::erase_if(rank.steps, is_outside);
      std::erase_if(rank.actions, is_outside);
      std::erase_if(rank.exchanges, is_outside);
    }
    return some;
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

const ReplayOptions stale = {.processor_time = true, .without_flush = true};

plan::Schedule stale_schedule(std::string_view name, std::int64_t p, std::int64_t per_update, std::int64_t steps) {
  plan::ScheduleShape shape{.ranks = p, .microbatches = per_update * steps};
  if (name == "pipedream_2bw") shape.microbatches_per_update = per_update;
  return plan::schedule_generator(name).generate(shape);
}

// Without a flush the slowest stage is never idle once the pipeline is full, and all others do in the same time as many
// minibatches: 1 - sum c / (p max c), which is 0 for equal stages (Narayanan et al. 2019, section 3.2).
TEST(RecordedReplay, WithoutAFlushTheSlowestStageIsNeverIdle) {
  for (const char* name : {"pipedream", "pipedream_2bw"})
    for (std::int64_t p = 2; p <= 6; ++p)
      for (std::int64_t slow = -1; slow < p; ++slow) {
        const std::int64_t per_update = std::string_view(name) == "pipedream" ? 1 : p + 1;
        const auto cost = [&](std::int64_t stage, ActionKind kind) -> std::int64_t {
          return (kind == ActionKind::forward ? 1000 : 2000) * (stage == slow ? 3 : 1);
        };
        const double all = slow < 0 ? static_cast<double>(p) : static_cast<double>(p + 2), most = slow < 0 ? 1 : 3;
        const double fraction = 1 - all / (static_cast<double>(p) * most);
        const Recorder recorded(stale_schedule(name, p, per_update, 30), cost);
        for (const std::int64_t last : {21, 30}) {  // within the run, and with its end, where ranks run dry
          const auto replayed = replay_recorded(recorded.of_steps(2, last), stale);
          const auto what = fmt::format("{} p {} slow {} to {}", name, p, slow, last);
          EXPECT_GE(replayed.steady.steps, 10) << what;
          EXPECT_NEAR(replayed.steady.bubble_fraction(p), fraction, 1e-9) << what;
          const double pace = 3e-3 * most * static_cast<double>(per_update * replayed.steady.steps);
          EXPECT_NEAR(replayed.steady.makespan, pace, 1e-9) << what;
          EXPECT_TRUE(replayed.pipeline.empty());
          EXPECT_EQ(std::ssize(replayed.step_seconds), last - 1);
        }
      }
}

// All of a run: the replay is the schedule's own, from the first action to the last.
TEST(RecordedReplay, WithoutAFlushAWholeRunHasTheTimesOfTheSchedule) {
  const auto cost = [](std::int64_t, ActionKind kind) { return kind == ActionKind::forward ? 1000 : 2000; };
  for (std::int64_t p = 1; p <= 5; ++p) {
    const auto actions = stale_schedule("pipedream", p, 1, 9);
    const auto replayed = replay_recorded(Recorder(actions, cost).ranks, stale);
    double seconds = 0;
    for (const double step : replayed.step_seconds) seconds += step;
    EXPECT_NEAR(seconds, plan::timeline(actions, {1e-3, 1e-3, 1e-3}).makespan, 1e-9) << p;
  }
}

TEST(RecordedReplay, OnlyWithoutAFlushMayAMessageHaveItsOtherEndOutside) {
  const auto cost = [](std::int64_t, ActionKind) -> std::int64_t { return 1000; };
  const Recorder recorded(stale_schedule("pipedream", 3, 1, 12), cost);
  const auto some = recorded.of_steps(3, 9);
  EXPECT_THROW(replay_recorded(some, alone), BadInput);
  EXPECT_NO_THROW(replay_recorded(some, stale));
  // A hole among the recorded ones is no end outside.
  const auto without = [&](std::string_view kind, std::size_t rank) {
    auto holed = some;
    auto& exchanges = holed[rank].exchanges;
    std::vector<std::size_t> of_kind;
    for (std::size_t k = 0; k < exchanges.size(); ++k)
      if (exchanges[k].kind == kind && *exchanges[k].group == "forward") of_kind.push_back(k);
    exchanges.erase(exchanges.begin() + static_cast<std::ptrdiff_t>(of_kind[3]));
    return holed;
  };
  EXPECT_THROW(replay_recorded(without("send", 0), stale), BadInput);
  EXPECT_THROW(replay_recorded(without("receive", 1), stale), BadInput);
  // What was received of a sender that had ended must not be without its send.
  auto early = some;
  std::erase_if(early[0].exchanges, [](const ExchangeSpan& e) { return e.kind == "send" && e.number > 8; });
  EXPECT_THROW(replay_recorded(early, stale), BadInput);
}

TEST(RecordedReplay, ACollectiveOfAnotherStepLacksEndsAtTheEdgesAlone) {
  const auto group = std::make_shared<const std::string>("g");
  std::vector<Spans> ranks(2);
  for (std::int64_t r = 0; r < 2; ++r) {
    Spans& rank = ranks[static_cast<std::size_t>(r)];
    for (std::int64_t k = 1; k <= 4; ++k)
      rank.exchanges.push_back({{10 * k, 10 * k + 1, 0, 0, {}}, "all_reduce", "x", group, 2, r, 0, k, 8});
    rank.steps.push_back({{0, 50, 0, 0, {}}, 1});
  }
  const auto without = [&](std::ptrdiff_t number) {
    auto some = ranks;
    some[1].exchanges.erase(some[1].exchanges.begin() + number - 1);
    return some;
  };
  for (const std::ptrdiff_t edge : {1, 4}) {
    EXPECT_NO_THROW(replay_recorded(without(edge), stale));
    EXPECT_THROW(replay_recorded(without(edge), alone), BadInput);
  }
  for (const std::ptrdiff_t inside : {2, 3}) EXPECT_THROW(replay_recorded(without(inside), stale), BadInput);
}

TEST(RecordedReplay, AForwardOfAnEarlierStepIsWaitedFor) {
  // Rank 0 runs the forward of microbatch 2 in its step 1, and slowly; rank 1 needs it in its step 2.
  const auto group = std::make_shared<const std::string>("g");
  const auto at = [](std::int64_t start, std::int64_t end) { return TimeSpan{start, end, start, end, {}}; };
  constexpr std::int64_t s = 1'000'000'000;
  Spans from, to;
  from.actions = {{at(0, 5 * s), 'F', 0, 2}, {at(5 * s, 6 * s), 'B', 0, 1}};
  from.exchanges = {{at(5 * s, 5 * s), "send", "x", group, 2, 0, 1, 1, 8}};
  from.steps = {{at(0, 6 * s), 1}, {at(6 * s, 6 * s + s / 2), 2}};
  to.actions = {{at(0, s), 'B', 1, 1}, {at(s, 3 * s), 'B', 1, 2}};
  to.exchanges = {{at(s, s), "receive", "x", group, 2, 1, 0, 1, 8}};
  to.steps = {{at(0, s), 1}, {at(s, 3 * s), 2}};
  const auto replayed = replay_recorded(std::vector{from, to}, stale);
  EXPECT_NEAR(replayed.step_seconds[0], 6, 1e-9);
  EXPECT_NEAR(replayed.step_seconds[1], 1, 1e-9) << "rank 1 ends at 5 + 2, rank 0 at 6.5";
}

TEST(RecordedReplay, TheSteadyPartLiesWhereAllRanksAreInTheirSteps) {
  // Rank 1 ends first, its second step as the first one of rank 0 ends.
  const std::vector<std::vector<double>> ends = {{4, 6, 8, 10}, {2, 4, 6, 8}};
  const std::vector<std::vector<plan::Span>> actions = {{{0, 3}, {4, 6}, {7, 10}}, {{0, 4}, {4.5, 6}, {7.5, 8}}};
  const auto part = steady_part(actions, ends, 10);
  EXPECT_EQ(part.steps, 2);
  EXPECT_EQ(part.makespan, 4);
  EXPECT_EQ(part.busy, (2 + 1) + (1.5 + 0.5));
  const auto shorter = steady_part(actions, ends, 7.5);
  EXPECT_EQ(shorter.steps, 1) << "a rank drains from 7.5 on";
  EXPECT_EQ(shorter.busy, 2 + 1.5);
  EXPECT_EQ(steady_part(actions, ends, 5).steps, 0);
  EXPECT_EQ(steady_part(actions, ends, 10, 2).steps, 0) << "rank 0 ends its second step at 6: one is left, no round";
  EXPECT_EQ(steady_part({{}, {}}, {{5}, {3}}, 10).steps, 0);
  EXPECT_EQ(steady_part({}, {}, 10).steps, 0);
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
