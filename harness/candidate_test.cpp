// SPDX-License-Identifier: Apache-2.0
// What the command line does with candidates and maps is tested by scripts/tests/judge_test.py.
#include "harness/candidate.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "harness/judge_candidate.hpp"
#include "harness/own_updates.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof::harness {
namespace {

/// Every pattern of 16 bits, as a tensor of that type.
std::vector<double> all_patterns(Dtype dtype) {
  safetensors::Entry entry{"x", dtype, {65536}, std::vector<std::byte>(2 * 65536)};
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(&entry.bytes[2 * std::size_t{i}], &bits, 2);
  }
  return decoded(entry);
}

/// The value from its definition: (-1)^s 2^(max(e,1) - bias) (f / 2^width + [e > 0]).
double defined(std::uint32_t bits, int exponent_bits) {
  const int width = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int e = static_cast<int>(bits >> width) & ((1 << exponent_bits) - 1);
  const double f = static_cast<double>(bits & ((1U << width) - 1)) / static_cast<double>(1 << width);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (e == (1 << exponent_bits) - 1)
    return f == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return sign * std::pow(2.0, std::max(e, 1) - bias) * (f + (e > 0 ? 1 : 0));
}

TEST(Candidate, EveryNarrowNumberIsDecodedExactly) {
  for (const auto& [dtype, exponent_bits] : {std::pair(Dtype::f16, 5), std::pair(Dtype::bf16, 8)}) {
    const auto values = all_patterns(dtype);
    ASSERT_EQ(values.size(), 65536U);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const double right = defined(i, exponent_bits);
      if (std::isnan(right))
        ASSERT_TRUE(std::isnan(values[i])) << name_of(dtype) << " " << i;
      else
        ASSERT_EQ(std::bit_cast<std::uint64_t>(values[i]), std::bit_cast<std::uint64_t>(right))
            << name_of(dtype) << " " << i;
    }
  }
  EXPECT_EQ(all_patterns(Dtype::f16)[0x3555], 0.333251953125);  // the half nearest to 1/3
  EXPECT_EQ(all_patterns(Dtype::bf16)[0x4049], 3.140625);       // the bfloat16 nearest to pi
  EXPECT_TRUE(decoded({"x", Dtype::i32, {1}, std::vector<std::byte>(4)}).empty());
}

/// Sources of one file, in types and shapes that maps make more of.
TEST(Candidate, ShardsAreCutAndPutTogetherInTheirOrder) {
  const shardproof::testing::Folder root;
  const auto write = [&](const char* file, const std::vector<float>& values, const Dims& dims) {
    safetensors::write(root / file, {.metadata = {}, .entries = {safetensors::entry("gradient/w", dims, values)}});
  };
  write("a-0001.safetensors", {0, 1, 2, 10, 11, 12}, {2, 3});
  write("b-0001.safetensors", {3, 4, 13, 14}, {2, 2});
  CandidateMap map;
  map.files = {"a-{step}.safetensors", "b-{step}.safetensors"};
  map.tensors["rows"] = {{{"w", 0}, {"w", 1}}, 1};
  map.tensors["columns"] = {{{"w", 0, true}, {"w", 1, true}}, 0};
  map.tensors["middle"] = {{{"w", 0, false, Cut{1, 1, 3}}, {"w", 1, false, Cut{1, 0, 1}}}, 1};
  Candidate candidate(root.path(), map);
  candidate.open(1);
  EXPECT_EQ(candidate.coarsest(), Dtype::f32);
  const auto values = [&](const char* name, const Dims& dims) {
    const Taken taken = candidate.take(Observed::gradient, name, "", dims);
    EXPECT_EQ(taken.problem, "");
    return taken.values;
  };
  using V = std::vector<double>;
  EXPECT_EQ(values("rows", {2, 5}), V({0, 1, 2, 3, 4, 10, 11, 12, 13, 14}));
  EXPECT_EQ(values("columns", {5, 2}), V({0, 10, 1, 11, 2, 12, 3, 13, 4, 14}));
  EXPECT_EQ(values("middle", {2, 3}), V({1, 2, 3, 11, 12, 13}));
  EXPECT_NE(candidate.take(Observed::gradient, "rows", "", {5, 2}).problem, "");
}

