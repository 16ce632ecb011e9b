// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/device.hpp"

#include <cfenv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their allocators do not use the heap
/// What the system says of the mapping that holds the address: "rd wr mr mw me ac hg ..."; "" where it says nothing.
std::string flags_of_mapping(std::uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= address && address < end;
    if (inside && line.starts_with("VmFlags:")) return line.substr(8);
  }
  return "";
}

TEST(Device, TensorsLieInHugePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "this system has no transparent huge pages";
  prepare_process();
  Device device({.poison = false});
  ImmediateQueue queue(device);
  // Larger than what the heap holds untouched, so that it grows here.
  const Tensor tensor(queue, {"x", Dtype::f32, {40 << 20}, Category::workspace});
  queue.submit("where", [&](KernelScope& scope) {
    const auto address = reinterpret_cast<std::uintptr_t>(scope.write<float>(tensor));
    for (const std::uintptr_t at : {0u, 80u << 20, 160u << 20}) {
      EXPECT_NE(flags_of_mapping(address + at - (at > 0 ? 1 : 0)).find(" hg"), std::string::npos) << at;
    }
  });
}
#endif

}  // namespace
}  // namespace shardproof
