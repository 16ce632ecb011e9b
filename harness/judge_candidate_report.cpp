// SPDX-License-Identifier: Apache-2.0
#include "harness/judge_candidate_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/csv.hpp"
#include "harness/judge_expectation.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {
namespace {

constexpr std::size_t most_rows = 12;
constexpr std::size_t most_names = 10;

using Rows = std::vector<std::vector<std::string>>;

std::string ratio_text(const TensorResult& r) { return r.ratio ? fmt::format("x{:.3f}", *r.ratio) : ""; }

std::string wrong(const CandidateJudgement& judgement) {
  Rows rows = {{"step", "wrong", "error / bound", "elements", "candidate / oracle"}};
  std::size_t more = 0;
  for (const TensorResult& r : judgement.results) {
    if (!r.failed) continue;
    if (rows.size() > most_rows) {
      ++more;
      continue;
    }
    rows.push_back({std::to_string(r.step), described({r.kind, r.name})});
    if (r.found.problem.empty())
      rows.back().insert(rows.back().end(), {fmt::format("{:.3g}", r.worst),
                                             fmt::format("{} of {}", r.found.outside, r.elements), ratio_text(r)});
    else
      rows.back().push_back(r.found.problem);
  }
  if (rows.size() == 1) return "";
  // What is said in words would make the columns as wide as itself.
  for (auto& row : rows)
    if (row.size() == 3) row = {row[0], row[1] + ": " + row[2]};
  std::string text;
  Rows block;
  for (auto& row : rows) {
    if (row.size() == 2) {
      text += table(block) + fmt::format("{:4}  {}\n", row[0], row[1]);
      block.clear();
    } else {
      block.push_back(std::move(row));
    }
  }
  text += table(block);
  if (more > 0) text += fmt::format("      and {} more\n", more);
  if (const auto& d = judgement.divergence; d && d->ratio) {
    text += fmt::format("x{:.3f} on {} of {} {}s of step {} that differ", *d->ratio, d->ratio_tensors, d->tensors,
                        name_of(d->kind), d->step);
    text += d->ratio_means.empty() ? "\n" : ": " + d->ratio_means + "\n";
  }
  return text + "\n";
}

std::string kinds(const CandidateJudgement& judgement) {
  Rows rows = {{"judged", "tensors", "elements", "wrong", "greatest error / bound"}};
  using enum Observed;
  for (const Observed kind : {loss, gradient, norm, clip, parameter, state}) {
    std::int64_t tensors = 0, elements = 0, failed = 0;
    const TensorResult* worst = nullptr;
    for (const TensorResult& r : judgement.results) {
      if (r.kind != kind) continue;
      ++tensors, elements += r.elements, failed += r.failed;
      if (worst == nullptr || r.worst > worst->worst) worst = &r;
    }
    if (tensors == 0) continue;
    rows.push_back({std::string(name_of(kind)), std::to_string(tensors), std::to_string(elements),
                    std::to_string(failed),
                    fmt::format("{:.3g}, step {}{}", worst->worst, worst->step,
                                is_tensor(kind) ? ": " + worst->name : std::string())});
  }
  return table(rows);
}

std::string extra(const CandidateJudgement& judgement) {
  if (judgement.extra.empty()) return "";
  std::string text = "not judged";
  for (std::size_t i = 0; i < std::min(judgement.extra.size(), most_names); ++i)
    text += (i == 0 ? "  " : ", ") + judgement.extra[i];
  if (judgement.extra.size() > most_names) text += fmt::format(" and {} more", judgement.extra.size() - most_names);
  return text + " (none of the oracle's)\n";
}

}  // namespace

std::string report(const CandidateJudgement& judgement) {
  return wrong(judgement) + kinds(judgement) + extra(judgement);
}

std::string csv(const CandidateJudgement& judgement) {
  std::string text = "step,kind,name,verdict,elements,outside,error_over_bound,ratio,problem\n";
  for (const TensorResult& r : judgement.results) {
    text += fmt::format("{},{},{},{},{},{},{:.6g},{},{}\n", r.step, name_of(r.kind), csv_field(r.name),
                        r.failed ? "fail" : "pass", r.elements, r.found.outside, r.worst,
                        r.ratio ? fmt::format("{:.9g}", *r.ratio) : "", csv_field(r.found.problem));
  }
  return text;
}

}  // namespace shardproof::harness
