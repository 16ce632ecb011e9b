// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardproof::harness {

/// FLOP/s of f32 matrix multiplication on this thread: 2048 x 2048 x 2048, best of 10. Takes a second or two.
double measured_peak();

}  // namespace shardproof::harness
