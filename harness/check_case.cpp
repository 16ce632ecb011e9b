// SPDX-License-Identifier: Apache-2.0
#include "harness/check_case.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/dropped_term.hpp"
#include "harness/options.hpp"
#include "harness/process_options.hpp"
#include "harness/signals.hpp"
#include "harness/training.hpp"
#include "harness/transport.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

namespace {

/// Alone, a rank waits for nobody.
Disturbance disturbance_of(const Case& value, const CheckOptions& options) {
  Disturbance disturbance = options.disturbance;
  if (value.ranks == 1) disturbance.delays.reset();
  return disturbance;
}

/// False, with the reason in the record, where the strategy table refuses the case.
bool accepted(const Case& value, TrainingJob& job, Record& record) {
  try {
    job.strategy = plan::parse_strategy(value.strategy, value.ranks);
    record.strategy = plan::print(job.strategy);
    record.contract = plan::contract(job.strategy, value.track);
    require_threads(job.strategy);
    plan::require_legal(job.strategy, job.workload, value.ranks);
    return true;
  } catch (const NotSupported& error) {
    record.verdict = Verdict::unsupported;
    record.reason = error.what();
    return false;
  }
}

/// What is computed in other algebra so far is attention: the first weight whose gradient is a contraction of what its
/// core passes back.
const plan::ParameterLayout* first_attention_weight(const plan::Plan& plan) {
  const auto fits = [](const plan::ParameterLayout& p) {
    return p.parameter.trainable && p.parameter.name.ends_with(".attention.value.weight");
  };
  const auto found = std::ranges::find_if(plan.layout.parameters, fits);
  return found == plan.layout.parameters.end() ? nullptr : &*found;
}

void judge(const Case& value, std::span<const Shown> shows, const CheckOptions& options, Checked& checked) {
  Record& record = checked.record;
  TrainingJob job;
  job.workload = workload_of(value);
  job.track = value.track;
  job.poison = true;
  job.threads = disturbance_of(value, options).threads();
  job.tamper = options.tamper;
  record.workload = job.workload.name;
  if (!accepted(value, job, record)) return;
  job.workload = plan::with_program_keys(job.workload, job.strategy);
  const JudgedPart whole{job, job.workload.steps, "full"};
  if (record.environment.memory_bytes > 0)
    refuse_too_large(job, &whole, record.environment.memory_bytes, "it cannot be judged here");
  const workload::Corpus corpus(job.workload);
  record.workload_hash = workload::hash(job.workload, corpus);
  const plan::Plan plan = plan::make_plan(job.workload, job.strategy);
  const auto judged = [&](const TrainingJob& of) {
    Judge judge(of.workload, of.track,
                {.steps = of.workload.steps, .plan = &plan, .shows = {shows.begin(), shows.end()}});
    const auto observe = [&](const workload::Batch& batch, const engine::Observation& seen) {
      judge.step(batch, seen);
    };
    Trained trained = train(of, corpus, {.observed_steps = of.workload.steps, .observe = observe, .step = {}});
    return std::pair(std::move(trained), judge.finish());
  };
  const auto [trained, judgement] = judged(job);
  record.verdict = judgement.verdict;
  record.reason = judgement.reason;
  record.compared = judgement.compared;
  record.digest = judgement.digest;
  record.digest_steps = judgement.digest.empty() ? 0 : std::ssize(trained.steps);
  checked.worst = judgement.worst_name;
  if (const auto& wrong = judgement.divergence)
    checked.finding = fmt::format("{}{}", wrong->of_copies ? "copies of " : "", name_of(wrong->kind));
  record.ledgers = trained.ledgers;
  record.forms = trained.forms;
  if (job.track != Track::exact) record.figures.emplace_back("error_over_bound", judgement.worst);
  hold_to_forms(record);
  if (record.verdict != Verdict::pass || record.contract != "ROUNDED" || job.track != Track::f64) return;
  const plan::ParameterLayout* const contraction = first_attention_weight(plan);
  if (contraction == nullptr) return;  // all are frozen
  const DroppedTerm dropped(contraction->parameter.name, primary_holder(plan, *contraction, 0));
  TrainingJob planted = job;
  planted.tamper = dropped.tamper(job.tamper);
  // Where no step has such a term, `shows` has said what there is to see.
  if (judged(planted).second.verdict == Verdict::fail || dropped.what().empty()) return;
  record.verdict = Verdict::mistrusted;
  record.reason = dropped.what() + " lies within the bounds: they could not show a fault";
}

}  // namespace

std::string rerun_of(const Case& value, std::span<const Shown> shows, const CheckOptions& options) {
  std::vector<std::string> words = {"check", print(value)};
  const auto standard = value.ranks > 1 ? std::optional(standard_delays) : std::nullopt;
  for (auto& word : words_of(disturbance_of(value, options), standard)) words.push_back(std::move(word));
  for (auto& word : words_of_processes()) words.push_back(std::move(word));
  for (const Shown shown : shows) words.insert(words.end(), {"--shows", std::string(name_of(shown))});
  return rerun_line(words);
}

workload::Workload workload_of(const Case& value) {
  auto settings = value.settings;
  const auto of_steps = [](const std::string& setting) { return setting.starts_with("steps="); };
  if (std::ranges::none_of(settings, of_steps)) settings.push_back(fmt::format("steps={}", case_steps));
  return workload::load(value.workload, settings);
}

std::string workload_hash_of(const Case& value) {
  const auto strategy = plan::parse_strategy(value.strategy, value.ranks);
  const workload::Workload w = plan::with_program_keys(workload_of(value), strategy);
  return workload::hash(w, workload::Corpus(w));
}

Checked check_case(const Case& value, std::span<const Shown> shows, const Environment& environment,
                   const CheckOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Checked checked;
  Record& record = checked.record;
  record.case_text = print(value);
  record.workload = value.workload;
  record.strategy = value.strategy;
  record.ranks = value.ranks;
  record.track = value.track;
  record.transport = transport();
  record.judged = "full";
  const Disturbance disturbance = disturbance_of(value, options);
  record.delays = static_cast<std::int64_t>(disturbance.delays.value_or(0));
  record.injections = disturbance.injections;
  record.rerun = rerun_of(value, shows, options);
  record.environment = environment;
  try {
    judge(value, shows, options, checked);
    checked.code = exit_code_of(record.verdict);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {  // NotSupported too, where it is no refusal of the table
    record.verdict = Verdict::error;
    record.reason = reason_of(error);
    checked.code = exit_code_of(error);
    checked.met_no_call = met_no_call(error, disturbance.injections, value.ranks);
  }
  record.figures.emplace_back("seconds",
                              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return checked;
}

}  // namespace shardproof::harness
