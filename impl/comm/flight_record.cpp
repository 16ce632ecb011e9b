// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/flight_record.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include "impl/comm/flight.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

constexpr std::size_t dtypes = 8, operators = 4;
constexpr std::int64_t most_ranks = 1 << 20;

template <std::size_t N>
std::string text_of(const char (&text)[N]) {
  return {text, strnlen(text, N)};
}

/// Of "0-3,8"; nothing where it is no such text.
std::optional<std::vector<std::int64_t>> members_of(std::string_view text) {
  std::vector<std::int64_t> members;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    std::int64_t first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first < 0) return std::nullopt;
    std::int64_t last = first;
    if (next != end && *next == '-') {
      const auto [after, range_error] = std::from_chars(next + 1, end, last);
      if (range_error != std::errc() || last < first || last - first > most_ranks) return std::nullopt;
      next = after;
    }
    for (std::int64_t rank = first; rank <= last; ++rank) members.push_back(rank);
    if (next == end) break;
    if (*next != ',' || next + 1 == end) return std::nullopt;
    at = next + 1;
  }
  return members;
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view origin) : origin_(origin) {
    if (bytes.size() < offsetof(FlightFile, process) ||
        std::memcmp(bytes.data(), flight_magic, sizeof flight_magic) != 0)
      throw BadInput(origin_ + ": no flight record");
    std::uint32_t head[2];
    std::memcpy(head, bytes.data() + offsetof(FlightFile, version), sizeof head);
    if (head[0] != flight_version)
      throw BadInput(origin_ + ": a flight record of version " + std::to_string(head[0]) + "; this binary reads " +
                     std::to_string(flight_version));
    if (head[1] != sizeof(FlightFile) || bytes.size() != sizeof(FlightFile))
      throw BadInput(origin_ + ": a flight record of " + std::to_string(bytes.size()) +
                     " bytes: cut; whole ones have " + std::to_string(sizeof(FlightFile)));
    // The bytes may be those of a mapping that is written meanwhile: what has changed since it was copied is left out.
    copy_.resize(sizeof(FlightFile) / sizeof(std::uint64_t) + 1);
    std::memcpy(copy_.data(), bytes.data(), sizeof(FlightFile));
    std::atomic_thread_fence(std::memory_order_acquire);
    live_ = reinterpret_cast<const FlightFile*>(bytes.data());
  }

  FlownRecord read() {
    const FlightFile& file = *reinterpret_cast<const FlightFile*>(copy_.data());
    FlownRecord record;
    record.origin = origin_;
    record.process = file.process, record.processes = file.processes, record.pid = file.pid;
    require(file.processes >= 1 && file.process >= 0 && file.process < file.processes, "process");
    record.first_rank = file.first_rank, record.ranks = file.ranks;
    require(
        record.first_rank >= 0 && record.ranks >= 0 && record.ranks <= most_ranks && record.first_rank <= most_ranks,
        "ranks");
    record.host = text_of(file.host), record.job = text_of(file.job);
    record.failure = text_of(file.failure), record.blocked_in = text_of(file.blocked_in);
    require(file.phase <= static_cast<std::uint32_t>(Phase::ending), "phase");
    record.phase = static_cast<Phase>(file.phase.load());
    record.training = file.training, record.step = file.step;
    record.median_step_ns = file.median_step_ns, record.deadline_ns = file.deadline_ns;
    record.exit_code = file.exit_code, record.signal = file.signal, record.status = file.status,
    record.asked = file.asked;
    record.wall_offset_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(file.begin_wall_ns) -
                                                      static_cast<std::uint64_t>(file.begin_ns));
    record.stopped_ns = file.stopped_ns, record.blocked_ns = file.blocked_ns;
    record.progress_ns = file.progress_ns, record.ended_ns = file.ended_ns;
    groups(file, record);
    for (std::size_t i = 0; i < FlightFile::most_open; ++i)
      if (file.open[i].end_ns == 0) call(file.open[i], live_->open[i], record.open);
    for (std::size_t i = 0; i < FlightFile::most_ended; ++i) call(file.ring[i], live_->ring[i], record.ended);
    std::ranges::sort(record.ended, {}, &FlownCall::sequence);
    return record;
  }

 private:
  void require(bool ok, std::string_view what) const {
    if (!ok) throw BadInput(origin_ + ": a damaged flight record: its " + std::string(what) + " is out of range");
  }

  void groups(const FlightFile& file, FlownRecord& record) {
    for (std::size_t i = 0; i < FlightFile::most_groups && file.groups[i].key != 0; ++i) {
      const FlightGroup& row = file.groups[i];
      if (row.key != live_->groups[i].key) break;  // the next training has begun
      FlownGroup group{row.key, row.rank, text_of(row.axis), text_of(row.channel), {}, 0};
      group.calls = static_cast<std::int64_t>(row.calls.load());
      const auto members = members_of(text_of(row.members));
      require(members.has_value(), "members");
      group.members = *members;
      for (std::size_t k = 0; k < FlightGroup::kept; ++k) group.signatures[k] = row.signatures[k];
      record.groups.push_back(std::move(group));
    }
    groups_ = record.groups.size();
  }

  void call(const FlightCall& found, const FlightCall& live, std::vector<FlownCall>& calls) const {
    const std::uint64_t sequence = found.sequence;
    if (sequence == 0 || sequence != live.sequence.load(std::memory_order_acquire)) return;
    if (found.group >= groups_) return;  // of a training that has just begun
    require(found.kind < kind_count && found.dtype < dtypes && found.op < operators, "call");
    FlownCall call;
    call.sequence = static_cast<std::int64_t>(sequence);
    call.group = found.group;
    call.kind = static_cast<Kind>(found.kind);
    call.dtype = name_of(static_cast<Dtype>(found.dtype)), call.op = name_of(static_cast<Operator>(found.op));
    call.purpose = text_of(found.purpose);
    call.elements = found.elements, call.number = found.number, call.place = found.place;
    call.rank = found.rank, call.peer = found.peer, call.step = found.step, call.stage = found.stage,
    call.microbatch = found.microbatch;
    call.begin_ns = found.begin_ns, call.end_ns = found.end_ns;
    calls.push_back(std::move(call));
  }

  const std::string origin_;
  std::vector<std::uint64_t> copy_;
  const FlightFile* live_ = nullptr;
  std::size_t groups_ = 0;
};

}  // namespace

