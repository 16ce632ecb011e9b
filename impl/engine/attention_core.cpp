// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/attention_core.hpp"

#include <optional>

#include "kernels/attention/tiled.hpp"

namespace shardproof::engine {

namespace {

using step::Readers;

attention::Shape shape_of(const Pass& pass) {
  const auto& w = pass.workload;
  return {.batch = pass.samples,
          .sequence = w.sequence,
          .heads = pass.heads.query.size(),
          .kv_heads = pass.heads.key.size(),
          .head_size = w.head_size(),
          .window = w.window,
          .first_head = pass.heads.query.begin,
          .total_heads = w.heads,
          .group = w.heads / w.kv_heads};
}

std::optional<dropout::Site> site_of(const Pass& pass, std::int64_t layer) {
  const auto& w = pass.workload;
  if (!pass.has_dropout()) return std::nullopt;
  return pass.site(workload::DropoutSite::attention_probability, layer, w.heads * w.sequence * w.sequence);
}

}  // namespace

Tensor AttentionCore::forward(const Pass& pass, const Tensor& q, const Tensor& k, const Tensor& v,
                              step::SavedTensors& saved) const {
  const auto shape = shape_of(pass);
  const auto site = site_of(pass, layer_);
  Tensor o = pass.activation("attention_output", q.dims());
  saved.keep("query", q, Readers::input);
  saved.keep("key", k, Readers::input);
  saved.keep("value", v, Readers::input);
  if (pass.tiled_attention) {
    const Dims rows{shape.batch, shape.heads, shape.sequence};
    const attention::RowStatistics statistics{pass.activation("score_max", rows), pass.activation("score_sum", rows)};
    attention::tiled_forward(pass.queue, shape, q, k, v, pass.documents, site ? &*site : nullptr, statistics, o);
    saved.keep("score_max", statistics.max, Readers::input);
    saved.keep("score_sum", statistics.sum, Readers::input);
  } else {
    const Dims scores{shape.batch, shape.heads, shape.sequence, shape.sequence};
    attention::Saved probabilities{pass.activation("probability", scores), {}, {}};
    if (site) {
      probabilities.mask = Tensor(pass.queue, {"probability_mask", Dtype::u8, scores, Category::activation});
      probabilities.dropped = pass.activation("probability_dropped", scores);
    }
    attention::forward(pass.queue, shape, q, k, v, pass.documents, site ? &*site : nullptr, probabilities, o);
    saved.keep("probability", probabilities.probability, Readers::input);
    if (site) {
      saved.keep("probability_mask", probabilities.mask, Readers::input);
      saved.keep("probability_dropped", probabilities.dropped, Readers::input);
    }
  }
  saved.keep("attention_output", o, Readers::both);
  return o;
}

AttentionCore::Gradients AttentionCore::backward_input(const Pass& pass, const Tensor& d_o,
                                                       const step::SavedTensors& saved) const {
  const auto shape = shape_of(pass);
  const Tensor &q = saved["query"], &k = saved["key"], &v = saved["value"], &o = saved["attention_output"];
  Gradients d{pass.activation("query.gradient", q.dims()), pass.sum("key.gradient", k.dims()),
              pass.sum("value.gradient", v.dims())};
  if (pass.tiled_attention) {
    const auto site = site_of(pass, layer_);
    attention::tiled_backward(pass.queue, shape, d_o, q, k, v, pass.documents, site ? &*site : nullptr, o,
                              {saved["score_max"], saved["score_sum"]}, d.query, d.key, d.value);
  } else {
    attention::backward(pass.queue, shape, d_o, q, k, v, pass.documents, o,
                        {saved["probability"], saved.find("probability_mask"), saved.find("probability_dropped")},
                        pass.workload.dropout, d.query, d.key, d.value);
  }
  return d;
}

}  // namespace shardproof::engine
