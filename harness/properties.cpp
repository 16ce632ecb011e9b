// SPDX-License-Identifier: Apache-2.0
#include "harness/properties.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "harness/check_case.hpp"
#include "harness/command.hpp"
#include "impl/plan/plan.hpp"
#include "impl/plan/strategy.hpp"

namespace shardproof::harness {

namespace {

using Facts = CaseFacts;

bool shows(const Facts& f, Shown shown) { return std::ranges::find(f.shows, shown) != f.shows.end(); }

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  std::int64_t total = 0;
  for (const auto value : values) total += value;
  return total;
}

/// Whether some step, of which the labels by data rank and microbatch are given, is so.
template <class Step>
bool any_step(const Facts& f, Step is_so) {
  return std::ranges::any_of(f.labels, is_so);
}

/// At least 3:1 between two numbers of labels, the smaller above 0.
bool is_uneven(std::vector<std::int64_t> labels) {
  std::erase(labels, 0);
  return !labels.empty() && std::ranges::max(labels) >= 3 * std::ranges::min(labels);
}

bool uneven_microbatches(const Facts& f) {
  return any_step(f, [](const auto& ranks) { return std::ranges::any_of(ranks, is_uneven); });
}

bool uneven_ranks(const Facts& f) {
  return any_step(f, [](const auto& ranks) {
    return std::ranges::any_of(ranks, [&](const auto& parts) { return sum(parts) != sum(ranks[0]); });
  });
}

bool part_without_label(const Facts& f) {
  const auto some = [](std::int64_t n) { return n > 0; };
  return any_step(f, [&](const auto& ranks) {
    const bool any = std::ranges::any_of(ranks, [&](const auto& parts) { return sum(parts) > 0; });
    const auto empty = [&](const auto& parts) { return sum(parts) == 0 || !std::ranges::all_of(parts, some); };
    return any && std::ranges::any_of(ranks, empty);
  });
}

bool short_batch(const Facts& f) {
  const auto uneven = [](const auto& ranks) {
    return std::ranges::any_of(ranks, [&](auto n) { return n != ranks[0]; });
  };
  const bool partial =
      std::ranges::any_of(f.batches, [&](const auto& batch) { return batch.size() < f.workload.batch; });
  return partial && std::ranges::any_of(f.samples, uneven);
}

bool odd_sizes(const Facts& f) {
  const auto& sizes = f.workload.unused;
  const auto n = f.strategy.ranks();
  const auto holds = [&](auto test) { return std::ranges::any_of(sizes, test); };
  return n > 1 && holds([](auto size) { return size == 0; }) && holds([](auto size) { return is_prime(size); }) &&
         holds([&](auto size) { return size > 0 && size < n; });
}

bool three_ranks(const Facts& f) {
  const auto odd = [](std::int64_t n) { return n == 3 || n == 5 || n == 6; };
  return odd(f.strategy.dp) || odd(f.strategy.pp) || odd(f.strategy.tp);
}

bool unequal_axes(const Facts& f) {
  std::set<std::int64_t> sizes;
  for (const auto n : {f.strategy.dp, f.strategy.pp, f.strategy.tp})
    if (n > 1) sizes.insert(n);
  return sizes.size() > 1;
}

bool weights_used_twice(const Facts& f) {
  const auto& shared = f.workload.shared_block;
  if (f.strategy.pp == 1 || !f.workload.tied_head || shared.empty()) return false;
  const auto stages = plan::layout(f.workload, f.strategy).stage_layers;
  return std::ranges::any_of(stages,
                             [&](const auto& layers) { return layers.begin <= shared[0] && shared[1] < layers.end; });
}

bool odd_microbatches(const Facts& f) {
  const auto m = f.strategy.microbatches, p = f.strategy.pp;
  return p > 1 && (m < p || m % p != 0);
}

bool three_microbatches(const Facts& f) {
  return any_step(f, [](const auto& ranks) {
    return std::ranges::any_of(
        ranks, [](const auto& parts) { return std::ranges::count_if(parts, [](auto n) { return n > 0; }) >= 3; });
  });
}

bool vocabulary_in_every_shard(const Facts& f) {
  const auto n = f.strategy.tp;
  if (n == 1 || f.workload.vocab % n == 0) return false;
  const auto shards = plan::layout(f.workload, f.strategy).vocab;
  std::set<std::int32_t> labels;
  for (const auto& batch : f.batches) labels.insert(batch.labels.begin(), batch.labels.end());
  return labels.contains(static_cast<std::int32_t>(f.workload.vocab - 1)) &&
         std::ranges::all_of(shards, [&](const auto& shard) {
           return std::ranges::any_of(labels, [&](auto label) { return shard.begin <= label && label < shard.end; });
         });
}

bool few_key_heads(const Facts& f) {
  const auto& w = f.workload;
  const std::set<std::int64_t> sizes = {w.heads, w.sequence, w.head_size(), w.batch};
  return sizes.size() == 4 && w.kv_heads < w.heads && w.kv_heads < f.strategy.tp;
}

bool late_gradient(const Facts& f) {
  const bool late = any_step(f, [](const auto& ranks) {
    return std::ranges::any_of(
        ranks, [](const auto& parts) { return parts.size() > 1 && parts.back() > 0 && sum(parts) == parts.back(); });
  });
  return late && !f.workload.unused.empty() && !f.workload.frozen.empty();
}

bool on_ranks(const Facts& f) { return f.strategy.ranks() > 1; }

const std::vector<Property>& table() {
  using workload::OptimizerKind;
  static const std::vector<Property> all = {
      {"I01", "labels differ between microbatches of a step, 3:1 at least", {}, uneven_microbatches},
      {"I02", "labels differ between data ranks", {"cp"}, uneven_ranks},
      {"I03", "a microbatch or a rank has no label, others have", {}, part_without_label},
      {"I04", "samples differ between ranks, the last batch of the data set is short", {}, short_batch},
      {"I05", "parameter sizes: prime, fewer than ranks, 0", {"zero"}, odd_sizes},
      {"I06", "three buckets, the last one part-full, a parameter in two of them", {"sync=bucketed"}, nullptr},
      {"I07", "3, 5 or 6 ranks on an axis", {}, three_ranks},
      {"I08", "two axes of unequal size", {}, unequal_axes},
      {"I09", "weights used on the first and the last stage, and twice within one", {}, weights_used_twice},
      {"I10",
       "dropout in slices and in copies",
       {"sequence=on"},
       [](const Facts& f) { return f.workload.dropout >= 0.1 && f.strategy.tp > 1; }},
      {"I11", "fewer microbatches than stages, or no multiple of them", {}, odd_microbatches},
      {"I12",
       "layers that stages do not divide; several chunks a rank",
       {},
       [](const Facts& f) {
         const std::int64_t stages = plan::schedule_shape(f.strategy).stages();
         return stages > f.strategy.pp && f.workload.layers % stages != 0;
       }},
      {"I13", "three microbatches or more with different data", {}, three_microbatches},
      {"I14", "three steps or more", {}, [](const Facts& f) { return on_ranks(f) && f.workload.steps >= 3; }},
      {"I15",
       "no bias zero, no norm one, label smoothing",
       {},
       [](const Facts& f) {
         return on_ranks(f) && f.workload.label_smoothing > 0 &&
                f.workload.initialization == workload::Initialization::hostile;
       }},
      {"I16",
       "a vocabulary that tp does not divide, labels in every slice and in the last row",
       {},
       vocabulary_in_every_shard},
      {"I17", "documents and padding across the cuts of an odd sequence", {"cp"}, nullptr},
      {"I18",
       "heads, sequence, head size and batch all differ; fewer key/value heads than tp ranks",
       {},
       few_key_heads},
      {"I19", "experts without a token, over capacity, tied scores", {"experts"}, nullptr},
      {"I20", "a gradient that is not finite on one rank; growth of a loss scale", {"precision=f16"}, nullptr},
      {"I21",
       "a clip that binds in one step and not in another",
       {},
       [](const Facts& f) { return on_ranks(f) && shows(f, Shown::clip_bound) && shows(f, Shown::clip_idle); }},
      {"I22",
       "raw gradients are compared, and sgd",
       {},
       [](const Facts& f) { return on_ranks(f) && f.workload.optimizer == OptimizerKind::sgd; }},
      {"I23", "poison in each rank's memory before its first values", {}, on_ranks},
      {"I24", "saved in the middle and resumed, on other ranks too", {"resume"}, nullptr},
      {"I25", "random delays of ranks and messages", {}, on_ranks},
      {"I26", "poison in what is received into, padding, and what is freed", {}, on_ranks},
      {"I27", "frozen and unused parameters, and gradients that begin in the last microbatch", {}, late_gradient},
      {"I28", "64 microbatches in bf16", {"precision=bf16"}, nullptr},
      {"I29", "padding, warm-up, skipped steps and recomputation in the count of tokens", {"recompute"}, nullptr},
      {"I30", "memory of masters, main gradients and gather buffers", {"zero", "precision"}, nullptr},
      {"I31", "gradients of higher rank than their compression", {"sync=powersgd"}, nullptr},
      {"I32",
       "other shapes for each peer, transfers in pieces",
       {},
       [](const Facts& f) { return f.strategy.tp > 1 && f.workload.heads % f.strategy.tp != 0; }},
      {"I33",
       "every sample of a step is another one, cut among ranks",
       {},
       [](const Facts& f) { return f.strategy.dp > 1 && short_batch(f); }},
  };
  return all;
}

}  // namespace

