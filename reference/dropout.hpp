// SPDX-License-Identifier: Apache-2.0
// Dropout (ARITHMETIC.md, sections 5, 7 and 10).
#pragma once

#include "kernels/core/philox.hpp"
#include "reference/arithmetic.hpp"

namespace shardproof::reference {

/// One site's mask of one sample. Without elements dropout is off, and the functions below return their input.
template <class S>
struct Dropout {
  Array<std::uint8_t> kept;
  S factor{};  ///< k = R(1/(1-p))

  bool on() const { return kept.rows() > 0; }
};

/// The mask of a sample whose element [0, 0] is element `first` of the site. p > 0.
template <class S>
Dropout<S> draw_dropout(Arithmetic<S>& arithmetic, const RandomStream& stream, std::uint32_t threshold, double p,
                        std::int64_t first, std::int64_t rows, std::int64_t columns);

/// kept ? mul(x, k) : 0: forward of values and backward of gradients alike.
template <class S>
Array<S> dropped(Arithmetic<S>& arithmetic, const Dropout<S>& dropout, const Array<S>& x);

}  // namespace shardproof::reference
