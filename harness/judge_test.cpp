// SPDX-License-Identifier: Apache-2.0
// The oracle of the same track stands in for a candidate; faults are planted in what it shows.
#include "harness/judge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/signals.hpp"
#include "harness/training.hpp"
#include "impl/plan/plan.hpp"
#include "kernels/core/errors.hpp"
#include "reference/oracle.hpp"

namespace shardproof::harness {
namespace {

using Strings = std::vector<std::string>;
using Steps = std::vector<std::vector<Observable>>;

struct Training {
  workload::Workload workload;
  Track track;
  std::vector<workload::Batch> batches;
  Steps steps;
};

/// Sample k of the result is sample order[k].
workload::Batch permuted(const workload::Batch& batch, const std::vector<std::size_t>& order) {
  workload::Batch result = batch;
  const auto sequence = static_cast<std::size_t>(batch.sequence);
  for (std::size_t k = 0; k < order.size(); ++k) {
    result.samples[k] = batch.samples[order[k]];
    for (auto list : {&workload::Batch::tokens, &workload::Batch::labels, &workload::Batch::documents}) {
      std::copy_n((batch.*list).begin() + static_cast<std::ptrdiff_t>(order[k] * sequence), sequence,
                  (result.*list).begin() + static_cast<std::ptrdiff_t>(k * sequence));
    }
  }
  return result;
}

Training trained(Track track, const Strings& settings = {}, const std::vector<std::size_t>& order = {}) {
  Training r{workload::load("tiny", settings), track, {}, {}};
  const workload::Corpus corpus(r.workload);
  const auto oracle = reference::make_oracle(r.workload, track);
  for (std::int64_t step = 1; step <= 3; ++step) {
    r.batches.push_back(workload::batch(r.workload, corpus, step));
    r.steps.push_back(oracle->step(order.empty() ? r.batches.back() : permuted(r.batches.back(), order)));
  }
  return r;
}

Judgement judged(const Training& run, const Steps& steps, JudgeOptions options = {}) {
  Judge judge(run.workload, run.track, std::move(options));
  for (std::size_t k = 0; k < steps.size(); ++k) judge.step(run.batches.at(k), {steps[k], {}});
  return judge.finish();
}

Observable& find(std::vector<Observable>& step, Observed kind, const std::string& name) {
  for (auto& o : step) {
    if (o.kind == kind && o.name == name) return o;
  }
  throw InternalError("no " + name);
}

/// Applies f to every element, as a double.
void change(Observable& o, const std::function<double(double)>& f) {
  std::visit(
      [&]<class T>(std::vector<T>& values) {
        for (auto& x : values) {
          if constexpr (std::is_same_v<T, Fixed>)
            x = round_to<Fixed>(f(real(x)));
          else
            x = static_cast<T>(f(static_cast<double>(x)));
        }
      },
      o.values);
}
void change(Observable& o, std::size_t index, const std::function<double(double)>& f) {
  const Values before = o.values;
  change(o, f);
  std::visit(
      [&]<class T>(std::vector<T>& values) {
        std::vector<T> whole = std::get<std::vector<T>>(before);
        whole.at(index) = values.at(index);
        values = std::move(whole);
      },
      o.values);
}

void expect_failure(const Judgement& j, std::int64_t step, Observed kind, const std::string& name) {
  EXPECT_EQ(j.verdict, Verdict::fail) << j.reason;
  ASSERT_TRUE(j.divergence) << j.reason;
  EXPECT_EQ(j.divergence->step, step) << j.reason;
  EXPECT_EQ(name_of(j.divergence->kind), name_of(kind)) << j.reason;
  EXPECT_EQ(j.divergence->name, name) << j.reason;
}

class JudgeOf : public testing::TestWithParam<Track> {};
INSTANTIATE_TEST_SUITE_P(, JudgeOf, testing::Values(Track::exact, Track::f64, Track::native),
                         [](const auto& track) { return std::string(name_of(track.param)); });

TEST_P(JudgeOf, TheOracleItselfPasses) {
  for (const Strings& settings : {Strings{}, Strings{"optimizer=sgd", "clip=0.5"}, Strings{"optimizer=momentum"},
                                  Strings{"optimizer=adamw", "weight_decay=0.1"}}) {
    const Training r = trained(GetParam(), settings);
    const Judgement j = judged(r, r.steps);
    EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
    EXPECT_EQ(j.steps, 3);
    EXPECT_LE(j.worst, 0.5) << j.worst_name;
    std::vector<Observable> all;
    std::int64_t elements = 0;
    for (const auto& step : r.steps) {
      all.insert(all.end(), step.begin(), step.end());
      for (const auto& o : step) elements += size_of(o.values);
    }
    EXPECT_EQ(j.compared, elements);
    EXPECT_EQ(j.digest, digest_of(all));
  }
}

TEST(Judge, EveryFlippedBitIsFoundInExact) {
  const Training r = trained(Track::exact, {"layers=1", "batch=2", "clip=1"});
  std::mt19937_64 random(1);
  for (int k = 0; k < 200; ++k) {
    Steps steps = r.steps;
    auto& step = steps[random() % 3];
    auto& o = step[random() % step.size()];
    if (o.kind == Observed::skipped) continue;
    const auto index = random() % static_cast<std::uint64_t>(size_of(o.values));
    if (auto* doubles = std::get_if<std::vector<double>>(&o.values)) {
      (*doubles)[index] = std::bit_cast<double>(std::bit_cast<std::uint64_t>((*doubles)[index]) ^ 1);
    } else {
      std::get<std::vector<Fixed>>(o.values)[index].raw ^= 1;
    }
    const Judgement j = judged(r, steps);
    expect_failure(j, o.step, o.kind, o.name);
    ASSERT_TRUE(j.divergence);
    EXPECT_EQ(j.divergence->index, static_cast<std::int64_t>(index)) << j.reason;
    EXPECT_EQ(j.divergence->outside, 1);
    EXPECT_EQ(j.divergence->tensors, 1);
    EXPECT_GT(j.divergence->error, 0) << j.reason;
  }
}

TEST(Judge, MinusZeroIsZero) {
  Training r = trained(Track::exact, {"unused=3"});
  for (auto& step : r.steps) change(find(step, Observed::state, "unused.0.first_moment"), [](double) { return -0.0; });
  EXPECT_EQ(judged(r, r.steps).verdict, Verdict::pass);
}

/// By how much of a tensor's greatest element one element must be off to be found.
double visible(Track track) { return track == Track::exact ? 1e-9 : track == Track::f64 ? 1e-13 : 1e-4; }

TEST_P(JudgeOf, OneElementOffIsFoundWithItsPlace) {
  const Training r = trained(GetParam(), {"clip=1", "layers=1"});
  for (const Observed kind :
       {Observed::loss, Observed::gradient, Observed::norm, Observed::clip, Observed::parameter, Observed::state}) {
    Steps steps = r.steps;
    for (auto& o : steps[1]) {
      if (o.kind != kind || size_of(o.values) == 0) continue;
      // A key bias has no gradient but the noise of its sum, which is what its bound allows.
      if (kind == Observed::gradient && GetParam() != Track::exact && o.name.ends_with("key.bias")) continue;
      const auto values = as_doubles(o.values);
      const double greatest = *std::ranges::max_element(values, {}, [](double x) { return std::fabs(x); });
      const Observable before = o;
      const std::size_t index = values.size() / 2;
      // A state may be off by roundings of itself only; elsewhere the tensor's greatest element counts. Norm and clip
      // may be off by 2^-53 for each of the model's 6,000 elements.
      const double off = std::fabs(kind == Observed::state ? values[index] : greatest) * visible(GetParam()) *
                         (kind == Observed::norm || kind == Observed::clip ? 100 : 1);
      change(o, index, [&](double x) { return x + off; });
      if (as_doubles(o.values) == values) continue;  // a zero state
      const Judgement j = judged(r, steps);
      // A parameter that was not the update's result makes the next step differ, never an earlier one.
      expect_failure(j, 2, o.kind, o.name);
      if (j.divergence) {
        EXPECT_EQ(j.divergence->index, static_cast<std::int64_t>(index)) << j.reason;
        EXPECT_EQ(j.divergence->outside, 1) << j.reason;
        EXPECT_FALSE(j.divergence->ratio && *j.divergence->ratio == 1) << j.reason;
      }
      o = before;
    }
  }
}

TEST_P(JudgeOf, AScaledGradientIsCalledSo) {
  const Training r = trained(GetParam());
  Steps steps = r.steps;
  std::int64_t gradients = 0;
  for (auto& o : steps[1]) {
    if (o.kind != Observed::gradient) continue;
    change(o, [](double x) { return 3 * x; });
    ++gradients;
  }
  const Judgement j = judged(r, steps);
  // Backward order: the final layer norm's bias comes before the blocks and the (tied) embedding.
  expect_failure(j, 2, Observed::gradient, "final_norm.bias");
  ASSERT_TRUE(j.divergence && j.divergence->ratio) << j.reason;
  EXPECT_NEAR(*j.divergence->ratio, 3, 1e-4);
  EXPECT_EQ(j.divergence->of, gradients);
  // Key biases have gradient zero but for noise: no ratio can be told of them.
  EXPECT_GE(j.divergence->ratio_tensors, gradients - r.workload.layers) << j.reason;
}

TEST_P(JudgeOf, SwappedTensorsAreFound) {
  const Training r = trained(GetParam());
  Steps steps = r.steps;
  std::swap(find(steps[2], Observed::gradient, "blocks.0.norm1.weight").values,
            find(steps[2], Observed::gradient, "blocks.1.norm2.weight").values);
  const Judgement j = judged(r, steps);
  expect_failure(j, 3, Observed::gradient, "blocks.1.norm2.weight");
  EXPECT_EQ(j.divergence->tensors, 2);
  EXPECT_FALSE(j.divergence->ratio);
}

TEST_P(JudgeOf, WhatIsNotAStepIsRefused) {
  const Training r = trained(GetParam());
  const std::string name = "blocks.0.mlp.up.bias";
  const auto with = [&](const std::function<void(std::vector<Observable>&)>& fault) {
    Steps steps = r.steps;
    fault(steps[1]);
    return judged(r, steps);
  };
  const auto is = [&](const Observable& o) { return o.kind == Observed::gradient && o.name == name; };
  expect_failure(with([&](auto& step) { std::erase_if(step, is); }), 2, Observed::gradient, name);
  expect_failure(with([&](auto& step) { step.push_back(find(step, Observed::gradient, name)); }), 2, Observed::gradient,
                 name);
  expect_failure(with([&](auto& step) { find(step, Observed::gradient, name).name = "blocks.0.mlp.up.bia"; }), 2,
                 Observed::gradient, name);
  expect_failure(with([&](auto& step) {
                   step.push_back(find(step, Observed::gradient, name));
                   step.back().name = "other";
                 }),
                 2, Observed::gradient, "other");
  expect_failure(with([&](auto& step) { find(step, Observed::gradient, name).step = 1; }), 2, Observed::gradient, name);
  expect_failure(with([&](auto& step) {
                   find(step, Observed::gradient, name).dims = {37, 1};
                 }),
                 2, Observed::gradient, name);
  expect_failure(with([&](auto& step) { find(step, Observed::gradient, name).values = std::vector<std::int64_t>(37); }),
                 2, Observed::gradient, name);
  expect_failure(with([&](auto& step) {
                   find(step, Observed::skipped, "skipped").dims = {1, 1};
                 }),
                 2, Observed::skipped, "skipped");
  expect_failure(with([&](auto& step) { step.clear(); }), 2, Observed::skipped, "skipped");
}

TEST_P(JudgeOf, AValueThatIsNoNumberIsFound) {
  const Training r = trained(GetParam());
  Steps steps = r.steps;
  change(find(steps[0], Observed::gradient, "blocks.1.mlp.down.bias"), 7,
         [](double) { return std::numeric_limits<double>::quiet_NaN(); });
  const Judgement j = judged(r, steps);
  expect_failure(j, 1, Observed::gradient, "blocks.1.mlp.down.bias");
  EXPECT_EQ(j.divergence->index, 7);
}

TEST_P(JudgeOf, TheFirstInOrderIsNamed) {
  const Training r = trained(GetParam(), {"tied_head=false"});
  Steps steps = r.steps;
  const auto spoil = [&](Observed kind, const std::string& name) {
    change(find(steps[1], kind, name), [](double x) { return x * 1.01 + 0.01; });
    expect_failure(judged(r, steps), 2, kind, name);
  };
  spoil(Observed::state, "head.weight.first_moment");
  spoil(Observed::parameter, "head.weight");
  spoil(Observed::parameter, "token_embedding.weight");
  spoil(Observed::clip, "clip");
  spoil(Observed::norm, "norm");
  spoil(Observed::gradient, "token_embedding.weight");
  spoil(Observed::gradient, "blocks.0.attention.query.weight");
  spoil(Observed::gradient, "blocks.1.norm1.weight");
  spoil(Observed::gradient, "head.weight");
  spoil(Observed::loss, "loss");
}

TEST_P(JudgeOf, FewerStepsAreAnError) {
  const Training r = trained(GetParam());
  EXPECT_EQ(judged(r, {r.steps[0], r.steps[1]}).verdict, Verdict::error);
  EXPECT_EQ(judged(r, {}).verdict, Verdict::error);
  EXPECT_EQ(judged(r, {}, {.steps = 0, .shows = {}}).verdict, Verdict::error);
  EXPECT_EQ(judged(r, {r.steps[0], r.steps[1]}, {.steps = 2, .shows = {}}).verdict, Verdict::pass);
}

/// Faults in an update that leave gradients, norm and clip right in the same step.
TEST_P(JudgeOf, AWrongUpdateIsFoundInItsStep) {
  for (const char* optimizer : {"sgd", "momentum", "adam", "adamw"}) {
    Strings settings = {fmt::format("optimizer={}", optimizer)};
    if (settings[0].ends_with("adamw")) settings.emplace_back("weight_decay=0.1");
    const Training r = trained(GetParam(), settings);
    const std::string name = "blocks.0.attention.value.weight";
    {
      SCOPED_TRACE(fmt::format("{}: step 2 updates nothing", optimizer));
      Steps steps = r.steps;
      find(steps[1], Observed::parameter, name).values = find(steps[0], Observed::parameter, name).values;
      expect_failure(judged(r, steps), 2, Observed::parameter, name);
    }
    {
      SCOPED_TRACE(fmt::format("{}: a learning rate that is off by a thousandth", optimizer));
      Steps steps = r.steps;
      const auto from = as_doubles(find(steps[1], Observed::parameter, name).values);
      std::size_t i = 0;
      change(find(steps[2], Observed::parameter, name), [&](double x) { return x + (x - from[i++]) * 1e-3; });
      expect_failure(judged(r, steps), 3, Observed::parameter, name);
    }
    if (std::string(optimizer) == "sgd") continue;
    SCOPED_TRACE(fmt::format("{}: state that does not decay", optimizer));
    Steps steps = r.steps;
    const std::string state = name + (std::string(optimizer) == "momentum" ? ".momentum" : ".first_moment");
    find(steps[2], Observed::state, state).values = find(steps[1], Observed::state, state).values;
    expect_failure(judged(r, steps), 3, Observed::state, state);
  }
}

/// Where a query sees one key only, gradients of query and key are zero by terms that cancel to the last bit in the
/// oracle's order of summation, and to a rounding of those terms in another.
TEST(Judge, WhatCancelsMayLeaveARounding) {
  for (const auto& [track, unit] : {std::pair{Track::f64, 0x1p-53}, std::pair{Track::native, 0x1p-24}}) {
    const Training r = trained(track, {"window=1", "optimizer=sgd", "learning_rate=0.001"});
    const auto with = [&](double noise) {
      Steps steps = r.steps;
      Observable& o = find(steps[1], Observed::gradient, "blocks.1.attention.query.bias");
      EXPECT_EQ(as_doubles(o.values), std::vector<double>(24, 0));
      change(o, 5, [&](double) { return noise; });
      return judged(r, steps);
    };
    EXPECT_EQ(with(unit / 8).verdict, Verdict::pass);  // the model's gradients go up to 0.15
    expect_failure(with(unit * 16), 2, Observed::gradient, "blocks.1.attention.query.bias");
  }
}

/// A parameter that is used nowhere has no terms: its gradient is zero, not a rounding.
TEST_P(JudgeOf, NothingIsAllowedWhereNothingIsUsed) {
  const Training r = trained(GetParam(), {"unused=3", "optimizer=adam"});
  Steps steps = r.steps;
  change(find(steps[1], Observed::gradient, "unused.0"), 1, [](double) {
    return GetParam() == Track::exact ? 0x1p-40 : GetParam() == Track::f64 ? 1e-17 : 1e-8;
  });
  expect_failure(judged(r, steps), 2, Observed::gradient, "unused.0");
}

/// A key bias has the gradient zero: what the oracle and float show of it are roundings, of which they may have none.
TEST(Judge, AKeyBiasMayHaveAnyRounding) {
  // Two keys of one sample: in float the terms cancel in every draw that they cancel in here.
  const Strings settings = {"seed=29", "vocab=3", "batch=1", "sequence=2", "optimizer=sgd"};
  for (const auto& [track, unit] : {std::pair{Track::f64, 0x1p-53}, std::pair{Track::native, 0x1p-24}}) {
    const Training r = trained(track, settings);
    const auto with = [&](double noise) {
      Steps steps = r.steps;
      change(find(steps[0], Observed::gradient, "blocks.0.attention.key.bias"), [&](double x) { return x + noise; });
      return judged(r, steps);
    };
    double model = 0;
    for (const auto& o : r.steps[0]) {
      if (o.kind != Observed::gradient) continue;
      for (const double x : as_doubles(o.values)) model = std::max(model, std::fabs(x));
    }
    EXPECT_EQ(with(7 * unit * model).verdict, Verdict::pass) << with(7 * unit * model).reason;
    expect_failure(with(100 * unit * model), 1, Observed::gradient, "blocks.0.attention.key.bias");
  }
}

TEST_P(JudgeOf, SkippedStepsAreComparedAndCounted) {
  const Training r = trained(GetParam(), {"valid_labels=0"});
  const Judgement plain = judged(r, r.steps);
  EXPECT_EQ(plain.verdict, Verdict::mistrusted) << plain.reason;  // no gradient: nothing was tested
  EXPECT_EQ(judged(r, r.steps, {.shows = {Shown::no_label}}).verdict, Verdict::pass);
  EXPECT_EQ(judged(r, r.steps, {.shows = {Shown::overflow}}).verdict, Verdict::mistrusted);

  Steps moved = r.steps;  // parameters that change although the step was skipped
  change(find(moved[1], Observed::parameter, "blocks.0.norm1.bias"), 3, [](double x) { return x + 0x1p-20; });
  expect_failure(judged(r, moved, {.shows = {}}), 2, Observed::parameter, "blocks.0.norm1.bias");

  Steps not_null = r.steps;
  auto& loss = find(not_null[0], Observed::loss, "loss");
  loss.dims = {1}, loss.values = std::vector<double>{0};
  expect_failure(judged(r, not_null, {.shows = {}}), 1, Observed::loss, "loss");
}

TEST_P(JudgeOf, AStepThatWasNotToBeSkippedIsFound) {
  const Training r = trained(GetParam());
  Steps steps = r.steps;
  std::erase_if(steps[1], [](const Observable& o) { return o.kind < Observed::skipped; });
  find(steps[1], Observed::skipped, "skipped").values = std::vector<std::int64_t>{1};
  expect_failure(judged(r, steps), 2, Observed::skipped, "skipped");
}

TEST(Judge, OverflowInExactIsAStepLikeAnother) {
  const Training r = trained(Track::exact, {"loss_scale=1099511627776"});
  const Judgement j = judged(r, r.steps, {.shows = {Shown::overflow}});
  EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
  const Judgement idle = judged(r, r.steps);
  EXPECT_EQ(idle.verdict, Verdict::mistrusted);
  EXPECT_NE(idle.reason.find("all 3 steps were skipped, for overflow"), std::string::npos) << idle.reason;
}

TEST(Judge, WhatFloatCannotShowIsNamedOnce) {
  const Judgement j = [] {
    const Training r = trained(Track::f64, {"optimizer=sgd", "learning_rate=1e30"});
    return judged(r, r.steps);
  }();
  EXPECT_EQ(j.verdict, Verdict::mistrusted) << j.reason;
  EXPECT_NE(j.reason.find("in float the oracle's loss is missing"), std::string::npos) << j.reason;
}

/// In a process of its own, which a signal has reached.
TEST_P(JudgeOf, AnInterruptionEndsTheOracleBetweenItsSteps) {
  const Training r = trained(GetParam());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    catch_signals();
    Judge judge(r.workload, r.track);
    judge.step(r.batches[0], {r.steps[0], {}});
    raise(SIGTERM);
    try {
      judge.step(r.batches[1], {r.steps[1], {}});
    } catch (const Interrupted&) {
      _exit(0);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_P(JudgeOf, AClipThatNeverBoundIsMistrustedWhereItMatters) {
  const Training idle = trained(GetParam(), {"clip=1000"}), bound = trained(GetParam(), {"clip=0.001"});
  EXPECT_EQ(judged(idle, idle.steps).verdict, Verdict::pass);
  EXPECT_EQ(judged(idle, idle.steps, {.shows = {Shown::clip_bound}}).verdict, Verdict::mistrusted);
  EXPECT_EQ(judged(idle, idle.steps, {.shows = {Shown::clip_idle}}).verdict, Verdict::pass);
  EXPECT_EQ(judged(bound, bound.steps, {.shows = {Shown::clip_bound}}).verdict, Verdict::pass);
  EXPECT_EQ(judged(bound, bound.steps, {.shows = {Shown::clip_idle}}).verdict, Verdict::mistrusted);
}

/// The factor 8 of the yardstick: three other orders of summation stay under half of the bound, in every optimizer.
TEST(Judge, OtherOrdersOfSummationStayUnderHalfOfTheBound) {
  double worst = 0;
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{6, 5, 4, 3, 2, 1, 0}, {3, 4, 5, 6, 0, 1, 2}, {0, 2, 4, 6, 1, 3, 5}}) {
    for (const char* optimizer : {"sgd", "momentum", "adam", "adamw"}) {
      for (const Track track : {Track::f64, Track::native}) {
        const Training r = trained(track, {fmt::format("optimizer={}", optimizer), "batch=7", "clip=1"}, order);
        const Judgement j = judged(r, r.steps);
        EXPECT_EQ(j.verdict, Verdict::pass) << j.reason;
        EXPECT_LT(j.worst, 0.5) << name_of(track) << " " << j.worst_name;
        worst = std::max(worst, j.worst);
      }
    }
  }
  EXPECT_GT(worst, 0.01);  // the orders did differ
}

// A stale program is judged by its own rule: another one, or versions of one step before, is another program.
TEST(Judge, AnotherRuleOfWeightVersionsFails) {
  const auto strategy = plan::parse_strategy("pp3 schedule=pipedream");
  TrainingJob job;
  job.workload = plan::with_program_keys(
      workload::load("tiny", std::vector<std::string>{"layers=3", "tied_head=false", "steps=5", "learning_rate=0.1"}),
      strategy);
  job.track = Track::exact;
  job.strategy = strategy;
  const workload::Corpus corpus(job.workload);
  const auto judged = [&](const workload::StaleProgram& program) {
    workload::Workload told = job.workload;
    told.stale = program;
    Judge judge(told, Track::exact, {.steps = 5});
    train(job, corpus,
          {.observed_steps = 5,
           .observe = [&](const workload::Batch& batch, const engine::Observation& seen) { judge.step(batch, seen); },
           .step = {}});
    return judge.finish();
  };
  using enum workload::StaleProgram::Rule;
  EXPECT_EQ(judged({stashed, {1, 1, 1}}).verdict, Verdict::pass);
  const Judgement vertical = judged({vertical_sync, {1, 1, 1}}), late = judged({stashed, {1, 1, 1, 0}}),
                  early = judged({stashed, {2, 1}}), plain = judged({});
  for (const Judgement* wrong : {&vertical, &late, &early, &plain}) {
    EXPECT_EQ(wrong->verdict, Verdict::fail);
    ASSERT_TRUE(wrong->divergence);
    EXPECT_EQ(wrong->divergence->step, wrong == &early ? 3 : 2);
  }
}

// Replicas are part of the program: who takes which step, and of how many an update is.
TEST(Judge, OtherReplicasFail) {
  for (const Track track : {Track::exact, Track::f64}) {
    const auto strategy = plan::parse_strategy("pp3 schedule=pipedream replicas=1,2,1");
    TrainingJob job;
    job.workload = plan::with_program_keys(
        workload::load("tiny",
                       std::vector<std::string>{"layers=3", "tied_head=false", "steps=6", "learning_rate=0.1",
                                                "optimizer=momentum", "batch=4", "samples=11", "valid_labels=0,0,0,5"}),
        strategy);
    job.track = track;
    job.strategy = strategy;
    const workload::Corpus corpus(job.workload);
    const plan::Plan plan = plan::make_plan(job.workload, strategy);
    const auto judged = [&](const std::vector<std::int64_t>& replicas) {
      workload::Workload told = job.workload;
      told.stale.replicas = replicas;
      Judge judge(told, track, {.steps = 6, .plan = &plan});
      train(job, corpus,
            {.observed_steps = 6,
             .observe = [&](const workload::Batch& batch, const engine::Observation& seen) { judge.step(batch, seen); },
             .step = {}});
      return judge.finish();
    };
    const Judgement right = judged({1, 2, 1});
    EXPECT_EQ(right.verdict, Verdict::pass) << right.reason;
    EXPECT_EQ(judged({}).verdict, Verdict::fail);
    EXPECT_EQ(judged({2, 1, 1}).verdict, Verdict::fail);
    EXPECT_EQ(judged({1, 1, 2}).verdict, Verdict::fail);
  }
}

}  // namespace
}  // namespace shardproof::harness
