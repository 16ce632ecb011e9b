// SPDX-License-Identifier: Apache-2.0
// The text form of a layout:
//
//   stage_layers     0:2 2:4
//   query_heads      0:3 3:5
//   key_heads        0:2 1:2
//   owned_key_heads  0:2 2:2
//   mlp              0:48 48:96
//   vocab            0:128 128:256
//   # parameter             dims    decays  trains  split  held           owned  sites
//   token_embedding.weight  256x24  decays  trains  0      0:128,128:256  held   0:embedding,1:head
//   final_norm.weight       24      -       frozen  -      all            tp0    1:head
//
// held `all`, owned `tp0`: all of dim 0 on every tp rank, counted by the first; owned `held`: counted where it is held.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "impl/plan/layout.hpp"
#include "impl/plan/text_findings.hpp"

namespace shardproof::plan {
namespace {

constexpr std::array<std::string_view, 8> columns = {"# parameter", "dims", "decays", "trains",
                                                     "split",       "held", "owned",  "sites"};
using Row = std::array<std::string, columns.size()>;

std::string text_of(const Range& range) { return fmt::format("{}:{}", range.begin, range.end); }

template <class Items, class TextOf>
std::string joined(const Items& items, const char* separator, const TextOf& text) {
  std::string all;
  for (const auto& item : items) all += fmt::format("{}{}", all.empty() ? "" : separator, text(item));
  return all;
}

/// Stands for one that could not be read: it was reported.
constexpr Range no_range{-1, -1};

std::vector<Range> everywhere(std::int64_t whole, std::size_t parts) { return std::vector<Range>(parts, {0, whole}); }
std::vector<Range> on_first(std::int64_t whole, std::size_t parts) {
  std::vector<Range> ranges(parts, {whole, whole});
  ranges.front() = {0, whole};
  return ranges;
}

Row row_of(const ParameterLayout& p) {
  const std::int64_t whole = p.parameter.dims.front();
  const auto list = [](const std::vector<Range>& ranges) { return joined(ranges, ",", text_of); };
  const bool all = p.held == everywhere(whole, p.held.size());
  const bool first = p.owned == on_first(whole, p.owned.size());
  return {p.parameter.name,
          joined(p.parameter.dims, "x", [](std::int64_t d) { return std::to_string(d); }),
          p.parameter.decays ? "decays" : "-",
          p.parameter.trainable ? "trains" : "frozen",
          p.split_dim < 0 ? "-" : std::to_string(p.split_dim),
          p.split_dim < 0 && all ? "all" : list(p.held),
          p.split_dim < 0 && first ? "tp0"
          : p.owned == p.held      ? "held"
                                   : list(p.owned),
          joined(p.sites, ",", [](const Site& s) { return fmt::format("{}:{}", s.stage, s.part); })};
}

struct Section {
  std::string_view name;
  std::vector<Range> ranges;
};

std::array<Section, 6> sections_of(const Layout& layout) {
  std::array<Section, 6> sections = {{{"stage_layers", layout.stage_layers},
                                      {"query_heads", {}},
                                      {"key_heads", {}},
                                      {"owned_key_heads", {}},
                                      {"mlp", layout.mlp},
                                      {"vocab", layout.vocab}}};
  for (const HeadSlice& slice : layout.heads) {
    sections[1].ranges.push_back(slice.query);
    sections[2].ranges.push_back(slice.key);
    sections[3].ranges.push_back(slice.owned);
  }
  return sections;
}

class Parser {
 public:
  Layout parse(std::string_view text) {
    for (const Word& line : lines_of(text)) {
      const auto words = words_of(line);
      if (words.empty() || words.front().text.starts_with('#')) continue;
      if (read_ < sections_.size())
        section(words);
      else
        parameter(line, words);
    }
    if (read_ < sections_.size()) findings_.add({}, fmt::format("{} is missing", sections_[read_].name));
    findings_.throw_any("layout");
    for (std::size_t t = 0; t < tp_; ++t)
      layout_.heads.push_back({sections_[1].ranges[t], sections_[2].ranges[t], sections_[3].ranges[t]});
    layout_.stage_layers = sections_[0].ranges, layout_.mlp = sections_[4].ranges, layout_.vocab = sections_[5].ranges;
    return std::move(layout_);
  }