FlownRecord read_flight(std::span<const std::byte> bytes, std::string_view origin) {
  return Reader(bytes, origin).read();
}

std::string FlownRecord::name() const {
  std::string who = "process " + std::to_string(process);
  if (ranks > 0) who += (ranks == 1 ? " of rank " : " of ranks ") + print_ranks();
  if (ranks == 1 && first_rank == process) who = "rank " + std::to_string(process);
  return who + (host.empty() ? "" : " on host " + host);
}

std::string FlownRecord::print_ranks() const {
  std::vector<Rank> all;
  for (std::int64_t rank = first_rank; rank < first_rank + ranks; ++rank) all.push_back(static_cast<Rank>(rank));
  return print_members(all, 100);
}

std::string print(const FlownCall& call, const FlownGroup& group) {
  std::string text = std::string(name_of(call.kind)) + " " + std::to_string(call.number);
  if (call.kind == Kind::send) text += " to rank " + std::to_string(call.peer);
  if (call.kind == Kind::receive) text += " from rank " + std::to_string(call.peer);
  return text + " of axis " + group.axis + ", channel " + group.channel + " (purpose " + call.purpose +
         print(Tag{call.stage, call.microbatch}) + ")";
}

std::string print_signature(const FlownCall& call) {
  std::string text = std::string(name_of(call.kind)) + " " + std::to_string(call.number);
  if (call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter) text += " " + call.op;
  if (call.kind != Kind::barrier) text += " " + call.dtype + " (" + std::to_string(call.elements) + ")";
  return text + " for " + call.purpose + print(Tag{call.stage, call.microbatch});
}

std::string where(const FlownRecord& record, std::optional<std::int64_t> rank) {
  std::string text = record.training == 0            ? "before its first training"
                     : record.phase == Phase::idle   ? "between trainings"
                     : record.phase == Phase::ending ? "at the end of the run"
                                                     : "in step " + std::to_string(record.step);
  std::map<std::string, std::vector<Rank>> calls;
  const auto is_meant = [&](const FlownCall& call) { return !rank || call.rank == *rank; };
  for (const FlownCall& call : record.open)
    if (is_meant(call)) calls[print(call, record.groups.at(call.group))].push_back(static_cast<Rank>(call.rank));
  for (auto& [call, ranks] : calls) {
    std::ranges::sort(ranks);
    text += ", ";
    if (record.ranks > 1 && !rank) text += (ranks.size() == 1 ? "rank " : "ranks ") + print_members(ranks, 100) + " ";
    text += "in " + call;
  }
  if (record.blocked_ns != 0) text += ", in " + record.blocked_in;
  if (!calls.empty() || record.blocked_ns != 0 || record.phase != Phase::training) return text;
  const auto last = std::ranges::find_if(record.ended.rbegin(), record.ended.rend(), is_meant);
  if (last == record.ended.rend()) return text + ", before its first call";
  return text + ", in no call, after " + print(*last, record.groups.at(last->group));
}

}  // namespace shardproof::comm
