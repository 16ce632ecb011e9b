// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using testing::bits;

std::vector<std::int32_t> tokens_of(std::int64_t n, std::int64_t vocab) {
  std::vector<std::int32_t> tokens;
  for (const double v : testing::uniform(3, "tokens", n, 0, static_cast<double>(vocab))) {
    tokens.push_back(static_cast<std::int32_t>(std::floor(v)));
  }
  return tokens;
}

struct Shape {
  std::int64_t samples, sequence, vocab, hidden;
};
constexpr Shape shapes[] = {{0, 5, 3, 4}, {1, 1, 1, 1}, {3, 7, 5, 13}, {2, 8, 50, 64}, {4, 5, 2, 37}};

/// Where slices of the vocabulary begin and end: from two to five, uneven, some empty.
std::vector<std::vector<std::int64_t>> slicings(std::int64_t vocab) {
  std::vector<std::vector<std::int64_t>> all{{0, 0, vocab / 3, vocab / 3, vocab - vocab / 5, vocab}};
  for (std::int64_t slices = 2; slices <= 5; ++slices) {
    auto& cuts = all.emplace_back();
    for (std::int64_t i = 0; i <= slices; ++i) cuts.push_back(vocab * i / slices);
  }
  return all;
}

template <class S>
class EmbeddingTest : public ::testing::Test {
 protected:
  Device device;
  ImmediateQueue queue{device};

  Accumulator accumulator(Dims dims) { return {queue, {"sum", dtype_of<S>(), dims, Category::gradient}}; }
};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(EmbeddingTest, Scalars);

TYPED_TEST(EmbeddingTest, ForwardAddsTheTwoRows) {
  using S = TypeParam;
  for (const auto& [samples, sequence, vocab, hidden] : shapes) {
    const auto n = samples * sequence;
    const auto ids = tokens_of(n, vocab);
    const auto words = testing::random<S>("words", vocab * hidden),
               places = testing::random<S>("places", sequence * hidden);
    const auto y = testing::blank<S>(this->queue, "y", {n, hidden});
    embedding::forward(this->queue, testing::put(this->queue, "tokens", {n}, ids),
                       testing::put(this->queue, "words", {vocab, hidden}, words), 0, vocab,
                       testing::put(this->queue, "places", {sequence, hidden}, places), y);
    const auto found = fetch<S>(this->queue, y);
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t c = 0; c < hidden; ++c) {
        const S expected = add(words[static_cast<std::size_t>(ids[static_cast<std::size_t>(r)] * hidden + c)],
                               places[static_cast<std::size_t>(r % sequence * hidden + c)]);
        ASSERT_EQ(bits(found[static_cast<std::size_t>(r * hidden + c)]), bits(expected)) << r << "," << c;
      }
    }
  }
}

TYPED_TEST(EmbeddingTest, BackwardSumsRowsByTokenAndByPosition) {
  using S = TypeParam;
  for (const auto& shape : shapes) {
    const auto sequence = shape.sequence, vocab = shape.vocab, hidden = shape.hidden, n = shape.samples * sequence;
    const auto ids = tokens_of(n, vocab);
    const auto gradient = testing::random<S>("dy", n * hidden, -30, 30);
    auto words = this->accumulator({vocab, hidden}), places = this->accumulator({sequence, hidden});
    const auto tokens = testing::put(this->queue, "tokens", {n}, ids);
    const auto dy = testing::put(this->queue, "dy", {n, hidden}, gradient);
    // Twice: a gradient is one sum over microbatches.
    for (int part = 0; part < 2; ++part) {
      embedding::backward_weight(this->queue, tokens, dy, 0, vocab, sequence, words, places);
    }

    const auto expect = [&](const std::vector<S>& found, std::int64_t rows, auto row_of) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < hidden; ++c) {
          Sum<S> sum{};
          double magnitudes = 0;
          std::int64_t terms = 0;
          for (std::int64_t r = 0; r < n; ++r) {
            if (row_of(r) != row) continue;
            const S value = gradient[static_cast<std::size_t>(r * hidden + c)];
            sum += term(value);
            sum += term(value);
            magnitudes += 2 * std::fabs(static_cast<double>(real(value)));
            terms += 2;
          }
          const S value = found[static_cast<std::size_t>(row * hidden + c)];
          if constexpr (std::is_same_v<S, Fixed>) {
            ASSERT_EQ(value.raw, finish<S>(sum).raw) << row << "," << c;
          } else {
            // Two sums of the same n terms, each within gamma_n = n u (to first order) of the true one.
            const double bound = 2.01 * static_cast<double>(terms) * testing::roundoff<S> * magnitudes;
            ASSERT_NEAR(value, sum, bound) << row << "," << c;
          }
        }
      }
    };
    expect(fetch<S>(this->queue, words.finish(this->queue)), vocab,
           [&](std::int64_t r) { return std::int64_t{ids[static_cast<std::size_t>(r)]}; });
    expect(fetch<S>(this->queue, places.finish(this->queue)), sequence, [&](std::int64_t r) { return r % sequence; });
  }
}

