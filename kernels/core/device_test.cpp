// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/device.hpp"

#include <cfenv>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof {
namespace {

TEST(Device, CountsWorkDoneAgainAsHardwareWork) {
  Device device;
  auto& flops = device.flops();
  flops.add(100);
  flops.set_recomputing(true);
  flops.add(30);
  flops.set_recomputing(false);
  flops.add(1);
  EXPECT_EQ(flops.model(), 101);
  EXPECT_EQ(flops.hardware(), 131);
}

TEST(Device, RefusesAnotherRoundingMode) {
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  EXPECT_THROW(prepare_process(), DeviceError);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace shardproof
