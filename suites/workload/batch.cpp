// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/batch.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "kernels/core/errors.hpp"

namespace shardproof::workload {
namespace {

/// The sample ids of a step.
std::vector<std::int64_t> sample_ids(const Workload& w, std::int64_t step) {
  std::int64_t first = 0, count = w.batch;
  if (w.samples == 0) {
    first = (step - 1) * w.batch;
  } else {
    const std::int64_t steps_per_epoch = (w.samples - 1) / w.batch + 1;
    first = (step - 1) % steps_per_epoch * w.batch;
    count = std::min(w.batch, w.samples - first);
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Drops all but `count` of a sample's labels: kept are those with the smallest random words.
void keep_labels(const Workload& w, std::int64_t sample, std::int64_t count, std::span<std::int32_t> labels) {
  std::vector<std::uint32_t> words(labels.size());
  RandomStream(w.seed, fmt::format("labels.sample.{}", sample)).words(0, words);
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0) positions.push_back(i);
  }
  std::sort(positions.begin(), positions.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(words[a], a) < std::pair(words[b], b); });
  for (std::size_t k = static_cast<std::size_t>(count); k < positions.size(); ++k) labels[positions[k]] = -1;
}

std::int64_t count_labels(std::span<const std::int32_t> labels) {
  return std::ranges::count_if(labels, [](std::int32_t label) { return label >= 0; });
}

/// The samples of a part.
struct Samples {
  std::int64_t begin, count;
};
Samples samples_of(const Batch& batch, std::int64_t parts, std::int64_t k) {
  if (parts < 1 || k < 0 || k >= parts) throw InternalError(fmt::format("part {} of {} of a batch", k, parts));
  const std::int64_t least = batch.size() / parts, larger = batch.size() % parts;
  return {k * least + std::min(k, larger), least + (k < larger ? 1 : 0)};
}

}  // namespace

Batch batch(const Workload& workload, const Corpus& corpus, std::int64_t step) {
  const Workload& w = workload;
  const auto sequence = static_cast<std::size_t>(w.sequence);

  // Every sample is cut alike: the document of each position, and whether the next token belongs to it.
  std::vector<std::int32_t> document(sequence, static_cast<std::int32_t>(w.documents.size()));
  std::vector<bool> labelled(sequence, w.documents.empty());
  std::size_t begin = 0;
  for (std::size_t d = 0; d < w.documents.size(); ++d) {
    const std::size_t end = begin + static_cast<std::size_t>(w.documents[d]);
    for (std::size_t i = begin; i < end; ++i) {
      document[i] = static_cast<std::int32_t>(d);
      labelled[i] = i + 1 < end;
    }
    begin = end;
  }
  std::fill_n(labelled.begin(), w.prompt, false);

  Batch result;
  result.step = step;
  result.sequence = w.sequence;
  result.samples = sample_ids(w, step);
  result.labels.reserve(result.samples.size() * sequence);
  for (std::size_t b = 0; b < result.samples.size(); ++b) {
    const std::vector<std::int32_t> tokens = corpus.tokens(result.samples[b], w.sequence + 1);
    result.tokens.insert(result.tokens.end(), tokens.begin(), tokens.end() - 1);
    result.documents.insert(result.documents.end(), document.begin(), document.end());
    for (std::size_t i = 0; i < sequence; ++i) result.labels.push_back(labelled[i] ? tokens[i + 1] : -1);
    if (!w.valid_labels.empty()) {
      keep_labels(w, result.samples[b], w.valid_labels[b % w.valid_labels.size()],
                  std::span(result.labels).last(sequence));
    }
  }
  result.label_count = count_labels(result.labels);
  return result;
}

Batch part(const Batch& batch, std::int64_t parts, std::int64_t k) {
  const Samples samples = samples_of(batch, parts, k);
  const std::int64_t begin = samples.begin, count = samples.count;
  const auto cut = [&](const auto& values, std::int64_t width) {
    return std::vector(values.begin() + begin * width, values.begin() + (begin + count) * width);
  };
  Batch result;
  result.step = batch.step;
  result.sequence = batch.sequence;
  result.first = batch.first + begin;
  result.samples = cut(batch.samples, 1);
  result.tokens = cut(batch.tokens, batch.sequence);
  result.labels = cut(batch.labels, batch.sequence);
  result.documents = cut(batch.documents, batch.sequence);
  result.label_count = count_labels(result.labels);
  return result;
}

std::int64_t labels_of_part(const Batch& batch, std::int64_t parts, std::int64_t k) {
  const auto [begin, count] = samples_of(batch, parts, k);
  return count_labels(
      std::span(batch.labels)
          .subspan(static_cast<std::size_t>(begin * batch.sequence), static_cast<std::size_t>(count * batch.sequence)));
}

RandomStream dropout_stream(const Workload& workload, DropoutSite site, std::int64_t layer, std::int64_t step) {
  const auto in_block = [&](const char* what) {
    return RandomStream(workload.seed, fmt::format("dropout.blocks.{}.{}.step.{}", layer, what, step));
  };
  switch (site) {
    case DropoutSite::embedding: break;
    case DropoutSite::attention_probability: return in_block("attention_probability");
    case DropoutSite::attention_output: return in_block("attention_output");
    case DropoutSite::mlp_output: return in_block("mlp_output");
  }
  return RandomStream(workload.seed, fmt::format("dropout.embedding.step.{}", step));
}

std::uint32_t dropout_threshold(double probability) { return static_cast<std::uint32_t>(probability * 0x1p32); }

}  // namespace shardproof::workload
