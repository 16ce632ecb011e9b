// SPDX-License-Identifier: Apache-2.0
#include "reference/model.hpp"

#include <span>

#include "reference/block.hpp"
#include "reference/cross_entropy.hpp"
#include "reference/embedding.hpp"
#include "reference/linear.hpp"

namespace shardproof::reference {
namespace {

using workload::DropoutSite;

/// The part [rows, columns] of a site's mask that belongs to sample b of the global batch.
template <class S>
Dropout<S> site_dropout(Arithmetic<S>& arithmetic, const workload::Workload& workload, DropoutSite site,
                        std::int64_t layer, std::int64_t step, std::int64_t b, std::int64_t rows,
                        std::int64_t columns) {
  if (workload.dropout == 0) return {};
  return draw_dropout(arithmetic, workload::dropout_stream(workload, site, layer, step),
                      workload::dropout_threshold(workload.dropout), workload.dropout, b * rows * columns, rows,
                      columns);
}

}  // namespace

template <class S>
void train_sample(Arithmetic<S>& arithmetic, const workload::Workload& workload, const workload::Batch& batch,
                  std::int64_t b, double factor, Parameters<S>& parameters, std::vector<S>& losses) {
  const auto length = batch.sequence;
  const auto of_sample = [&](const std::vector<std::int32_t>& all) {
    return std::span(all).subspan(static_cast<std::size_t>(b * length), static_cast<std::size_t>(length));
  };
  const auto tokens = of_sample(batch.tokens), labels = of_sample(batch.labels);
  const AttentionShape attention{workload.heads, workload.kv_heads, workload.window, of_sample(batch.documents)};
  const auto mask = [&](DropoutSite site, std::int64_t layer, std::int64_t rows, std::int64_t columns) {
    return site_dropout(arithmetic, workload, site, layer, batch.step, batch.first + b, rows, columns);
  };
  auto& token_embedding = parameters.at("token_embedding.weight");
  auto& position_embedding = parameters.at("position_embedding.weight");
  auto& norm_weight = parameters.at("final_norm.weight");
  auto& norm_bias = parameters.at("final_norm.bias");
  auto& head = workload.tied_head ? token_embedding : parameters.at("head.weight");

  const auto embedding_mask = mask(DropoutSite::embedding, 0, length, workload.hidden);
  auto x =
      dropped(arithmetic, embedding_mask, embed(arithmetic, tokens, token_embedding.value, position_embedding.value));
  std::vector<BlockSite<S>> sites;
  std::vector<BlockSaved<S>> saved(static_cast<std::size_t>(workload.layers));
  for (std::int64_t layer = 0; layer < workload.layers; ++layer) {
    sites.push_back({"blocks." + std::to_string(workload::parameter_layer(workload, layer)) + ".", attention,
                     mask(DropoutSite::attention_probability, layer, workload.heads * length, length),
                     mask(DropoutSite::attention_output, layer, length, workload.hidden),
                     mask(DropoutSite::mlp_output, layer, length, workload.hidden)});
    x = block(arithmetic, workload, parameters, sites[layer], x, saved[layer]);
  }
  NormSaved<S> final_norm;
  const auto hf =
      layer_norm(arithmetic, x, norm_weight.value, norm_bias.value, workload.layer_norm_epsilon, final_norm);
  const auto loss = cross_entropy(arithmetic, linear<S>(arithmetic, hf, head.value, nullptr), labels,
                                  workload.label_smoothing, losses);

  const auto dz = cross_entropy_input(arithmetic, loss, labels, workload.label_smoothing, factor);
  Array<Sum<S>> dhf_sum(length, workload.hidden);
  linear_input(dz, head.value, dhf_sum);
  linear_weight(dz, hf, head.gradient);
  const auto dhf = arithmetic.finish(dhf_sum);
  auto dx = layer_norm_input(arithmetic, final_norm, norm_weight.value, dhf);
  layer_norm_weight(arithmetic, final_norm, dhf, norm_weight.gradient, norm_bias.gradient);
  for (auto layer = workload.layers - 1; layer >= 0; --layer) {
    BlockGradient<S> gradient;
    dx = block_input(arithmetic, workload, parameters, sites[layer], saved[layer], dx, gradient);
    block_weight(arithmetic, sites[layer], saved[layer], gradient, parameters);
  }
  embed_weight(tokens, dropped(arithmetic, embedding_mask, dx), token_embedding.gradient, position_embedding.gradient);
}

#define INSTANTIATE(S)                                                                                           \
  template void train_sample<S>(Arithmetic<S>&, const workload::Workload&, const workload::Batch&, std::int64_t, \
                                double, Parameters<S>&, std::vector<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
