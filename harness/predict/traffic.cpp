// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/traffic.hpp"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/predict/holding.hpp"

namespace shardproof::predict {
namespace {

struct Exchange {
  std::string axis, purpose;
  std::int64_t members;     ///< of a group
  std::int64_t times;       ///< collectives, over all groups
  std::int64_t bytes;       ///< of their tensors together, each counted once
  bool unfinished = false;  ///< sums that are not finished yet
};

class Table {
 public:
  explicit Table(Track track) : exact_(track == Track::exact) {}

  void all_reduce(const Exchange& e) {
    if (e.members == 1 || e.times == 0) return;
    const bool bounded = e.unfinished && exact_;
    constexpr std::int64_t bound_bytes = sizeof(double);
    const std::int64_t bytes = e.bytes + (bounded ? e.times * bound_bytes : 0);
    Traffic& t = table_[{e.axis, "all_reduce", e.purpose}];
    t.calls += e.members * e.times * (bounded ? 2 : 1);
    t.payload_bytes += e.members * bytes;
    t.wire_bytes += 2 * (e.members - 1) * bytes;
  }
  /// `bytes`: of the gathered tensors, each counted once.
  void all_gather(const std::string& axis, const std::string& purpose, std::int64_t members, std::int64_t times,
                  std::int64_t bytes) {
    if (times == 0) return;
    table_[{axis, "all_gather", purpose}] = {members * times, members * bytes, (members - 1) * bytes};
  }
  void message(const std::string& axis, const std::string& purpose, std::int64_t times, std::int64_t bytes) {
    if (times == 0) return;
    table_[{axis, "send", purpose}] = {times, bytes, 0};
    table_[{axis, "receive", purpose}] = {times, bytes, bytes};
  }
  TrafficTable take() { return std::move(table_); }

