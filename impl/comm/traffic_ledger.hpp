// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace shardproof::comm {

enum class Kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  send,
  receive,
  barrier,
};
inline constexpr std::size_t kind_count = 8;
std::string_view name_of(Kind kind);

struct TrafficKey {
  std::string axis;  ///< of the group: "tp", "dp", "world", ...
  Kind kind;
  std::string purpose;  ///< "mlp_row_output", ...
  friend auto operator<=>(const TrafficKey&, const TrafficKey&) = default;
};

struct Traffic {
  std::int64_t calls = 0;
  /// Of the logical tensors: what is reduced, scattered, gathered (all parts), broadcast, received; of all_to_all and
  /// send, what this rank gives away.
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;  ///< copied out of other ranks' memory by this rank
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// One rank's traffic, counted where bytes are copied. Thread-safe: queues communicate from their own threads.
class TrafficLedger {
 public:
  void add(const TrafficKey& key, std::int64_t payload_bytes, std::int64_t wire_bytes);
  std::map<TrafficKey, Traffic> counts() const;

 private:
  mutable std::mutex mutex_;
  std::map<TrafficKey, Traffic> counts_;
};

}  // namespace shardproof::comm
