// SPDX-License-Identifier: Apache-2.0
// A training run that any framework wrote: the tensors of each step as the oracle has them, by way of a map.
//
// Per step, in each file that the map names (kernels/core/safetensors.hpp; elements F64, F32, F16 or BF16):
//   loss [1] or []           the mean over the labels of the global batch; none at a step without labels
//   gradient/NAME            of that loss, summed over all ranks, before clipping, not scaled; of trainable parameters
//   parameter/NAME           after the step's update
//   norm, clip [1] or []     may be left out: of all gradients together, and the factor that clipping made of it
//   state/NAME.first_moment  may be left out: of Adam; also .second_moment, and .momentum
// and in the metadata `workload_hash`, that of the oracle; `strategy` ("dp2 tp2") may name the sizes of the mesh.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/candidate_map.hpp"
#include "kernels/core/observable.hpp"
#include "kernels/core/safetensors.hpp"

namespace shardproof::harness {

/// A tensor in double, whole; or why there is none.
struct Taken {
  std::vector<double> values = {};
  bool missing = false;
  std::string problem = {};  ///< one sentence without its subject: "missing: ...", "has dims 3x4, not 4x3"
};

class Candidate {
 public:
  /// Throws BadInput: no folder, or no step in it.
  Candidate(const std::filesystem::path& folder, CandidateMap map);

  /// Steps that a file has and 1..steps lacks, or the other way round: a sentence for the first such file; or "".
  std::string wrong_steps(std::int64_t steps) const;
  bool has(std::int64_t step) const;

  /// Reads the files of a step. Throws BadInput with every finding about them.
  void open(std::int64_t step);

  /// Of the step that is open. `state` is what a state's name adds to its parameter's, as ".momentum".
  Taken take(Observed kind, const std::string& parameter, const std::string& state, const Dims& dims);
  /// A loss, norm or clip factor.
  Taken take_scalar(Observed kind);

  /// A sentence for each file whose metadata contradict the workload's hash or the step.
  std::vector<std::string> wrong_metadata(const std::string& workload_hash) const;
  /// The value of the first file that has it; or "".
  std::string metadata(const std::string& key) const;
  /// The type with the coarsest unit roundoff among the gradients and parameters; F64 where there are none.
  Dtype coarsest() const;
  /// Names in the open step's files that nothing was taken from. Inputs that an export holds too are left out.
  std::vector<std::string> extra() const;

 private:
  const safetensors::Entry* find(const std::string& name, std::optional<std::size_t> file, Taken& taken);
  void add(const Source& source, const std::string& name, std::int64_t dim, Dims& dims, Taken& taken);

  std::filesystem::path folder_;
  CandidateMap map_;
  std::vector<std::set<std::int64_t>> steps_;  // of each file
  std::int64_t step_ = 0;
  std::vector<safetensors::File> open_;
  std::set<std::string> taken_, wanted_;  // names: of the open step's, and of all that the map takes
};

/// The elements, each exactly: any double holds a float, a half or a bfloat16. Empty for another type.
std::vector<double> decoded(const safetensors::Entry& entry);

}  // namespace shardproof::harness
