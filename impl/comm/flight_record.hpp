// SPDX-License-Identifier: Apache-2.0
// A flight record as it was found, and several of one job merged: who waits for whom, and who is to blame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/flight_file.hpp"
#include "impl/comm/traffic_ledger.hpp"

namespace shardproof::comm {

/// A rank's place in a group on a channel.
struct FlownGroup {
  std::uint64_t key = 0;
  std::int64_t rank = 0;
  std::string axis, channel;
  std::vector<std::int64_t> members;  ///< empty where they were too many to write down, or the table of groups is full
  std::int64_t calls = 0;             ///< collectives begun
  std::uint64_t signatures[FlightGroup::kept] = {};

  bool same_members(const FlownGroup& other) const {
    return axis == other.axis && channel == other.channel && members == other.members;
  }
};

struct FlownCall {
  std::int64_t sequence = 0;
  std::size_t group = 0;  ///< of the record's groups
  Kind kind = Kind::barrier;
  std::string dtype, op, purpose;
  std::int64_t elements = 0, number = 0, place = 0, rank = 0, peer = -1, step = 0, stage = -1, microbatch = -1;
  std::int64_t begin_ns = 0, end_ns = 0;

  bool is_message() const { return kind == Kind::send || kind == Kind::receive; }
};

struct FlownRecord {
  std::string origin;  ///< as errors name it
  std::int64_t process = 0, processes = 1, pid = 0;
  std::int64_t first_rank = 0, ranks = 0;  ///< that it carries
  std::string host, job, failure, blocked_in;
  Phase phase = Phase::starting;
  std::int64_t training = 0, step = 0, median_step_ns = 0, deadline_ns = 0;
  std::int64_t exit_code = -1, signal = 0, status = -1, asked = 0;
  std::int64_t wall_offset_ns = 0;  ///< added to times of this record: since 1970
  std::int64_t stopped_ns = 0, blocked_ns = 0, progress_ns = 0, ended_ns = 0;
  std::vector<FlownGroup> groups;
  std::vector<FlownCall> open, ended;  ///< ended: in the order in which they began

  /// "rank 1 on host node3"; "process 1 of ranks 2-3 on host node3" where ranks are threads of it; "process 1 on host
  /// node3" as long as it carries none.
  std::string name() const;
  /// "2-3"
  std::string print_ranks() const;
  bool carries(std::int64_t rank) const { return first_rank <= rank && rank < first_rank + ranks; }
};

/// Of the bytes of a file, or of a mapping that is being written: calls that are not whole are left out. Throws
/// BadInput naming `origin`: not a flight record, another version, cut, or damaged.
FlownRecord read_flight(std::span<const std::byte> bytes, std::string_view origin);

/// "all_reduce 4 of axis dp, channel gradient (purpose gradient), step 3"
std::string print(const FlownCall& call, const FlownGroup& group);
/// "all_reduce 4 sum f64 (120) for gradient"
std::string print_signature(const FlownCall& call);

/// Where the process is: "in step 3, in all_reduce 4 of ...", "in step 3, after ...", "before its first training". Of
/// several ranks those that are in calls: "in step 3, ranks 4-5 in all_reduce 4 of ...". With `rank` of that one alone.
std::string where(const FlownRecord& record, std::optional<std::int64_t> rank = std::nullopt);

/// A call that has not ended.
struct FlightWait {
  std::int64_t rank = 0;
  std::string host, call;
  double seconds = 0;                   ///< until the latest moment of any record
  std::vector<std::int64_t> waits_for;  ///< ranks that have not made their part
};

struct FlightMerge {
  std::vector<FlightWait> waits;
  /// The reason of it all, as sentences, most certain first: a process that was killed or stopped, one that failed,
  /// calls that do not match, a rank that others wait for and that waits for none, ranks that wait in a circle. Only
  /// what belongs to the first kind that was found; empty where nothing waits and nothing failed. Where only waits tell
  /// and the job was ended from outside, the first one says so.
  std::vector<std::string> reasons;
  std::string mismatch;  ///< the first two calls that do not match, whatever else there is; "": there are none
};

/// Throws BadInput: records of different jobs or of different numbers of processes, or two of one process.
FlightMerge merge(std::span<const FlownRecord> records);

}  // namespace shardproof::comm
