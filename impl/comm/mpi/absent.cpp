// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

std::unique_ptr<MpiJob> MpiJob::begin(FlightRecorder*) {
  const auto found = launched();
  if (!found || found->size == 1) return nullptr;
  throw NotBuilt(std::string(found->launcher) + " has started " + std::to_string(found->size) +
                 " processes, and this binary was built without MPI (Debian: libopenmpi-dev); without " +
                 std::string(found->launcher) + " ranks are threads of one process");
}

std::string MpiJob::library() { return "not built"; }

}  // namespace shardproof::comm
