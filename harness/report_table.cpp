// SPDX-License-Identifier: Apache-2.0
#include "harness/report_table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/text.hpp"
#include "harness/tracks.hpp"

namespace shardproof::harness {
namespace {

using Cases = std::vector<const ReportedCase*>;

Rate kind_of_ranking(const ReportData& data, const Cases& ranked) {
  const auto crowded = [&](const ReportedCase* c) {
    return c->record.ranks > data.environments()[c->environment].cores && c->record.device == "cpu";
  };
  const auto replayed = [](const ReportedCase* c) { return rate_of(c->record, Rate::replay).measured(); };
  return std::ranges::any_of(ranked, crowded) && std::ranges::all_of(ranked, replayed) ? Rate::replay : Rate::wall;
}

/// "2", or "1-3" where quartiles overlap with those of others.
std::string places(const Cases& ranked, const ReportedCase& of, Rate kind) {
  const Spread mine = rate_of(of.record, kind);
  std::size_t best = 1, worst = ranked.size();
  for (const ReportedCase* other : ranked) {
    if (other == &of) continue;
    const Spread theirs = rate_of(other->record, kind);
    best += theirs.lower > mine.upper;
    worst -= theirs.upper < mine.lower;
  }
  return best == worst ? fmt::format("{}", best) : fmt::format("{}-{}", best, worst);
}

std::string spread_text(const Spread& s) {
  return s.measured() ? fmt::format("{:.0f} ({:.0f} to {:.0f})", s.median, s.lower, s.upper) : "not measured";
}

std::string ranking(const ReportData& data, Cases ranked) {
  const Rate kind = kind_of_ranking(data, ranked);
  std::ranges::stable_sort(ranked, std::greater(),
                           [&](const ReportedCase* c) { return rate_of(c->record, kind).median; });
  std::vector<std::vector<std::string>> rows = {
      {"place", "strategy", "ranks", "device", "tokens/s wall (quartiles)", "tokens/s replay (quartiles)"}};
  bool overlap = false;
  for (const ReportedCase* c : ranked) {
    const Record& r = c->record;
    const std::string place = places(ranked, *c, kind);
    overlap = overlap || place.find('-') != place.npos;
    rows.push_back({place, r.strategy, fmt::format("{}", r.ranks), r.device, spread_text(rate_of(r, Rate::wall)),
                    spread_text(rate_of(r, Rate::replay))});
  }
  return table(rows) + (overlap ? "places such as 1-2: quartiles overlap, so these are indistinguishable\n" : "");
}

std::string why_not(const Record& r) {
  if (r.verdict != Verdict::pass) return r.reason;
  return "its speed was not measured";
}

}  // namespace

std::string table_of(const ReportData& data) {
  std::vector<Cases> groups;
  std::vector<std::vector<std::string>> others = {{"not ranked", "why"}};
  for (const ReportedCase& c : data.cases()) {
    if (!is_ranked(c.record)) {
      others.push_back({c.record.case_text, fmt::format("{}: {}", name_of(c.record.verdict), why_not(c.record))});
      continue;
    }
    const auto same = std::ranges::find_if(groups, [&](const Cases& group) { return comparable(*group.front(), c); });
    if (same == groups.end())
      groups.push_back({&c});
    else
      same->push_back(&c);
  }
  std::string text;
  for (const Cases& group : groups) {
    const Record& first = group.front()->record;
    const bool replay = kind_of_ranking(data, group) == Rate::replay;
    text += fmt::format(
        "{}, {}, by tokens/s ({}{}{})\n{}\n", first.workload, name_of(first.track),
        replay ? "replay, for there are more ranks than processors" : "wall",
        first.fabric ? "; replay" + over_text(first.fabric) : "",
        data.environments().size() < 2 ? "" : fmt::format(", environment {}", group.front()->environment + 1),
        ranking(data, group));
  }
  if (others.size() > 1) text += table(others) + "\n";
  if (!text.empty()) text.pop_back();
  return printable(text);
}

std::string table_of(std::span<const Record> records) {
  ReportData data;
  for (const Record& record : records) data.add(record);
  return table_of(data);
}

}  // namespace shardproof::harness
