// SPDX-License-Identifier: Apache-2.0
// Rounding with an overflow flag (ARITHMETIC.md, sections 1 and 2). Every rounding of the oracle goes through here.
#pragma once

#include "kernels/core/scalar.hpp"
#include "reference/array.hpp"

namespace shardproof::reference {

template <class S>
class Arithmetic {
 public:
  /// R(y)
  S round(Real<S> y) { return checked(round_to<S>(y)); }
  /// fin(sum)
  S finish(Sum<S> sum) { return checked(shardproof::finish<S>(sum)); }
  S mul(S a, S b) { return checked(shardproof::mul(a, b)); }
  S add(S a, S b) { return checked(shardproof::add(a, b)); }
  S sub(S a, S b) { return checked(shardproof::sub(a, b)); }

  Array<S> finish(const Array<Sum<S>>& sums) {
    Array<S> out(sums.rows(), sums.columns());
    for (std::int64_t i = 0; i < sums.rows(); ++i) {
      for (std::int64_t j = 0; j < sums.columns(); ++j) out[i][j] = finish(sums[i][j]);
    }
    return out;
  }
  Array<S> add(const Array<S>& a, const Array<S>& b) {
    Array<S> out(a.rows(), a.columns());
    for (std::int64_t i = 0; i < a.rows(); ++i) {
      for (std::int64_t j = 0; j < a.columns(); ++j) out[i][j] = add(a[i][j], b[i][j]);
    }
    return out;
  }

  /// Whether any result so far was out of range.
  bool overflow() const { return overflow_; }
  /// Notes a value that was made elsewhere.
  S checked(S value) {
    overflow_ = overflow_ || !in_range(value);
    return value;
  }

 private:
  bool overflow_ = false;
};

}  // namespace shardproof::reference
