// SPDX-License-Identifier: Apache-2.0
// The bytes of a flight record: a file of fixed size, mapped and shared, that a process writes while it runs. It
// survives the process, whatever ends it. Others of the machine read it meanwhile, the process's monitor also writes.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardproof::comm {

inline constexpr char flight_magic[8] = {'S', 'P', 'F', 'L', 'I', 'G', 'H', 'T'};
inline constexpr std::uint32_t flight_version = 1;

/// What a process is at.
enum class Phase : std::uint32_t { starting, idle, training, ending };

/// One call of a rank. It is whole when `sequence` is not 0 and the same before and after reading it.
struct FlightCall {
  std::atomic<std::uint64_t> sequence;  ///< from 1 in the process
  std::int64_t begin_ns, end_ns;        ///< of the monotonic clock; end 0: it has not ended
  std::int64_t elements;
  std::int64_t number;             ///< as errors write it
  std::int64_t place;              ///< of collectives: from 1 in the group's order, as the rank made them; else 0
  std::int32_t rank;               ///< whose call it is
  std::int32_t peer;               ///< the other rank of a message, the root of a broadcast; -1: none
  std::int32_t step;               ///< 0: before the first
  std::int32_t stage, microbatch;  ///< -1: nothing is said
  std::uint16_t group;             ///< row of the table of groups
  std::uint8_t kind, dtype, op;    ///< dtype of a barrier: of no meaning
  char purpose[47];                ///< ends in 0
};
static_assert(sizeof(FlightCall) == 120);

/// A rank's place in a group on a channel. Rows are written once in a training, but for the last two fields. The last
/// one stands for all groups that the table has no room for: it names none, and rank and members say nothing.
struct FlightGroup {
  static constexpr std::uint64_t kept = 8;
  std::atomic<std::uint64_t> key;  ///< hash of rank, axis, channel and members; 0: the row is empty
  std::int32_t rank;
  char axis[20], channel[40];
  char members[184];                            ///< "0-3,8"; "" where they are too many to say
  std::atomic<std::uint64_t> calls;             ///< collectives begun
  std::atomic<std::uint64_t> signatures[kept];  ///< of the last ones, at place % kept
};

struct FlightFile {
  static constexpr std::uint32_t most_groups = 512, most_open = 64, most_ended = 512;

  char magic[8];
  std::uint32_t version, bytes;
  std::int64_t process, processes, pid;
  std::int64_t begin_ns, begin_wall_ns;  ///< the same moment on the monotonic clock, and since 1970
  char host[64], job[256];

  std::atomic<std::uint32_t> phase;
  std::atomic<std::int64_t> training;           ///< counts from 1, also those that this process has no rank of
  std::atomic<std::int64_t> first_rank, ranks;  ///< that it carries in this training
  std::atomic<std::int64_t> step;               ///< that is being trained
  std::atomic<std::int64_t> median_step_ns;     ///< of the steps that have ended; 0: none has
  std::atomic<std::int64_t> deadline_ns;        ///< after so long without a call begun or ended, a wait is a hang
  std::atomic<std::int64_t> progress_ns;        ///< when a call last began or ended
  std::atomic<std::int64_t> blocked_ns;         ///< since when it is in a function that nothing ends; 0: it is in none
  char blocked_in[64];
  std::atomic<std::int32_t> exit_code;  ///< that the process has decided on; -1: none yet
  char failure[400];                    ///< what went wrong on this process itself; "": nothing, or it waited too long
  char folder[4096];                    ///< where the record is to be kept when the job fails; "": nowhere

  // By the monitor:
  std::atomic<std::int32_t> signal;      ///< that ended the process; 0: none has
  std::atomic<std::int32_t> status;      ///< with which it ended unasked; -1: it has not
  std::atomic<std::int32_t> asked;       ///< signal that asked it to end before it had decided on a code; 0: none has
  std::atomic<std::int64_t> stopped_ns;  ///< since when it is stopped; 0: it runs
  std::atomic<std::int64_t> ended_ns;    ///< when it ended, or the record was kept; 0: neither

  std::atomic<std::uint64_t> next_sequence;
  std::atomic<std::uint64_t> open_taken;  ///< bit i: open[i] is in use
  std::atomic<std::uint64_t> ended;       ///< calls written to the ring
  FlightGroup groups[most_groups];
  FlightCall open[most_open];   ///< calls that have not ended
  FlightCall ring[most_ended];  ///< the last ones that have, the k-th at k % most_ended
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free);

}  // namespace shardproof::comm
