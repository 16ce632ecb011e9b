// SPDX-License-Identifier: Apache-2.0
// The whole model on one sample (ARITHMETIC.md, sections 4 to 7).
#pragma once

#include "reference/parameters.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::reference {

/// Forward and backward of sample b of the batch: appends its losses and adds to the parameters' gradients.
/// factor = scale/N.
template <class S>
void train_sample(Arithmetic<S>& arithmetic, const workload::Workload& workload, const workload::Batch& batch,
                  std::int64_t b, double factor, Parameters<S>& parameters, std::vector<S>& losses);

}  // namespace shardproof::reference
