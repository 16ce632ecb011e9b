// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/traffic_ledger.hpp"

namespace shardproof::comm {

std::string_view name_of(Kind kind) {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                        "all_to_all", "send",           "receive",    "barrier"};
  static_assert(std::size(names) == kind_count);
  return names[static_cast<std::size_t>(kind)];
}

void TrafficLedger::add(const TrafficKey& key, std::int64_t payload_bytes, std::int64_t wire_bytes) {
  const std::lock_guard lock(mutex_);
  auto& count = counts_[key];
  ++count.calls;
  count.payload_bytes += payload_bytes;
  count.wire_bytes += wire_bytes;
}

std::map<TrafficKey, Traffic> TrafficLedger::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace shardproof::comm
