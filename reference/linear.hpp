// SPDX-License-Identifier: Apache-2.0
// Linear maps (ARITHMETIC.md, sections 5 and 7). x [n, in], w [out, in], b [out], y [n, out].
#pragma once

#include "reference/arithmetic.hpp"

namespace shardproof::reference {

/// y = x w^T + b. Without b nothing is added.
template <class S>
Array<S> linear(Arithmetic<S>& arithmetic, const Array<S>& x, const Array<S>& w, const Array<S>* b);

/// dx += dy w
template <class S>
void linear_input(const Array<S>& dy, const Array<S>& w, Array<Sum<S>>& dx);

/// dw += dy^T x
template <class S>
void linear_weight(const Array<S>& dy, const Array<S>& x, Array<Sum<S>>& dw);
/// db += the sum of dy's rows
template <class S>
void linear_bias(const Array<S>& dy, Array<Sum<S>>& db);

}  // namespace shardproof::reference
