// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "impl/comm/flight_record.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

class Merger {
 public:
  explicit Merger(std::span<const FlownRecord> records) : records_(records) {
    for (const FlownRecord& record : records) {
      const FlownRecord& first = records[0];
      if (record.job != first.job || record.processes != first.processes)
        throw BadInput(first.origin + " and " + record.origin + ": flight records of different jobs");
      if (!of_process_.emplace(record.process, &record).second)
        throw BadInput(of_process_.at(record.process)->origin + " and " + record.origin +
                       ": two flight records of rank " + std::to_string(record.process));
      latest_ns_ = std::max(latest_ns_, wall(record, std::max(record.progress_ns, record.ended_ns)));
      for (const FlownCall& call : record.open) latest_ns_ = std::max(latest_ns_, wall(record, call.begin_ns));
      if (record.training > training_) training_ = record.training;
    }
  }

  FlightMerge merge() {
    FlightMerge merged;
    for (const FlownRecord& record : records_)
      for (const FlownCall& call : record.open) {
        const FlownGroup& group = record.groups.at(call.group);
        merged.waits.push_back({call.rank, record.host, print(call, group) + ", step " + std::to_string(call.step),
                                seconds(record, call.begin_ns), missing(record, call)});
      }
    std::ranges::stable_sort(merged.waits, {}, &FlightWait::rank);
    const auto add = [&](std::vector<std::string> found) {
      if (merged.reasons.empty()) merged.reasons = std::move(found);
    };
    merged.mismatch = mismatch();
    add(killed()), add(failed());
    if (!merged.mismatch.empty()) add({merged.mismatch});
    add(stopped());
    if (!merged.reasons.empty()) return merged;
    add(not_there(merged.waits)), add(circle(merged.waits));
    if (const auto found = of_process_.find(0); found != of_process_.end() && found->second->asked != 0)
      merged.reasons.insert(merged.reasons.begin(), "the job was ended from outside, by signal " +
                                                        print_signal(found->second->asked) +
                                                        ": who is waited for may have been about to come");
    return merged;
  }

 private:
  static std::int64_t wall(const FlownRecord& record, std::int64_t ns) { return ns + record.wall_offset_ns; }
  double seconds(const FlownRecord& record, std::int64_t since_ns) const {
    return static_cast<double>(latest_ns_ - wall(record, since_ns)) * 1e-9;
  }

  /// Of the process that carries it in the latest training.
  const FlownRecord* of(std::int64_t rank) const {
    const auto found = std::ranges::find_if(
        records_, [&](const FlownRecord& record) { return record.training == training_ && record.carries(rank); });
    return found == records_.end() ? nullptr : &*found;
  }

  /// The rank's own row for the group, if it has one.
  const FlownGroup* same_group(const FlownGroup& group, std::int64_t rank) const {
    const FlownRecord* const other = of(rank);
    if (other == nullptr) return nullptr;
    const auto found = std::ranges::find_if(
        other->groups, [&](const FlownGroup& row) { return row.rank == rank && row.same_members(group); });
    return found == other->groups.end() ? nullptr : &*found;
  }

  /// Whether the rank's record may lack the group: its table is full.
  bool may_lack(std::int64_t rank) const {
    const FlownRecord* const record = of(rank);
    return record != nullptr && record->groups.size() == FlightFile::most_groups;
  }

  /// Whether the other end of a message has made its call, also where it has ended it; where nothing is known, it has.
  bool met(const FlownGroup& group, const FlownCall& call) const {
    const FlownGroup* const row = same_group(group, call.peer);
    if (row == nullptr) return may_lack(call.peer);
    const FlownRecord& other = *of(call.peer);
    const auto answers = [&](const FlownCall& theirs) {
      return &other.groups.at(theirs.group) == row && theirs.is_message() && theirs.kind != call.kind &&
             theirs.peer == call.rank && theirs.number >= call.number;
    };
    return std::ranges::any_of(other.open, answers) || std::ranges::any_of(other.ended, answers);
  }

  std::vector<std::int64_t> missing(const FlownRecord& record, const FlownCall& call) const {
    const FlownGroup& group = record.groups.at(call.group);
    std::vector<std::int64_t> ranks;
    if (record.training != training_ || call.group + 1 == FlightFile::most_groups) return ranks;
    if (call.is_message()) {
      if (!met(group, call)) ranks.push_back(call.peer);
      return ranks;
    }
    for (const std::int64_t member : group.members) {
      if (member == call.rank) continue;
      const FlownGroup* const row = same_group(group, member);
      if (row == nullptr ? !may_lack(member) : row->calls < call.place) ranks.push_back(member);
    }
    return ranks;
  }

  static std::string print_signal(std::int64_t signal) {
    return std::to_string(signal) + " (" + strsignal(static_cast<int>(signal)) + ")";
  }

