// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {

template <class T>
T* Workspace::grown(Buffer<T>& buffer, std::int64_t n) {
  if (n > buffer.size) {
    // Doubling: what smaller products used stays until the kernel ends.
    const auto size = std::max(n, 2 * buffer.size);
    buffer = {scope_.scratch<T>(size), size};
  }
  return buffer.data;
}

double* Workspace::panels(std::int64_t n) { return grown(panels_, n); }
FixedSum* Workspace::totals(std::int64_t n) { return grown(totals_, n); }

}  // namespace shardproof::matmul
