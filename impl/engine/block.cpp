// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/block.hpp"

#include <string>

#include "kernels/activation/activation.hpp"
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

/// The gradient of this rank's key (or value) heads. A head that several ranks hold has its queries on all of them: the
/// sum is finished over the group before it is a factor.
Tensor key_gradient(const Pass& pass, Accumulator sum, std::string_view purpose) {
  if (!pass.shares_key_heads) return sum.finish(pass.queue);
  const auto& w = pass.workload;
  const Accumulator all = pass.sum(std::string(purpose), {pass.rows(), w.kv_hidden()});
  const auto width = pass.heads.key.size() * w.head_size();
  add_window(pass.queue, sum, {0, width}, all, {pass.heads.key.begin * w.head_size(), w.kv_hidden()}, pass.rows(),
             width);
  const Tensor total = joined(pass, all, purpose);
  Tensor mine = pass.activation(std::string(purpose), sum.dims());
  elementwise::columns(pass.queue, total, pass.heads.key.begin * w.head_size(), mine);
  return mine;
}

/// dx += dy w over the heads that this rank owns: of a head that several hold, each has the whole gradient.
void add_owned_heads(const Pass& pass, const Linear& map, const Tensor& dy, const Accumulator& dx) {
  if (!pass.shares_key_heads) return map.backward_input(pass, dy, dx);
  const auto& heads = pass.heads;
  const auto size = pass.workload.head_size();
  const plan::Range owned{(heads.owned.begin - heads.key.begin) * size, (heads.owned.end - heads.key.begin) * size};
  const Tensor part = pass.activation("owned_heads.gradient", {dy.dim(0), owned.size()});
  elementwise::columns(pass.queue, dy, owned.begin, part);
  map.backward_input(pass, part, owned, dx);
}

}  // namespace

Block::Block(ParameterStore& store, const workload::Workload& workload, std::int64_t layer)
    : Block(Slots{store, "blocks." + std::to_string(workload::parameter_layer(workload, layer)) + "."}, layer) {}

Block::Block(const Slots& slots, std::int64_t layer)
    : layer_(layer),
      attention_(layer_),
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
  const Tensor o = attention_.forward(pass, q, k, v, saved);

  Tensor mask;
  const Tensor x2 = add(pass, "norm2_input", x,
                        pass.drop(DropoutSite::attention_output, layer_,
                                  output_.forward_joined(pass, "projection", o, "attention_row_output"), mask));
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
  Tensor y = add(pass, "block_output", x2,
                 pass.drop(DropoutSite::mlp_output, layer_,
                           down_.forward_joined(pass, "mlp_down_output", g, "mlp_row_output"), mask));
  if (mask) saved.keep("mlp_output_mask", mask, Readers::input);
  return y;
}

Tensor Block::backward_input(const Pass& pass, const Tensor& dy, SavedTensors& saved) const {
  const auto& w = pass.workload;
  const Tensor d_down = pass.drop_backward(saved.find("mlp_output_mask"), dy);
  const Tensor dg = down_.backward_input(pass, "activation_output.gradient", d_down);
  const Tensor da = pass.activation("mlp_up_output.gradient", dg.dims());
  activation::backward(pass.queue, kind_of(w), saved["mlp_up_output"], dg, da);
  const Tensor dh2 = up_.backward_input_joined(pass, "norm2_output.gradient", da, "mlp_column_input_gradient");
  const Tensor dx2 = add(pass, "norm2_input.gradient", dy, norm2_.backward_input(pass, dh2, norm2_of(saved)));

  const Tensor d_projection = pass.drop_backward(saved.find("attention_output_mask"), dx2);
  const Tensor d_o = output_.backward_input(pass, "attention_output.gradient", d_projection);
  const auto d_core = attention_.backward_input(pass, d_o, saved);
  const Tensor& dq = d_core.query;
  const Tensor dk = key_gradient(pass, d_core.key, "key_gradient"),
               dv = key_gradient(pass, d_core.value, "value_gradient");
  const Accumulator dh1_sum = pass.sum("norm1_output.gradient", {pass.rows(), w.hidden});
  query_.backward_input(pass, dq, dh1_sum);
  add_owned_heads(pass, key_, dk, dh1_sum);
  add_owned_heads(pass, value_, dv, dh1_sum);
  const Tensor dh1 = joined(pass, dh1_sum, "attention_column_input_gradient");
  Tensor dx = add(pass, "norm1_input.gradient", dx2, norm1_.backward_input(pass, dh1, norm1_of(saved)));

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
