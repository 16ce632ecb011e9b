// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/flops.hpp"

#include <cmath>
#include <string>

namespace shardproof::predict {

Flops flops(const workload::Workload& workload, std::int64_t samples) {
  return flops(workload, whole(workload), samples);
}

bool is_equation_7(const workload::Workload& workload) {
  const auto d = [](std::int64_t size) { return static_cast<double>(size); };
  const double l = d(workload.layers), s = d(workload.sequence), h = d(workload.hidden), v = d(workload.vocab);
  const double equation_7 = 72 * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  return std::fabs(flops(workload, 1).total() - equation_7) <= 1e-12 * equation_7;  // 6 l + 2 sums and 10 operations
}

double flops_with_full_recomputation(const workload::Workload& workload, std::int64_t samples) {
  const Shape w(workload);
  const Flops once = flops(workload, samples);
  const double rows = static_cast<double>(samples) * static_cast<double>(w.s);
  return once.total() + once.forward - 2 * rows * static_cast<double>(w.h) * static_cast<double>(w.v);
}

Flops flops(const workload::Workload& workload, const Holding& holding, std::int64_t samples) {
  const Shape w(workload);
  const auto product = [](std::int64_t x, std::int64_t y) { return static_cast<double>(x) * static_cast<double>(y); };
  const double rows = product(samples, w.s);
  const double scores = rows * product(w.s, holding.q);  // multiply-adds of one product of attention, the held heads
  const double query = product(w.h, holding.q), key = product(w.h, holding.k), mlp = product(w.h, holding.m);
  const double owned_key = product(w.h, holding.k_owned), head = product(w.h, holding.v);

  Flops total;
  const auto linear = [&](const std::string& weight, double elements, double input_elements) {
    total.forward += 2 * rows * elements;
    total.backward_input += 2 * rows * input_elements;
    if (!is_frozen(workload, weight)) total.backward_weight += 2 * rows * elements;
  };
  for (std::int64_t layer = holding.layers.begin; layer < holding.layers.end; ++layer) {
    const std::string block = "blocks." + std::to_string(w.owner(layer));
    linear(block + ".attention.query.weight", query, query);
    linear(block + ".attention.key.weight", key, owned_key);
    linear(block + ".attention.value.weight", key, owned_key);
    linear(block + ".attention.output.weight", query, query);
    linear(block + ".mlp.up.weight", mlp, mlp);
    linear(block + ".mlp.down.weight", mlp, mlp);
    total.forward += 2 * 2 * scores;
    total.backward_input += 4 * 2 * scores;
    if (holding.tiled) total.scores_again += 2 * scores;
  }
  if (holding.is_last) linear(workload.tied_head ? "token_embedding.weight" : "head.weight", head, head);
  return total;
}

}  // namespace shardproof::predict
