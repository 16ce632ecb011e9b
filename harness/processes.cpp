// SPDX-License-Identifier: Apache-2.0
#include "harness/processes.hpp"

#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/machine.hpp"
#include "harness/options.hpp"
#include "harness/signals.hpp"
#include "harness/span_text.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "impl/comm/inject.hpp"
#include "impl/comm/monitor.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

using Json = nlohmann::ordered_json;

comm::MpiJob* of_this_run = nullptr;
std::int64_t of_each_process = 0;  // ranks; 0: as evenly as possible
bool shares_memory = true;
std::int64_t of_all_machines = 0;  // processors
bool one_clock = true;             // of all processes
comm::FlightRecorder* recorder = nullptr;
std::string flight_folder;
std::vector<Node> nodes_of_this_run;
/// A training has ended in its middle, with this code: processes no longer agree on what comes next.
std::optional<ExitCode> broken;

std::string text_of(const TrainingJob& job, std::int64_t observed_steps) {
  const auto& threads = job.threads;
  return Json{{"workload", workload::print(job.workload)},
              {"strategy", plan::print(job.strategy)},
              {"ranks", job.strategy.ranks()},
              {"ranks_per_process", of_each_process},
              {"shared_memory", shares_memory},
              {"record_spans", job.record_spans},
              {"one_clock", one_clock},
              {"track", name_of(job.track)},
              {"device_memory_bytes", job.device_memory_bytes},
              {"poison", job.poison},
              {"timeout_seconds", threads.timeout_seconds},
              {"delays", threads.delays ? Json(*threads.delays) : Json()},
              {"chunk_elements", threads.chunk_elements},
              {"send_depth", threads.send_depth},
              {"injections", threads.injections},
              {"observed_steps", observed_steps},
              {"flight", flight_folder}}
      .dump();
}

struct Announced {
  TrainingJob job;
  std::int64_t observed_steps = 0;
};

Announced announced(const Json& said) {
  Announced result;
  result.observed_steps = said.at("observed_steps");
  TrainingJob& job = result.job;
  job.strategy = plan::parse_strategy(said.at("strategy").get<std::string>());
  job.workload =
      plan::with_program_keys(workload::parse(said.at("workload").get<std::string>(), "process 0", {}), job.strategy);
  job.track = track_named(said.at("track").get<std::string>());
  job.device_memory_bytes = said.at("device_memory_bytes");
  job.poison = said.at("poison");
  job.record_spans = said.at("record_spans");
  job.threads.timeout_seconds = said.at("timeout_seconds");
  if (!said.at("delays").is_null()) job.threads.delays = said.at("delays").get<std::uint64_t>();
  job.threads.chunk_elements = said.at("chunk_elements");
  job.threads.send_depth = said.at("send_depth");
  job.threads.injections = said.at("injections").get<std::vector<std::string>>();
  return result;
}

Json json_of(const RankLedgers& ledgers) {
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
              {"traffic", traffic}};
}

RankLedgers ledgers_of(const Json& said) {
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

/// In the flight record. What others said, and waits that were too long, are no failure of this process.
void decide(ExitCode code, const std::exception& error) {
  const bool is_own =
      dynamic_cast<const comm::JobFailed*>(&error) == nullptr && dynamic_cast<const HangError*>(&error) == nullptr &&
      dynamic_cast<const RankLost*>(&error) == nullptr && dynamic_cast<const Interrupted*>(&error) == nullptr;
  recorder->decide(static_cast<int>(code), is_own ? reason_of(error) : "");
}

}  // namespace

comm::MpiJob* processes() { return of_this_run; }

comm::FlightRecorder* flight() { return recorder; }

const std::vector<Node>& nodes() { return nodes_of_this_run; }

void keep_flight_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder / "flight", error);
  if (error) throw WriteError(fmt::format("cannot write {}: {}", (folder / "flight").string(), error.message()));
  if (recorder == nullptr) return;
  flight_folder = std::filesystem::absolute(folder) / "flight";
  recorder->keep_in(flight_folder);
}

std::string_view transport() { return of_this_run == nullptr ? "threads" : "mpi"; }

void set_ranks_per_process(std::int64_t ranks) { of_each_process = ranks; }
std::int64_t ranks_per_process() { return of_each_process; }
void set_shared_memory(bool used) { shares_memory = used; }
bool shared_memory() { return shares_memory; }

std::int64_t most_ranks() {
  const std::int64_t each = of_each_process > 0 ? of_each_process : comm::most_thread_ranks;
  return of_this_run == nullptr ? comm::most_thread_ranks : each * of_this_run->size();
}

std::int64_t processors(std::int64_t here) { return of_this_run == nullptr ? here : of_all_machines; }

comm::Deal dealt(std::int64_t ranks) { return {ranks, of_this_run->size(), of_each_process}; }

std::unique_ptr<comm::FlightRecorder> monitored() {
  const auto found = comm::launched();
  if (!found || found->size == 1) return nullptr;
  return comm::begin_monitored(*found, static_cast<int>(ExitCode::hang), static_cast<int>(ExitCode::rank_lost));
}