  std::vector<std::string> killed() const {
    std::vector<std::string> found;
    for (const FlownRecord& record : records_) {
      if (record.signal != 0)
        found.push_back(record.name() + " was killed by signal " + print_signal(record.signal) + " " + where(record));
      else if (record.status >= 0)
        found.push_back(record.name() + " ended by itself with status " + std::to_string(record.status) + " " +
                        where(record));
    }
    return found;
  }

  std::vector<std::string> failed() const {
    std::vector<std::string> found;
    for (const FlownRecord& record : records_)
      if (!record.failure.empty()) found.push_back(record.name() + " failed: " + record.failure);
    return found;
  }

  std::vector<std::string> stopped() const {
    std::vector<std::string> found;
    for (const FlownRecord& record : records_)
      if (record.stopped_ns != 0)
        found.push_back(record.name() + " is stopped (SIGSTOP), since " +
                        in_seconds(seconds(record, record.stopped_ns)) + ", " + where(record));
    return found;
  }

  /// Two members' collectives at one place of a group's order that are not one.
  std::string mismatch() const {
    for (const FlownRecord& record : records_)
      for (const FlownGroup& group : record.groups)
        for (const std::int64_t member : group.members) {
          if (member <= group.rank || record.training != training_) continue;
          const FlownGroup* const row = same_group(group, member);
          if (row == nullptr) continue;
          for (std::int64_t place = std::min(group.calls, row->calls); place > 0; --place) {
            constexpr auto kept = static_cast<std::int64_t>(FlightGroup::kept);
            if (place + kept <= std::max(group.calls, row->calls)) break;
            const auto at = static_cast<std::size_t>(place % kept);
            if (group.signatures[at] != row->signatures[at])
              return "calls do not match: " + calls(record, group, place) + ", " + calls(*of(member), *row, place) +
                     ", of axis " + group.axis + ", channel " + group.channel + ", in step " +
                     std::to_string(record.step);
          }
        }
    return "";
  }

  static std::string calls(const FlownRecord& record, const FlownGroup& group, std::int64_t place) {
    const auto name = "rank " + std::to_string(group.rank) + " on host " + record.host;
    for (const auto* list : {&record.open, &record.ended})
      for (const FlownCall& call : *list)
        if (&record.groups.at(call.group) == &group && call.place == place)
          return name + " calls " + print_signature(call);
    return name + " makes another call";
  }

  /// Ranks that others wait for and that wait for nobody.
  std::vector<std::string> not_there(const std::vector<FlightWait>& waits) const {
    std::set<std::int64_t> waiting, waited_for;
    for (const FlightWait& wait : waits) {
      if (!wait.waits_for.empty()) waiting.insert(wait.rank);
      waited_for.insert(wait.waits_for.begin(), wait.waits_for.end());
    }
    std::vector<std::string> found;
    for (const std::int64_t rank : waited_for) {
      if (waiting.contains(rank)) continue;
      const FlownRecord* const record = of(rank);
      found.push_back(
          "rank " + std::to_string(rank) + (record == nullptr ? "" : " on host " + record->host) +
          " is waited for and waits for nobody: " +
          (record == nullptr ? "of it there is no record here" + behind() : "it is " + where(*record, rank)));
    }
    return found;
  }

  /// Processes that have not begun the latest training: which ranks they are to carry no record says.
  std::string behind() const {
    std::string text;
    for (const FlownRecord& record : records_)
      if (record.training < training_) text += "; " + record.name() + " is " + where(record);
    return text.empty() ? "" : ", or it has not begun this training" + text;
  }

  std::vector<std::string> circle(const std::vector<FlightWait>& waits) const {
    std::map<std::int64_t, std::int64_t> next;
    for (const FlightWait& wait : waits)
      if (!wait.waits_for.empty()) next.emplace(wait.rank, wait.waits_for.front());
    if (next.empty()) return {};
    std::vector<std::int64_t> path;
    for (auto rank = next.begin()->first; std::ranges::find(path, rank) == path.end(); rank = next.at(rank)) {
      path.push_back(rank);
      if (!next.contains(rank)) return {};
    }
    const std::int64_t first = next.at(path.back());
    std::string text = "ranks wait in a circle: ";
    for (auto at = std::ranges::find(path, first); at != path.end(); ++at) {
      const auto wait =
          std::ranges::find_if(waits, [&](const FlightWait& w) { return w.rank == *at && !w.waits_for.empty(); });
      text += "rank " + std::to_string(*at) + " for rank " + std::to_string(next.at(*at)) + " in " + wait->call +
              (at + 1 == path.end() ? "" : "; ");
    }
    return {text};
  }

  static std::string in_seconds(double seconds) { return std::to_string(static_cast<std::int64_t>(seconds)) + " s"; }

  std::span<const FlownRecord> records_;
  std::map<std::int64_t, const FlownRecord*> of_process_;
  std::int64_t latest_ns_ = 0, training_ = 0;
};

}  // namespace

FlightMerge merge(std::span<const FlownRecord> records) { return Merger(records).merge(); }

}  // namespace shardproof::comm
