// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/functions.hpp"
#include "kernels/core/sha256.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::workload {
namespace {

constexpr std::string_view markov_name = "markov";
constexpr std::uintmax_t largest_corpus = std::uintmax_t{1} << 34;  // it is held in memory

/// What every symbol's row of the transition matrix holds.
struct Row {
  std::size_t successors;
  std::array<double, 4> probability;
};

constexpr Row row(std::int64_t vocab) {
  switch (vocab) {
    case 1: return {1, {1.0}};
    case 2: return {2, {0.75, 0.25}};
    case 3: return {3, {0.5, 0.25, 0.25}};
    default: return {4, {0.5, 0.25, 0.125, 0.125}};
  }
}

/// x scaled from 32 bits to [0, bound).
std::int64_t below(std::int64_t bound, std::uint32_t word) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(bound) * word) >> 32);
}

/// The successors of one symbol, the most likely first: different ones, each ordered choice equally likely.
std::array<std::int32_t, 4> successors(const RandomStream& stream, std::int64_t vocab, std::int32_t symbol) {
  std::array<std::uint32_t, 4> words;
  stream.words(static_cast<std::uint64_t>(symbol) * 4, words);
  std::array<std::int32_t, 4> chosen{}, sorted{};
  for (std::size_t k = 0; k < row(vocab).successors; ++k) {
    // The n-th of the symbols that are not chosen yet.
    auto next = static_cast<std::int32_t>(below(vocab - static_cast<std::int64_t>(k), words[k]));
    std::size_t place = 0;
    for (; place < k && sorted[place] <= next; ++place) ++next;
    for (std::size_t i = k; i > place; --i) sorted[i] = sorted[i - 1];
    chosen[k] = sorted[place] = next;
  }
  return chosen;
}

std::vector<std::int32_t> walk(std::uint64_t seed, std::int64_t vocab, std::int64_t sample, std::size_t count) {
  std::vector<std::uint32_t> words(count);
  RandomStream(seed, fmt::format("corpus.walk.{}", sample)).words(0, words);
  const RandomStream rows(seed, "corpus.successors");
  const Row shape = row(vocab);
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0) {
      tokens[i] = static_cast<std::int32_t>(below(vocab, words[i]));
      continue;
    }
    double rest = words[i] * 0x1p-32;
    std::size_t k = 0;
    while (k + 1 < shape.successors && rest >= shape.probability[k]) rest -= shape.probability[k++];
    tokens[i] = successors(rows, vocab, tokens[i - 1])[k];
  }
  return tokens;
}

}  // namespace

Corpus::Corpus(const Workload& workload) : vocab_(workload.vocab), seed_(workload.seed) {
  if (workload.corpus == markov_name) return;
  bytes_ = read_file(workload.corpus, largest_corpus);
  const auto needed = static_cast<std::size_t>(workload.sequence) + 1;
  if (bytes_.size() < needed) {
    throw BadInput(fmt::format("corpus {}: {} bytes, too short: a sample takes sequence + 1 = {}", workload.corpus,
                               bytes_.size(), needed));
  }
  const auto beyond =
      std::find_if(bytes_.begin(), bytes_.end(), [&](char c) { return static_cast<unsigned char>(c) >= vocab_; });
  if (beyond != bytes_.end()) {
    throw BadInput(
        fmt::format("corpus {}: byte {} at offset {} is beyond the vocabulary of {} tokens (legal: vocab=256)",
                    workload.corpus, static_cast<unsigned char>(*beyond), beyond - bytes_.begin(), vocab_));
  }
  hash_ = Sha256().add(bytes_).finish_hex();
}

std::vector<std::int32_t> Corpus::tokens(std::int64_t sample, std::int64_t count) const {
  const auto length = static_cast<std::size_t>(count);
  if (bytes_.empty()) return walk(seed_, vocab_, sample, length);
  if (length > bytes_.size()) throw InternalError(fmt::format("{} tokens of a corpus of {}", length, bytes_.size()));
  std::array<std::uint32_t, 2> words;
  RandomStream(seed_, "corpus.offset").words(static_cast<std::uint64_t>(sample) * 2, words);
  const std::uint64_t offset = ((std::uint64_t{words[1]} << 32) | words[0]) % (bytes_.size() - length + 1);
  std::vector<std::int32_t> tokens(length);
  std::transform(bytes_.begin() + static_cast<std::ptrdiff_t>(offset),
                 bytes_.begin() + static_cast<std::ptrdiff_t>(offset + length), tokens.begin(),
                 [](char c) { return static_cast<unsigned char>(c); });
  return tokens;
}

MarkovSource markov_source(const Workload& workload) {
  const Row shape = row(workload.vocab);
  double mean = 0, square = 0;
  for (std::size_t k = 0; k < shape.successors; ++k) {
    const double information = -log_of(shape.probability[k]);
    mean += shape.probability[k] * information;
    square += shape.probability[k] * information * information;
  }
  return {mean, square - mean * mean};
}

std::string hash(const Workload& workload) { return hash(workload, Corpus(workload)); }

std::string hash(const Workload& workload, const Corpus& corpus) {
  Workload content = workload;
  content.name = Workload{}.name;
  content.why.clear();
  if (!corpus.hash().empty()) content.corpus = corpus.hash();
  Sha256 sha;
  sha.add(print(content));
  if (const auto& stale = workload.stale; stale) {
    std::string text = fmt::format("stale {}", static_cast<int>(stale.rule));
    for (const auto layers : stale.stage_layers) text += fmt::format(" {}", layers);
    if (!stale.replicas.empty()) text += fmt::format(" replicas {}", fmt::join(stale.replicas, " "));
    sha.add(text);
  }
  return sha.finish_hex();
}

}  // namespace shardproof::workload
