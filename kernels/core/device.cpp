// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/device.hpp"

#include <cfloat>
#include <string>

#include <malloc.h>

#include "kernels/core/errors.hpp"

namespace shardproof {

static_assert(FLT_EVAL_METHOD == 0, "excess precision would change the bits of the exact track");

namespace {

void require_processor() {
#if defined(__x86_64__)
  [[maybe_unused]] const auto refuse = [](const char* set) {
    throw DeviceError(std::string("this binary was compiled for ") + set +
                      ", which this processor lacks; build it on this machine, or with -DSHARDPROOF_ARCH=x86-64-v3");
  };
#if defined(__AVX512F__) && defined(__AVX512DQ__)
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq")) refuse("AVX-512");
#endif
#if defined(__AVX2__) && defined(__FMA__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) refuse("AVX2 and FMA");
#endif
#endif
}

}  // namespace

void require_arithmetic() {
  // By results, not by a register: the C library's fegetround() reads another register than vector code obeys.
  const volatile double one = 1.0, quarter = 0x1p-54, three_quarters = 0x3p-54, least_normal = DBL_MIN, half = 0.5;
  if (one + quarter != 1.0 || one + three_quarters != 1.0 + DBL_EPSILON) {
    throw DeviceError("the floating-point rounding mode is not to nearest even");
  }
  if (least_normal * half == 0.0) {  // as a result that is flushed, or as an operand of == that counts as zero
    throw DeviceError("subnormal numbers count as zero; a library that was linked with -ffast-math does that");
  }
}

void prepare_process() {
  require_processor();
  require_arithmetic();
  // Only speed is at stake, and a sanitizer's allocator refuses them all: what they return is not looked at.
  mallopt(M_MMAP_MAX, 0);         // a mapping of its own would go back to the system at every free
  mallopt(M_TRIM_THRESHOLD, -1);  // and so would the heap's end
  // With an arena per thread, what one rank freed would not serve another, and arenas grow by heaps of 64 MiB, which no
  // larger tensor fits: with 2 to 32 threads that allocate like a step they took twice the time and a third more
  // memory.
  mallopt(M_ARENA_MAX, 1);
  // What was touched before its neighbourhood was asked for gets no huge pages (kernels/core/poison.cpp): the heap
  // grows by many of them at a time, untouched.
  mallopt(M_TOP_PAD, 64 << 20);
}

}  // namespace shardproof