TEST(JudgeCandidate, AConstantIsNamedByTheSizeThatItIs) {
  const auto meaning = [](double ratio, const char* strategy) {
    return meaning_of(ratio, plan::parse_strategy(strategy));
  };
  EXPECT_EQ(meaning(2, "dp2"), "doubled, dp is 2");
  EXPECT_EQ(meaning(0.5, "dp3 tp2"), "halved, tp is 2");
  EXPECT_EQ(meaning(3, "dp3 tp2"), "multiplied, dp is 3");
  EXPECT_EQ(meaning(1.0 / 3, "dp3 tp2"), "divided, dp is 3");
  EXPECT_EQ(meaning(6, "dp3 tp2"), "multiplied, dp x tp is 6, ranks is 6");
  EXPECT_EQ(meaning(2.00001, "dp2 tp2"), "doubled, dp is 2, tp is 2");
  EXPECT_EQ(meaning(2.01, "dp2"), "");
  EXPECT_EQ(meaning(-2, "dp2"), "");
  EXPECT_EQ(meaning(0, "dp2"), "");
  EXPECT_EQ(meaning(5, "dp1"), "");
}

/// AdamW as frameworks write it, in float: p (1 - lr wd) first, lr / c1 folded, sqrt(v) / sqrt(c2).
TEST(OwnUpdates, AdamWInAnotherOrderIsInsideAndAWrongLearningRateIsNot) {
  const std::vector<std::string> settings = {"optimizer=adamw", "weight_decay=0.1", "beta2=0.999", "decay_group=all"};
  const auto w = workload::load("tiny", settings);
  const auto parameters = workload::parameters(w);
  for (const double planted : {0.0, 0.001}) {
    OwnUpdates updates(w, precision_of(Dtype::f32));
    std::map<std::string, std::vector<float>> p, m, v;
    for (const auto& parameter : parameters) {
      for (const double x : workload::initial_values(w, parameter)) p[parameter.name].push_back(static_cast<float>(x));
      m[parameter.name].resize(p[parameter.name].size());
      v[parameter.name].resize(p[parameter.name].size());
    }
    double worst = 0;
    for (std::int64_t step = 1; step <= 5; ++step) {
      OwnUpdates::Tensors gradients;
      const auto t = static_cast<double>(step);
      const double c1 = 1 - std::pow(w.beta1, t), c2 = 1 - std::pow(w.beta2, t), lr = w.learning_rate * (1 + planted);
      for (const auto& parameter : parameters) {
        auto& g = gradients[parameter.name];
        for (std::size_t i = 0; i < p[parameter.name].size(); ++i) {
          const auto gradient =
              static_cast<float>(std::sin(static_cast<double>(i + 1) * t) * std::pow(10.0, -static_cast<int>(i % 9)));
          g.push_back(gradient);
          float &x = p[parameter.name][i], &first = m[parameter.name][i], &second = v[parameter.name][i];
          x *= static_cast<float>(1 - lr * w.weight_decay);
          first = first * static_cast<float>(w.beta1) + gradient * static_cast<float>(1 - w.beta1);
          second = second * static_cast<float>(w.beta2) + gradient * gradient * static_cast<float>(1 - w.beta2);
          const float root = std::sqrt(second) / static_cast<float>(std::sqrt(c2)) + static_cast<float>(w.epsilon);
          x -= static_cast<float>(lr / c1) * (first / root);
        }
      }
      updates.update(step, gradients, 1, 0);
      for (const Observable& o : updates.expected()) {
        if (o.kind != Observed::parameter) continue;
        const std::vector<double> ours(p[o.name].begin(), p[o.name].end());
        worst = std::max(worst, compare_bounded(ours, as_doubles(o.values), updates.bounds({o.kind, o.name})).worst);
        updates.advance(o.name, ours);
      }
    }
    if (planted == 0)
      EXPECT_LT(worst, 1);  // the bound counts every rounding: there is no factor of 8 in it
    else
      EXPECT_GT(worst, 2);
  }
}

}  // namespace
}  // namespace shardproof::harness