Processes::Processes(comm::FlightRecorder* of_this_process) {
  if (of_this_process == nullptr) return;
  const std::string own = to_json(identity());  // of the libraries that MPI's start has not loaded
  job_ = comm::MpiJob::begin(of_this_process);
  // A launcher that this MPI does not know leaves each process a job of its own.
  if (const auto found = *comm::launched(); found.size != job_->size())
    throw NotBuilt(
        fmt::format("{} has started {} processes, and MPI knows of {}: start them by the mpirun of this "
                    "binary's MPI (`shardproof env`), or by srun --mpi=pmix",
                    found.launcher, found.size, job_->size()));
  of_this_run = job_.get();
  recorder = of_this_process;
  const auto machines = job_->gather(job_->size(), describe_machine());
  for (const std::string& text : job_->gather(job_->size(), own)) all_.push_back(parse_identity(text));
  if (serves()) return;
  of_all_machines = processors_of(machines);
  one_clock = share_a_clock(machines);
}
Processes::~Processes() {
  of_this_run = nullptr;
  recorder = nullptr;
  nodes_of_this_run.clear();
}

std::string Processes::differences() {
  nodes_of_this_run = nodes_of(all_);
  return harness::differences(all_);
}

bool Processes::serves() const { return job_ && job_->process() != 0; }

ExitCode Processes::serve() {
  try {
    while (true) {
      const Json said = Json::parse(job_->broadcast(""));
      if (said.contains("exit_code")) return static_cast<ExitCode>(said.at("exit_code").get<int>());
      recorder->keep_in(said.at("flight").get<std::string>());
      set_ranks_per_process(said.at("ranks_per_process"));
      set_shared_memory(said.at("shared_memory"));
      one_clock = said.at("one_clock");
      if (job_->process() >= dealt(said.at("ranks")).used()) {
        recorder->skip_training();
        continue;
      }
      const Announced training = announced(said);
      const workload::Corpus corpus(training.job.workload);
      try {
        train(training.job, corpus, {.observed_steps = training.observed_steps, .observe = {}, .step = {}});
      } catch (const comm::NoCallMatched&) {  // all processes know: process 0 says it, and goes on
      }
    }
  } catch (const std::exception& error) {
    const ExitCode code = exit_code_of(error);
    decide(code, error);
    if (dynamic_cast<const comm::JobFailed*>(&error) == nullptr) {
      const std::string reason = reason_of(error);
      job_->fail(reason.starts_with("rank ") ? reason : fmt::format("process {}: {}", job_->process(), reason),
                 static_cast<int>(code));
    }
    job_->await_end(static_cast<int>(code));
    return code;
  }
}

void Processes::dismiss(ExitCode code) {
  if (!job_) return;
  if (broken) {
    if (!flight_folder.empty() && code != ExitCode::interrupted)
      say(stderr, fmt::format("shardproof: who waited for whom: shardproof flight {}\n", shell_quoted(flight_folder)));
    job_->part(static_cast<int>(code));
  }
  job_->broadcast(Json{{"exit_code", static_cast<int>(code)}}.dump());
}

void ProcessTraining::announce(const TrainingJob& job, std::int64_t observed_steps) {
  if (broken)
    throw comm::JobFailed("this run's processes have lost each other in an earlier case", static_cast<int>(*broken));
  if (job.strategy.ranks() > most_ranks())
    throw NotSupported(fmt::format("{} needs {}, and {} processes of {} each were started", plan::print(job.strategy),
                                   counted(job.strategy.ranks(), "rank"), job_.size(), most_ranks() / job_.size()));
  job_.broadcast(text_of(job, observed_steps));
}

void ProcessTraining::run(const comm::Deal& deal, comm::ThreadsOptions options,
                          const std::function<void(comm::World&)>& rank) {
  options.shared_memory = shared_memory();
  if (job_.process() != 0) return job_.run(deal, options, rank);
  try {
    job_.run(deal, options, rank);
  } catch (const comm::NoCallMatched&) {  // all ranks know, and go on
    throw;
  } catch (const comm::JobFailed& error) {
    broken = exit_code_of(error);
    throw;
  } catch (const std::exception& error) {
    broken = exit_code_of(error);
    decide(*broken, error);
    job_.fail(reason_of(error), static_cast<int>(exit_code_of(error)));
    throw;
  }
}

std::shared_ptr<const std::set<std::string>> ProcessTraining::gather(const comm::Deal& deal,
                                                                     std::span<RankLedgers> ranks,
                                                                     std::span<Spans> spans) {
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(deal.used()));
  if (!spans.empty() && !one_clock) {
    const auto now = [] {
      TimeSpan span;
      take_start(span);
      return span.start;
    };
    offsets = job_.clock_offsets(deal.used(), now);
  }
  Json own = Json::array();
  const auto process = job_.process();
  for (auto rank = static_cast<std::size_t>(deal.first(process)); std::ssize(own) < deal.count(process); ++rank) {
    Json one = {{"ledgers", json_of(ranks[rank])}};
    if (!spans.empty()) one["spans"] = json_of(spans[rank]);
    own.push_back(std::move(one));
  }
  const auto all = job_.gather(deal.used(), own.dump());
  const auto names = std::make_shared<std::set<std::string>>();
  std::size_t rank = 0;
  for (std::size_t of = 0; of < all.size(); ++of) {
    for (const Json& one : Json::parse(all[of])) {
      ranks[rank] = ledgers_of(one.at("ledgers"));
      if (!spans.empty()) spans[rank] = spans_of(one.at("spans"), offsets[of], *names);
      ++rank;
    }
  }
  return names;
}

}  // namespace shardproof::harness
