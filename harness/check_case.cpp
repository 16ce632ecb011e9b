// SPDX-License-Identifier: Apache-2.0
#include "harness/check_case.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "harness/options.hpp"
#include "harness/signals.hpp"
#include "harness/training.hpp"
#include "impl/plan/strategy.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

namespace {

workload::Workload workload_of(const Case& value) {
  auto settings = value.settings;
  const auto of_steps = [](const std::string& setting) { return setting.starts_with("steps="); };
  if (std::ranges::none_of(settings, of_steps)) settings.push_back(fmt::format("steps={}", case_steps));
  return workload::load(value.workload, settings);
}

void judge(const Case& value, std::span<const Shown> shows, Checked& checked) {
  Record& record = checked.record;
  const auto strategy = plan::parse_strategy(value.strategy);
  record.strategy = plan::print(strategy);
  TrainingJob job;
  job.workload = workload_of(value);
  job.track = value.track;
  job.microbatches = strategy.microbatches;
  job.poison = true;
  record.workload = job.workload.name;
  record.workload_hash = workload::hash(job.workload);
  if (strategy.ranks() != value.ranks) {
    throw BadInput(fmt::format("{} has {} ranks, the case has {}", record.strategy, strategy.ranks(), value.ranks));
  }
  const workload::Corpus corpus(job.workload);
  Judge judge(job.workload, job.track, {.steps = job.workload.steps, .shows = {shows.begin(), shows.end()}});
  const auto observe = [&](const workload::Batch& batch, const std::vector<Observable>& shown) {
    judge.step(batch, shown);
  };
  const Trained trained = train(job, corpus, {.observed_steps = job.workload.steps, .observe = observe, .step = {}});
  const Judgement judgement = judge.finish();
  record.verdict = judgement.verdict;
  record.reason = judgement.reason;
  record.compared = judgement.compared;
  record.digest = judgement.digest;
  checked.worst = judgement.worst_name;
  record.ledgers = trained.ledgers;
  record.forms = trained.forms;
  if (job.track != Track::exact) record.figures.emplace_back("error_over_bound", judgement.worst);
  if (const auto wrong = disagreements(record); !wrong.empty() && record.verdict == Verdict::pass) {
    record.verdict = Verdict::fail;
    record.reason = "a ledger differs from its form: " + workload::joined(wrong, "; ");
  }
}

std::string rerun_of(const Case& value, std::span<const Shown> shows) {
  std::vector<std::string> words = {"check", print(value)};
  for (const Shown shown : shows) words.insert(words.end(), {"--shows", std::string(name_of(shown))});
  return rerun_line(words);
}

}  // namespace

Checked check_case(const Case& value, std::span<const Shown> shows, const Environment& environment) {
  const auto start = std::chrono::steady_clock::now();
  Checked checked;
  Record& record = checked.record;
  record.case_text = print(value);
  record.workload = value.workload;
  record.strategy = value.strategy;
  record.ranks = value.ranks;
  record.track = value.track;
  record.judged = "full";
  record.rerun = rerun_of(value, shows);
  record.environment = environment;
  try {
    judge(value, shows, checked);
    checked.code = exit_code_of(record.verdict);
  } catch (const Interrupted&) {
    throw;
  } catch (const NotSupported& error) {
    record.verdict = Verdict::unsupported;
    record.reason = error.what();
    checked.code = exit_code_of(record.verdict);
  } catch (const std::exception& error) {
    record.verdict = Verdict::error;
    record.reason = error.what();
    checked.code = exit_code_of(error);
  }
  record.figures.emplace_back("seconds",
                              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return checked;
}

}  // namespace shardproof::harness
