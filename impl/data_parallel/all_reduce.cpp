// SPDX-License-Identifier: Apache-2.0
// Compute, combine, update: all gradients are summed after the last backward action, one collective each, and nothing
// overlaps. The plainest data parallelism; per rank it moves 2 (n-1)/n of the gradients' bytes.
#include <utility>

#include "impl/step/gradient_sync.hpp"

namespace shardproof::data_parallel {

namespace {

class AllReduce final : public step::GradientSync {
 public:
  AllReduce(Queue& queue, comm::Communicator data_group, std::vector<Accumulator> gradients)
      : queue_(queue), data_group_(std::move(data_group)), gradients_(std::move(gradients)) {}

  void ready(std::size_t) override {}
  void finish() override {
    for (const auto& gradient : gradients_) data_group_.all_reduce(queue_, gradient, "gradient");
  }

 private:
  Queue& queue_;
  comm::Communicator data_group_;
  std::vector<Accumulator> gradients_;
};

}  // namespace

extern const step::GradientSyncTechnique all_reduce_technique{
    .name = "all_reduce",
    .paper = "Dean et al. 2012; Goyal et al. 2017",
    .make = [](Queue& queue, comm::Communicator data_group,
               std::vector<Accumulator> gradients) -> std::unique_ptr<step::GradientSync> {
      return std::make_unique<AllReduce>(queue, std::move(data_group), std::move(gradients));
    },
};

}  // namespace shardproof::data_parallel
