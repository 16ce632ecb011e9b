// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/flight.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"
#include "impl/comm/flight_record.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

extern const Command flight_command;

namespace {

namespace fs = std::filesystem;

/// The folder's own, or those of the run that it holds.
std::vector<fs::path> records_in(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& place : {folder, folder / "flight"}) {
    std::vector<fs::path> found;
    for (auto entry = fs::directory_iterator(place, error); !error && entry != fs::end(entry); entry.increment(error))
      if (entry->path().extension() == ".flight") found.push_back(entry->path());
    std::ranges::sort(found);
    if (!found.empty()) return found;
    if (!fs::is_directory(folder, error)) throw BadInput(fmt::format("{}: no folder", folder.string()));
  }
  throw BadInput(
      fmt::format("{}: it holds no flight record (rank-N.flight), and no folder flight that does: a run over "
                  "processes that ended well keeps none",
                  folder.string()));
}

std::string print_ranks(const std::vector<std::int64_t>& ranks) {
  std::vector<Rank> members;
  for (const auto rank : ranks) members.push_back(static_cast<Rank>(rank));
  return ranks.empty() ? "nobody" : comm::print_members(members, 1000);
}

std::string state_of(const comm::FlownRecord& record, std::int64_t rank) {
  if (record.signal != 0) return fmt::format("killed by {}", record.signal);
  if (record.status >= 0) return fmt::format("ended, {}", record.status);
  if (record.stopped_ns != 0) return "stopped";
  if (std::ranges::find(record.open, rank, &comm::FlownCall::rank) != record.open.end()) return "waits";
  if (!record.failure.empty()) return "failed";
  if (record.blocked_ns != 0) return "starts or ends";
  return record.phase == comm::Phase::training ? "computes" : "idle";
}

ExitCode run(std::span<const std::string> args) {
  std::string folder;
  Options options(flight_command);
  options.word(folder, "FOLDER", "What a failed run over processes wrote, or its folder flight");
  if (!options.parse(args)) return ExitCode::pass;
  if (folder.empty()) throw BadInput("no folder is given: that of a run over processes that failed");

  std::vector<comm::FlownRecord> records;
  std::vector<std::string> findings;
  for (const fs::path& path : records_in(folder)) try {
      const std::string text = read_file(path, 2 * sizeof(comm::FlightFile));
      records.push_back(comm::read_flight(std::as_bytes(std::span(text)), path.string()));
    } catch (const BadInput& error) {
      findings.push_back(error.what());
    }
  std::string all;
  for (const auto& finding : findings) all += (all.empty() ? "" : "\n") + finding;
  if (!findings.empty()) throw BadInput(all);
  std::ranges::sort(records, {}, &comm::FlownRecord::process);
  const comm::FlightMerge merged = comm::merge(records);

  std::vector<std::vector<std::string>> rows = {
      {"rank", "process", "host", "state", "where", "median step", "deadline"}};
  for (const auto& record : records)
    for (std::int64_t k = 0; k < std::max<std::int64_t>(record.ranks, 1); ++k) {
      const std::int64_t rank = record.first_rank + k;
      rows.push_back({record.ranks > 0 ? std::to_string(rank) : "none", std::to_string(record.process), record.host,
                      state_of(record, rank), comm::where(record, rank),
                      fmt::format("{:.3f} s", static_cast<double>(record.median_step_ns) * 1e-9),
                      fmt::format("{:.0f} s", static_cast<double>(record.deadline_ns) * 1e-9)});
    }
  std::string text = table(rows);
  if (const auto missing = records.front().processes - std::ssize(records); missing > 0)
    text += fmt::format("{} of {} processes left no record here\n", missing, records.front().processes);
  rows = {{"rank", "waits", "for", "in"}};
  for (const auto& wait : merged.waits)
    rows.push_back(
        {std::to_string(wait.rank), fmt::format("{:.1f} s", wait.seconds), print_ranks(wait.waits_for), wait.call});
  text += merged.waits.empty() ? "\nno rank waits\n" : "\n" + table(rows);
  text += "\n";
  for (const std::string& reason : merged.reasons) text += reason + "\n";
  if (merged.reasons.empty()) text += "nothing here says why\n";
  say(stdout, printable(text));
  return ExitCode::pass;
}

}  // namespace

const Command flight_command = {"flight", "Says who waited for whom when a run over processes failed",
                                "shardproof flight results/runs/tiny", run};

}  // namespace shardproof::harness
