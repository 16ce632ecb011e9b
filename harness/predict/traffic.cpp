// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/traffic.hpp"

#include <string>
#include <utility>

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

/// Trainable parameters, added up over tensor ranks, of one pipeline.
struct Gradients {
  std::int64_t tensors = 0, elements = 0;
  void add(const Count& count) { tensors += count.trainable_tensors, elements += count.trainable_elements; }
};

/// Copies that a second stage holds: of a tied embedding the last one, of a shared block that of its second site.
Gradients copies(const workload::Workload& workload, const plan::Strategy& strategy) {
  const Shape w(workload);
  const auto stage = [&](std::int64_t layer) { return stage_of(workload, strategy, layer); };
  const bool embedding = workload.tied_head && strategy.pp > 1;
  const bool block = w.second_site >= 0 && stage(w.first_site) != stage(w.second_site);
  Gradients sum;
  for (std::int64_t t = 0; t < strategy.tp; ++t) {
    const Holding slices = holding(workload, strategy, 0, t);
    if (embedding) sum.add(count_token_embedding(workload, slices));
    if (block) sum.add(count_block(workload, slices, w.second_site));
  }
  return sum;
}

Gradients gradients(const workload::Workload& workload, const plan::Strategy& strategy) {
  plan::Strategy one_stage = strategy;
  one_stage.pp = 1;
  one_stage.layers.clear();
  Gradients sum = copies(workload, strategy);
  for (std::int64_t t = 0; t < strategy.tp; ++t) sum.add(count(workload, holding(workload, one_stage, 0, t)));
  return sum;
}

}  // namespace

TrafficTable traffic(const workload::Workload& workload, const plan::Strategy& strategy, Track track,
                     std::int64_t samples) {
  const Shape w(workload);
  const std::int64_t dp = strategy.dp, pp = strategy.pp, tp = strategy.tp;
  const auto scalar = static_cast<std::int64_t>(size_of(scalar_of(track)));
  constexpr std::int64_t i64 = sizeof(std::int64_t), i32 = sizeof(std::int32_t);
  Table table(track);

  // Over the data group of each place in the pipeline and in the layer.
  const auto replicated = gradients(workload, strategy), copied = copies(workload, strategy);
  table.all_reduce({"dp", "label_count", dp, pp * tp, pp * tp * i64});
  table.all_reduce({"dp", "gradient", dp, replicated.tensors, replicated.elements * scalar, true});
  table.all_reduce({"pp", "copies_gradient", 2, dp * copied.tensors, dp * copied.elements * scalar, true});

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
    // Weights and biases of keys and values, once a step and copy; a shared block has a copy on each of its stages.
    Exchange shared{"tp", "shared_rows_gradient", tp, 0, 0, true};
    for (std::int64_t layer = 0; layer < w.l; ++layer) {
      const auto stage = [&](std::int64_t l) { return stage_of(workload, strategy, l); };
      if (layer == w.second_site && stage(layer) == stage(w.first_site)) continue;
      const auto block = "blocks." + std::to_string(w.owner(layer)) + ".attention.";
      for (const auto* map : {"key", "value"}) {
        const auto add = [&](const std::string& name, std::int64_t elements) {
          if (!is_frozen(workload, block + map + name)) shared.times += dp, shared.bytes += dp * elements * scalar;
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

  const std::int64_t boundaries = (pp - 1) * tp;
  table.message("pp", "stage_output", boundaries * passes, boundaries * w.h * column);
  table.message("pp", "stage_output_gradient", boundaries * passes, boundaries * w.h * column);

  // A wide sum is four integers in `exact`, else one double.
  const std::int64_t wide = track == Track::exact ? 4 * i64 : static_cast<std::int64_t>(sizeof(double));
  table.all_reduce({"world", "gradient_norm", strategy.ranks(), 1, wide});
  table.all_reduce({"world", "loss", strategy.ranks(), 1, wide});
  table.all_reduce({"world", "overflow", strategy.ranks(), 1, i32});
  return table.take();
}

}  // namespace shardproof::predict
