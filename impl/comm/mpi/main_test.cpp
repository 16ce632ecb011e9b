// SPDX-License-Identifier: Apache-2.0
// The tests of impl/comm that know no transport, over processes: mpirun -n 4 impl_comm_mpi_tests. All processes run all
// of them in step, and say only what went wrong.
#include <cstdio>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/device.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  shardproof::prepare_process();
  const auto job = shardproof::comm::MpiJob::begin();
  if (!job) {
    std::fputs("started alone: mpirun -n 4 impl_comm_mpi_tests\n", stderr);
    return 1;
  }
  shardproof::comm::testing::job = job.get();
  if (job->process() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  return RUN_ALL_TESTS();
}
