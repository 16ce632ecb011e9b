// SPDX-License-Identifier: Apache-2.0
#include "harness/check.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

std::vector<Selected> select(const Suite& suite, const Selection& selection) {
  std::vector<Selected> selected;
  std::int64_t matching = 0;
  for (const auto& entry : suite.entries) {
    for (const auto& value : entry.cases) {
      const auto chosen = [&](const std::string& filter) { return selects(filter, entry.name, value); };
      if (!selection.filters.empty() && std::ranges::none_of(selection.filters, chosen)) continue;
      if (selection.track && *selection.track != value.track) continue;
      if (matching++ % selection.shards == selection.shard - 1) selected.push_back({&entry, &value});
    }
  }
  if (selected.empty()) {
    throw BadInput(
        fmt::format("no case of suite {} is selected (a filter is a whole case or the name of an entry; '*' "
                    "stands for any characters; --list shows all)",
                    suite.name));
  }
  return selected;
}

CaseSource one_by_one(std::span<const Selected> cases) {
  return [cases, next = std::size_t{0}]() mutable -> std::optional<Selected> {
    if (next == cases.size()) return std::nullopt;
    return cases[next++];
  };
}

void check_all(const CaseSource& cases, std::int64_t threads, const Environment& environment,
               const std::function<void(const Selected&, const Checked&)>& ended, const CheckOptions& options) {
  std::mutex mutex;
  std::exception_ptr error;
  const auto next = [&]() -> std::optional<Selected> {
    const std::lock_guard lock(mutex);
    return error ? std::nullopt : cases();
  };
  const auto work = [&] {
    try {
      while (const auto selected = next()) {
        const Checked checked = check_case(*selected->value, selected->entry->shows, environment, options);
        const std::lock_guard lock(mutex);
        if (error) return;
        ended(*selected, checked);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work);
    } catch (const std::system_error&) {  // as many as this process may have
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

void Tally::add(const Selected& selected, const Checked& checked) {
  const Record& record = checked.record;
  auto count = std::ranges::find(counts_, selected.entry, &Count::entry);
  if (count == counts_.end()) count = counts_.insert(counts_.end(), {.entry = selected.entry});
  ++count->all;
  count->unsupported += record.verdict == Verdict::unsupported ? 1 : 0;
  verdicts_.emplace_back(record.track, record.verdict);
  if (record.verdict != Verdict::unsupported) codes_.push_back(checked.code);
  compared_ += record.compared;
  if (record.track == Track::exact && record.verdict == Verdict::pass) {
    auto& seen = digests_[record.workload_hash];
    if (std::ranges::find(seen, record.digest, &Seen::digest) == seen.end())
      seen.push_back({record.case_text, record.digest});
  }
  for (const auto& [name, value] : record.figures) {
    if (name != "error_over_bound" || value <= worst_) continue;
    worst_ = value;
    worst_case_ = record.case_text + (checked.worst.empty() ? "" : ", " + checked.worst);
  }
}

std::vector<std::string> Tally::unexpected() const {
  std::vector<std::string> sentences;
  for (const auto& count : counts_) {
    const Entry& entry = *count.entry;
    const bool whole = count.all == std::ssize(entry.cases);
    if (whole ? count.unsupported == entry.unsupported : count.unsupported <= entry.unsupported) continue;
    sentences.push_back(fmt::format("{}: {} of {} cases are unsupported, {} are expected to be", entry.name,
                                    count.unsupported, count.all, entry.unsupported));
  }
  return sentences;
}

std::vector<std::string> Tally::split() const {
  std::vector<std::string> sentences;
  for (const auto& [hash, seen] : digests_) {
    if (seen.size() == 1) continue;
    sentences.push_back(fmt::format("one workload has {} digests: {} has {}, {} has {}", seen.size(), seen[0].case_text,
                                    seen[0].digest, seen[1].case_text, seen[1].digest));
  }
  return sentences;
}

ExitCode Tally::code() const {
  ExitCode code = unexpected().empty() && split().empty() ? ExitCode::pass : ExitCode::check_failed;
  for (const ExitCode one : codes_) code = worst({code, one});
  return verdicts_.empty() ? ExitCode::internal : code;
}

std::string Tally::report() const {
  std::vector<std::vector<std::string>> rows = {{"verdict"}};
  rows[0].insert(rows[0].end(), track_names().begin(), track_names().end());
  rows[0].emplace_back("all");
  for (const auto& name : verdict_names()) {
    const Verdict verdict = verdict_named(name);
    std::vector<std::string> row = {name};
    std::int64_t all = 0;
    for (const auto& track : track_names()) {
      const auto count = std::ranges::count(verdicts_, std::pair{track_named(track), verdict});
      row.push_back(std::to_string(count));
      all += count;
    }
    row.push_back(std::to_string(all));
    if (all > 0) rows.push_back(std::move(row));
  }
  std::string text = table(rows) + fmt::format("elements compared  {}\n", compared_);
  std::size_t digests = 0;
  for (const auto& [hash, seen] : digests_) digests += seen.size();
  if (digests > 0)
    text += fmt::format("exact  {} for {}\n", counted(digests, "digest"), counted(digests_.size(), "workload"));
  if (worst_ > 0) text += fmt::format("greatest error over bound  {:.3g} ({})\n", worst_, worst_case_);
  return text;
}

}  // namespace shardproof::harness
