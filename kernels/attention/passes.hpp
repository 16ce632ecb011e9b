// SPDX-License-Identifier: Apache-2.0
// The kernels on memory that is open.
#pragma once

#include "kernels/attention/layout.hpp"

namespace shardproof::attention {

template <class S>
struct ForwardOperands {
  const S *q, *k, *v;
  const std::int32_t* documents;
  const dropout::Site* site;  // nullptr: no dropout; then no mask and no dropped
  S* probability;
  std::uint8_t* mask;
  S *dropped, *o;
};
template <class S>
void run_forward(KernelScope& scope, const Layout& layout, const ForwardOperands<S>& operands);

template <class S>
struct BackwardOperands {
  const S *d_o, *q, *k, *v;
  const std::int32_t* documents;
  const S *o, *probability;
  const std::uint8_t* mask;  // nullptr: no dropout; then dropped is probability
  const S* dropped;
  S keep_factor;
  S* dq;
  Accumulator dk, dv;
};
template <class S>
void run_backward(KernelScope& scope, const Layout& layout, const BackwardOperands<S>& operands);

template <class S>
struct TiledForwardOperands {
  const S *q, *k, *v;
  const std::int32_t* documents;
  const dropout::Site* site;  // nullptr: no dropout
  S *max, *sum, *o;
};
/// Fixed in tiled_exact.cpp; double and float in tiled_online.cpp.
template <class S>
void run_tiled_forward(KernelScope& scope, const Layout& layout, const TiledForwardOperands<S>& operands);

template <class S>
struct TiledBackwardOperands {
  const S *d_o, *q, *k, *v;
  const std::int32_t* documents;
  const dropout::Site* site;
  const S *o, *max, *sum;
  S* dq;
  Accumulator dk, dv;
};
template <class S>
void run_tiled_backward(KernelScope& scope, const Layout& layout, const TiledBackwardOperands<S>& operands);

}  // namespace shardproof::attention
