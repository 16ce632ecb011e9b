// SPDX-License-Identifier: Apache-2.0
// A process's flight record, as it writes it: which calls its ranks made last, which they are in, in which step.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/flight_file.hpp"

namespace shardproof::comm {

/// Nanoseconds of the monotonic clock, which all processes of a machine share.
std::int64_t flight_clock();

/// A deadline is at least this many times the median step: a rank may compute for a whole step, and be slow.
inline constexpr std::int64_t steps_of_a_deadline = 10;

/// A mapped flight record. Unmaps it, and leaves the file.
class MappedFlight {
 public:
  /// A new file of this name, mapped for writing; one that was there is replaced. It is locked as long as this process
  /// or one that it has forked lives. Throws WriteError.
  static std::unique_ptr<MappedFlight> create(const std::filesystem::path& path);
  /// Without a file, for this process and those that it forks. Throws WriteError.
  static std::unique_ptr<MappedFlight> anonymous();
  /// That of another process of this user, for reading only; nullptr where there is none, or none of this version.
  static std::unique_ptr<MappedFlight> open(const std::filesystem::path& path);
  ~MappedFlight();
  MappedFlight(const MappedFlight&) = delete;
  MappedFlight& operator=(const MappedFlight&) = delete;

  FlightFile& file() { return *file_; }
  const FlightFile& file() const { return *file_; }
  std::span<const std::byte> bytes() const;

 private:
  explicit MappedFlight(void* memory, int lock = -1) : file_(static_cast<FlightFile*>(memory)), lock_(lock) {}
  FlightFile* const file_;
  const int lock_;  // a file descriptor; -1: none
};

/// Of which process of which job a record is.
struct FlightIdentity {
  std::int64_t process = 0, processes = 1;
  std::string job = {}, host = {};
};

class FlightRecorder {
 public:
  FlightRecorder(std::unique_ptr<MappedFlight> mapped, const FlightIdentity& identity);

  FlightFile& file() { return mapped_->file(); }
  const FlightFile& file() const { return mapped_->file(); }
  std::span<const std::byte> bytes() const { return mapped_->bytes(); }

  /// Of so many ranks here. Forgets groups, calls and steps of the one before. `timeout_seconds`: the least deadline;
  /// 0: none.
  void begin_training(double timeout_seconds, std::int64_t first_rank, std::int64_t ranks);
  /// One that this process has no rank of: processes count alike.
  void skip_training();
  /// Where it has not failed: of one that has, the record says where that was.
  void end_training();
  /// The step ends after so long, and the next one begins.
  void end_step(double seconds);
  /// The rank's row for the group; the last row where the table is full.
  std::uint16_t row(Rank rank, const Group& group);

  /// The slot of the call, for end(); -1 where more calls are open than there are slots.
  int begin(std::uint16_t row, const Group& group, const Call& call);
  void end(int slot);

  /// The code that this process asks for, and what went wrong on it itself; "": nothing, or it waited too long. The
  /// first one counts.
  void decide(std::int32_t exit_code, std::string_view failure = {});
  /// Where its record is to be kept when the job fails.
  void keep_in(const std::filesystem::path& folder);

 private:
  std::unique_ptr<MappedFlight> mapped_;
  std::mutex mutex_;
  std::int64_t timeout_ns_ = 0;
  std::vector<std::int64_t> step_ns_;  // of the last ones
  std::int64_t blocked_ = 0;           // threads in Blocked functions
  friend class Blocked;
};

/// The time of a call in a record. Without one it does nothing. A call that an error ends, as does the job, stays open:
/// the record then says what the rank waited for.
class InFlight {
 public:
  InFlight(FlightRecorder* recorder, std::uint16_t row, const Group& group, const Call& call)
      : recorder_(recorder), slot_(recorder == nullptr ? -1 : recorder->begin(row, group, call)) {}
  ~InFlight() {
    if (recorder_ != nullptr && std::uncaught_exceptions() == errors_) recorder_->end(slot_);
  }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  FlightRecorder* const recorder_;
  const int slot_;
  const int errors_ = std::uncaught_exceptions();
};

/// The time in a function that waits for other processes and cannot be ended. Of several threads' the record names the
/// first; whenever one of them returns, the time starts anew.
class Blocked {
 public:
  Blocked(FlightRecorder* recorder, std::string_view function);
  ~Blocked();
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  FlightRecorder* const recorder_;
};

/// "0-3,8" of ascending or any members; "" where it is longer than `most`.
std::string print_members(const std::vector<Rank>& members, std::size_t most);
/// Of a rank, an axis, a channel and members; never 0.
std::uint64_t group_key(Rank rank, std::string_view axis, std::string_view channel, const std::vector<Rank>& members);
/// What members of a group must agree on.
std::uint64_t signature_hash(const Call& call);

}  // namespace shardproof::comm
