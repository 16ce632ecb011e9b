// SPDX-License-Identifier: Apache-2.0
#include "harness/processes.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/options.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using Json = nlohmann::ordered_json;

comm::MpiJob* of_this_run = nullptr;
bool broken = false;  // a training has ended in its middle: processes no longer agree on what comes next

std::string text_of(const TrainingJob& job, std::int64_t observed_steps) {
  const auto& threads = job.threads;
  return Json{{"workload", workload::print(job.workload)},
              {"strategy", plan::print(job.strategy)},
              {"ranks", job.strategy.ranks()},
              {"track", name_of(job.track)},
              {"device_memory_bytes", job.device_memory_bytes},
              {"poison", job.poison},
              {"timeout_seconds", threads.timeout_seconds},
              {"delays", threads.delays ? Json(*threads.delays) : Json()},
              {"chunk_elements", threads.chunk_elements},
              {"send_depth", threads.send_depth},
              {"injections", threads.injections},
              {"observed_steps", observed_steps}}
      .dump();
}

struct Announced {
  TrainingJob job;
  std::int64_t ranks = 0, observed_steps = 0;
};

Announced announced(const Json& said) {
  Announced result;
  result.ranks = said.at("ranks"), result.observed_steps = said.at("observed_steps");
  TrainingJob& job = result.job;
  job.strategy = plan::parse_strategy(said.at("strategy").get<std::string>());
  job.workload =
      plan::with_program_keys(workload::parse(said.at("workload").get<std::string>(), "process 0", {}), job.strategy);
  job.track = track_named(said.at("track").get<std::string>());
  job.device_memory_bytes = said.at("device_memory_bytes");
  job.poison = said.at("poison");
  job.threads.timeout_seconds = said.at("timeout_seconds");
  if (!said.at("delays").is_null()) job.threads.delays = said.at("delays").get<std::uint64_t>();
  job.threads.chunk_elements = said.at("chunk_elements");
  job.threads.send_depth = said.at("send_depth");
  job.threads.injections = said.at("injections").get<std::vector<std::string>>();
  return result;
}

std::string text_of(const RankLedgers& ledgers) {
  Json saved = Json::array(), traffic = Json::array();
  for (const auto& part : ledgers.saved) saved.push_back({part.part, part.bytes});
  for (const auto& [key, count] : ledgers.traffic)
    traffic.push_back(
        {key.axis, static_cast<int>(key.kind), key.purpose, count.calls, count.payload_bytes, count.wire_bytes});
  return Json{{"peak", ledgers.peak.bytes},
              {"peak_total", ledgers.peak.total_bytes},
              {"saved", saved},
              {"in_flight", ledgers.peak_in_flight},
              {"flops", {ledgers.flops_model, ledgers.flops_hardware}},
              {"traffic", traffic}}
      .dump();
}

RankLedgers ledgers_of(const std::string& text) {
  const Json said = Json::parse(text);
  RankLedgers ledgers;
  ledgers.peak.bytes = said.at("peak").get<decltype(ledgers.peak.bytes)>();
  ledgers.peak.total_bytes = said.at("peak_total");
  for (const auto& part : said.at("saved")) ledgers.saved.push_back({part.at(0), part.at(1)});
  ledgers.peak_in_flight = said.at("in_flight");
  ledgers.flops_model = said.at("flops").at(0), ledgers.flops_hardware = said.at("flops").at(1);
  for (const auto& t : said.at("traffic"))
    ledgers.traffic[{t.at(0), static_cast<comm::Kind>(t.at(1).get<int>()), t.at(2)}] = {t.at(3), t.at(4), t.at(5)};
  return ledgers;
}

}  // namespace

comm::MpiJob* processes() { return of_this_run; }

std::string_view transport() { return of_this_run == nullptr ? "threads" : "mpi"; }

bool has_processes_for(std::int64_t ranks) { return of_this_run == nullptr || ranks <= of_this_run->size(); }

Processes::Processes() : job_(comm::MpiJob::begin()) { of_this_run = job_.get(); }
Processes::~Processes() { of_this_run = nullptr; }

bool Processes::serves() const { return job_ && job_->rank() != Rank{0}; }

ExitCode Processes::serve() {
  try {
    while (true) {
      const Json said = Json::parse(job_->broadcast(""));
      if (said.contains("exit_code")) return static_cast<ExitCode>(said.at("exit_code").get<int>());
      const Announced training = announced(said);
      if (static_cast<std::int64_t>(job_->rank()) >= training.ranks) continue;
      const workload::Corpus corpus(training.job.workload);
      train(training.job, corpus, {.observed_steps = training.observed_steps, .observe = {}, .step = {}});
    }
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    if (dynamic_cast<const comm::JobFailed*>(&error) == nullptr) {
      const std::string reason = reason_of(error), name = fmt::format("rank {}", static_cast<int>(job_->rank()));
      job_->fail(reason.starts_with(name) ? reason : fmt::format("{}: {}", name, reason), static_cast<int>(code));
    }
    job_->await_end(static_cast<int>(code));
    return code;
  }
}

void Processes::dismiss(ExitCode code) {
  if (!job_) return;
  if (broken) job_->part(static_cast<int>(code));
  job_->broadcast(Json{{"exit_code", static_cast<int>(code)}}.dump());
}

void ProcessTraining::announce(const TrainingJob& job, std::int64_t observed_steps) {
  if (broken) throw CommError("this run's processes have lost each other in an earlier case");
  if (job.strategy.ranks() > job_.size())
    throw NotSupported(fmt::format("{} needs {}, and {} processes were started", plan::print(job.strategy),
                                   counted(job.strategy.ranks(), "rank"), job_.size()));
  job_.broadcast(text_of(job, observed_steps));
}

void ProcessTraining::run(std::int64_t ranks, const comm::ThreadsOptions& options,
                          const std::function<void(comm::World&)>& rank) {
  if (job_.rank() != Rank{0}) return job_.run(ranks, options, rank);
  try {
    job_.run(ranks, options, rank);
  } catch (const comm::NoCallMatched&) {  // all ranks know, and go on
    throw;
  } catch (const comm::JobFailed&) {
    broken = true;
    throw;
  } catch (const std::exception& error) {
    broken = true;
    job_.fail(reason_of(error), static_cast<int>(exit_code_of(error)));
    throw;
  }
}

std::vector<RankLedgers> ProcessTraining::gather(std::int64_t ranks, const RankLedgers& own) {
  std::vector<RankLedgers> all;
  for (const auto& text : job_.gather(ranks, text_of(own))) all.push_back(ledgers_of(text));
  return all;
}

}  // namespace shardproof::harness
