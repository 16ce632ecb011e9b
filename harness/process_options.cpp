// SPDX-License-Identifier: Apache-2.0
#include "harness/process_options.hpp"

#include "harness/transport.hpp"
#include "impl/comm/world.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

void ProcessOptions::declare(Options& options) {
  options.number("--ranks-per-process", ranks_, 1, comm::most_thread_ranks,
                 "Under mpirun and srun: ranks that are threads of each process, the first ones filled first (default: "
                 "a case's ranks in blocks as even as can be)");
  options.flag("--no-shared-memory", no_shared_memory_,
               "Under mpirun and srun: reductions by MPI's own calls also where all processes of a group are on one "
               "machine, and would share memory");
}

void ProcessOptions::apply() const {
  if (ranks_ && processes() == nullptr)
    throw BadInput("--ranks-per-process: there is one process; mpirun or srun start several");
  if (no_shared_memory_ && processes() == nullptr)
    throw BadInput("--no-shared-memory: there is one process; mpirun or srun start several");
  set_ranks_per_process(ranks_.value_or(0));
  set_shared_memory(!no_shared_memory_);
}

std::vector<std::string> words_of_processes() {
  std::vector<std::string> words;
  if (ranks_per_process() != 0) words = {"--ranks-per-process", std::to_string(ranks_per_process())};
  if (!shared_memory()) words.emplace_back("--no-shared-memory");
  return words;
}

}  // namespace shardproof::harness
