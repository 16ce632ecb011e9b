// SPDX-License-Identifier: Apache-2.0
// What calls of different ranks must agree on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace shardproof::comm {

struct Signature {
  explicit Signature(const Call& call);

  Kind kind;
  Operator op;
  Dtype dtype = Dtype::u8;
  std::int64_t elements = 0;  // of what all members see alike; not of all_to_all
  std::vector<std::int64_t> inputs, outputs;
  std::int64_t peer, number;
  std::string_view purpose;
  Tag tag;
};
/// "send 2 f64 (5) for stage_output, stage 1, microbatch 0"
std::string print(const Signature& call);

/// What keeps the members' calls from being one collective, as a sentence that names two ranks; "" if nothing does.
std::string mismatch(const std::vector<Rank>& members, const std::vector<Signature>& calls);
/// The same for a message's two ends.
std::string mismatch(Rank sender, const Signature& send, Rank receiver, const Signature& receive);

}  // namespace shardproof::comm
