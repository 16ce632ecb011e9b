// SPDX-License-Identifier: Apache-2.0
// The part of the model that lies on one rank's stages, microbatch by microbatch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/engine/block.hpp"
#include "impl/engine/ends.hpp"
#include "impl/plan/plan.hpp"
#include "impl/step/stage_program.hpp"

namespace shardproof::engine {

/// Bytes that one part of the model keeps from forward to backward, measured by the ledger on the rank's first
/// microbatch.
struct SavedBytes {
  std::string part;  ///< "embedding", "blocks.0", ..., "head"
  std::int64_t bytes = 0;
};

/// What a step gives to its microbatches.
struct StepInput {
  const workload::Batch* batch = nullptr;  ///< global
  double factor = 0;                       ///< loss scale over the number of its labels
  const WideTotal* loss = nullptr;         ///< what its losses are added to
};

/// Where a rank's stages have that from.
class Feed {
 public:
  virtual ~Feed() = default;
  /// Of the step that the microbatch is a part of; valid until the update that it is of.
  virtual StepInput input(std::int64_t microbatch) = 0;
  /// Of the stage's parameters, that the microbatch's forward reads, and all that follows from it.
  virtual std::int64_t version(std::int64_t stage, std::int64_t microbatch) = 0;
  /// The stage's parameters get the update whose last microbatch on this rank this is.
  virtual void update(std::int64_t stage, std::int64_t microbatch) = 0;
};

class Stages final : public step::StageProgram {
 public:
  /// Everything given outlives it.
  Stages(const Context& context, ParameterStore& store, const plan::Plan& plan, const plan::Place& place, Feed& feed);

  /// After the last action: throws InternalError if a microbatch has not run all of its actions.
  void end() const;

  Tensor forward(std::int64_t stage, std::int64_t microbatch, Tensor input) override;
  Tensor backward_input(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) override;
  void backward_weight(std::int64_t stage, std::int64_t microbatch) override;
  Tensor backward(std::int64_t stage, std::int64_t microbatch, Tensor output_gradient) override;
  void update(std::int64_t stage, std::int64_t microbatch) override { feed_.update(stage, microbatch); }
  Tensor boundary(std::int64_t microbatch) override;

  const std::vector<SavedBytes>& saved_bytes() const { return saved_bytes_; }
  /// The most microbatches (of any of the rank's stages) that were kept at once.
  std::int64_t peak_in_flight() const { return peak_in_flight_; }

 private:
  struct Parts {
    std::optional<Embedding> embedding;
    std::int64_t first_layer = 0;
    std::vector<Block> blocks;
    std::optional<Head> head;
    bool measured = false;
  };
  struct InFlight {
    Pass pass;
    step::SavedTensors embedding, head;
    std::vector<step::SavedTensors> blocks;
  };
  Parts& parts(std::int64_t stage) { return parts_.at(stage); }
  InFlight& in_flight(std::int64_t stage, std::int64_t microbatch);
  /// After its last action: nothing may be kept any more.
  void land(std::int64_t stage, std::int64_t microbatch);
  workload::Batch batch_of(std::int64_t microbatch) const;
  /// I of the stage, and W of each part right behind its I if `weights`.
  Tensor go_back(std::int64_t stage, std::int64_t microbatch, Tensor gradient, bool weights);

  const Context& context_;
  const plan::Plan& plan_;
  plan::Place place_;
  Feed& feed_;
  std::map<std::int64_t, Parts> parts_;
  std::map<std::pair<std::int64_t, std::int64_t>, InFlight> in_flight_;
  std::vector<SavedBytes> saved_bytes_;
  std::int64_t peak_in_flight_ = 0;
};

}  // namespace shardproof::engine