TYPED_TEST(EmbeddingTest, AnEmptyAccumulatorIsLeftOut) {
  using S = TypeParam;
  const auto tokens = testing::put<std::int32_t>(this->queue, "tokens", {3}, {0, 1, 0});
  const auto dy = testing::put(this->queue, "dy", {3, 2}, testing::random<S>("dy", 6));
  auto words = this->accumulator({2, 2}), places = this->accumulator({3, 2});
  embedding::backward_weight(this->queue, tokens, dy, 0, 2, 3, Accumulator(), places);
  embedding::backward_weight(this->queue, tokens, dy, 0, 2, 3, words, Accumulator());
  embedding::backward_weight(this->queue, tokens, dy, 0, 2, 3, Accumulator(), Accumulator());
  const auto all = fetch<S>(this->queue, dy);
  const auto by_place = fetch<S>(this->queue, places.finish(this->queue));
  const auto by_word = fetch<S>(this->queue, words.finish(this->queue));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(bits(by_place[i]), bits(all[i]));
  EXPECT_EQ(bits(by_word[0]), bits(add(all[0], all[4])));
  EXPECT_EQ(bits(by_word[3]), bits(all[3]));
}

TYPED_TEST(EmbeddingTest, SlicesOfTheVocabularySumToTheWhole) {
  using S = TypeParam;
  for (const auto& shape : shapes) {
    const auto sequence = shape.sequence, vocab = shape.vocab, hidden = shape.hidden, n = shape.samples * sequence;
    const auto tokens = testing::put(this->queue, "tokens", {n}, tokens_of(n, vocab));
    const auto table = testing::put(this->queue, "words", {vocab, hidden}, testing::random<S>("words", vocab * hidden));
    const auto places =
        testing::put(this->queue, "places", {sequence, hidden}, testing::random<S>("places", sequence * hidden));
    const auto dy = testing::put(this->queue, "dy", {n, hidden}, testing::random<S>("dy", n * hidden));
    const auto y = testing::blank<S>(this->queue, "y", {n, hidden});
    embedding::forward(this->queue, tokens, table, 0, vocab, places, y);
    const auto whole = fetch<S>(this->queue, y);
    auto dtable = this->accumulator({vocab, hidden});
    embedding::backward_weight(this->queue, tokens, dy, 0, vocab, sequence, dtable, Accumulator());
    const auto dwhole = fetch<S>(this->queue, dtable.finish(this->queue));

    for (const auto& cuts : slicings(vocab)) {
      std::vector<S> sum(whole.size()), joined;
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const auto first = cuts[i], rows = cuts[i + 1] - first;
        embedding::forward(this->queue, tokens, table.rows(first, rows), first, vocab, i == 1 ? places : Tensor(), y);
        const auto part = fetch<S>(this->queue, y);
        for (std::size_t k = 0; k < sum.size(); ++k) {
          if constexpr (std::is_same_v<S, Fixed>) {
            sum[k].raw += part[k].raw;
          } else {
            sum[k] += part[k];  // at most one rounding: at most two parts are not 0
          }
        }
        auto dpart = this->accumulator({rows, hidden});
        embedding::backward_weight(this->queue, tokens, dy, first, vocab, sequence, dpart, Accumulator());
        const auto values = fetch<S>(this->queue, dpart.finish(this->queue));
        joined.insert(joined.end(), values.begin(), values.end());
      }
      EXPECT_TRUE(sum == whole);
      EXPECT_TRUE(joined == dwhole);
    }
  }
}

