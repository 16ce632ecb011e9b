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
}

void ProcessOptions::apply() const {
  if (ranks_ && processes() == nullptr)
    throw BadInput("--ranks-per-process: there is one process; mpirun or srun start several");
  set_ranks_per_process(ranks_.value_or(0));
}

std::vector<std::string> words_of_processes() {
  if (ranks_per_process() == 0) return {};
  return {"--ranks-per-process", std::to_string(ranks_per_process())};
}

}  // namespace shardproof::harness
