// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/core/functions.hpp"
#include "kernels/core/philox.hpp"
#include "kernels/core/scalar.hpp"
#include "suites/workload/text.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {

std::int64_t parameter_layer(const Workload& workload, std::int64_t layer) {
  const auto& shared = workload.shared_block;
  return !shared.empty() && layer == shared[1] ? shared[0] : layer;
}

std::vector<Parameter> parameters(const Workload& workload) {
  const Workload& w = workload;
  const std::int64_t hidden = w.hidden, kv_hidden = w.kv_hidden(), mlp_hidden = w.mlp_hidden;
  std::vector<Parameter> list;
  const auto add = [&](std::string name, Dims dims, bool used = true) {
    const bool matrix = dims.size() == 2;
    const bool decays = used && (w.decay_group == DecayGroup::all || (w.decay_group == DecayGroup::matrices && matrix));
    const bool frozen = std::any_of(w.frozen.begin(), w.frozen.end(), [&](const auto& p) { return matches(p, name); });
    list.push_back({std::move(name), dims, decays, !frozen, used});
  };
  const auto add_norm = [&](const std::string& name) {
    add(name + ".weight", {hidden});
    add(name + ".bias", {hidden});
  };
  const auto add_linear = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };

  add("token_embedding.weight", {w.vocab, hidden});
  add("position_embedding.weight", {w.sequence, hidden});
  for (std::int64_t layer = 0; layer < w.layers; ++layer) {
    if (parameter_layer(w, layer) != layer) continue;
    const std::string block = fmt::format("blocks.{}.", layer);
    add_norm(block + "norm1");
    add_linear(block + "attention.query", hidden, hidden);
    add_linear(block + "attention.key", kv_hidden, hidden);
    add_linear(block + "attention.value", kv_hidden, hidden);
    add_linear(block + "attention.output", hidden, hidden);
    add_norm(block + "norm2");
    add_linear(block + "mlp.up", mlp_hidden, hidden);
    add_linear(block + "mlp.down", hidden, mlp_hidden);
  }
  add_norm("final_norm");
  if (!w.tied_head) add("head.weight", {w.vocab, hidden});
  for (std::size_t k = 0; k < w.unused.size(); ++k) add(fmt::format("unused.{}", k), {w.unused[k]}, false);
  return list;
}

namespace {

/// Values centre + scale x, moved away from the centre by gap; x is uniform in (-1, 1).
struct Distribution {
  double centre, scale, gap;
};

Distribution distribution(const Workload& w, const Parameter& parameter) {
  const std::string& name = parameter.name;
  const bool bias = name.ends_with(".bias");
  const bool norm = !bias && name.find("norm") != name.npos;
  if (w.initialization == Initialization::hostile) {
    if (bias) return {0, 0.2, 0.05};
    if (norm) return {1, 0.4, 0};
    // A map keeps about 3/4 of its input's variance at any width.
    return {0, 1.5 / std::sqrt(static_cast<double>(parameter.dims.back())), 0};
  }
  if (bias) return {0, 0, 0};
  if (norm) return {1, 0, 0};
  const bool residual = name.ends_with("attention.output.weight") || name.ends_with("mlp.down.weight");
  const double deviation = residual ? w.init_std / std::sqrt(2.0 * static_cast<double>(w.layers)) : w.init_std;
  return {0, deviation * std::sqrt(3.0), 0};
}

}  // namespace

std::vector<double> initial_values(const Workload& workload, const Parameter& parameter) {
  const Distribution d = distribution(workload, parameter);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(parameter.elements()));
  RandomStream(workload.seed, parameter.name).words(0, words);
  std::vector<double> values(words.size());
  std::transform(words.begin(), words.end(), values.begin(), [&](std::uint32_t word) {
    const double x = (2.0 * word + 1.0) * 0x1p-32 - 1.0;
    return real(round_to<Fixed>((d.centre + std::copysign(d.gap, x)) + d.scale * x));
  });
  return values;
}

double learning_rate(const Workload& workload, std::int64_t step) {
  const double base = workload.learning_rate, minimum = workload.minimum_learning_rate;
  const std::int64_t warmup = workload.warmup_steps;
  const double w = warmup > 0 && step <= warmup ? static_cast<double>(step) / static_cast<double>(warmup) : 1.0;
  const auto rest = static_cast<double>(std::max<std::int64_t>(1, workload.steps - warmup));
  const double r = step <= warmup ? 0.0 : std::min(1.0, static_cast<double>(step - warmup) / rest);
  switch (workload.learning_rate_schedule) {
    case RateSchedule::constant: break;
    case RateSchedule::linear: return w < 1 ? base * w : base + r * (minimum - base);
    case RateSchedule::cosine: return w < 1 ? base * w : minimum + ((base - minimum) * 0.5) * (1.0 + cos_pi_of(r));
  }
  return base * w;
}

}  // namespace shardproof::workload
