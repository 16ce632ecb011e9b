// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/philox.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {

/// Where tokens come from: the bytes of a file, or the Markov source.
class Corpus {
 public:
  /// Throws BadInput: a missing, unreadable, empty or too short file; a byte beyond the vocabulary (with its offset).
  explicit Corpus(const Workload& workload);

  /// tokens[0..count-1] of sample `sample`. From a file: the bytes from an offset drawn by (seed, sample). From the
  /// Markov source: a walk of its own. The last one is the label of the position before it.
  std::vector<std::int32_t> tokens(std::int64_t sample, std::int64_t count) const;
  /// SHA-256 of a file's bytes; "" for the Markov source.
  const std::string& hash() const { return hash_; }

 private:
  std::int64_t vocab_;
  std::uint64_t seed_;
  std::string bytes_, hash_;
};

/// As hash(workload), with the corpus that it trains on.
std::string hash(const Workload& workload, const Corpus& corpus);

/// The Markov source: from every symbol, min(4, vocab) successors (a set drawn by seed) with probabilities 1/2, 1/4,
/// 1/8, 1/8 (vocab 2: 3/4, 1/4; vocab 3: 1/2, 1/4, 1/4). Every row has the same probabilities, so -ln p of successive
/// tokens is independent and identically distributed: entropy rate and standard error are exact.
struct MarkovSource {
  double entropy;   ///< nats per token: the floor of the mean loss
  double variance;  ///< of -ln p of one token
};
MarkovSource markov_source(const Workload& workload);

/// The global batch of one step: sample ids and, per sample and position, token, label and document.
struct Batch {
  std::int64_t step = 0, sequence = 0;
  std::int64_t first = 0;                               ///< place of samples[0] in the global batch; 0 but in a part
  std::vector<std::int64_t> samples;                    ///< global ids
  std::vector<std::int32_t> tokens, labels, documents;  ///< [samples, sequence]; label -1: none
  std::int64_t label_count = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
};

/// Step t = 1, 2, ... takes the next min(batch, samples left in the epoch) ids. A label is the next token of the same
/// document; none in the prompt or at a document's end; valid_labels keeps a drawn subset of exactly that size (or all
/// there are, if fewer).
Batch batch(const Workload& workload, const Corpus& corpus, std::int64_t step);

/// Part k of `parts` of a batch: consecutive samples, sizes differing by at most one, the larger first; may be empty.
Batch part(const Batch& batch, std::int64_t parts, std::int64_t k);
/// Its label_count.
std::int64_t labels_of_part(const Batch& batch, std::int64_t parts, std::int64_t k);

/// The dropout sites of ARITHMETIC.md, section 10.
enum class DropoutSite : std::uint8_t { embedding, attention_probability, attention_output, mlp_output };
RandomStream dropout_stream(const Workload& workload, DropoutSite site, std::int64_t layer, std::int64_t step);
/// An element is kept when its word is >= this.
std::uint32_t dropout_threshold(double probability);

}  // namespace shardproof::workload