TYPED_TEST(EmbeddingTest, ATokenOutsideTheVocabularyIsAnError) {
  using S = TypeParam;
  const auto words = testing::put(this->queue, "words", {3, 2}, testing::random<S>("words", 6));
  const auto places = testing::put(this->queue, "places", {2, 2}, testing::random<S>("places", 4));
  const auto y = testing::blank<S>(this->queue, "y", {2, 2});
  for (const std::int32_t token : {-1, 5}) {
    const auto tokens = testing::put<std::int32_t>(this->queue, "tokens", {2}, {0, token});
    for (const std::int64_t first : {0, 2}) {  // whichever slice is here
      EXPECT_THROW(embedding::forward(this->queue, tokens, words, first, 5, places, y), DeviceError);
      EXPECT_THROW(embedding::backward_weight(this->queue, tokens, words.rows(0, 2), first, 5, 2,
                                              this->accumulator({3, 2}), Accumulator()),
                   DeviceError);
    }
  }
}

TYPED_TEST(EmbeddingTest, ASliceOutsideTheVocabularyIsRefused) {
  using S = TypeParam;
  const auto words = testing::put(this->queue, "words", {3, 2}, testing::random<S>("words", 6));
  const auto tokens = testing::put<std::int32_t>(this->queue, "tokens", {1}, {0});
  const auto y = testing::blank<S>(this->queue, "y", {1, 2});
  for (const std::int64_t first : {-1, 3}) {
    EXPECT_THROW(embedding::forward(this->queue, tokens, words, first, 5, Tensor(), y), InternalError);
    EXPECT_THROW(embedding::backward_weight(this->queue, tokens, words.rows(0, 1), first, 5, 1,
                                            this->accumulator({3, 2}), Accumulator()),
                 InternalError);
  }
}

TEST(EmbeddingFixed, OnlyATotalOverflows) {
  Device device;
  ImmediateQueue queue(device);
  const auto tokens = testing::put<std::int32_t>(queue, "tokens", {3}, {0, 0, 0});
  for (const double last : {-3e6, 3e6}) {
    const auto dy = testing::make(queue, "dy", {3, 1}, std::vector{3e6, 3e6, last}, Dtype::fixed);
    Accumulator words(queue, {"words", Dtype::fixed, {1, 1}, Category::gradient});
    embedding::backward_weight(queue, tokens, dy, 0, 1, 3, words, Accumulator());
    const auto total = words.finish(queue);
    EXPECT_EQ(fetch_overflow(queue, total), last > 0);
    EXPECT_EQ(fetch<Fixed>(queue, total)[0], last < 0 ? round_to<Fixed>(3e6) : Fixed{fixed_invalid});
  }
}

TEST(EmbeddingFixed, ATotalThatWouldVanishIn64BitsOverflows) {
  // 16 * 2^20 is 2^64 raw.
  Device device;
  ImmediateQueue queue(device);
  const auto tokens = testing::put(queue, "tokens", {16}, std::vector<std::int32_t>(16, 0));
  const auto dy = testing::make(queue, "dy", {16, 1}, std::vector<double>(16, 0x1p20), Dtype::fixed);
  Accumulator words(queue, {"words", Dtype::fixed, {1, 1}, Category::gradient});
  Accumulator places(queue, {"places", Dtype::fixed, {1, 1}, Category::gradient});
  embedding::backward_weight(queue, tokens, dy, 0, 1, 1, words, places);
  EXPECT_TRUE(fetch_overflow(queue, words.finish(queue)));
  EXPECT_TRUE(fetch_overflow(queue, places.finish(queue)));
}

// The bound counts how often a token occurs, so rare large rows do not cost a second lane of memory.
TEST(EmbeddingFixed, TheSecondLaneComesWithTheMostFrequentToken) {
  Device device;
  ImmediateQueue queue(device);
  const auto dy = testing::make(queue, "dy", {4, 1}, std::vector{8e5, 8e5, 8e5, 8e5}, Dtype::fixed);
  const auto bytes_added_by = [&](const std::vector<std::int32_t>& ids) {
    Accumulator words(queue, {"words", Dtype::fixed, {4, 1}, Category::gradient});
    const auto tokens = testing::put(queue, "tokens", {4}, ids);
    const auto before = device.memory().current_total();
    embedding::backward_weight(queue, tokens, dy, 0, 4, 4, words, Accumulator());
    return device.memory().current_total() - before;
  };
  EXPECT_EQ(bytes_added_by({0, 1, 2, 1}), 0);
  EXPECT_EQ(bytes_added_by({0, 1, 1, 1}), 4 * 8);
}

}  // namespace
}  // namespace shardproof
