// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/inject.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <sstream>
#include <string_view>

#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::comm {

namespace {

constexpr std::array<FaultRow, 9> rows = {{
    {"skip", "the result is left out; at=input: zero is contributed"},
    {"repeat", "all_reduce and reduce_scatter of sums: as if summed once more"},
    {"scale", "the contribution times the factor"},
    {"corrupt", "the lowest bit of one element of the contribution is flipped"},
    {"delay", "the call begins later, which must change nothing"},
    {"wrong_group", "reductions: over the other members only; all_gather, all_to_all: parts rotated"},
    {"slow", "the rank takes factor times as long for all that it computes, which must change nothing"},
    {"mismatch",
     "makes a collective for another purpose, which must end the run; with rank=, for those of all ranks match"},
    {"fail", "the rank throws an error instead of the call, which must end the run"},
}};
constexpr std::array<std::string_view, 2> side_names = {"input", "output"};

std::string_view name_of(Fault fault) { return rows[static_cast<std::size_t>(fault)].name; }

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (std::size_t k = 0; k < kind_count; ++k) names.push_back(name_of(static_cast<Kind>(k)));
  return names;
}

bool acts_on(Fault fault, Kind kind) {
  const bool reduces = kind == Kind::all_reduce || kind == Kind::reduce_scatter;
  switch (fault) {
    case Fault::delay:
    case Fault::fail: return true;
    case Fault::mismatch: return kind != Kind::send && kind != Kind::receive;
    case Fault::slow: return false;
    case Fault::repeat: return reduces;
    case Fault::wrong_group: return reduces || kind == Kind::all_gather || kind == Kind::all_to_all;
    default: return kind != Kind::barrier;
  }
}

template <class Names>
std::string joined(const Names& names, const char* separator) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : separator) + std::string(name);
  return text;
}

template <class T>
std::string text_of(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::vector<FaultField> make_fields() {
  const Injection standard;
  return {
      {"axis", "dp pp tp ...", "only calls of groups along this axis of the mesh", {}, {}, true},
      {"kind", "a collective", "only calls of this kind: " + joined(kind_names(), " "), {}, {}, true},
      {"purpose",
       "a name",
       "only calls for this purpose: the last word of a line of a run's traffic table",
       {},
       {},
       true},
      {"rank", "0 ...", "only this rank, of the world"},
      {"call",
       "1 ...",
       "only the rank's k-th call of those that the other filters let through; there is no step",
       {},
       {},
       true},
      {"at",
       joined(side_names, " "),
       "of a call's two sides; left out, skip acts on the result, scale and corrupt on the contribution, if there is "
       "one",
       {},
       {Fault::skip, Fault::scale, Fault::corrupt}},
      {"factor",
       "-2^21 ... 2^21",
       "what is multiplied by: elements; of slow, 1 to 1000, the time",
       text_of(standard.factor),
       {Fault::scale, Fault::slow}},
      {"element", "0 ...", "modulo the number of elements", text_of(standard.element), {Fault::corrupt}},
      {"ms", "0 ... 1e6", "milliseconds", text_of(standard.ms), {Fault::delay}},
  };
}

class Parser {
 public:
  Parser(const std::string& spec, std::int64_t ranks, std::vector<std::string>& findings)
      : spec_(spec), ranks_(ranks), findings_(findings) {}

  Injection parse() {
    const auto colon = std::min(spec_.find(':'), spec_.size());
    std::vector<std::string_view> names;
    for (const FaultRow& row : rows) names.push_back(row.name);
    known_fault_ = choose("fault", std::string_view(spec_).substr(0, colon), names, injection_.fault);
    std::string_view rest = std::string_view(spec_).substr(std::min(colon + 1, spec_.size()));
    if (colon < spec_.size() && rest.empty()) find("a field is missing after ':'");
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(','), rest.size());
      field(rest.substr(0, comma));
      if (comma + 1 == rest.size()) find("a field is missing after ','");
      rest = rest.substr(std::min(comma + 1, rest.size()));
    }
    if (known_fault_ && injection_.kind && !acts_on(injection_.fault, *injection_.kind)) {
      find(std::string(name_of(injection_.fault)) + " has no effect on " + std::string(name_of(*injection_.kind)));
    }
    return injection_;
  }

 private:
  void find(const std::string& finding) { findings_.push_back(std::string("--inject ") + spec_ + ": " + finding); }
  void refuse(std::string_view key, std::string_view value, const std::string& legal) {
    find(std::string(key) + " \"" + std::string(value) + "\": " + legal);
  }

  template <class T>
  bool choose(std::string_view key, std::string_view value, std::span<const std::string_view> names, T& out) {
    const auto at = std::ranges::find(names, value);
    if (at != names.end()) {
      out = static_cast<T>(at - names.begin());
      return true;
    }
    refuse(key, value, "one of " + joined(names, " "));
    return false;
  }
  template <class T>
  void number(std::string_view key, std::string_view value, T low, T high, const std::string& legal, T& out) {
    T parsed{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    const bool ok = error == std::errc{} && end == value.data() + value.size() && parsed >= low && parsed <= high;
    if (ok) {
      out = parsed;
    } else {
      refuse(key, value, legal);
    }
  }

  void field(std::string_view text) {
    const auto equals = text.find('=');
    const auto key = text.substr(0, equals);
    const auto known = std::ranges::find(fault_fields(), key, &FaultField::name);
    if (known == fault_fields().end()) {
      std::vector<std::string> names;
      for (const FaultField& one : fault_fields()) names.push_back(one.name);
      return find(unknown("field", key, names));
    }
    if (equals == std::string_view::npos || equals + 1 == text.size()) return refuse(key, "", "a value is missing");
    const auto value = text.substr(equals + 1);
    if (std::ranges::find(seen_, key) != seen_.end()) return refuse(key, value, "given twice");
    seen_.push_back(key);
    if (known_fault_ && !takes(injection_.fault, *known))
      return refuse(key, value, "no parameter of " + std::string(name_of(injection_.fault)));
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    if (key == "axis") injection_.axis = value;
    if (key == "purpose") injection_.purpose = value;
    if (key == "kind") choose(key, value, kind_names(), injection_.kind.emplace());
    if (key == "at") choose(key, value, side_names, injection_.at.emplace());
    if (key == "rank") {
      const std::string legal = ranks_ == 1 ? "there is one rank, 0" : "0 to " + std::to_string(ranks_ - 1);
      number<std::int64_t>(key, value, 0, ranks_ - 1, legal, injection_.rank.emplace());
    }
    if (key == "call") number<std::int64_t>(key, value, 1, most, "a whole number from 1", injection_.call.emplace());
    if (key == "element") number<std::int64_t>(key, value, 0, most, "a whole number from 0", injection_.element);
    if (key == "factor" && injection_.fault == Fault::slow)
      number(key, value, 1.0, 1000.0, "1 to 1000", injection_.factor);
    else if (key == "factor")
      number(key, value, -0x1p21, 0x1p21, "a number of at most 2^21", injection_.factor);
    if (key == "ms") number(key, value, 0.0, 1e6, "0 to 1e6", injection_.ms);
  }

  const std::string& spec_;
  const std::int64_t ranks_;
  std::vector<std::string>& findings_;
  Injection injection_;
  bool known_fault_ = false;
  std::vector<std::string_view> seen_;
};

}  // namespace

