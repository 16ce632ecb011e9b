// SPDX-License-Identifier: Apache-2.0
// Against the oracle: exact bit for bit, overflow included; f64 and f32 within forward error bounds.
#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/testing.hpp"
#include "kernels/core/errors.hpp"
#include "reference/attention.hpp"

namespace shardproof::attention {
namespace {

using testing::Candidate, testing::Case, testing::Form, testing::inputs;

/// The oracle on the operands of a candidate, in S; all arrays as the kernels lay them out.
template <class S>
struct Oracle {
  template <class T>
  Oracle(Queue& queue, const Case& c, const Candidate<T>& given) {
    const auto& s = c.shape;
    const auto length = s.sequence;
    const auto part = [&](const Tensor& tensor, std::int64_t b, std::int64_t columns) {
      std::vector<S> values;
      for (const double x : shardproof::testing::doubles(queue, tensor.rows(b * length, length)))
        values.push_back(round_to<S>(Real<S>(x)));
      return reference::Array<S>(length, columns, values);
    };
    const auto append = [](auto& to, const auto& array) {
      to.insert(to.end(), array.values().begin(), array.values().end());
    };
    const auto all_documents = c.all_documents();
    const auto site = c.site();
    reference::Arithmetic<S> in_forward, in_backward;
    for (std::int64_t b = 0; b < s.batch; ++b) {
      const std::span documents(all_documents.data() + b * length, static_cast<std::size_t>(length));
      const reference::AttentionShape shape{s.heads, s.kv_heads, s.window, documents};
      reference::AttentionSaved<S> saved;
      saved.query = part(given.q, b, c.hidden());
      saved.key = part(given.k, b, c.kv_hidden());
      saved.value = part(given.v, b, c.kv_hidden());
      if (c.dropout > 0) {
        const auto first = static_cast<std::int64_t>(site.first) + b * s.heads * length * length;
        const auto threshold = static_cast<std::uint32_t>(c.dropout * 0x1p32);
        saved.dropout =
            reference::draw_dropout(in_forward, site.stream, threshold, c.dropout, first, s.heads * length, length);
      }
      reference::attend(in_forward, shape, saved);
      const auto gradient = reference::attend_input(in_backward, shape, saved, part(given.d_o, b, c.hidden()));
      append(probability, saved.probability);
      append(dropped, saved.probability_dropped);
      append(o, saved.output);
      append(dq, gradient.query);
      append(dk, gradient.key);
      append(dv, gradient.value);
      for (std::int64_t r = 0; r < saved.dropout.kept.rows(); ++r) {
        const auto i = r % length;
        for (std::int64_t j = 0; j < length; ++j) mask.push_back(shape.visible(i, j) ? saved.dropout.kept[r][j] : 0);
      }
    }
    forward_overflow = in_forward.overflow();
    backward_overflow = in_backward.overflow();
  }

