// SPDX-License-Identifier: Apache-2.0
#include "harness/run_case.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/figures.hpp"
#include "harness/judge.hpp"
#include "harness/timing.hpp"

namespace shardproof::harness {
namespace {

// Judges the cut job in a run of its own, poisoned.
Judgement judge_apart(const JudgedPart& part, const workload::Corpus& corpus) {
  TrainingJob job = part.job;
  job.poison = true;
  const plan::Plan plan = plan::make_plan(job.workload, job.strategy);
  Judge judge(job.workload, job.track, {.steps = part.steps, .plan = &plan});
  train(job, corpus,
        {.observed_steps = part.steps,
         .observe = [&](const workload::Batch& batch, const engine::Observation& seen) { judge.step(batch, seen); },
         .step = {}});
  return judge.finish();
}

void apply(const Judgement& judgement, Record& record) {
  record.verdict = judgement.verdict;
  record.reason = judgement.reason;
  record.compared = judgement.compared;
}

void fail(Record& record, std::string reason) {
  if (record.verdict != Verdict::pass) return;  // the first finding stands
  record.verdict = Verdict::fail;
  record.reason = std::move(reason);
}

void add_figures(const TrainingJob& job, const Trained& trained, Record& record) {
  const auto add = [&](const char* name, double value) { record.figures.emplace_back(name, value); };
  if (const auto rate = tokens_per_second(job.workload, trained)) {
    add("tokens_per_second_lower_quartile", (*rate)[0]);
    add("tokens_per_second_median", (*rate)[1]);
    add("tokens_per_second_upper_quartile", (*rate)[2]);
  }
  const auto learned = learning(job.workload, trained.steps);
  if (!learned) return;
  add("loss_first", learned->first_loss);
  add("loss_last", learned->last_loss);
  add("loss_mean", learned->mean);
  add("loss_mean_steps", static_cast<double>(learned->steps));
  if (!learned->floor) return;
  add("loss_floor", *learned->floor);
  add("loss_standard_error", *learned->standard_error);
  if (learned->cheats())
    fail(record, fmt::format("the mean loss {} is below the entropy of its source, {}: the model has seen its labels",
                             learned->mean, *learned->floor));
}

/// Of a stale program, what it costs in learning: the synchronous one is trained on the same batches.
void add_learning_cost(const TrainingJob& job, const workload::Corpus& corpus, const Trained& trained, Record& record) {
  TrainingJob synchronous{.workload = plan::with_program_keys(job.workload, plan::Strategy{}), .track = job.track};
  const auto cost = learning_cost(job.workload, trained.steps, train(synchronous, corpus, {}).steps);
  if (!cost) return;
  record.figures.emplace_back("loss_mean_synchronous", cost->synchronous_mean);
  record.figures.emplace_back("tokens_trained", static_cast<double>(cost->tokens));
  record.figures.emplace_back("tokens_to_synchronous_loss", cost->tokens_to_reach
                                                                ? static_cast<double>(*cost->tokens_to_reach)
                                                                : std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Trained run_case(const TrainingJob& job, bool check, const workload::Corpus& corpus, Record& record,
                 const std::function<void(const engine::StepResult&)>& on_step) {
  const JudgedPart part = judged_part(job);
  const plan::Plan plan = plan::make_plan(job.workload, job.strategy);
  record.contract = plan::contract(job.strategy, job.track);
  std::optional<Judge> judge;
  if (!check) {
    record.judged = "unchecked";
    record.verdict = Verdict::skipped;
    record.reason = "not judged, on request (--no-check)";
  } else {
    record.judged = part.text;
    if (part.full())
      judge.emplace(job.workload, job.track, JudgeOptions{.steps = part.steps, .plan = &plan});
    else
      apply(judge_apart(part, corpus), record);
  }

  Digest digest;
  const auto observe = [&](const workload::Batch& batch, const engine::Observation& seen) {
    if (judge) judge->step(batch, seen);
    digest.add(seen.observables);
  };
  TrainingJob recorded = job;
  recorded.record_spans = true;
  Trained trained = train(recorded, corpus, {.observed_steps = judged_steps(job), .observe = observe, .step = on_step});
  if (judge) apply(judge->finish(), record);
  record.digest = digest.finish();
  record.digest_steps = std::min(judged_steps(job), std::ssize(trained.steps));
  record.ledgers = trained.ledgers;
  record.forms = trained.forms;
  add_figures(job, trained, record);
  if (record.contract == "STALE" && check) add_learning_cost(job, corpus, trained, record);
  add_timing(job, trained, record.environment.cores, record);
  hold_to_forms(record);
  return trained;
}

}  // namespace shardproof::harness
