// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/sha256.hpp"
#include "kernels/core/testing/folder.hpp"
#include "suites/workload/batch.hpp"

namespace shardproof::workload {
namespace {

Workload markov(std::int64_t vocab, std::uint64_t seed = 1) {
  return load("tiny", std::vector<std::string>{"vocab=" + std::to_string(vocab), "seed=" + std::to_string(seed)});
}

/// Counts of (symbol, next) over a long walk.
std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> transitions(const Workload& w, std::int64_t steps) {
  const auto tokens = Corpus(w).tokens(0, steps + 1);
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> counts;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) ++counts[tokens[i]][tokens[i + 1]];
  return counts;
}

TEST(Markov, EveryRowHasDistinctSuccessorsWithItsProbabilities) {
  const std::map<std::int64_t, std::vector<double>> probabilities{{1, {1}},
                                                                  {2, {0.75, 0.25}},
                                                                  {3, {0.5, 0.25, 0.25}},
                                                                  {4, {0.5, 0.25, 0.125, 0.125}},
                                                                  {5, {0.5, 0.25, 0.125, 0.125}},
                                                                  {16, {0.5, 0.25, 0.125, 0.125}}};
  for (const auto& [vocab, expected] : probabilities) {
    std::set<std::vector<std::int32_t>> rows;
    for (const auto& [symbol, nexts] : transitions(markov(vocab), 200000)) {
      ASSERT_EQ(nexts.size(), expected.size()) << "vocab " << vocab << ", symbol " << symbol;
      double total = 0;
      std::vector<std::pair<std::int64_t, std::int32_t>> ranked;
      for (const auto& [next, count] : nexts) {
        ranked.emplace_back(count, next);
        total += static_cast<double>(count);
        EXPECT_GE(next, 0);
        EXPECT_LT(next, vocab);
      }
      std::sort(ranked.rbegin(), ranked.rend());
      std::vector<std::int32_t> row;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const double p = expected[k];
        // Ranked by count, equal probabilities come out in either order: 5 standard errors of a count still hold.
        EXPECT_NEAR(static_cast<double>(ranked[k].first), p * total, 5 * std::sqrt(p * (1 - p) * total) + 1e-9)
            << "vocab " << vocab << ", symbol " << symbol << ", successor " << k;
        row.push_back(ranked[k].second);
      }
      rows.insert(row);
    }
    if (vocab == 16) {
      EXPECT_GE(rows.size(), 12u);
    }
  }
}

TEST(Markov, EntropyAndItsErrorAreThoseOfALongWalk) {
  const std::int64_t steps = 400000;
  for (std::int64_t vocab : {2, 3, 4, 16, 257}) {
    const Workload w = markov(vocab);
    const MarkovSource source = markov_source(w);
    // The table that the walk shows: the shares of the successors of each symbol, most frequent first, against the
    // row's probabilities, which makes the mean of -ln p an estimate of the entropy with the computed error.
    std::vector<double> p = vocab == 2   ? std::vector{0.75, 0.25}
                            : vocab == 3 ? std::vector{0.5, 0.25, 0.25}
                                         : std::vector{0.5, 0.25, 0.125, 0.125};
    double mean = 0, square = 0;
    for (auto& [symbol, nexts] : transitions(w, steps)) {
      std::vector<std::int64_t> counts;
      for (auto& [next, count] : nexts) counts.push_back(count);
      std::sort(counts.rbegin(), counts.rend());
      ASSERT_LE(counts.size(), p.size());
      for (std::size_t k = 0; k < counts.size(); ++k) {
        mean -= std::log(p[k]) * static_cast<double>(counts[k]) / static_cast<double>(steps);
        square += std::log(p[k]) * std::log(p[k]) * static_cast<double>(counts[k]) / static_cast<double>(steps);
      }
    }
    const double error = std::sqrt(source.variance / static_cast<double>(steps));
    EXPECT_NEAR(mean, source.entropy, 5 * error) << vocab;
    EXPECT_NEAR(square - mean * mean, source.variance, 0.01 * source.variance) << vocab;
  }
}

TEST(Markov, ClosedForms) {
  const double ln2 = std::log(2.0);
  EXPECT_NEAR(markov_source(markov(16)).entropy, 1.75 * ln2, 1e-15);
  EXPECT_NEAR(markov_source(markov(16)).variance, (0.5 + 1 + 9.0 / 4 - 1.75 * 1.75) * ln2 * ln2, 1e-15);
  EXPECT_NEAR(markov_source(markov(3)).entropy, 1.5 * ln2, 1e-15);
  EXPECT_NEAR(markov_source(markov(3)).variance, 0.25 * ln2 * ln2, 1e-15);
  EXPECT_NEAR(markov_source(markov(2)).entropy, 2 * ln2 - 0.75 * std::log(3.0), 1e-15);
  EXPECT_EQ(markov_source(markov(1)).entropy, 0);
  EXPECT_EQ(markov_source(markov(1)).variance, 0);
}

TEST(Markov, AWalkReachesEverySymbolThatHasAPredecessor) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Workload w = markov(16, seed);
    const Corpus corpus(w);
    std::set<std::int32_t> all_reached;
    for (std::int64_t sample = 0; sample < 20; ++sample) {
      const auto tokens = corpus.tokens(sample, 4000);
      const std::set<std::int32_t> reached(tokens.begin() + 100, tokens.end());
      if (sample == 0) all_reached = reached;
      EXPECT_EQ(reached, all_reached) << "from another start the walk ends elsewhere: seed " << seed;
    }
    EXPECT_GE(all_reached.size(), 12u) << seed;
  }
}

