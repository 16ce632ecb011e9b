// SPDX-License-Identifier: Apache-2.0
// How a tensor crosses from one stage to the next.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace shardproof::pipeline_parallel {

/// All tensor ranks of a stage hold what crosses alike. Whole: each sends all of it to the rank with its tensor
/// coordinate. Scattered: each sends its part of the rows, and those that receive gather the parts (Narayanan et al.
/// 2021, section 4.1), so that between the stages one tensor moves instead of one for each tensor rank.
class Boundary {
 public:
  Boundary() = default;
  explicit Boundary(comm::Communicator tensor_group) : tensor_group_(std::move(tensor_group)) {}

  void send(Queue& queue, comm::Communicator& channel, const Tensor& tensor, std::int64_t to, std::string_view purpose,
            comm::Tag tag) const;
  /// `tensor` is [rows, hidden], and written.
  void receive(Queue& queue, comm::Communicator& channel, const Tensor& tensor, std::int64_t from,
               std::string_view purpose, comm::Tag tag);

 private:
  Tensor part(const Tensor& tensor) const;

  std::optional<comm::Communicator> tensor_group_;  // none: whole
};

}  // namespace shardproof::pipeline_parallel