 private:
  void section(const std::vector<Word>& words) {
    Section& now = sections_[read_];
    ++read_;
    if (words.front().text != now.name)
      return findings_.add(words.front(), fmt::format("\"{}\" where {} must stand", words.front().text, now.name));
    const bool legal = ranges({words.begin() + 1, words.end()}, now.ranges);
    if (words.size() == 1) return findings_.add(words.front(), fmt::format("{} has no range", now.name));
    if (now.name == "query_heads") tp_ = now.ranges.size();
    const bool counted = now.name == "stage_layers" || now.ranges.size() == tp_;
    if (!counted)
      findings_.add(words.front(), fmt::format("{} ranges, but query_heads has {}", now.ranges.size(), tp_));
    if (now.name == "key_heads") return;  // they overlap
    if (legal && counted && now.name == "owned_key_heads" && !inside(now.ranges, sections_[2].ranges))
      findings_.add(words.front(), "not every range lies in that of key_heads");
    partition(words.front(), now.ranges, now.ranges.back().end);
  }

  void parameter(const Word& line, const std::vector<Word>& words) {
    if (words.size() != columns.size())
      return findings_.add(line, fmt::format("{} words, but a parameter has {}", words.size(), columns.size()));
    ParameterLayout p;
    p.parameter.name = words[0].text;
    if (std::ranges::any_of(layout_.parameters, [&](const auto& q) { return q.parameter.name == words[0].text; }))
      findings_.add(words[0], fmt::format("{} is doubled", words[0].text));
    bool has_dims = true;
    const auto dims = split(words[1], 'x');
    if (dims.size() > Dims::most)
      return findings_.add(words[1], fmt::format("{} dims, but an array has at most {}", dims.size(), Dims::most));
    for (const Word& dim : dims) {
      const auto size = whole_number(dim.text);
      if (!size) findings_.add(dim, fmt::format("\"{}\" is no size", dim.text));
      has_dims = has_dims && size.has_value();
      p.parameter.dims.push_back(size.value_or(0));
    }
    p.parameter.decays = one_of(words[2], "decays", "-");
    p.parameter.trainable = one_of(words[3], "trains", "frozen");
    if (words[4].text != "-") {
      const auto dim = whole_number(words[4].text);
      p.split_dim = dim.value_or(0);
      if (!dim || *dim >= static_cast<std::int64_t>(p.parameter.dims.size())) {
        findings_.add(words[4], fmt::format("\"{}\" is no dim of {}", words[4].text, words[1].text));
        has_dims = false;
      }
    }
    if (has_dims) slices(words, p);
    sites(words[7], p);
    layout_.parameters.push_back(std::move(p));
  }

  void slices(const std::vector<Word>& words, ParameterLayout& p) {
    const bool whole_everywhere = p.split_dim < 0;
    const std::int64_t whole = p.parameter.dims[static_cast<std::size_t>(std::max<std::int64_t>(p.split_dim, 0))];
    const Word &held = words[5], &owned = words[6];
    bool legal = true;
    if (held.text == "all" && whole_everywhere)
      p.held = everywhere(whole, tp_);
    else
      legal = ranges(split(held, ','), p.held);
    if (owned.text == "tp0" && whole_everywhere && tp_ > 0)
      p.owned = on_first(whole, tp_);
    else if (owned.text == "held")
      p.owned = p.held;
    else
      legal = ranges(split(owned, ','), p.owned) && legal;
    for (const auto& [word, list] : {std::pair(held, p.held), std::pair(owned, p.owned)})
      if (list.size() != tp_ && tp_ > 0)
        return findings_.add(word, fmt::format("{} ranges, but query_heads has {}", list.size(), tp_));
    if (std::ranges::any_of(p.held, [&](const Range& range) { return range.end > whole; }))
      return findings_.add(held, fmt::format("a range goes beyond {}", whole));
    if (legal && !inside(p.owned, p.held)) findings_.add(owned, "not every range lies in that which is held");
    partition(owned, p.owned, whole);
  }

