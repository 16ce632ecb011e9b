// SPDX-License-Identifier: Apache-2.0
#include "harness/shrink.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "harness/check_case.hpp"
#include "impl/plan/strategy_table.hpp"
#include "kernels/core/errors.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::harness {

namespace {

using workload::Workload;

/// What is smaller than n, the smallest first.
std::vector<std::int64_t> smaller(std::int64_t n, std::int64_t least) {
  std::vector<std::int64_t> values;
  for (const auto value : {least, n / 2, n - 1}) {
    if (value >= least && value < n && std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

std::vector<Case> with_smaller_strategies(const Case& value) {
  const plan::Strategy strategy = plan::parse_strategy(value.strategy, value.ranks);
  std::vector<Case> cases;
  const auto add = [&](const plan::Strategy& next) {
    Case& one = cases.emplace_back(value);
    one.strategy = plan::print(next), one.ranks = next.ranks();
  };
  for (const auto& row : plan::strategy_table()) {
    if (plan::is_standard(row, strategy)) continue;
    plan::Strategy next = strategy;
    plan::set_standard(row, next);
    add(next);
    if (const auto* size = std::get_if<std::int64_t plan::Strategy::*>(&row.member)) {
      for (const auto n : smaller(strategy.**size, 2)) {
        next.** size = n;
        add(next);
      }
    }
  }
  // A key that has nothing left to act on, or fits one number of stages, goes with the axis.
  for (auto& one : cases) {
    const auto next =
        plan::nearest_legal(plan::parse_strategy(one.strategy), workload::load(one.workload, one.settings));
    one.strategy = plan::print(next), one.ranks = next.ranks();
  }
  return cases;
}

Case with(Case value, std::string_view key, const std::string& text) {
  std::erase_if(value.settings, [&](const std::string& s) { return s.starts_with(fmt::format("{}=", key)); });
  value.settings.push_back(fmt::format("{}={}", key, text));
  return value;
}

std::vector<Case> with_smaller_workloads(const Case& value) {
  const Workload w = workload::load(value.workload, value.settings), standard;
  std::vector<Case> cases;
  const auto add = [&](std::string_view key, std::int64_t now, std::int64_t least) {
    for (const auto n : smaller(now, least)) cases.push_back(with(value, key, std::to_string(n)));
  };
  const bool own_steps = std::ranges::any_of(value.settings, [](const auto& s) { return s.starts_with("steps="); });
  add("steps", own_steps ? w.steps : case_steps, 1);
  add("layers", w.layers, 1);
  add("batch", w.batch, 1);
  add("sequence", w.sequence, 1);
  add("vocab", w.vocab, 2);
  add("mlp_hidden", w.mlp_hidden, 1);
  add("kv_heads", w.kv_heads, 1);
  for (const auto heads : smaller(w.heads, 1)) {  // of the same size
    auto one = with(with(value, "heads", std::to_string(heads)), "hidden", std::to_string(heads * w.head_size()));
    cases.push_back(with(std::move(one), "kv_heads", std::to_string(std::gcd(heads, w.kv_heads))));
  }
  for (const auto size : smaller(w.head_size(), 1))
    cases.push_back(with(value, "hidden", std::to_string(size * w.heads)));
  if (w.optimizer != workload::OptimizerKind::sgd)
    cases.push_back(with(with(value, "optimizer", "sgd"), "weight_decay", "0"));
  // What has a size of its own, makes the numbers what they are, or is no option.
  const std::set<std::string_view> kept = {"name",          "why",        "corpus",        "seed",      "steps",
                                           "layers",        "batch",      "sequence",      "vocab",     "mlp_hidden",
                                           "kv_heads",      "heads",      "hidden",        "optimizer", "init_std",
                                           "learning_rate", "loss_scale", "initialization"};
  for (const auto& key : workload::key_table()) {
    if (kept.contains(key.name) || value_text(w, key) == value_text(standard, key)) continue;
    std::string text = value_text(standard, key);
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    Case one = with(value, key.name, text);
    if (key.name == "learning_rate_schedule") one = with(std::move(one), "minimum_learning_rate", "0");
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace

Shrunk shrink(const Case& value, const std::function<bool(const Case&)>& fails, std::int64_t most) {
  Shrunk best{value};
  std::set<std::string> tried = {print(value)};
  const auto step = [&](std::vector<Case> (*smaller_cases)(const Case&)) {
    for (const Case& one : smaller_cases(best.value)) {
      if (best.tried == most || !tried.insert(print(one)).second) continue;
      try {
        workload::load(one.workload, one.settings);
      } catch (const BadInput&) {  // sizes that do not fit together
        continue;
      }
      ++best.tried;
      if (!fails(one)) continue;
      best.value = one;
      return true;
    }
    return false;
  };
  while (step(with_smaller_strategies) || step(with_smaller_workloads)) {
  }
  return best;
}

}  // namespace shardproof::harness
