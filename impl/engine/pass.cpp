// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/pass.hpp"

#include <utility>

namespace shardproof::engine {

Tensor Pass::activation(std::string name, Dims dims) const {
  return {queue, {std::move(name), scalar_of(track), dims, Category::activation}};
}

Accumulator Pass::sum(std::string name, Dims dims) const {
  return {queue, {std::move(name), scalar_of(track), dims, Category::activation}};
}

dropout::Site Pass::site(workload::DropoutSite which, std::int64_t layer, std::int64_t per_sample) const {
  return {workload.dropout, workload::dropout_stream(workload, which, layer, step),
          static_cast<std::uint64_t>(first_sample * per_sample)};
}

Tensor Pass::drop(workload::DropoutSite which, std::int64_t layer, const Tensor& x, Tensor& mask) const {
  if (!has_dropout()) return x;
  mask = Tensor(queue, {"dropout_mask", Dtype::u8, x.dims(), Category::activation});
  Tensor y = activation("dropped", x.dims());
  dropout::forward(queue, site(which, layer, workload.sequence * workload.hidden), x, mask, y);
  return y;
}

Tensor Pass::drop_backward(const Tensor& mask, const Tensor& dy) const {
  if (!mask) return dy;
  Tensor dx = activation("dropped.gradient", dy.dims());
  dropout::backward(queue, workload.dropout, mask, dy, dx);
  return dx;
}

}  // namespace shardproof::engine
