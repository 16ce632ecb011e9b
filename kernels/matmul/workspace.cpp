// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {

template <class T>
T* Workspace::grown(Buffer<T>& buffer, std::int64_t n) {
  if (n > buffer.size) buffer = {scope_.scratch<T>(n), n};
  return buffer.data;
}

double* Workspace::panels(std::int64_t n) { return grown(panels_, n); }
FixedSum* Workspace::totals(std::int64_t n) { return grown(totals_, n); }

}  // namespace shardproof::matmul
