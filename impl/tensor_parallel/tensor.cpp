// SPDX-License-Identifier: Apache-2.0
// Megatron's tensor parallelism: columns of a first map and rows of a second lie on the same rank, so that a pair of
// maps costs one all-reduce forward (behind the rows) and one backward (below the columns).
#include <utility>

#include "impl/step/linear_split.hpp"

namespace shardproof::tensor_parallel {

namespace {

class CutByTensorRanks final : public step::LinearSplit {
 public:
  explicit CutByTensorRanks(comm::Communicator group) : group_(std::move(group)) {}

  bool cut() const override { return true; }
  bool first() const override { return group_.place() == 0; }
  void join(Queue& queue, const Accumulator& sum, std::string_view purpose) override {
    group_.all_reduce(queue, sum, purpose);
  }
  void join(Queue& queue, const Tensor& values, comm::Operator op, std::string_view purpose) override {
    group_.all_reduce(queue, values, op, purpose);
  }

 private:
  comm::Communicator group_;
};

}  // namespace

extern const step::LinearSplitTechnique tensor_technique{
    .name = "tensor",
    .paper = "Shoeybi et al. 2019, section 3",
    .make = [](comm::Communicator group) -> std::unique_ptr<step::LinearSplit> {
      return std::make_unique<CutByTensorRanks>(std::move(group));
    },
};

}  // namespace shardproof::tensor_parallel
