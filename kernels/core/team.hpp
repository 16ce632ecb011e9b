// SPDX-License-Identifier: Apache-2.0
// One text per row kernel: a functor over a team of W lanes with two verbs,
//   each(n, f)            f(i) for every i
//   fold(n, zero, f, op)  op over f(i), in an order that depends on n and W alone
// HostTeam runs lanes as a vectorisable loop; DeviceTeam (team_device.cuh) as threads. Both give the same bits.
#pragma once

#include <cstdint>

#include "kernels/core/scalar.hpp"

namespace shardproof {

/// W lanes of one CPU thread. Lane k folds elements k, k+W, ...; then lanes fold as a 32-lane xor tree does, and for
/// W > 32 the W/32 results fold the same way.
template <int W>
struct HostTeam {
  static_assert(W >= 32 && W <= 1024 && (W & (W - 1)) == 0);

  template <class F>
  void each(std::int64_t n, F f) const {
    // An element never depends on another, whatever the compiler may fear of the pointers.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif !defined(__CUDACC__)
#pragma GCC ivdep
#endif
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }

  template <class T, class F, class Op>
  T fold(std::int64_t n, T zero, F f, Op op) const {
    T lane[W];
    for (int k = 0; k < W; ++k) lane[k] = zero;
    std::int64_t i = 0;
    for (; i + W <= n; i += W) {
      for (int k = 0; k < W; ++k) lane[k] = op(lane[k], f(i + k));
    }
    for (int k = 0; i < n; ++i, ++k) lane[k] = op(lane[k], f(i));
    for (int w = 0; w < W; w += 32) tree<16>(lane + w, op);
    if constexpr (W > 32) {
      for (int k = 1; k < W / 32; ++k) lane[k] = lane[k * 32];
      tree<W / 64>(lane, op);
    }
    return lane[0];
  }

 private:
  template <int half, class T, class Op>
  static void tree(T* lane, Op op) {
#if !defined(__clang__) && !defined(__CUDACC__)
#pragma GCC unroll 1  // unrolled too early, it is no longer seen as vectors
#endif
    for (int k = 0; k < half; ++k) lane[k] = op(lane[k], lane[k + half]);
    if constexpr (half > 1) tree<half / 2>(lane, op);
  }
};

struct Plus {
  template <class T>
  SHARDPROOF_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct AnyOf {
  SHARDPROOF_HD bool operator()(bool a, bool b) const { return a || b; }
};
struct Greatest {
  template <class T>
  SHARDPROOF_HD T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

}  // namespace shardproof
