// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "harness/record.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// What `run` prints about a finished case: throughput, learning, memory beside its forms, digest, verdict.
std::string report(const Record& record, const workload::Workload& workload, const Trained& trained);

}  // namespace shardproof::harness
