// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cstdlib>

#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

struct Variables {
  const char *rank, *size;
  std::string_view launcher;
};
// srun sets its own for every task, with whatever library the task may find.
constexpr std::array<Variables, 3> known = {{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "mpirun"},
                                             {"PMI_RANK", "PMI_SIZE", "mpirun"},
                                             {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"}}};

std::int64_t number(const char* variable, const char* text) {
  const std::string_view all = text;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error != std::errc() || end != all.data() + all.size() || value < 0)
    throw BadInput(std::string("environment variable ") + variable + "='" + text + "': a whole number from 0");
  return value;
}

}  // namespace

std::optional<Launched> launched() {
  for (const auto& [rank, size, launcher] : known) {
    const char *own = std::getenv(rank), *all = std::getenv(size);
    if (own == nullptr || all == nullptr) continue;
    const Launched found{number(rank, own), number(size, all), launcher};
    if (found.rank >= found.size)
      throw BadInput(std::string("environment variable ") + rank + "='" + own + "': below " + size + "=" + all);
    return found;
  }
  return std::nullopt;
}

}  // namespace shardproof::comm
