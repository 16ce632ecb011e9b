// SPDX-License-Identifier: Apache-2.0
#include "harness/selftest.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/judge.hpp"
#include "harness/judge_expectation.hpp"
#include "harness/signals.hpp"
#include "harness/training.hpp"
#include "impl/comm/inject.hpp"
#include "impl/plan/plan.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {

namespace {

Finding finding_of(const Judgement& judgement) {
  if (judgement.verdict == Verdict::pass) return {};
  if (!judgement.divergence) return {0, judgement.reason};
  const auto& d = *judgement.divergence;
  const bool is_copy = !d.problem.empty() && d.rank;
  return {d.step, (is_copy ? "replica " : "") + described({d.kind, d.name})};
}

}  // namespace

std::vector<InjectedFault> injected_faults(std::string_view json_text) {
  const auto file = parse_object(json_text, "faults");
  std::vector<InjectedFault> faults;
  try {
    for (const auto& entry : file.at("faults")) {
      const auto planted = entry.find("planted");
      if (planted == entry.end() || !planted->contains("inject")) continue;
      const auto& expect = planted->at("expect");
      const auto& step = expect.at("step");
      faults.push_back({entry.at("id"), entry.at("fault"), planted->at("inject"),
                        expect.at("observable").get<std::vector<std::string>>(),
                        step.is_number() ? step.get<std::int64_t>() : 0});
    }
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(std::string("faults: ") + error.what());
  }
  return faults;
}

std::vector<Case> selftest_cases() {
  std::vector<Case> cases;
  for (const auto* text : {"tiny steps=2 | dp3 microbatches=2 | 3 ranks | exact | cpu | threads",
                           "w04 steps=2 | dp2 tp2 | 4 ranks | exact | cpu | threads",
                           "w05 steps=2 | pp3 schedule=gpipe microbatches=4 | 3 ranks | exact | cpu | threads",
                           "tiny steps=2 label_smoothing=0.1 clip=0.5 | dp2 pp2 tp2 schedule=gpipe microbatches=2 | "
                           "8 ranks | exact | cpu | threads"}) {
    cases.push_back(parse_case(text));
  }
  return cases;
}

Finding judged(const Case& value, const Disturbance& disturbance) {
  try {
    TrainingJob job;
    job.workload = workload::load(value.workload, value.settings);
    job.track = value.track;
    job.strategy = plan::parse_strategy(value.strategy, value.ranks);
    job.workload = plan::with_program_keys(job.workload, job.strategy);
    job.poison = true;
    job.threads = disturbance.threads();
    const workload::Corpus corpus(job.workload);
    const plan::Plan plan = plan::make_plan(job.workload, job.strategy);
    Judge judge(job.workload, job.track, {.steps = job.workload.steps, .plan = &plan, .shows = {Shown::gradient}});
    train(job, corpus,
          {.observed_steps = job.workload.steps,
           .observe = [&](const workload::Batch& batch, const engine::Observation& seen) { judge.step(batch, seen); },
           .step = {}});
    return finding_of(judge.finish());
  } catch (const Interrupted&) {
    throw;
  } catch (const BadInput&) {  // the case makes no call that an injection is meant for
    return {};
  } catch (const std::exception& error) {
    return {0, std::string("error: ") + error.what()};
  }
}

Outcome plant(const InjectedFault& fault, std::span<const Case> cases, Disturbance disturbance) {
  disturbance.injections = {fault.inject};
  for (const auto& value : cases) comm::parse_injections({fault.inject}, value.ranks);
  for (const auto& value : cases) {
    const Finding finding = judged(value, disturbance);
    if (finding.observable.empty()) continue;
    const bool named = std::ranges::any_of(
        fault.observables, [&](const std::string& pattern) { return workload::matches(pattern, finding.observable); });
    return {true, named && (fault.step == 0 || fault.step == finding.step), finding, print(value)};
  }
  return {};
}

}  // namespace shardproof::harness
