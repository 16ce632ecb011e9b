// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/block.hpp"

#include <string>

#include "kernels/activation/activation.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace shardproof::engine {

/// Finds the slots of one block by the suffixes of their names.
struct Block::Slots {
  ParameterStore& store;
  std::string prefix;

  Linear linear(const std::string& name) const {
    return {store[prefix + name + ".weight"], &store[prefix + name + ".bias"]};
  }
  Norm norm(const std::string& name) const {
    return {store[prefix + name + ".weight"], store[prefix + name + ".bias"]};
  }
};

namespace {

using step::Readers;
using step::SavedTensors;
using workload::DropoutSite;

activation::Kind kind_of(const workload::Workload& w) {
  return w.activation == workload::Activation::gelu ? activation::Kind::gelu : activation::Kind::relu;
}

attention::Shape attention_shape(const Pass& pass) {
  const auto& w = pass.workload;
  return {pass.samples, w.sequence, w.heads, w.kv_heads, w.head_size(), w.window};
}

Tensor add(const Pass& pass, std::string name, const Tensor& x, const Tensor& y) {
  Tensor z = pass.activation(std::move(name), x.dims());
  elementwise::add(pass.queue, x, y, z);
  return z;
}

void keep(SavedTensors& saved, std::string_view input, std::string_view mean, std::string_view rstd,
          const Norm::Saved& norm) {
  saved.keep(input, norm.input, Readers::both);
  saved.keep(mean, norm.mean, Readers::both);
  saved.keep(rstd, norm.rstd, Readers::both);
}

Norm::Saved norm1_of(const SavedTensors& saved) {
  return {saved["norm1_input"], saved["norm1_mean"], saved["norm1_rstd"]};
}
Norm::Saved norm2_of(const SavedTensors& saved) {
  return {saved["norm2_input"], saved["norm2_mean"], saved["norm2_rstd"]};
}

}  // namespace

Block::Block(ParameterStore& store, const workload::Workload& workload, std::int64_t layer)
    : Block(Slots{store, "blocks." + std::to_string(workload::parameter_layer(workload, layer)) + "."}, layer) {}

Block::Block(const Slots& slots, std::int64_t layer)
    : layer_(layer),
      norm1_(slots.norm("norm1")),
      norm2_(slots.norm("norm2")),
      query_(slots.linear("attention.query")),
      key_(slots.linear("attention.key")),
      value_(slots.linear("attention.value")),
      output_(slots.linear("attention.output")),
      up_(slots.linear("mlp.up")),
      down_(slots.linear("mlp.down")) {}

Tensor Block::forward(const Pass& pass, const Tensor& x, SavedTensors& saved) const {
  const auto& w = pass.workload;
  Norm::Saved norm1;
  const Tensor h1 = norm1_.forward(pass, "norm1", x, norm1);
  keep(saved, "norm1_input", "norm1_mean", "norm1_rstd", norm1);
  saved.keep("norm1_output", h1, Readers::weight);

  const Tensor q = query_.forward(pass, "query", h1);
  const Tensor k = key_.forward(pass, "key", h1);
  const Tensor v = value_.forward(pass, "value", h1);
  const Dims scores{pass.samples, w.heads, w.sequence, w.sequence};
  attention::Saved attention{pass.activation("probability", scores), {}, {}};
  std::optional<dropout::Site> site;
  if (pass.has_dropout()) {
    site = pass.site(DropoutSite::attention_probability, layer_, w.heads * w.sequence * w.sequence);
    attention.mask = Tensor(pass.queue, {"probability_mask", Dtype::u8, scores, Category::activation});
    attention.dropped = pass.activation("probability_dropped", scores);
  }
  const Tensor o = pass.activation("attention_output", {pass.rows(), w.hidden});
  attention::forward(pass.queue, attention_shape(pass), q, k, v, pass.documents, site ? &*site : nullptr, attention, o);
  saved.keep("query", q, Readers::input);
  saved.keep("key", k, Readers::input);
  saved.keep("value", v, Readers::input);
  saved.keep("probability", attention.probability, Readers::input);
  if (site) {
    saved.keep("probability_mask", attention.mask, Readers::input);
    saved.keep("probability_dropped", attention.dropped, Readers::input);
  }
  saved.keep("attention_output", o, Readers::both);

  Tensor mask;
  const Tensor x2 = add(pass, "norm2_input", x,
                        pass.drop(DropoutSite::attention_output, layer_, output_.forward(pass, "projection", o), mask));
  if (mask) saved.keep("attention_output_mask", mask, Readers::input);

  Norm::Saved norm2;
  const Tensor h2 = norm2_.forward(pass, "norm2", x2, norm2);
  keep(saved, "norm2_input", "norm2_mean", "norm2_rstd", norm2);
  saved.keep("norm2_output", h2, Readers::weight);
  const Tensor a = up_.forward(pass, "mlp_up_output", h2);
  const Tensor g = pass.activation("activation_output", a.dims());
  activation::forward(pass.queue, kind_of(w), a, g);
  saved.keep("mlp_up_output", a, Readers::input);
  saved.keep("activation_output", g, Readers::weight);
  mask = Tensor();
  const Tensor y = add(pass, "block_output", x2,
                       pass.drop(DropoutSite::mlp_output, layer_, down_.forward(pass, "mlp_down_output", g), mask));
  if (mask) saved.keep("mlp_output_mask", mask, Readers::input);
  return y;
}