std::span<const Property> properties() { return table(); }

CaseFacts facts_of(const Case& value, std::span<const Shown> shown) {
  CaseFacts facts;
  facts.strategy = plan::parse_strategy(value.strategy, value.ranks);
  facts.workload = plan::with_program_keys(workload_of(value), facts.strategy);
  plan::require_legal(facts.strategy, facts.workload, value.ranks);
  facts.shows = {shown.begin(), shown.end()};
  const workload::Corpus corpus(facts.workload);
  for (std::int64_t step = 1; step <= std::min(facts.workload.steps, case_steps); ++step) {
    const auto& batch = facts.batches.emplace_back(workload::batch(facts.workload, corpus, step));
    auto& labels = facts.labels.emplace_back();
    auto& samples = facts.samples.emplace_back();
    for (std::int64_t d = 0; d < facts.strategy.dp; ++d) {
      const auto own = workload::part(batch, facts.strategy.dp, d);
      samples.push_back(own.size());
      auto& parts = labels.emplace_back();
      for (std::int64_t m = 0; m < facts.strategy.microbatches; ++m) {
        const auto part = workload::part(own, facts.strategy.microbatches, m);
        parts.push_back(std::ranges::count_if(part.labels, [](auto label) { return label >= 0; }));
      }
    }
  }
  return facts;
}

