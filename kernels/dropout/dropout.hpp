// SPDX-License-Identifier: Apache-2.0
// Dropout with counter-based masks (reference/ARITHMETIC.md, sections 5, 7 and 10). Masks are u8: 1 kept, 0 dropped.
#pragma once

#include <cstdint>

#include "kernels/core/philox.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::dropout {

/// One dropout site at one step. `first` is the index, in the site's logical tensor, of the tensor's first element.
struct Site {
  double probability;
  RandomStream stream;
  std::uint64_t first = 0;
};

/// The factor of kept elements before it is converted to C and rounded: k = R(1/(1-p)).
inline double keep_factor(double probability) { return 1.0 / (1.0 - probability); }

/// mask[0..n-1] of elements first + offset + i.
void fill_mask(const Site& site, std::uint64_t offset, std::int64_t n, std::uint8_t* mask);

/// y = kept ? mul(x, k) : 0, and the mask.
void forward(Queue& queue, const Site& site, const Tensor& x, const Tensor& mask, const Tensor& y);
/// dx = kept ? mul(dy, k) : 0
void backward(Queue& queue, double probability, const Tensor& mask, const Tensor& dy, const Tensor& dx);

}  // namespace shardproof::dropout
