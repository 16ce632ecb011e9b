// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "harness/record.hpp"
#include "harness/training.hpp"

namespace shardproof::harness {

/// The digest, and the steps that it is over: "0123... (steps 1 to 3)".
std::string digest_text(const std::string& digest, std::int64_t steps);

/// One sentence where the record's MFU is above 1; else "".
std::string mfu_warning(const Record& record);

/// One sentence where there are fewer layers than stages, unless the strategy says where they are; else "".
std::string stages_warning(const workload::Workload& workload, const plan::Strategy& strategy);

/// What `run` prints about a finished case: throughput, learning, memory beside its forms, digest, verdict.
std::string report(const Record& record, const workload::Workload& workload, const Trained& trained);

}  // namespace shardproof::harness
