// SPDX-License-Identifier: Apache-2.0
// Every rank holds whole weights: nothing is exchanged.
#include "impl/step/linear_split.hpp"

namespace shardproof::tensor_parallel {

namespace {

class Whole final : public step::LinearSplit {
 public:
  bool cut() const override { return false; }
  bool first() const override { return true; }
  void join(Queue&, const Accumulator&, std::string_view) override {}
  void join(Queue&, const Tensor&, comm::Operator, std::string_view) override {}
};

}  // namespace

extern const step::LinearSplitTechnique whole_technique{
    .name = "whole",
    .paper = "one device",
    .make = [](comm::Communicator) -> std::unique_ptr<step::LinearSplit> { return std::make_unique<Whole>(); },
};

}  // namespace shardproof::tensor_parallel
