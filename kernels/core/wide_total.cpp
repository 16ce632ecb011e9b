// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/wide_total.hpp"

#include <algorithm>
#include <utility>

namespace shardproof {

WideTotal::WideTotal(Queue& queue, Dtype scalar, std::string name) : scalar_(scalar) {
  const bool exact = scalar == Dtype::fixed;
  tensor_ = Tensor(queue, {std::move(name), exact ? Dtype::i64 : Dtype::f64, {exact ? 4 : 1}, Category::workspace});
  zero(queue, tensor_);
}

double WideTotal::fetch(Queue& queue) const {
  if (scalar_ != Dtype::fixed) return shardproof::fetch<double>(queue, tensor_)[0];
  WideSum sum;
  std::ranges::copy(shardproof::fetch<std::int64_t>(queue, tensor_), sum.lane.begin());
  return to_double(sum);
}

}  // namespace shardproof