bool is_built(std::string_view technique) {
  const auto equals = technique.find('=');
  const auto name = technique.substr(0, equals);
  for (const auto& key : plan::strategy_keys()) {
    if (key.name != name) continue;
    if (equals == technique.npos) return true;
    if (equals + 1 == technique.size()) return false;
    std::string values = key.values;
    std::ranges::replace_if(
        values, [](char c) { return c == '=' || c == '|' || c == ','; }, ' ');
    return fmt::format(" {} ", values).find(fmt::format(" {} ", technique.substr(equals + 1))) != std::string::npos;
  }
  if (equals != technique.npos) return false;
  const auto keys = workload::keys();
  return std::ranges::find(keys, name, &workload::KeyInfo::name) != keys.end() ||
         std::ranges::any_of(commands(), [&](const Command* command) { return command->name == technique; });
}

std::vector<Coverage> coverage(std::span<const Suite> suites) {
  std::vector<Coverage> all;
  for (const auto& property : properties()) {
    auto& one = all.emplace_back(Coverage{.property = &property});
    std::ranges::remove_copy_if(property.techniques, std::back_inserter(one.not_yet), is_built);
  }
  for (const auto& suite : suites) {
    for (const auto& entry : suite.entries) {
      for (const auto& value : entry.cases) {
        if (value.track != Track::exact || entry.unsupported > 0) continue;
        const CaseFacts facts = facts_of(value, entry.shows);
        for (auto& one : all) {
          if (one.property->holds == nullptr || !one.property->holds(facts)) continue;
          ++one.cases;
          const auto name = fmt::format("{}/{}", suite.name, entry.name);
          if (one.entries.empty() || one.entries.back() != name) one.entries.push_back(name);
        }
      }
    }
  }
  return all;
}

}  // namespace shardproof::harness
