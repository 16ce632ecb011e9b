// SPDX-License-Identifier: Apache-2.0
// For tests of flight records: a job's processes, whose ranks make calls in an order that the test says.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "impl/comm/flight.hpp"
#include "impl/comm/flight_record.hpp"

namespace shardproof::comm::testing {

/// One process, of one rank. It is in its first training.
class Flown {
 public:
  Flown(std::int64_t rank, std::int64_t ranks)
      : path(std::filesystem::temp_directory_path() /
             ("flight_test." + std::to_string(getpid()) + "." + std::to_string(rank))),
        recorder(MappedFlight::create(path), {rank, ranks, "job", "host" + std::to_string(rank)}) {
    recorder.begin_training(60);
  }
  ~Flown() { std::filesystem::remove(path); }
  Flown(const Flown&) = delete;
  Flown& operator=(const Flown&) = delete;

  std::int64_t rank() const { return recorder.file().process; }
  Group group(const std::string& axis, const std::vector<Rank>& members) const {
    std::int64_t place = 0;
    while (members[static_cast<std::size_t>(place)] != static_cast<Rank>(rank())) ++place;
    return {axis, "gradients", members, place};
  }
  /// Begins a call; end() ends it.
  int begin(const Group& group, const Call& call) {
    return recorder.begin(recorder.row(static_cast<Rank>(rank()), group), group, call);
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
inline std::vector<std::unique_ptr<Flown>> fly(std::int64_t n) {
  std::vector<std::unique_ptr<Flown>> all;
  for (std::int64_t k = 0; k < n; ++k) all.push_back(std::make_unique<Flown>(k, n));
  return all;
}
inline FlightMerge merged(const std::vector<std::unique_ptr<Flown>>& all) {
  std::vector<FlownRecord> records;
  for (const auto& one : all) records.push_back(one->read());
  return merge(records);
}

}  // namespace shardproof::comm::testing
