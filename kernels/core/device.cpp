// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/device.hpp"

#include <cfenv>
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

void prepare_process() {
  require_processor();
  if (std::fegetround() != FE_TONEAREST) throw DeviceError("the floating-point rounding mode is not to nearest even");
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_ARENA_MAX, 1);
}

}  // namespace shardproof