/// Computed from the definitions by a program apart from this code.
TEST(Markov, FirstTokensOfTiny) {
  EXPECT_EQ(Corpus(load("tiny")).tokens(0, 12), (std::vector<std::int32_t>{15, 9, 21, 26, 0, 3, 22, 7, 13, 13, 23, 5}));
}

TEST(Markov, SamplesAndSeedsDifferAndRepeat) {
  const Workload w = markov(16);
  const Corpus corpus(w), again(w), other(markov(16, 2));
  EXPECT_EQ(corpus.hash(), "");
  EXPECT_EQ(corpus.tokens(3, 50), again.tokens(3, 50));
  EXPECT_NE(corpus.tokens(3, 50), corpus.tokens(4, 50));
  EXPECT_NE(corpus.tokens(3, 50), other.tokens(3, 50));
  const auto longer = corpus.tokens(3, 60);
  EXPECT_EQ(corpus.tokens(3, 50), std::vector(longer.begin(), longer.begin() + 50));
  std::set<std::int32_t> firsts;
  for (std::int64_t sample = 0; sample < 200; ++sample) firsts.insert(corpus.tokens(sample, 1)[0]);
  EXPECT_EQ(firsts.size(), 16u);
}

class FileCorpus : public ::testing::Test {
 protected:
  Workload workload(const std::string& bytes, std::int64_t vocab = 256, std::int64_t sequence = 4) {
    write_file(path_, bytes);
    return load("tiny", std::vector<std::string>{"corpus=" + path_.string(), "vocab=" + std::to_string(vocab),
                                                 "sequence=" + std::to_string(sequence)});
  }
  std::string refused(const Workload& w) {
    try {
      Corpus{w};
    } catch (const BadInput& e) {
      return e.what();
    }
    return "accepted";
  }
  shardproof::testing::Folder folder_;
  std::filesystem::path path_ = folder_ / "corpus";
};

TEST_F(FileCorpus, TheHashIsOfTheBytesThatWereRead) {
  const Workload w = workload("abcdefgh");
  const Corpus corpus(w);
  const std::string before = hash(w);
  EXPECT_EQ(hash(w, corpus), before);
  write_file(path_, "hgfedcba");
  EXPECT_NE(hash(w), before);
  EXPECT_EQ(hash(w, corpus), before);
}

TEST_F(FileCorpus, ADeviceIsRefused) {
  for (const char* path : {"/dev/zero", "/dev/full"})
    EXPECT_NE(refused(load("tiny", std::vector{std::string("corpus=") + path})).find("a device"), std::string::npos);
}

TEST_F(FileCorpus, TokensAreBytesFromDrawnOffsets) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  const Workload w = workload(bytes);
  const Corpus corpus(w);
  EXPECT_EQ(corpus.hash(), Sha256().add(bytes).finish_hex());
  EXPECT_EQ(corpus.tokens(0, 5)[0], 130);  // these three as FirstTokensOfTiny
  EXPECT_EQ(corpus.tokens(1, 5)[0], 65);
  EXPECT_EQ(corpus.tokens(2, 5)[0], 63);
  std::set<std::int32_t> offsets;
  for (std::int64_t sample = 0; sample < 3000; ++sample) {
    const auto tokens = corpus.tokens(sample, 5);
    offsets.insert(tokens[0]);
    for (std::int32_t i = 0; i < 5; ++i) ASSERT_EQ(tokens[static_cast<std::size_t>(i)], tokens[0] + i);
  }
  // All 252 offsets, the last one too: missing one of them in 3,000 draws has probability 252 e^-11.9 = 0.002.
  EXPECT_EQ(offsets.size(), 252u);
  EXPECT_EQ(*offsets.rbegin(), 251);
}

TEST_F(FileCorpus, ExactlyLongEnough) {
  const Corpus corpus(workload("abcde"));
  EXPECT_EQ(corpus.tokens(9, 5), (std::vector<std::int32_t>{'a', 'b', 'c', 'd', 'e'}));
  EXPECT_THROW(corpus.tokens(9, 6), InternalError);
}

TEST_F(FileCorpus, Refusals) {
  const std::string corpus = "corpus " + path_.string() + ": ";
  EXPECT_EQ(refused(workload("")), corpus + "0 bytes, too short: a sample takes sequence + 1 = 5");
  EXPECT_EQ(refused(workload("abcd")), corpus + "4 bytes, too short: a sample takes sequence + 1 = 5");
  EXPECT_EQ(refused(workload("\x01\x02\x03\x1c\x1d\x03", 29)),
            corpus + "byte 29 at offset 4 is beyond the vocabulary of 29 tokens (legal: vocab=256)");
  EXPECT_EQ(refused(workload("aaaa\xff", 255)),
            corpus + "byte 255 at offset 4 is beyond the vocabulary of 255 tokens (legal: vocab=256)");
  EXPECT_EQ(refused(workload("aaaa\xff", 50257)), "accepted");
  const Workload w = workload("abcde");
  std::filesystem::remove(path_);
  EXPECT_NE(refused(w).find(path_.string()), std::string::npos);
  Workload folder = w;
  folder.corpus = std::filesystem::temp_directory_path().string();
  EXPECT_NE(refused(folder).find(folder.corpus), std::string::npos);
}

TEST_F(FileCorpus, HashFollowsTheBytesAndNotThePath) {
  const std::string first = hash(workload("abcde"));
  EXPECT_NE(hash(workload("abcdf")), first);
  const Workload w = workload("abcde");
  EXPECT_EQ(hash(w), first);
  Workload moved = w;
  moved.corpus = path_.string() + ".moved";
  std::filesystem::copy_file(path_, moved.corpus);
  EXPECT_EQ(hash(moved), first);
  std::filesystem::remove(moved.corpus);
  EXPECT_THROW(hash(moved), BadInput);
}

}  // namespace
}  // namespace shardproof::workload