 private:
  bool exact_;
  TrafficTable table_;
};

/// Parameters that go through the same groups: `holders` ranks of a pipeline have a copy. Those of one stage run other
/// microbatches, like data ranks; of a parameter that several stages use, each has other terms of its gradient.
struct Shared {
  std::int64_t stage;  ///< the first that uses them
  std::int64_t holders;
  bool is_partial;  ///< several stages use it
  Count count;      ///< added up over tensor ranks, each parameter once
};

/// The pp coordinates that hold one of the two stages.
std::int64_t holders_of(const plan::Placement& placement, std::int64_t first, std::int64_t second) {
  std::set<std::int64_t> ranks;
  for (const auto stage : {first, second})
    ranks.insert(placement.ranks_of(stage).begin(), placement.ranks_of(stage).end());
  return static_cast<std::int64_t>(ranks.size());
}

std::vector<Shared> shared(const workload::Workload& workload, const plan::Strategy& strategy,
                           const plan::Placement& placement) {
  const Shape w(workload);
  const std::int64_t last = placement.stages() - 1;
  const auto stage = [&](std::int64_t layer) { return stage_of(workload, strategy, layer); };
  const bool ties = workload.tied_head && last > 0;
  const bool has_block = w.second_site >= 0 && stage(w.first_site) != stage(w.second_site);
  std::vector<Shared> all;
  const auto add = [&](std::int64_t holders, bool is_partial, const std::function<Count(const Holding&)>& of,
                       std::int64_t on) {
    Shared one{on, holders, is_partial, {}};
    for (std::int64_t t = 0; t < strategy.tp; ++t) one.count += of(holding(workload, strategy, on, t));
    all.push_back(one);
  };
  for (std::int64_t s = 0; s <= last; ++s) {
    add(
        std::ssize(placement.ranks_of(s)), false,
        [&](const Holding& slices) {
          Count own = count(workload, slices);
          if (ties && (s == 0 || s == last)) own -= count_token_embedding(workload, slices);
          if (has_block && (s == stage(w.first_site) || s == stage(w.second_site)))
            own -= count_block(workload, slices, w.second_site);
          return own;
        },
        s);
  }
  if (ties)
    add(
        holders_of(placement, 0, last), true,
        [&](const Holding& slices) { return count_token_embedding(workload, slices); }, 0);
  if (has_block)
    add(
        holders_of(placement, stage(w.first_site), stage(w.second_site)), true,
        [&](const Holding& slices) { return count_block(workload, slices, w.second_site); }, 0);
  return all;
}

}  // namespace

TrafficTable traffic(const workload::Workload& workload, const plan::Strategy& strategy, const plan::Pipeline& pipeline,
                     Track track, std::int64_t samples, std::int64_t step) {
  const Shape w(workload);
  const plan::Placement& placement = pipeline.placement;
  const std::int64_t dp = strategy.dp, pp = strategy.pipeline_ranks(), tp = strategy.tp;
  const auto is_updated = [&](std::int64_t stage) { return step % pipeline.steps_per_update(stage) == 0; };
  const auto scalar = static_cast<std::int64_t>(size_of(scalar_of(track)));
  constexpr std::int64_t i64 = sizeof(std::int64_t), i32 = sizeof(std::int32_t);
  Table table(track);

  // Over the data group of each place in the pipeline and in the layer.
  table.all_reduce({"dp", "label_count", dp, pp * tp, pp * tp * i64});
  for (const auto& [stage, holders, is_partial, held] : shared(workload, strategy, placement)) {
    if (!is_updated(stage)) continue;
    const std::int64_t tensors = held.trainable_tensors, bytes = held.trainable_elements * scalar;
    if (is_partial) table.all_reduce({"pp", "copies_gradient", holders, dp * tensors, dp * bytes, true});
    const std::int64_t groups = is_partial ? holders : 1, members = is_partial ? dp : dp * holders;
    table.all_reduce({"dp", "gradient", members, groups * tensors, groups * bytes, true});
  }

  // Microbatches of all data ranks, and the bytes of one column of all their rows.
  const std::int64_t passes = dp * strategy.microbatches, column = samples * w.s * scalar;
  const auto join = [&](const std::string& purpose, std::int64_t sites, std::int64_t width, bool unfinished) {
    table.all_reduce({"tp", purpose, tp, sites * passes, sites * width * column, unfinished});
  };
  for (const auto* sum :
       {"attention_row_output", "mlp_row_output", "mlp_column_input_gradient", "attention_column_input_gradient"})
    join(sum, w.l, w.h, true);
  if (shares_key_heads(workload, strategy)) {
    join("key_gradient", w.l, w.k, true);
    join("value_gradient", w.l, w.k, true);
    // Weights and biases of keys and values, once a step and copy.
    Exchange shared{"tp", "shared_rows_gradient", tp, 0, 0, true};
    for (std::int64_t layer = 0; layer < w.l; ++layer) {
      if (layer == w.second_site) continue;
      const auto stage = [&](std::int64_t l) { return stage_of(workload, strategy, l); };
      if (!is_updated(stage(layer))) continue;
      const bool is_shared = w.second_site >= 0 && layer == w.first_site;
      const std::int64_t copies = dp * holders_of(placement, stage(layer), stage(is_shared ? w.second_site : layer));
      const auto block = "blocks." + std::to_string(w.owner(layer)) + ".attention.";
      for (const auto* map : {"key", "value"}) {
        const auto add = [&](const std::string& name, std::int64_t elements) {
          if (!is_frozen(workload, block + map + name))
            shared.times += copies, shared.bytes += copies * elements * scalar;
        };
        add(".weight", w.k * w.h);
        add(".bias", w.k);
      }
    }
    table.all_reduce(shared);
  }
  join("embedding_output", 1, w.h, false);
  join("head_input_gradient", 1, w.h, true);
  for (const auto* row : {"logit_max", "logit_sum", "target_logit"}) join(row, 1, 1, false);
  if (workload.label_smoothing > 0) join("logit_total", 1, 1, true);

  // A boundary between two ranks, once a microbatch and tensor rank each way.
  std::int64_t crossings = 0, crossing_samples = 0;
  for (std::int64_t k = 0; k < strategy.microbatches; ++k) {
    std::int64_t boundaries = 0;
    const std::int64_t microbatch = pipeline.is_stale() ? (step - 1) * strategy.microbatches + k : k;
    for (std::int64_t s = 1; s < placement.stages(); ++s)
      boundaries += placement.rank_of(s - 1, microbatch) != placement.rank_of(s, microbatch) ? 1 : 0;
    // Of the parts k, k + m, k + 2m, ... of all ranks' samples, those before the remainder have one more.
    const std::int64_t remainder = samples % passes;
    const std::int64_t larger = remainder > k ? (remainder - k - 1) / strategy.microbatches + 1 : 0;
    const std::int64_t own = dp * (samples / passes) + larger;
    crossings += dp * boundaries, crossing_samples += own * boundaries;
  }
  const std::int64_t crossing_bytes = crossing_samples * w.s * w.h * scalar;
  const bool scattered = strategy.boundary == "scattered";
  for (const auto* way : {"stage_output", "stage_output_gradient"}) {
    table.message("pp", way, tp * crossings, (scattered ? 1 : tp) * crossing_bytes);
    if (scattered) table.all_gather("tp", way, tp, crossings, crossing_bytes);
  }

  if (workload.stale) return table.take();  // stages end their steps by themselves

  // A wide sum is four integers in `exact`, else one double.
  const std::int64_t wide = track == Track::exact ? 4 * i64 : static_cast<std::int64_t>(sizeof(double));
  table.all_reduce({"world", "gradient_norm", strategy.ranks(), 1, wide});
  table.all_reduce({"world", "loss", strategy.ranks(), 1, wide});
  table.all_reduce({"world", "overflow", strategy.ranks(), 1, i32});
  return table.take();
}

}  // namespace shardproof::predict
