// SPDX-License-Identifier: Apache-2.0
// CUDA's index types, and what the stand-in says of a kernel that breaks a rule.
#pragma once

#include <cstring>

#include "kernels/core/errors.hpp"

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

namespace shardproof::cuda_standin {

/// One sentence: which thread of which block did what, and where.
struct KernelFault : DeviceError {
  using DeviceError::DeviceError;
};

/// A call in a kernel's text.
struct Site {
  const char *call = "", *file = "";
  int line = 0;

  friend bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && same(a.file, b.file) && same(a.call, b.call);
  }

  static bool same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }
};

/// In which order the threads of a block, and the blocks of a grid, take their turns. What depends on it is wrong.
struct ThreadOrder {
  enum class Kind { forward, reverse, shuffled } kind = Kind::forward;
  unsigned seed = 0;  ///< of shuffled
};

}  // namespace shardproof::cuda_standin