Tensor Block::backward_input(const Pass& pass, const Tensor& dy, SavedTensors& saved) const {
  const auto& w = pass.workload;
  const auto input_gradient = [&](const Linear& map, std::string name, const Tensor& d) {
    Accumulator sum = pass.gradient_sum(std::move(name), {d.dim(0), map.inputs()});
    map.backward_input(pass, d, sum);
    return sum.finish(pass.queue);
  };

  const Tensor d_down = pass.drop_backward(saved.find("mlp_output_mask"), dy);
  const Tensor dg = input_gradient(down_, "activation_output.gradient", d_down);
  const Tensor da = pass.activation("mlp_up_output.gradient", dg.dims());
  activation::backward(pass.queue, kind_of(w), saved["mlp_up_output"], dg, da);
  const Tensor dh2 = input_gradient(up_, "norm2_output.gradient", da);
  const Tensor dx2 = add(pass, "norm2_input.gradient", dy, norm2_.backward_input(pass, dh2, norm2_of(saved)));

  const Tensor d_projection = pass.drop_backward(saved.find("attention_output_mask"), dx2);
  const Tensor d_o = input_gradient(output_, "attention_output.gradient", d_projection);
  const Tensor dq = pass.activation("query.gradient", saved["query"].dims());
  const Tensor dk = pass.activation("key.gradient", saved["key"].dims());
  const Tensor dv = pass.activation("value.gradient", saved["value"].dims());
  const attention::Saved attention{saved["probability"], saved.find("probability_mask"),
                                   saved.find("probability_dropped")};
  attention::backward(pass.queue, attention_shape(pass), d_o, saved["query"], saved["key"], saved["value"],
                      pass.documents, saved["attention_output"], attention, w.dropout, dq, dk, dv);
  Accumulator dh1_sum = pass.gradient_sum("norm1_output.gradient", {pass.rows(), w.hidden});
  query_.backward_input(pass, dq, dh1_sum);
  key_.backward_input(pass, dk, dh1_sum);
  value_.backward_input(pass, dv, dh1_sum);
  const Tensor dh1 = dh1_sum.finish(pass.queue);
  const Tensor dx = add(pass, "norm1_input.gradient", dx2, norm1_.backward_input(pass, dh1, norm1_of(saved)));

  saved.release_after(Readers::input);
  saved.keep("mlp_down_output.gradient", d_down, Readers::weight);
  saved.keep("mlp_up_output.gradient", da, Readers::weight);
  saved.keep("norm2_output.gradient", dh2, Readers::weight);
  saved.keep("projection.gradient", d_projection, Readers::weight);
  saved.keep("query.gradient", dq, Readers::weight);
  saved.keep("key.gradient", dk, Readers::weight);
  saved.keep("value.gradient", dv, Readers::weight);
  saved.keep("norm1_output.gradient", dh1, Readers::weight);
  return dx;
}

void Block::backward_weight(const Pass& pass, SavedTensors& saved) const {
  down_.backward_weight(pass, saved["mlp_down_output.gradient"], saved["activation_output"]);
  up_.backward_weight(pass, saved["mlp_up_output.gradient"], saved["norm2_output"]);
  norm2_.backward_weight(pass, saved["norm2_output.gradient"], norm2_of(saved));
  output_.backward_weight(pass, saved["projection.gradient"], saved["attention_output"]);
  query_.backward_weight(pass, saved["query.gradient"], saved["norm1_output"]);
  key_.backward_weight(pass, saved["key.gradient"], saved["norm1_output"]);
  value_.backward_weight(pass, saved["value.gradient"], saved["norm1_output"]);
  norm1_.backward_weight(pass, saved["norm1_output.gradient"], norm1_of(saved));
  saved.release_after(Readers::weight);
}

}  // namespace shardproof::engine
