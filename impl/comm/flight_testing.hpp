// SPDX-License-Identifier: Apache-2.0
// For tests of flight records: a job's processes, whose ranks make calls in an order that the test says.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "impl/comm/flight.hpp"
#include "impl/comm/flight_record.hpp"

namespace shardproof::comm::testing {

/// One process, of one rank or several. It is in its first training.
class Flown {
 public:
  Flown(std::int64_t process, std::int64_t processes, std::int64_t ranks_per_process = 1)
      : path(std::filesystem::temp_directory_path() /
             ("flight_test." + std::to_string(getpid()) + "." + std::to_string(process))),
        recorder(MappedFlight::create(path), {process, processes, "job", "host" + std::to_string(process)}) {
    recorder.begin_training(60, process * ranks_per_process, ranks_per_process);
  }
  ~Flown() { std::filesystem::remove(path); }
  Flown(const Flown&) = delete;
  Flown& operator=(const Flown&) = delete;

  std::int64_t rank() const { return recorder.file().first_rank; }
  Group group(const std::string& axis, const std::vector<Rank>& members) const {
    return group(axis, members, static_cast<Rank>(rank()));
  }
  static Group group(const std::string& axis, const std::vector<Rank>& members, Rank self) {
    return {axis, "gradients", members, std::ranges::find(members, self) - members.begin()};
  }
  /// Begins a call; end() ends it.
  int begin(const Group& group, const Call& call) {
    const Rank self = group.members[static_cast<std::size_t>(group.place)];
    return recorder.begin(recorder.row(self, group), group, call);
  }
  void make(const Group& group, const Call& call) { recorder.end(begin(group, call)); }
  FlownRecord read() const { return read_flight(recorder.bytes(), path.filename().string()); }

  const std::filesystem::path path;
  FlightRecorder recorder;
};

inline Call barrier(std::int64_t number, std::string_view purpose = "gradient") {
  return {.kind = Kind::barrier, .purpose = purpose, .number = number};
}

/// The processes 0 to n - 1 of a job.
inline std::vector<std::unique_ptr<Flown>> fly(std::int64_t n, std::int64_t ranks_per_process = 1) {
  std::vector<std::unique_ptr<Flown>> all;
  for (std::int64_t k = 0; k < n; ++k) all.push_back(std::make_unique<Flown>(k, n, ranks_per_process));
  return all;
}
inline FlightMerge merged(const std::vector<std::unique_ptr<Flown>>& all) {
  std::vector<FlownRecord> records;
  for (const auto& one : all) records.push_back(one->read());
  return merge(records);
}

}  // namespace shardproof::comm::testing
