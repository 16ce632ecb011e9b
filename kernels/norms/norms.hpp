// SPDX-License-Identifier: Apache-2.0
// Sums of squares (reference/ARITHMETIC.md, sections 1.5 and 8).
#pragma once

#include "kernels/core/queue.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof::norms {

/// total += sum of x^2: for Fixed the wide sum of raw^2 (units of 2^-80), else a sum in double of double(x)^2.
void sum_of_squares(Queue& queue, const Tensor& x, const WideTotal& total);

}  // namespace shardproof::norms