  std::vector<S> probability, dropped, o, dq, dk, dv;
  std::vector<std::uint8_t> mask;
  bool forward_overflow, backward_overflow;
};

class AttentionExact : public ::testing::TestWithParam<std::tuple<Case, Form>> {
 protected:
  const Case case_ = std::get<0>(GetParam());
  const Form form_ = std::get<1>(GetParam());
  Device device_;
  ImmediateQueue queue_{device_};
};

TEST_P(AttentionExact, EqualsTheOracle) {
  const auto& c = case_;
  for (const double spread : {1.0, 6.0}) {
    const Candidate<Fixed> run(queue_, c, inputs(c, spread), form_);
    const Oracle<Fixed> oracle(queue_, c, run);
    EXPECT_EQ(fetch<Fixed>(queue_, run.o), oracle.o);
    if (form_ == Form::stored) {
      EXPECT_EQ(fetch<Fixed>(queue_, run.saved.probability), oracle.probability);
    }
    if (form_ == Form::stored && c.dropout > 0) {
      EXPECT_EQ(fetch<std::uint8_t>(queue_, run.saved.mask), oracle.mask);
      EXPECT_EQ(fetch<Fixed>(queue_, run.saved.dropped), oracle.dropped);
    }
    EXPECT_EQ(fetch<Fixed>(queue_, run.dq), oracle.dq);
    EXPECT_EQ(fetch<Fixed>(queue_, run.dk), oracle.dk);
    EXPECT_EQ(fetch<Fixed>(queue_, run.dv), oracle.dv);
    EXPECT_FALSE(oracle.forward_overflow || oracle.backward_overflow);
    EXPECT_FALSE(fetch_overflow(queue_, run.o) || fetch_overflow(queue_, run.dk));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, AttentionExact,
                         ::testing::Combine(::testing::ValuesIn(testing::cases()),
                                            ::testing::Values(Form::stored, Form::tiled)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + name_of(std::get<1>(test.param));
                         });

TEST_P(AttentionExact, SlicesOfHeadsJoinToTheWhole) {
  const auto& c = case_;
  const auto x = inputs(c, 3.0);
  const Candidate<Fixed> whole(queue_, c, x, form_);
  const auto get = [&](const Tensor& tensor) { return fetch<Fixed>(queue_, tensor); };
  for (const auto& cuts : testing::slicings(c.shape.heads)) {
    SCOPED_TRACE(::testing::PrintToString(cuts));
    const auto before = device_.flops().model();
    const testing::Joined<Fixed> joined(queue_, c, x, cuts, form_);
    EXPECT_EQ(device_.flops().model() - before, 12 * c.positions() * c.shape.sequence * c.hidden());
    EXPECT_EQ(joined.o, get(whole.o));
    EXPECT_EQ(joined.dq, get(whole.dq));
    EXPECT_EQ(joined.dk, get(whole.dk));
    EXPECT_EQ(joined.dv, get(whole.dv));
    if (form_ == Form::tiled) continue;
    EXPECT_EQ(joined.probability, get(whole.saved.probability));
    if (c.dropout == 0) continue;
    EXPECT_EQ(joined.mask, fetch<std::uint8_t>(queue_, whole.saved.mask));
    EXPECT_EQ(joined.dropped, get(whole.saved.dropped));
  }
}

/// One number of one operand replaced.
struct Spike {
  const char* operand;
  std::int64_t row, column;
  double value;
};

/// Whether forward and backward overflow, by the kernel and by the oracle.
class AttentionOverflow : public ::testing::TestWithParam<Form> {
 protected:
  void check(const Case& c, const std::vector<Spike>& spikes, bool forward, bool backward) {
    auto x = inputs(c, 1.0);
    for (const auto& s : spikes) {
      auto& values = x.at(s.operand);
      values[static_cast<std::size_t>(s.row * (std::ssize(values) / c.shape.batch / c.shape.sequence) + s.column)] =
          s.value;
    }
    const Candidate<Fixed> run(queue_, c, x, GetParam());
    const Oracle<Fixed> oracle(queue_, c, run);
    EXPECT_EQ(oracle.forward_overflow, forward);
    EXPECT_EQ(fetch_overflow(queue_, run.o), forward);
    EXPECT_EQ(fetch_overflow(queue_, GetParam() == Form::tiled ? run.statistics.sum : run.saved.probability), forward);
    if (forward) return;
    EXPECT_EQ(fetch<Fixed>(queue_, run.o), oracle.o);
    EXPECT_EQ(oracle.backward_overflow, backward);
    EXPECT_EQ(fetch_overflow(queue_, run.dq), backward);
    EXPECT_EQ(fetch_overflow(queue_, run.dv), backward);
    if (backward) return;
    EXPECT_EQ(fetch<Fixed>(queue_, run.dq), oracle.dq);
    EXPECT_EQ(fetch<Fixed>(queue_, run.dk), oracle.dk);
    EXPECT_EQ(fetch<Fixed>(queue_, run.dv), oracle.dv);
  }

  Device device_;
  ImmediateQueue queue_{device_};
  Case plain_{"plain", {.batch = 1, .sequence = 5, .heads = 1, .kv_heads = 1, .head_size = 2}};
};

TEST_P(AttentionOverflow, LargeScoresInRange) {
  check(plain_, {{"q", 3, 0, 3000}, {"k", 2, 0, 900}}, false, false);
  check(plain_, {{"q", 3, 0, 3000}, {"k", 2, 0, -900}}, false, false);
}

TEST_P(AttentionOverflow, ScoreCountsWhereVisible) {
  check(plain_, {{"q", 3, 0, 4000}, {"k", 2, 0, 4000}}, true, false);
  check(plain_, {{"q", 3, 0, 4000}, {"k", 3, 0, 4000}}, true, false);
  check(plain_, {{"q", 3, 0, 4000}, {"k", 4, 0, 4000}}, false, false);
  auto c = plain_;
  c.shape.window = 2;
  check(c, {{"q", 3, 0, 4000}, {"k", 2, 0, 4000}}, true, false);
  check(c, {{"q", 3, 0, 4000}, {"k", 1, 0, 4000}}, false, false);
  c = plain_;
  c.documents = {0, 0, 0, 1, 1};
  check(c, {{"q", 3, 0, 4000}, {"k", 3, 0, 4000}}, true, false);
  check(c, {{"q", 3, 0, 4000}, {"k", 2, 0, 4000}}, false, false);
}

TEST_P(AttentionOverflow, DistanceToTheMaximumCounts) {
  // Scores of +-2.1e6, scaled by 1/sqrt(1): each is in range, their difference is not.
  Case c = plain_;
  c.shape.head_size = 1;
  check(c, {{"q", 3, 0, 3000}, {"k", 2, 0, -700}, {"k", 3, 0, 700}}, true, false);
  check(c, {{"q", 3, 0, 3000}, {"k", 2, 0, -600}, {"k", 3, 0, 600}}, false, false);
}

TEST_P(AttentionOverflow, WeightedSumCountsBeforeItsDivision) {
  // All scores are 0, so e = 1: the sum of v is out of range, its mean is not.
  std::vector<Spike> spikes;
  for (std::int64_t i = 0; i < 5; ++i) {
    spikes.insert(spikes.end(), {{"q", i, 0, 0}, {"q", i, 1, 0}, {"v", i, 0, 1e6}, {"d_o", i, 0, 0}, {"d_o", i, 1, 0}});
  }
  check(plain_, spikes, true, false);
  spikes.push_back({"v", 4, 0, -1e6});
  check(plain_, spikes, false, false);
}

TEST_P(AttentionOverflow, GradientScoreCountsWhereVisible) {
  const std::vector<Spike> base{{"d_o", 3, 0, 4000}};
  const auto with = [&](std::int64_t row) {
    auto spikes = base;
    spikes.push_back({"v", row, 0, 4000});
    return spikes;
  };
  check(plain_, with(2), false, true);
  check(plain_, with(4), false, false);
  auto c = plain_;
  c.documents = {0, 0, 0, 1, 1};
  check(c, with(2), false, false);
  // p of key 2 rounds to 0, and the score of its gradient counts all the same.
  auto spikes = with(2);
  for (const auto& s : {Spike{"q", 3, 0, 1000}, {"k", 2, 0, -1000}, {"k", 0, 0, 1}, {"k", 1, 0, 1}, {"k", 3, 0, 1}})
    spikes.push_back(s);
  check(plain_, spikes, false, true);
  c = plain_;
  c.shape.window = 1;
  check(c, with(2), false, false);
}

TEST_P(AttentionOverflow, DropoutFactorCountsWhereKept) {
  Case c = plain_;
  c.dropout = 0.75;  // k = 4: a t of 2e6 is in range, k t is not
  check(c, {{"d_o", 4, 0, 2000}, {"v", 0, 0, 1000}, {"v", 1, 0, 1000}, {"v", 2, 0, 1000}, {"v", 3, 0, 1000}}, false,
        true);
}

TEST_P(AttentionOverflow, DroppedGradientScoreCountsToo) {
  Case c = plain_;
  c.dropout = 0.5;  // some keys of the last row are kept, some not
  for (std::int64_t j = 0; j < 5; ++j) check(c, {{"d_o", 4, 0, 4000}, {"v", j, 0, 4000}}, false, true);
}

TEST_P(AttentionOverflow, DistanceToTheDotProductCounts) {
  // Key 0 has p = 0 and t = t0, all others t = -2.5e6, which is the dot product too. No gradient shows ds of key 0.
  const auto with = [](double v0) {
    std::vector<Spike> spikes{
        {"v", 0, 0, v0}, {"q", 3, 0, 1000}, {"k", 0, 0, -1000}, {"d_o", 3, 0, 1000}, {"d_o", 3, 1, 0}};
    for (std::int64_t j = 1; j < 5; ++j) spikes.insert(spikes.end(), {{"v", j, 0, -2500}, {"k", j, 0, 1}});
    return spikes;
  };
  check(plain_, with(2500), false, true);
  check(plain_, with(1500), false, false);
}

TEST_P(AttentionOverflow, LargeGradientsInRange) {
  check(plain_, {{"d_o", 3, 0, 30000}, {"d_o", 4, 1, -7000}}, false, false);
  Case c = plain_;
  c.dropout = 0.5;
  check(c, {{"d_o", 3, 0, 30000}, {"d_o", 4, 1, -7000}}, false, false);
}

INSTANTIATE_TEST_SUITE_P(Forms, AttentionOverflow, ::testing::Values(Form::stored, Form::tiled),
                         [](const auto& test) { return name_of(test.param); });

class Attention : public ::testing::Test {
 protected:
  Device device_;
  ImmediateQueue queue_{device_};
  Case case_{"case", {.batch = 2, .sequence = 5, .heads = 2, .kv_heads = 1, .head_size = 3}};
};

TEST_F(Attention, CountsFlopsOfTheWholeSquare) {
  constexpr std::int64_t square = 2 * 5 * 5 * 6;
  const auto flops = [&]<class S>(S, Form form) {
    Device device;
    ImmediateQueue queue(device);
    const Candidate<S> run(queue, case_, inputs(case_, 1.0), form);
    EXPECT_EQ(device.flops().model(), (4 + 8) * square);
    return device.flops().hardware();
  };
  EXPECT_EQ(flops(float{}, Form::stored), (4 + 8) * square);
  EXPECT_EQ(flops(float{}, Form::tiled), (4 + 8 + 2) * square);
  EXPECT_EQ(flops(double{}, Form::tiled), (4 + 8 + 2) * square);
  EXPECT_EQ(flops(Fixed{}, Form::tiled), (4 + 8 + 4) * square);
}

TEST_F(Attention, TiledNeverHoldsAMatrixOfScores) {
  const auto workspace = [&]<class S>(S, std::int64_t sequence) {
    auto c = case_;
    c.shape.sequence = sequence;
    c.dropout = 0.5;
    Device device({.poison = false});
    ImmediateQueue queue(device);
    Candidate<S> x(queue, c, inputs(c, 1.0), Form::tiled);
    const auto site = c.site();
    x.dk_sum.restart(queue);
    x.dv_sum.restart(queue);
    device.memory().reset_peaks();
    tiled_forward(queue, c.shape, x.q, x.k, x.v, x.documents, &site, x.statistics, x.o);
    tiled_backward(queue, c.shape, x.d_o, x.q, x.k, x.v, x.documents, &site, x.o, x.statistics, x.dq, x.dk_sum,
                   x.dv_sum);
    return device.memory().peak_total() - device.memory().current_total();
  };
  EXPECT_EQ(workspace(float{}, 700), workspace(float{}, 200));
  EXPECT_EQ(workspace(double{}, 700), workspace(double{}, 200));
  EXPECT_EQ(workspace(Fixed{}, 700), workspace(Fixed{}, 200));
}

TEST_F(Attention, TiledTakesLargeScoresAsTheyCome) {
  // Maxima that grow from tile to tile, and one that falls: the first scores shrink to nothing, or stay all there is.
  Case c{"growing", {.batch = 1, .sequence = 200, .heads = 1, .kv_heads = 1, .head_size = 1}};
  auto x = inputs(c, 1.0);
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < 200; ++i) x.at("q")[i] = 1, x.at("k")[i] = sign * static_cast<double>(i);
    const Candidate<float> stored(queue_, c, x), tiled(queue_, c, x, Form::tiled);
    for (const auto member :
         {&Candidate<float>::o, &Candidate<float>::dq, &Candidate<float>::dk, &Candidate<float>::dv}) {
      const auto expected = fetch<float>(queue_, stored.*member), got = fetch<float>(queue_, tiled.*member);
      // Scores are whole numbers: besides sums of at most 200 terms and a few merges only exp rounds, by 2^-21 as k is
      // at most 200 and dq sums k.
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(got[i], expected[i], 200 * 0x1p-21) << i;
    }
  }
}

TEST_F(Attention, TiledPassesOnWhatIsNotFinite) {
  auto x = inputs(case_, 1.0);
  x.at("q")[2 * 6] = std::nan("");  // sample 0, position 2, head 0
  const Candidate<float> run(queue_, case_, x, Form::tiled);
  const auto o = fetch<float>(queue_, run.o), dq = fetch<float>(queue_, run.dq);
  for (std::size_t i = 0; i < o.size(); ++i) {
    EXPECT_EQ(std::isnan(o[i]), i >= 12 && i < 15) << i;
    EXPECT_EQ(std::isnan(dq[i]), i >= 12 && i < 15) << i;
  }
  EXPECT_TRUE(std::isnan(fetch<float>(queue_, run.dk)[0]));
}

TEST_F(Attention, OnlyTheTotalOfKeyGradientsOverflows) {
  // All scores are 0, so p = 1/(i+1): two heads' gradients of the first values leave the range, and return.
  const Candidate<Fixed> run(queue_, case_, inputs(case_, 0.0));
  auto dk = run.dk_sum, dv = run.dv_sum;
  const auto add = [&](double d_o) {
    const std::vector<double> all(static_cast<std::size_t>(case_.positions() * case_.hidden()), d_o);
    backward(queue_, case_.shape, shardproof::testing::make(queue_, "d_o", run.q.dims(), all, Dtype::fixed), run.q,
             run.k, run.v, run.documents, run.o, run.saved, 0, run.dq, dk, dv);
  };
  dk.restart(queue_);
  dv.restart(queue_);
  add(0.5);
  const auto expected = fetch<Fixed>(queue_, dv.finish(queue_));
  EXPECT_GT(expected[0], round_to<Fixed>(2.2));  // 2 heads * 0.5 * (1 + 1/2 + 1/3 + 1/4 + 1/5)
  dv.restart(queue_);
  for (const double d_o : {3e6, 3e6, 0.5, -3e6, -3e6}) add(d_o);
  EXPECT_EQ(fetch<Fixed>(queue_, dv.finish(queue_)), expected);
  dv.restart(queue_);
  add(3e6);
  EXPECT_TRUE(fetch_overflow(queue_, dv.finish(queue_)));
}

TEST_F(Attention, TiledKnowsHowLargeTheSumOverHeadsAndBlocksMayGrow) {
  // Each head, or each block of queries, adds less than 2^21 to dv of key 0; 2^63 in raw units is 2^23, and the totals
  // would come back into range if they wrapped.
  const auto dv_overflows = [&](const Shape& shape, double first_key, double d_o) {
    const Case c{"large_sums", shape};
    auto x = inputs(c, 0.0);
    std::fill(x["q"].begin(), x["q"].end(), 1.0);
    x["k"][0] = first_key;  // what every query looks at
    std::fill(x["d_o"].begin(), x["d_o"].end(), d_o);
    const Candidate<Fixed> run(queue_, c, x, Form::tiled);
    return fetch_overflow(queue_, run.dv);
  };
  const Shape heads{.batch = 1, .sequence = 1, .heads = 8, .kv_heads = 1, .head_size = 1};
  EXPECT_TRUE(dv_overflows(heads, 0, 1.9e6));
  EXPECT_FALSE(dv_overflows(heads, 0, 0.5e6));
  const Shape blocks{.batch = 1, .sequence = 512, .heads = 1, .kv_heads = 1, .head_size = 1};
  EXPECT_TRUE(dv_overflows(blocks, 1000, 32000));
  EXPECT_FALSE(dv_overflows(blocks, 1000, 8000));
}

TEST_F(Attention, FreesItsWorkspace) {
  { const Candidate<Fixed> run(queue_, case_, inputs(case_, 1.0)); }
  EXPECT_EQ(device_.memory().current_total(), 0);
}

TEST_F(Attention, RefusesWhatDoesNotFit) {
  const Candidate<double> run(queue_, case_, inputs(case_, 1.0));
  const auto shape = case_.shape;
  auto odd = shape;
  const auto refused = [&](const Shape& s) {
    EXPECT_THROW(forward(queue_, s, run.q, run.k, run.v, run.documents, nullptr, run.saved, run.o), InternalError);
  };
  odd.kv_heads = 3;
  refused(odd);
  odd = shape;  // heads 1..2 of 2 groups of 2: each needs its own key head
  odd.group = 2;
  odd.first_head = 1;
  odd.total_heads = 4;
  refused(odd);
  odd = shape;  // beyond the last head
  odd.group = 2;
  odd.first_head = 2;
  odd.total_heads = 3;
  refused(odd);
  EXPECT_THROW(forward(queue_, shape, run.k, run.k, run.v, run.documents, nullptr, run.saved, run.o), InternalError);
  EXPECT_THROW(backward(queue_, shape, run.d_o, run.q, run.q, run.v, run.documents, run.o, run.saved, 0, run.dq,
                        run.dk_sum, run.dv_sum),
               InternalError);
  const Tensor unwritten(queue_, {"unwritten", Dtype::f64, run.q.dims(), Category::activation});
  try {
    forward(queue_, shape, unwritten, run.k, run.v, run.documents, nullptr, run.saved, run.o);
    ADD_FAILURE() << "poison was read";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("'unwritten' has poison"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardproof::attention
