// SPDX-License-Identifier: Apache-2.0
#include "harness/predict/flops.hpp"

#include <array>
#include <string>

#include "harness/predict/shape.hpp"

namespace shardproof::predict {

Flops flops(const workload::Workload& workload, std::int64_t samples) {
  const Shape w(workload);
  const auto [h, k, m, v] = std::array{static_cast<double>(w.h), static_cast<double>(w.k), static_cast<double>(w.m),
                                       static_cast<double>(w.v)};
  const double rows = static_cast<double>(samples) * static_cast<double>(w.s);
  const double layers = static_cast<double>(w.l);

  const double linear = 2 * rows * (layers * 2 * h * (h + k + m) + h * v);
  const double scores = rows * static_cast<double>(w.s) * h;  // multiply-adds of one product of attention, all heads
  double frozen = 0;
  const auto freeze = [&](const std::string& name, double elements) {
    if (is_frozen(workload, name)) frozen += 2 * rows * elements;
  };
  for (std::int64_t layer = 0; layer < w.l; ++layer) {
    const bool second_site = w.shared && layer == workload.shared_block.at(1);
    const std::string block = "blocks." + std::to_string(second_site ? workload.shared_block.at(0) : layer);
    freeze(block + ".attention.query.weight", h * h);
    freeze(block + ".attention.key.weight", k * h);
    freeze(block + ".attention.value.weight", k * h);
    freeze(block + ".attention.output.weight", h * h);
    freeze(block + ".mlp.up.weight", m * h);
    freeze(block + ".mlp.down.weight", h * m);
  }
  freeze(workload.tied_head ? "token_embedding.weight" : "head.weight", v * h);

  return {.forward = linear + 2 * 2 * layers * scores,
          .backward_input = linear + 4 * 2 * layers * scores,
          .backward_weight = linear - frozen};
}

}  // namespace shardproof::predict
