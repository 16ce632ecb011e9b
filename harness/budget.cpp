// SPDX-License-Identifier: Apache-2.0
#include "harness/budget.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "harness/options.hpp"
#include "harness/predict/flops.hpp"
#include "harness/predict/memory.hpp"
#include "harness/predict/ranks.hpp"
#include "harness/text.hpp"
#include "harness/transport.hpp"
#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::harness {
namespace {

// Multiply-adds a second of the sequential oracle on one core, a good half of what a server core with AVX-512 does
// (0.67e9, 2.9e9, 6.6e9 at the shape of `laptop`). In f64 and native two oracles run: double and float.
constexpr double exact_rate = 0.4e9, double_rate = 1.6e9, float_rate = 3.2e9;

predict::Memory memory_of(const TrainingJob& job, Track track) {
  return predict::memory(job.workload, predict::role_bytes(track), largest_batch(job.workload),
                         job.strategy.microbatches);
}

/// Of each rank.
std::vector<predict::Memory> memory_of_ranks(const TrainingJob& job) {
  const plan::Pipeline pipeline = plan::pipeline_of(job.strategy, job.workload.steps);
  std::vector<predict::Memory> ranks;
  for (std::int64_t rank = 0; rank < job.strategy.ranks(); ++rank)
    ranks.push_back(predict::rank_form(job.workload, job.strategy, pipeline, static_cast<Rank>(rank),
                                       predict::role_bytes(job.track), largest_batch(job.workload))
                        .memory);
  return ranks;
}

/// The rank that holds most, and what.
std::pair<std::int64_t, predict::Memory> largest_rank(const TrainingJob& job) {
  const auto ranks = memory_of_ranks(job);
  const auto most = std::ranges::max_element(ranks, {}, &predict::Memory::total);
  return {most - ranks.begin(), *most};
}

std::int64_t bytes_of_all_ranks(const TrainingJob& job) {
  std::int64_t bytes = 0;
  for (const auto& memory : memory_of_ranks(job)) bytes += memory.total();
  return bytes;
}

}  // namespace

void require_threads(const plan::Strategy& strategy) {
  if (strategy.ranks() <= most_ranks()) return;
  const std::string needs = fmt::format("{} needs {} ranks", plan::print(strategy), strategy.ranks());
  if (processes() != nullptr)
    throw BadInput(fmt::format("{}, and {} processes of at most {} were started", needs, processes()->size(),
                               counted(most_ranks() / processes()->size(), "rank")));
  throw BadInput(fmt::format("{}: threads carry at most {}; mpirun -n {} starts them as processes", needs,
                             comm::most_thread_ranks, strategy.ranks()));
}

std::int64_t largest_batch(const workload::Workload& workload) {
  return workload.samples > 0 ? std::min(workload.batch, workload.samples) : workload.batch;
}

std::int64_t steps_of_a_turn(const std::vector<std::int64_t>& replicas) {
  std::int64_t steps = 1;
  for (const std::int64_t ranks : replicas) steps = std::lcm(steps, ranks);
  return steps;
}

predict::Memory memory_needed(const TrainingJob& job) { return largest_rank(job).second; }

double oracle_seconds(const workload::Workload& workload, Track track, std::int64_t samples, std::int64_t steps) {
  const double multiply_adds = predict::flops(workload, samples).total() / 2 * static_cast<double>(steps);
  return track == Track::exact ? multiply_adds / exact_rate : multiply_adds / double_rate + multiply_adds / float_rate;
}

std::int64_t judged_steps(const TrainingJob& job) {
  const std::int64_t turn = steps_of_a_turn(job.strategy.replicas);
  return std::min((3 + turn - 1) / turn * turn, job.workload.steps);
}

JudgedPart judged_part(const TrainingJob& job, double seconds_allowed) {
  JudgedPart part{job, judged_steps(job), "full"};
  const std::int64_t samples = largest_batch(job.workload),
                     few = std::max<std::int64_t>(job.strategy.dp * job.strategy.microbatches, 2);
  if (oracle_seconds(job.workload, job.track, samples, part.steps) <= seconds_allowed) return part;
  part.job.workload.batch = std::min(samples, few);
  if (oracle_seconds(job.workload, job.track, part.job.workload.batch, part.steps) > seconds_allowed)
    part.steps = steps_of_a_turn(job.strategy.replicas);
  part.job.workload.steps = part.steps;
  part.text = fmt::format("batch={} (of {}), {}", part.job.workload.batch, samples, counted(part.steps, "step"));
  return part;
}

Footprint footprint(const TrainingJob& job, const JudgedPart* judged) {
  const predict::Memory own = memory_needed(job);
  Footprint bytes{.training = bytes_of_all_ranks(job)};
  if (!judged) return bytes;
  // One step's observables, and beside each oracle those of its own: within a quarter of what `laptop` takes.
  bytes.judging = own.parameter + own.gradient + own.optimizer_state;
  if (job.track == Track::exact) {
    bytes.judging += 2 * memory_of(judged->job, Track::exact).total();
  } else {
    bytes.judging += 2 * (memory_of(judged->job, Track::f64).total() + memory_of(judged->job, Track::native).total());
  }
  return bytes;
}

std::string ranks_without_room(const TrainingJob& job) {
  std::vector<std::string> runs;
  const auto ranks = memory_of_ranks(job);
  std::int64_t first = -1;
  for (std::int64_t rank = 0; rank <= std::ssize(ranks); ++rank) {
    const bool full =
        rank < std::ssize(ranks) && ranks[static_cast<std::size_t>(rank)].total() > job.device_memory_bytes;
    if (full && first < 0) first = rank;
    if (full || first < 0) continue;
    runs.push_back(rank - 1 == first ? fmt::format("{}", first) : fmt::format("{} to {}", first, rank - 1));
    first = -1;
  }
  return workload::joined(runs, ", ");
}

void refuse_too_large(const TrainingJob& job, const JudgedPart* judged, std::int64_t machine_bytes,
                      std::string_view without) {
  const auto [rank, own] = largest_rank(job);
  const std::string needs = fmt::format(
      "workload \"{}\" needs at least {} in track {} (parameters {}, gradients {}, optimizer state {}, saved tensors "
      "{})",
      job.workload.name, print_bytes(own.total()), name_of(job.track), print_bytes(own.parameter),
      print_bytes(own.gradient), print_bytes(own.optimizer_state), print_bytes(own.saved));
  if (own.total() > job.device_memory_bytes) {
    const std::string limit = print_bytes(job.device_memory_bytes);
    if (job.strategy.ranks() == 1) throw OutOfMemory(fmt::format("{}, more than --device-memory {}", needs, limit));
    throw OutOfMemory(fmt::format("{} on rank {}, more than --device-memory {}; of {} ranks these do not fit: {}",
                                  needs, rank, limit, job.strategy.ranks(), ranks_without_room(job)));
  }
  const Footprint bytes = footprint(job, judged);
  if (bytes.training > machine_bytes) {
    const std::string all =
        job.strategy.ranks() == 1 ? "" : fmt::format(" on a rank, {} on all", print_bytes(bytes.training));
    throw OutOfMemory(fmt::format("{}{}, more than this machine's {}", needs, all, print_bytes(machine_bytes)));
  }
  if (bytes.training + bytes.judging > machine_bytes)
    throw OutOfMemory(fmt::format("{}, and judging it another {}, together more than this machine's {}: {}", needs,
                                  print_bytes(bytes.judging), print_bytes(machine_bytes), without));
}

}  // namespace shardproof::harness
