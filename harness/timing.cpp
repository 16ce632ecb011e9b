// SPDX-License-Identifier: Apache-2.0
#include "harness/timing.hpp"

#include <numeric>
#include <string>

#include "harness/budget.hpp"
#include "harness/figures.hpp"
#include "harness/peak.hpp"
#include "harness/predict/bubble.hpp"
#include "harness/predict/flops.hpp"
#include "harness/recorded_replay.hpp"
#include "harness/time_account.hpp"

namespace shardproof::harness {
namespace {

/// Of a step: below, utilisation says nothing, and the peak takes longer than the training.
constexpr double least_flops_of_mfu = 1e9;

class Adder {
 public:
  explicit Adder(Figures& figures) : figures_(figures) {}
  void one(const std::string& name, double value) { figures_.emplace_back(name, value); }
  void three(const std::string& name, std::vector<double> values) {
    if (values.empty()) return;
    const auto q = quartiles(std::move(values));
    one(name + "_lower_quartile", q[0]);
    one(name + "_median", q[1]);
    one(name + "_upper_quartile", q[2]);
  }

 private:
  Figures& figures_;
};

/// Shares of all ranks' time together.
void add_shares(std::span<const Spans> ranks, Adder& add) {
  TimeAccount sum;
  for (const auto& steps : time_accounts(ranks))
    for (const auto& step : steps) {
      sum.compute += step.compute, sum.copy += step.copy, sum.communication += step.communication;
      sum.wait += step.wait, sum.host += step.host, sum.engine += step.engine;
    }
  add.one("time_compute_share", sum.compute / sum.total());
  add.one("time_copy_share", sum.copy / sum.total());
  add.one("time_communication_share", sum.communication / sum.total());
  add.one("time_wait_share", sum.wait / sum.total());
  add.one("time_host_share", sum.host / sum.total());
  add.one("engine_processor_share", sum.engine / sum.total());
}

void add_bubble(const std::string& kind, const std::vector<PipelinePart>& parts, std::int64_t ranks, Adder& add) {
  std::vector<double> fractions, overheads, makespans;
  for (const auto& part : parts) {
    makespans.push_back(part.makespan);
    fractions.push_back(part.bubble_fraction(ranks));
    overheads.push_back(part.bubble_overhead(ranks));
  }
  if (parts.empty()) return;
  add.one("bubble_" + kind + "_fraction", quartiles(fractions)[1]);
  add.one("bubble_" + kind + "_overhead", quartiles(overheads)[1]);
  add.one("pipeline_" + kind + "_seconds", quartiles(makespans)[1]);
}

/// Of steps that overlap: the seconds are those between the ends of two of them.
void add_steady_bubble(const std::string& kind, const SteadyPart& part, std::int64_t ranks, Adder& add) {
  if (part.steps == 0) return;
  add.one("bubble_" + kind + "_fraction", part.bubble_fraction(ranks));
  add.one("bubble_" + kind + "_overhead", part.bubble_overhead(ranks));
  add.one("bubble_" + kind + "_steady_steps", static_cast<double>(part.steps));
  add.one("pipeline_" + kind + "_seconds", part.makespan / static_cast<double>(part.steps));
}

/// Of each step, mean costs of a microbatch on each stage, where each rank has one. Actions hold no exchange.
std::vector<std::vector<predict::StageSeconds>> stage_seconds(std::span<const Spans> ranks, std::int64_t microbatches,
                                                              bool processor_time) {
  std::vector<std::vector<predict::StageSeconds>> steps(ranks[0].steps.size(),
                                                        std::vector<predict::StageSeconds>(ranks.size()));
  for (const Spans& rank : ranks) {
    std::size_t step = 0;
    for (const ActionSpan& a : rank.actions) {
      while (step + 1 < steps.size() && a.start >= rank.steps[step].end) ++step;
      predict::StageSeconds& stage = steps[step][static_cast<std::size_t>(a.stage)];
      const auto took = static_cast<double>(processor_time ? a.cpu_end - a.cpu_start : a.end - a.start);
      (a.kind == 'F' ? stage.forward : stage.backward) += 1e-9 * took / static_cast<double>(microbatches);
    }
  }
  return steps;
}

/// Makespans of the pipeline part: gpipe's form at the recorded costs of its stages, and the costs.
void add_pipeline_form(const std::vector<std::vector<predict::StageSeconds>>& steps, std::int64_t microbatches,
                       Adder& add) {
  std::vector<double> makespans;
  for (const auto& stages : steps) makespans.push_back(predict::gpipe_seconds(stages, microbatches));
  add.one("pipeline_formula_seconds", quartiles(makespans)[1]);
  for (std::size_t s = 0; s < steps.front().size(); ++s) {
    std::vector<double> forward, backward;
    for (const auto& stages : steps) forward.push_back(stages[s].forward), backward.push_back(stages[s].backward);
    add.one("pipeline_stage" + std::to_string(s) + "_forward_seconds", quartiles(forward)[1]);
    add.one("pipeline_stage" + std::to_string(s) + "_backward_seconds", quartiles(backward)[1]);
  }
}

}  // namespace

void add_timing(const TrainingJob& job, const Trained& trained, std::int64_t processors, Record& record) {
  if (trained.spans.empty() || trained.spans.front().steps.empty()) return;
  const std::span<const Spans> ranks = trained.spans;
  const auto count = std::ssize(ranks);
  Adder add(record.figures);
  std::vector<double> wall;
  for (const auto& step : ranks[0].steps) wall.push_back(1e-9 * static_cast<double>(step.end - step.start));
  add.three("step_seconds", wall);
  add_shares(ranks, add);

  const bool crowded = count > processors, processor_time = crowded || job.processor_time;
  const bool without_flush = plan::contract(job.strategy, job.track) == "STALE";
  std::int64_t round = 1;
  for (const std::int64_t ranks_of_stage : job.strategy.replicas) round = std::lcm(round, ranks_of_stage);
  const auto replayed = replay_recorded(ranks, {.processor_time = processor_time,
                                                .fabric = record.fabric,
                                                .send_depth = trained.send_depth,
                                                .without_flush = without_flush,
                                                .round = round});
  std::vector<double> rates, ratios;
  for (std::size_t k = 0; k < replayed.step_seconds.size(); ++k) {
    const auto step = static_cast<std::size_t>(ranks[0].steps[k].step - 1);
    if (trained.steps[step].skipped == engine::Skipped::no)
      rates.push_back(static_cast<double>(trained.steps[step].tokens) / replayed.step_seconds[k]);
    ratios.push_back(replayed.step_seconds[k] / wall[k]);
  }
  add.three("tokens_per_second_replay", std::move(rates));
  add.one("replay_over_wall", quartiles(std::move(ratios))[1]);
  add.one("replay_operations", static_cast<double>(replayed.operations));
  add.one("replay_processor_time", processor_time ? 1 : 0);

  if (const double flops = predict::flops(job.workload, largest_batch(job.workload)).total();
      job.track == Track::native && flops >= least_flops_of_mfu && !crowded) {
    const double peak = measured_peak();
    add.one("peak_flops_per_second", peak);
    add.one("mfu", flops / quartiles(wall)[1] / (peak * static_cast<double>(count)));
  }

  const auto& strategy = job.strategy;
  if (strategy.pp == 1) return;
  if (const auto form = predict::bubble_overhead(strategy.schedule, strategy.pp, strategy.microbatches,
                                                 schedule_shape(strategy).chunks)) {
    add.one("bubble_formula_fraction", predict::bubble_fraction(*form));
    add.one("bubble_formula_overhead", *form);
  }
  if (strategy.schedule == "gpipe" && count == strategy.pp)
    add_pipeline_form(stage_seconds(ranks, strategy.microbatches, processor_time), strategy.microbatches, add);
  if (without_flush) {
    add_steady_bubble("replay", replayed.steady, count, add);
    if (!crowded) add_steady_bubble("wall", steady_on_wall(ranks, round), count, add);
    return;
  }
  add_bubble("replay", replayed.pipeline, count, add);
  if (!crowded) add_bubble("wall", pipeline_on_wall(ranks), count, add);
}

}  // namespace shardproof::harness
