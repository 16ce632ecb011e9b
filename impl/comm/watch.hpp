// SPDX-License-Identifier: Apache-2.0
// What a process sees of the others of its machine, by their flight records: who has died or is stopped, whose call is
// not the same as its own, whether anything goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "impl/comm/flight.hpp"
#include "impl/comm/flight_record.hpp"

namespace shardproof::comm {

class Watch {
 public:
  /// Of so many processes; `path_of`: where process k's record is, if it is of this machine. All of them have made
  /// theirs. The recorder outlives this.
  Watch(FlightRecorder& recorder, const std::function<std::filesystem::path(std::int64_t)>& path_of);

  FlightRecorder& recorder() { return recorder_; }
  /// As FlightRecorder's.
  void begin_training(double timeout_seconds, std::int64_t first_rank, std::int64_t ranks);
  std::uint16_t row(Rank rank, const Group& group);

  /// Throws RankLost where a process of this machine has died, CommError where a member of a group has made another
  /// collective than this process's rank that is in one.
  void check();
  /// The same for the last collective of this row alone.
  void check_call(std::uint16_t row);

  double deadline_seconds() const;
  /// Whether a process of this machine has begun or ended a call within the deadline.
  bool goes_on() const;
  /// Who is to blame, as far as this machine's records say; "" where they do not.
  std::string reason() const;

 private:
  struct Member {
    std::uint64_t key = 0;
    const FlightGroup* row = nullptr;  // nullptr: not found yet
  };
  const FlightGroup* find(std::uint64_t key) const;
  void check_call(std::uint16_t row, std::uint64_t place, bool looks);
  FlightMerge merged() const;

  FlightRecorder& recorder_;
  std::vector<std::unique_ptr<MappedFlight>> others_;
  std::mutex mutex_;
  std::vector<std::vector<Member>> members_;  // of each row: those of other processes
};

}  // namespace shardproof::comm
