// SPDX-License-Identifier: Apache-2.0
#include "impl/pipeline_parallel/boundary.hpp"

#include "impl/plan/range.hpp"

namespace shardproof::pipeline_parallel {

Tensor Boundary::part(const Tensor& tensor) const {
  const auto rows = plan::part_of(tensor.dim(0), tensor_group_->size(), tensor_group_->place());
  return tensor.rows(rows.begin, rows.size());
}

void Boundary::send(Queue& queue, comm::Communicator& channel, const Tensor& tensor, std::int64_t to,
                    std::string_view purpose, comm::Tag tag) const {
  channel.send(queue, tensor_group_ ? part(tensor) : tensor, to, purpose, tag);
}

void Boundary::receive(Queue& queue, comm::Communicator& channel, const Tensor& tensor, std::int64_t from,
                       std::string_view purpose, comm::Tag tag) {
  if (!tensor_group_) {
    channel.receive(queue, tensor, from, purpose, tag);
    return;
  }
  const Tensor own = part(tensor);
  channel.receive(queue, own, from, purpose, tag);
  std::vector<std::int64_t> counts;
  for (std::int64_t t = 0; t < tensor_group_->size(); ++t)
    counts.push_back(plan::part_of(tensor.dim(0), tensor_group_->size(), t).size() * tensor.dim(1));
  tensor_group_->all_gather(queue, own, tensor, counts, purpose);
}

}  // namespace shardproof::pipeline_parallel
