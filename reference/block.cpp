// SPDX-License-Identifier: Apache-2.0
#include "reference/block.hpp"

#include "reference/activation.hpp"
#include "reference/linear.hpp"

namespace shardproof::reference {

template <class S>
Array<S> block(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Parameters<S>& parameters,
               const BlockSite<S>& site, const Array<S>& x, BlockSaved<S>& saved) {
  const auto value = [&](const char* name) -> const Array<S>& { return parameters.at(site.prefix + name).value; };

  saved.norm1_output =
      layer_norm(arithmetic, x, value("norm1.weight"), value("norm1.bias"), workload.layer_norm_epsilon, saved.norm1);
  const auto& h1 = saved.norm1_output;
  auto& attention = saved.attention;
  attention.query = linear(arithmetic, h1, value("attention.query.weight"), &value("attention.query.bias"));
  attention.key = linear(arithmetic, h1, value("attention.key.weight"), &value("attention.key.bias"));
  attention.value = linear(arithmetic, h1, value("attention.value.weight"), &value("attention.value.bias"));
  attention.dropout = site.attention_probability;
  attend(arithmetic, site.attention, attention);
  const auto projected =
      linear(arithmetic, attention.output, value("attention.output.weight"), &value("attention.output.bias"));
  const auto x2 = arithmetic.add(x, dropped(arithmetic, site.attention_output, projected));

  saved.norm2_output =
      layer_norm(arithmetic, x2, value("norm2.weight"), value("norm2.bias"), workload.layer_norm_epsilon, saved.norm2);
  saved.up_output = linear(arithmetic, saved.norm2_output, value("mlp.up.weight"), &value("mlp.up.bias"));
  saved.activation_output = activate(arithmetic, workload.activation, saved.up_output);
  const auto down = linear(arithmetic, saved.activation_output, value("mlp.down.weight"), &value("mlp.down.bias"));
  return arithmetic.add(x2, dropped(arithmetic, site.mlp_output, down));
}

template <class S>
Array<S> block_input(Arithmetic<S>& arithmetic, const workload::Workload& workload, const Parameters<S>& parameters,
                     const BlockSite<S>& site, const BlockSaved<S>& saved, const Array<S>& dy,
                     BlockGradient<S>& gradient) {
  const auto value = [&](const char* name) -> const Array<S>& { return parameters.at(site.prefix + name).value; };
  const auto through = [&](const Array<S>& dout, const char* weight) {
    Array<Sum<S>> din(dout.rows(), value(weight).columns());
    linear_input(dout, value(weight), din);
    return arithmetic.finish(din);
  };

  gradient.down = dropped(arithmetic, site.mlp_output, dy);
  gradient.up =
      activate_input(arithmetic, workload.activation, saved.up_output, through(gradient.down, "mlp.down.weight"));
  gradient.norm2 = through(gradient.up, "mlp.up.weight");
  const auto dx2 = arithmetic.add(dy, layer_norm_input(arithmetic, saved.norm2, value("norm2.weight"), gradient.norm2));

  gradient.attention_output = dropped(arithmetic, site.attention_output, dx2);
  gradient.attention = attend_input(arithmetic, site.attention, saved.attention,
                                    through(gradient.attention_output, "attention.output.weight"));
  Array<Sum<S>> dh1(dy.rows(), dy.columns());
  linear_input(gradient.attention.query, value("attention.query.weight"), dh1);
  linear_input(gradient.attention.key, value("attention.key.weight"), dh1);
  linear_input(gradient.attention.value, value("attention.value.weight"), dh1);
  gradient.norm1 = arithmetic.finish(dh1);
  return arithmetic.add(dx2, layer_norm_input(arithmetic, saved.norm1, value("norm1.weight"), gradient.norm1));
}

template <class S>
void block_weight(Arithmetic<S>& arithmetic, const BlockSite<S>& site, const BlockSaved<S>& saved,
                  const BlockGradient<S>& gradient, Parameters<S>& parameters) {
  const auto sum = [&](const std::string& name) -> Array<Sum<S>>& {
    return parameters.at(site.prefix + name).gradient;
  };
  const auto map = [&](const std::string& name, const Array<S>& dout, const Array<S>& in) {
    linear_weight(dout, in, sum(name + ".weight"));
    linear_bias(dout, sum(name + ".bias"));
  };

  layer_norm_weight(arithmetic, saved.norm1, gradient.norm1, sum("norm1.weight"), sum("norm1.bias"));
  map("attention.query", gradient.attention.query, saved.norm1_output);
  map("attention.key", gradient.attention.key, saved.norm1_output);
  map("attention.value", gradient.attention.value, saved.norm1_output);
  map("attention.output", gradient.attention_output, saved.attention.output);
  layer_norm_weight(arithmetic, saved.norm2, gradient.norm2, sum("norm2.weight"), sum("norm2.bias"));
  map("mlp.up", gradient.up, saved.norm2_output);
  map("mlp.down", gradient.down, saved.activation_output);
}

#define INSTANTIATE(S)                                                                                              \
  template Array<S> block<S>(Arithmetic<S>&, const workload::Workload&, const Parameters<S>&, const BlockSite<S>&,  \
                             const Array<S>&, BlockSaved<S>&);                                                      \
  template Array<S> block_input<S>(Arithmetic<S>&, const workload::Workload&, const Parameters<S>&,                 \
                                   const BlockSite<S>&, const BlockSaved<S>&, const Array<S>&, BlockGradient<S>&);  \
  template void block_weight<S>(Arithmetic<S>&, const BlockSite<S>&, const BlockSaved<S>&, const BlockGradient<S>&, \
                                Parameters<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