std::span<const FaultRow> fault_rows() { return rows; }

std::span<const FaultField> fault_fields() {
  static const auto fields = make_fields();
  return fields;
}

bool takes(Fault fault, const FaultField& field) {
  if (field.of_calls) return fault != Fault::slow;
  return field.faults.empty() || std::ranges::find(field.faults, fault) != field.faults.end();
}

NoCallMatched::NoCallMatched(const Injection& injection)
    : BadInput("--inject " + to_text(injection) +
               (injection.fault == Fault::slow ? ": it computes on no queue" : ": no call matched")) {}

std::vector<Injection> parse_injections(const std::vector<std::string>& specs, std::int64_t ranks) {
  std::vector<std::string> findings;
  std::vector<Injection> injections;
  for (const auto& spec : specs) injections.push_back(Parser(spec, ranks, findings).parse());
  std::string text;
  for (const auto& finding : findings) text += (text.empty() ? "" : "\n") + finding;
  if (!findings.empty()) throw BadInput(text);
  return injections;
}

std::string to_text(const Injection& injection) {
  std::ostringstream text;
  text.precision(17);
  text << name_of(injection.fault);
  char separator = ':';
  const auto field = [&](std::string_view key, const auto& value) {
    text << separator << key << '=' << value;
    separator = ',';
  };
  if (injection.axis) field("axis", *injection.axis);
  if (injection.kind) field("kind", name_of(*injection.kind));
  if (injection.purpose) field("purpose", *injection.purpose);
  if (injection.rank) field("rank", *injection.rank);
  if (injection.call) field("call", *injection.call);
  if (injection.at) field("at", side_names[static_cast<std::size_t>(*injection.at)]);
  if (injection.fault == Fault::scale || injection.fault == Fault::slow) field("factor", injection.factor);
  if (injection.fault == Fault::corrupt) field("element", injection.element);
  if (injection.fault == Fault::delay) field("ms", injection.ms);
  return text.str();
}

}  // namespace shardproof::comm
