// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/watch.hpp"

#include <algorithm>
#include <bit>

#include "kernels/core/errors.hpp"

namespace shardproof::comm {

Watch::Watch(FlightRecorder& recorder, const std::function<std::filesystem::path(std::int64_t)>& path_of)
    : recorder_(recorder), members_(FlightFile::most_groups) {
  for (std::int64_t k = 0; k < recorder.file().processes; ++k)
    if (auto other = k == recorder.file().process ? nullptr : MappedFlight::open(path_of(k)))
      others_.push_back(std::move(other));
}

void Watch::begin_training(double timeout_seconds, std::int64_t first_rank, std::int64_t ranks) {
  const std::lock_guard lock(mutex_);
  for (auto& members : members_) members.clear();
  recorder_.begin_training(timeout_seconds, first_rank, ranks);
}

std::uint16_t Watch::row(Rank rank, const Group& group) {
  const std::uint16_t row = recorder_.row(rank, group);
  const std::lock_guard lock(mutex_);
  auto& members = members_[row];
  if (!members.empty() || row + 1u == FlightFile::most_groups) return row;  // the last one may stand for several groups
  const std::int64_t first = recorder_.file().first_rank, end = first + recorder_.file().ranks;
  for (const Rank member : group.members)
    if (const auto k = static_cast<std::int64_t>(member); k < first || k >= end)
      members.push_back({group_key(member, group.axis, group.channel, group.members)});
  return row;
}

const FlightGroup* Watch::find(std::uint64_t key) const {
  for (const auto& other : others_) {
    if (other->file().training != recorder_.file().training) continue;
    for (const FlightGroup& row : other->file().groups) {
      const std::uint64_t found = row.key.load(std::memory_order_acquire);
      if (found == key) return &row;
      if (found == 0) break;
    }
  }
  return nullptr;
}

// Who has made a collective with this rank has a row, unless it is of another machine: the more calls, the more seldom
// is it looked for.
void Watch::check_call(std::uint16_t row) {
  const std::uint64_t place = recorder_.file().groups[row].calls.load(std::memory_order_relaxed);
  check_call(row, place, std::has_single_bit(place));
}

void Watch::check_call(std::uint16_t row, std::uint64_t place, bool looks) {
  const FlightGroup& own = recorder_.file().groups[row];
  const std::uint64_t signature = own.signatures[place % FlightGroup::kept].load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  for (Member& member : members_[row]) {
    if (member.row == nullptr && looks) member.row = find(member.key);
    if (member.row == nullptr) continue;
    const auto calls = [&] { return member.row->calls.load(std::memory_order_acquire); };
    if (calls() < place) continue;
    const std::uint64_t theirs = member.row->signatures[place % FlightGroup::kept].load(std::memory_order_acquire);
    // A member that is so far ahead that it has written over it, or in the next training, has made this call with us.
    if (theirs == signature || calls() >= place + FlightGroup::kept || member.row->key != member.key) continue;
    const std::string found = merged().mismatch;  // "": one of them goes on meanwhile
    throw CommError(found.empty() ? "calls do not match" : found);
  }
}

void Watch::check() {
  for (const auto& other : others_)
    if (other->file().signal != 0 || other->file().status >= 0) throw RankLost(merged().reasons.at(0));
  const FlightFile& own = recorder_.file();
  for (const FlightCall& call : own.open) {
    const bool waits = call.sequence.load(std::memory_order_acquire) != 0 && call.place > 0;
    const std::uint16_t row = waits ? call.group : 0;
    if (waits && row < FlightFile::most_groups)
      check_call(row, own.groups[row].calls.load(std::memory_order_relaxed), true);
  }
}

double Watch::deadline_seconds() const { return static_cast<double>(recorder_.file().deadline_ns) * 1e-9; }

bool Watch::goes_on() const {
  std::int64_t progress = recorder_.file().progress_ns;
  for (const auto& other : others_) progress = std::max<std::int64_t>(progress, other->file().progress_ns);
  return flight_clock() - progress < recorder_.file().deadline_ns;
}

FlightMerge Watch::merged() const {
  std::vector<FlownRecord> records = {read_flight(recorder_.bytes(), "own")};
  records[0].ended_ns = flight_clock();  // it is read now
  for (const auto& other : others_) records.push_back(read_flight(other->bytes(), "other"));
  return merge(records);
}

std::string Watch::reason() const {
  std::string text;
  for (const std::string& one : merged().reasons) text += (text.empty() ? "" : "; ") + one;
  return text;
}

}  // namespace shardproof::comm