  void sites(const Word& word, ParameterLayout& p) {
    const auto stages = static_cast<std::int64_t>(sections_[0].ranges.size());
    for (const Word& item : split(word, ',')) {
      const auto colon = std::min(item.text.find(':'), item.text.size());
      const auto stage = whole_number(item.text.substr(0, colon));
      if (!stage || colon + 1 >= item.text.size())
        findings_.add(item, fmt::format("\"{}\" is no site: they are written as 0:embedding", item.text));
      else if (*stage >= stages)
        findings_.add(item, fmt::format("stage {} of {}", *stage, stages));
      else if (!p.sites.empty() && p.sites.back().stage > *stage)
        findings_.add(item, "stages must ascend");
      else
        p.sites.push_back({*stage, std::string(item.text.substr(colon + 1))});
    }
  }

  bool ranges(const std::vector<Word>& words, std::vector<Range>& list) {
    bool legal = true;
    for (const Word& word : words) {
      const auto ends = split(word, ':');
      const auto begin = whole_number(ends.front().text), end = whole_number(ends.back().text);
      if (ends.size() == 2 && begin && end && *begin <= *end) {
        list.push_back({*begin, *end});
        continue;
      }
      findings_.add(word, fmt::format("\"{}\" is no range: they are written as 0:4, begin to end", word.text));
      list.push_back(no_range);
      legal = false;
    }
    return legal;
  }

  bool one_of(const Word& word, std::string_view yes, std::string_view no) {
    if (word.text != yes && word.text != no)
      findings_.add(word, fmt::format("\"{}\" must be {} or {}", word.text, yes, no));
    return word.text == yes;
  }

  static bool inside(const std::vector<Range>& inner, const std::vector<Range>& outer) {
    return std::ranges::equal(inner, outer, [](const Range& a, const Range& b) {
      return a.size() == 0 || (b.begin <= a.begin && a.end <= b.end);
    });
  }

  void partition(const Word& place, const std::vector<Range>& ranges, std::int64_t whole) {
    std::int64_t end = 0;  // of the last range; below 0 where that could not be read
    for (const Range& range : ranges) {
      if (end >= 0 && range != no_range && range.begin != end)
        return findings_.add(place, fmt::format("{} where a range from {} must stand", text_of(range), end));
      end = range.end;
    }
    if (end >= 0 && end != whole) findings_.add(place, fmt::format("the ranges end at {}, not at {}", end, whole));
  }

  std::array<Section, 6> sections_ = sections_of({});
  std::size_t read_ = 0, tp_ = 0;
  Layout layout_;
  TextFindings findings_;
};

}  // namespace

std::string print(const Layout& layout) {
  const auto sections = sections_of(layout);
  std::string text;
  for (const Section& section : sections)
    text += fmt::format("{:<17}{}\n", section.name, joined(section.ranges, " ", text_of));

  std::vector<Row> rows(1);
  std::ranges::copy(columns, rows.front().begin());
  for (const ParameterLayout& parameter : layout.parameters) rows.push_back(row_of(parameter));
  std::array<std::size_t, columns.size()> widths{};
  for (const Row& row : rows)
    for (std::size_t k = 0; k < row.size(); ++k) widths[k] = std::max(widths[k], row[k].size());
  for (const Row& row : rows) {
    for (std::size_t k = 0; k + 1 < row.size(); ++k) text += fmt::format("{:<{}}  ", row[k], widths[k]);
    text += row.back() + "\n";
  }
  return text;
}

Layout parse_layout(std::string_view text) { return Parser().parse(text); }

}  // namespace shardproof::plan
