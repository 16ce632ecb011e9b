// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/batch.hpp"

#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof::workload {
namespace {

using Ints = std::vector<std::int32_t>;
using Ids = std::vector<std::int64_t>;

/// A workload whose samples are all the tokens 1, 2, ... sequence, sequence + 1: its corpus is exactly that long.
class Batches : public ::testing::Test {
 protected:
  Batch first(std::vector<std::string> settings, std::int64_t sequence) {
    std::string bytes;
    for (std::int64_t i = 1; i <= sequence + 1; ++i) bytes.push_back(static_cast<char>(i));
    std::ofstream(folder_ / "corpus") << bytes;
    settings.insert(settings.end(), {"sequence=" + std::to_string(sequence), "vocab=256", "batch=1",
                                     "corpus=" + (folder_ / "corpus").string()});
    const Workload w = parse("{}", "test", settings);
    return batch(w, Corpus(w), 1);
  }

 private:
  shardproof::testing::Folder folder_;
};

TEST_F(Batches, OneDocumentLabelsEveryPosition) {
  const Batch b = first({}, 5);
  EXPECT_EQ(b.step, 1);
  EXPECT_EQ(b.sequence, 5);
  EXPECT_EQ(b.samples, Ids{0});
  EXPECT_EQ(b.tokens, (Ints{1, 2, 3, 4, 5}));
  EXPECT_EQ(b.labels, (Ints{2, 3, 4, 5, 6}));
  EXPECT_EQ(b.documents, (Ints{0, 0, 0, 0, 0}));
  EXPECT_EQ(b.label_count, 5);
}

TEST_F(Batches, DocumentsEndWithoutLabelAndTheRestIsPadding) {
  const Batch b = first({"documents=3,1,4"}, 10);
  EXPECT_EQ(b.tokens, (Ints{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(b.documents, (Ints{0, 0, 0, 1, 2, 2, 2, 2, 3, 3}));
  EXPECT_EQ(b.labels, (Ints{2, 3, -1, -1, 6, 7, 8, -1, -1, -1}));
  EXPECT_EQ(b.label_count, 5);
}

TEST_F(Batches, DocumentsThatFillTheSequenceLeaveNoPadding) {
  const Batch b = first({"documents=2,3"}, 5);
  EXPECT_EQ(b.documents, (Ints{0, 0, 1, 1, 1}));
  EXPECT_EQ(b.labels, (Ints{2, -1, 4, 5, -1}));
}

TEST_F(Batches, PromptHasNoLabels) {
  EXPECT_EQ(first({"prompt=2"}, 4).labels, (Ints{-1, -1, 4, 5}));
  EXPECT_EQ(first({"prompt=4"}, 4).label_count, 0);
  EXPECT_EQ(first({"prompt=2", "documents=1,3"}, 5).labels, (Ints{-1, -1, 4, -1, -1}));
}

TEST_F(Batches, ValidLabelsKeepsASubsetOfExactlyThatSize) {
  const Ints all = first({"documents=4,3", "prompt=1"}, 8).labels;
  EXPECT_EQ(all, (Ints{-1, 3, 4, -1, 6, 7, -1, -1}));
  for (int keep = 0; keep < 7; ++keep) {
    std::set<Ints> drawn;
    for (int seed = 0; seed < 60; ++seed) {
      const Batch b = first(
          {"documents=4,3", "prompt=1", "valid_labels=" + std::to_string(keep), "seed=" + std::to_string(seed)}, 8);
      EXPECT_EQ(b.label_count, std::min(keep, 4));
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(b.labels[i] == all[i] || b.labels[i] == -1);
      drawn.insert(b.labels);
    }
    // 4 over keep subsets; that one of 6 is never drawn in 60 tries has probability 6 (5/6)^60 = 1e-4.
    EXPECT_EQ(drawn.size(), std::vector<std::size_t>({1, 4, 6, 4, 1, 1, 1})[static_cast<std::size_t>(keep)]);
  }
}

std::vector<std::int64_t> labels_by_sample(const Batch& b) {
  std::vector<std::int64_t> counts;
  for (std::int64_t k = 0; k < b.size(); ++k) counts.push_back(part(b, b.size(), k).label_count);
  return counts;
}

TEST(Batch, ValidLabelsAreCycledOverTheBatch) {
  const Workload w = load("tiny", std::vector<std::string>{"valid_labels=2,7,0", "batch=8", "samples=11"});
  const Corpus corpus(w);
  EXPECT_EQ(labels_by_sample(batch(w, corpus, 1)), (Ids{2, 7, 0, 2, 7, 0, 2, 7}));
  EXPECT_EQ(batch(w, corpus, 1).label_count, 27);
  EXPECT_EQ(labels_by_sample(batch(w, corpus, 2)), (Ids{2, 7, 0}));
}

/// The three smallest words of the stream "labels.sample.0", computed apart from this code.
TEST(Batch, KeptLabelsAreThoseOfTheSmallestWords) {
  const Workload w = load("tiny", std::vector<std::string>{"valid_labels=3"});
  const Batch b = batch(w, Corpus(w), 1);
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(b.labels[i] >= 0, i == 1 || i == 5 || i == 7) << i;
}

TEST(Batch, AnEpochEndsWithAShortBatchAndBeginsAgain) {
  const Workload w = load("tiny", std::vector<std::string>{"batch=4", "samples=10"});
  const Corpus corpus(w);
  EXPECT_EQ(batch(w, corpus, 1).samples, (Ids{0, 1, 2, 3}));
  EXPECT_EQ(batch(w, corpus, 2).samples, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(batch(w, corpus, 3).samples, (Ids{8, 9}));
  EXPECT_EQ(batch(w, corpus, 4).samples, (Ids{0, 1, 2, 3}));
  EXPECT_EQ(batch(w, corpus, 4).tokens, batch(w, corpus, 1).tokens);
  EXPECT_EQ(batch(w, corpus, 6).samples, (Ids{8, 9}));
}

TEST(Batch, EndlessAndTinyDataSets) {
  Workload w = load("tiny", std::vector<std::string>{"batch=3"});
  EXPECT_EQ(batch(w, Corpus(w), 5).samples, (Ids{12, 13, 14}));
  w.samples = 2;
  EXPECT_EQ(batch(w, Corpus(w), 1).samples, (Ids{0, 1}));
  EXPECT_EQ(batch(w, Corpus(w), 2).samples, (Ids{0, 1}));
  w.samples = 6;
  EXPECT_EQ(batch(w, Corpus(w), 2).samples, (Ids{3, 4, 5}));
  EXPECT_EQ(batch(w, Corpus(w), 3).samples, (Ids{0, 1, 2}));
}

TEST(Batch, PartsAreConsecutiveAndTheLargerComeFirst) {
  const Workload w = load("tiny", std::vector<std::string>{"batch=7", "documents=4,3", "valid_labels=1,2,3"});
  const Batch whole = batch(w, Corpus(w), 2);
  const std::vector<Ids> expected{{7, 8, 9}, {10, 11}, {12, 13}};
  Batch joined;
  for (std::int64_t k = 0; k < 3; ++k) {
    const Batch p = part(whole, 3, k);
    EXPECT_EQ(labels_of_part(whole, 3, k), p.label_count);
    EXPECT_EQ(p.samples, expected[static_cast<std::size_t>(k)]);
    EXPECT_EQ(p.first, p.samples[0] - 7);
    EXPECT_EQ(p.step, 2);
    EXPECT_EQ(p.sequence, 9);
    EXPECT_EQ(p.tokens.size(), p.samples.size() * 9);
    joined.tokens.insert(joined.tokens.end(), p.tokens.begin(), p.tokens.end());
    joined.labels.insert(joined.labels.end(), p.labels.begin(), p.labels.end());
    joined.documents.insert(joined.documents.end(), p.documents.begin(), p.documents.end());
    joined.label_count += p.label_count;
  }
  EXPECT_EQ(joined.tokens, whole.tokens);
  EXPECT_EQ(joined.labels, whole.labels);
  EXPECT_EQ(joined.documents, whole.documents);
  EXPECT_EQ(joined.label_count, whole.label_count);
  EXPECT_EQ(whole.label_count, 1 + 2 + 3 + 1 + 2 + 3 + 1);
}

TEST(Batch, PartsMayBeEmptyAndCutAgain) {
  const Workload w = load("tiny", std::vector<std::string>{"batch=5"});
  const Batch whole = batch(w, Corpus(w), 1);
  const Batch empty = part(whole, 7, 6);
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.first, 5);
  EXPECT_EQ(empty.label_count, 0);
  EXPECT_TRUE(empty.tokens.empty());
  const Batch second = part(part(whole, 2, 1), 2, 1);
  EXPECT_EQ(second.samples, Ids{4});
  EXPECT_EQ(second.first, 4);
  EXPECT_THROW(part(whole, 0, 0), InternalError);
  EXPECT_THROW(part(whole, 2, 2), InternalError);
  EXPECT_THROW(part(whole, 2, -1), InternalError);
}

TEST(Batch, ShapesHaveThePropertiesThatTheirWorkloadsNeed) {
  const Workload w01 = load("w01");
  const Batch uneven = batch(w01, Corpus(w01), 1);
  EXPECT_EQ(labels_by_sample(uneven), (Ids{2, 7, 0, 7, 2, 7, 0, 0, 1}));
  EXPECT_EQ(part(uneven, 3, 0).label_count, 9);
  EXPECT_EQ(part(uneven, 3, 1).label_count, 16);
  EXPECT_EQ(part(uneven, 3, 2).label_count, 1);
  EXPECT_EQ(batch(w01, Corpus(w01), 2).samples, Ids{9});

  // Of 29 positions two ranks take 15 and 14, three 10, 10 and 9: the first chunk of three has no label.
  const Workload causal = load("w07-causal");
  const Batch packed = batch(causal, Corpus(causal), 1);
  EXPECT_EQ(packed.label_count, 3 * 17);
  for (std::size_t i = 0; i < 11; ++i) EXPECT_EQ(packed.labels[i], -1);

  const Workload window = load("w07-window");
  const Batch padded = batch(window, Corpus(window), 1);
  EXPECT_EQ(labels_by_sample(padded), (Ids{26, 3, 0}));
  EXPECT_EQ((Ints(padded.documents.begin() + 27, padded.documents.begin() + 31)), (Ints{2, 2, 3, 3}));

  const Workload w15 = load("w15");
  EXPECT_EQ(labels_by_sample(batch(w15, Corpus(w15), 1)), (Ids{0, 5, 3, 5}));
  EXPECT_EQ(batch(w15, Corpus(w15), 3).samples, Ids{8});
  EXPECT_EQ(batch(w15, Corpus(w15), 3).label_count, 0);
}

TEST(Dropout, StreamsHaveTheNamesOfTheDefinition) {
  const Workload w = load("tiny", std::vector<std::string>{"seed=77"});
  const auto expect = [](const RandomStream& stream, const char* name) {
    for (std::uint64_t element : {0u, 1u, 7u, 1000u}) {
      EXPECT_EQ(stream.word(element), RandomStream(77, name).word(element)) << name;
    }
  };
  expect(dropout_stream(w, DropoutSite::embedding, 0, 3), "dropout.embedding.step.3");
  expect(dropout_stream(w, DropoutSite::attention_probability, 0, 1), "dropout.blocks.0.attention_probability.step.1");
  expect(dropout_stream(w, DropoutSite::attention_output, 11, 20), "dropout.blocks.11.attention_output.step.20");
  expect(dropout_stream(w, DropoutSite::mlp_output, 2, 3), "dropout.blocks.2.mlp_output.step.3");
}

TEST(Dropout, ThresholdIsTheFloor) {
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), 0x80000000u);
  EXPECT_EQ(dropout_threshold(0.2), 858993459u);  // 858993459.2
  EXPECT_EQ(dropout_threshold(1 - 0x1p-53), 0xffffffffu);
}

}  // namespace
}  // namespace shardproof::workload
