// SPDX-License-Identifier: Apache-2.0
// The lowest bit of one element of one rank's copy of an observable, flipped just after it is final, is found with the
// right tensor, element, rank and step. SHARDPROOF_FLIPS sets how many are tried.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "harness/judge.hpp"
#include "harness/training.hpp"
#include "impl/engine/slice.hpp"
#include "impl/plan/plan.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::harness {
namespace {

constexpr const char* strategy = "dp2 pp2 tp2 schedule=gpipe microbatches=2";
constexpr std::int64_t steps = 2;

int wanted() {
  const char* text = std::getenv("SHARDPROOF_FLIPS");
  return text != nullptr ? std::atoi(text) : 50;
}

TrainingJob job() {
  const std::vector<std::string> settings{"steps=" + std::to_string(steps), "kv_heads=2", "clip=0.5"};
  TrainingJob job{.workload = workload::load("tiny", settings), .track = Track::exact};
  job.strategy = plan::parse_strategy(strategy);
  job.poison = true;
  return job;
}

void flip_bit(Queue& queue, const Tensor& tensor, std::int64_t index) {
  queue.submit("flip", [=](KernelScope& scope) {
    if (tensor.dtype() == Dtype::fixed) {
      scope.update<Fixed>(tensor)[index].raw ^= 1;
    } else {
      auto* const x = scope.update<double>(tensor) + index;
      *x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(*x) ^ 1);
    }
  });
}

Judgement judged(const TrainingJob& job, const plan::Plan& plan, const workload::Corpus& corpus) {
  Judge judge(job.workload, job.track, {.steps = steps, .plan = &plan});
  train(job, corpus,
        {.observed_steps = steps,
         .observe = [&](const workload::Batch& batch, const engine::Observation& seen) { judge.step(batch, seen); },
         .step = {}});
  return judge.finish();
}

struct Flip {
  std::int64_t step;
  Observed kind;
  std::string name;
  Rank rank;
  std::int64_t local = 0, logical = 0;  // index
};

class Draw {
 public:
  explicit Draw(std::int64_t k) : random_(11, "flips." + std::to_string(k)) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.word(next_++)) % n; }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

Flip drawn(const plan::Plan& plan, std::int64_t k) {
  Draw draw(k);
  Flip flip{
      .step = 1 + draw.below(steps), .kind = Observed::loss, .name = "loss", .rank = static_cast<Rank>(draw.below(8))};
  if (draw.below(8) == 0) return flip;
  const auto place = plan::place_of(plan.mesh, flip.rank);
  for (;;) {
    const auto& layout =
        plan.layout.parameters[static_cast<std::size_t>(draw.below(std::ssize(plan.layout.parameters)))];
    const auto stages = layout.stages();
    const auto elements = elements_of(layout.held_dims(place.tp));
    if (std::ranges::find(stages, place.pp) == stages.end() || elements == 0 || !layout.parameter.trainable) continue;
    constexpr Observed kinds[] = {Observed::gradient, Observed::parameter, Observed::state};
    flip.kind = kinds[draw.below(3)];
    flip.name = layout.parameter.name + (flip.kind == Observed::state ? ".second_moment" : "");
    flip.local = draw.below(elements);
    engine::for_each_run(layout.parameter.dims, std::max<std::int64_t>(layout.split_dim, 0),
                         layout.held.at(static_cast<std::size_t>(place.tp)),
                         [&](std::int64_t at, std::int64_t slice_at, std::int64_t n) {
                           if (slice_at <= flip.local && flip.local < slice_at + n)
                             flip.logical = at + flip.local - slice_at;
                         });
    return flip;
  }
}

engine::Tamper tamper(const Flip& flip) {
  engine::Tamper tamper;
  tamper.tensor = [flip](std::int64_t step, Observed kind, const std::string& name, Queue& queue, const Tensor& t) {
    if (step == flip.step && kind == flip.kind && name == flip.name && queue.device().rank() == flip.rank)
      flip_bit(queue, t, flip.local);
  };
  tamper.scalar = [flip](std::int64_t step, Observed kind, Queue& queue, double& value) {
    if (step == flip.step && kind == flip.kind && queue.device().rank() == flip.rank)
      value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ 1);
  };
  return tamper;
}

TEST(Flips, EachIsFoundWhereItIs) {
  const TrainingJob clean = job();
  const plan::Plan plan = plan::make_plan(clean.workload, clean.strategy);
  const workload::Corpus corpus(clean.workload);
  ASSERT_EQ(judged(clean, plan, corpus).verdict, Verdict::pass);
  int found = 0;
  for (int k = 0; k < wanted(); ++k) {
    const Flip flip = drawn(plan, k);
    TrainingJob planted = clean;
    planted.tamper = tamper(flip);
    const Judgement judgement = judged(planted, plan, corpus);
    ASSERT_EQ(judgement.verdict, Verdict::fail) << k << ": " << flip.name;
    const Divergence& d = judgement.divergence.value();
    const Rank named = d.rank.value_or(Rank{0});  // of the loss, the oracle is compared with rank 0's
    const bool right = d.step == flip.step && d.kind == flip.kind && d.name == flip.name && d.index == flip.logical &&
                       named == flip.rank;
    EXPECT_TRUE(right) << k << ": step " << flip.step << ", " << name_of(flip.kind) << " " << flip.name << ", element "
                       << flip.logical << ", rank " << static_cast<int>(flip.rank) << "; found: " << print(d);
    found += right ? 1 : 0;
  }
  RecordProperty("found", found);
  printf("%d of %d flips found\n", found, wanted());
}

TEST(Flips, ThatOfAnActivationIsSeenOrLeavesEverythingEqual) {
  const TrainingJob clean = job();
  const plan::Plan plan = plan::make_plan(clean.workload, clean.strategy);
  const workload::Corpus corpus(clean.workload);
  const std::string digest = judged(clean, plan, corpus).digest;
  int seen = 0;
  const int tries = std::max(wanted() / 5, 1);
  for (int k = 0; k < tries; ++k) {
    Draw draw(1000 + k);
    const std::int64_t step = 1 + draw.below(steps), element = draw.below(24);
    const auto rank = static_cast<Rank>(draw.below(8));
    TrainingJob planted = clean;
    planted.tamper.activation = [=](std::int64_t at, const std::string&, Queue& queue, const Tensor& tensor) {
      if (at == step && queue.device().rank() == rank && element < tensor.elements()) flip_bit(queue, tensor, element);
    };
    const Judgement judgement = judged(planted, plan, corpus);
    if (judgement.verdict == Verdict::pass) {
      EXPECT_EQ(judgement.digest, digest);
    } else {
      ++seen;
      EXPECT_EQ(judgement.divergence.value().step, step);
    }
  }
  printf("%d of %d flips of activations seen, %d unseen\n", seen, tries, tries - seen);
}

}  // namespace
}  // namespace shardproof::harness
