// SPDX-License-Identifier: Apache-2.0
// GELU and ReLU (ARITHMETIC.md, sections 3, 5 and 7).
#pragma once

#include "reference/arithmetic.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::reference {

template <class S>
Array<S> activate(Arithmetic<S>& arithmetic, workload::Activation activation, const Array<S>& x);

/// dx, from the forward's input
template <class S>
Array<S> activate_input(Arithmetic<S>& arithmetic, workload::Activation activation, const Array<S>& x,
                        const Array<S>& dy);

}  // namespace shardproof::reference
