// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/device.hpp"

#include <cfenv>

#include <gtest/gtest.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"

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
  flops.add_recomputed(7);
  EXPECT_EQ(flops.model(), 101);
  EXPECT_EQ(flops.hardware(), 138);
}

/// The thread's floating-point environment, as it was before.
struct Environment {
  Environment() { std::fegetenv(&saved); }
  ~Environment() { std::fesetenv(&saved); }
  std::fenv_t saved;
};

TEST(Device, RefusesAnotherRoundingMode) {
  for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
    const Environment before;
    ASSERT_EQ(std::fesetround(mode), 0);
    EXPECT_THROW(require_arithmetic(), DeviceError) << mode;
    EXPECT_THROW(prepare_process(), DeviceError) << mode;
  }
  EXPECT_NO_THROW(require_arithmetic());
}

#if defined(__SSE2__)
TEST(Device, RefusesWhatChangesVectorCodeAlone) {
  constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040, round_down = 0x2000;
  for (const unsigned bits : {flush_to_zero, denormals_are_zero, round_down}) {
    const Environment before;
    _mm_setcsr(_mm_getcsr() | bits);
    EXPECT_THROW(require_arithmetic(), DeviceError) << bits;
  }
}
#endif

TEST(Device, EveryKernelsThreadIsAsked) {
  Device device;
  ImmediateQueue here(device);
  WorkerQueue there(device);
  const auto run_after = [](Queue& queue) {
    queue.submit("library", [](KernelScope&) { std::fesetround(FE_UPWARD); });
    queue.submit("k", [](KernelScope&) {});
    queue.synchronize();
  };
  const Environment before;
  EXPECT_THROW(run_after(here), DeviceError);
  EXPECT_THROW(run_after(there), DeviceError);
}

}  // namespace
}  // namespace shardproof
