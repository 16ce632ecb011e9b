// SPDX-License-Identifier: Apache-2.0
#include "reference/oracle.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "reference/parameters.hpp"
#include "reference/testing/observed.hpp"
#include "reference/testing/workloads.hpp"

namespace shardproof::reference {
namespace {

using testing::find;
using testing::has;
using testing::number;
using testing::small;
using testing::values;
using workload::Workload;

workload::Batch batch_of(const Workload& w, std::int64_t step) { return workload::batch(w, workload::Corpus(w), step); }

std::vector<Observable> run(const Workload& w, Track track, std::int64_t steps) {
  const auto oracle = make_oracle(w, track);
  std::vector<Observable> all;
  for (std::int64_t t = 1; t <= steps; ++t) std::ranges::move(oracle->step(batch_of(w, t)), std::back_inserter(all));
  return all;
}

double largest(const std::vector<double>& all) {
  double out = 0;
  for (const double x : all) out = std::max(out, std::fabs(x));
  return out;
}

void expect_same(const std::vector<Observable>& a, const std::vector<Observable>& b) {
  EXPECT_EQ(digest_of(a), digest_of(b));
}

TEST(Oracle, ObservesInTheOrderOfTheDigest) {
  const auto w = small({"optimizer=adam", "unused=[0,3]", "frozen=[\"*bias\"]", "layers=1"});
  for (const Track track : {Track::exact, Track::f64, Track::native}) {
    const auto out = make_oracle(w, track)->step(batch_of(w, 4));
    std::vector<std::string> lines;
    for (const auto& o : out) {
      EXPECT_EQ(o.step, 4);
      EXPECT_EQ(elements_of(o.dims), size_of(o.values));
      lines.push_back(std::to_string(static_cast<int>(o.kind)) + " " + o.name);
      const Dtype expected = o.kind == Observed::skipped                                     ? Dtype::i64
                             : o.kind == Observed::gradient || o.kind == Observed::parameter ? scalar_of(track)
                             : o.kind == Observed::state                                     ? state_of(track)
                                                                                             : Dtype::f64;
      EXPECT_EQ(dtype_of(o.values), expected) << o.name;
    }
    EXPECT_TRUE(std::ranges::is_sorted(lines));
    const auto count = [&](Observed kind) {
      return std::ranges::count_if(out, [&](const Observable& o) { return o.kind == kind; });
    };
    // 2 embeddings, 16 of the block, 2 of the final norm, 2 unused; 9 of them are biases.
    EXPECT_EQ(count(Observed::parameter), 22);
    EXPECT_EQ(count(Observed::gradient), 13);
    EXPECT_EQ(count(Observed::state), 26);
    EXPECT_EQ(find(out, Observed::gradient, "blocks.0.attention.key.weight").dims, (Dims{6, 6}));
    EXPECT_EQ(find(out, Observed::state, "unused.0.second_moment").dims, Dims{0});
    EXPECT_EQ(largest(as_doubles(find(out, Observed::gradient, "unused.1").values)), 0);
  }
}

// Norm and clip factor from the gradients, and the step that they make, in double: SGD is one expression.
TEST(Oracle, ClipsTheWholeGradient) {
  for (const double limit : {0.0, 0.25, 1e9}) {
    const auto w = small({"optimizer=sgd", "clip=" + std::to_string(limit), "frozen=[\"*up.weight\"]"});
    const auto oracle = make_oracle(w, Track::f64);
    const auto out = oracle->step(batch_of(w, 1));
    double squares = 0;
    for (const double g : values(out, Observed::gradient)) squares += g * g;
    const double norm = number(out, Observed::norm), clip = number(out, Observed::clip);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-12 * norm);  // 500 positive terms in another order: 500 * 2^-53
    ASSERT_GT(norm, 0.26);
    EXPECT_EQ(clip, limit == 0.25 ? 0.25 / (norm + 1e-6) : 1.0);
    for (const auto& info : workload::parameters(w)) {
      const auto before = workload::initial_values(w, info);
      const auto after = as_doubles(find(out, Observed::parameter, info.name).values);
      for (std::size_t i = 0; i < before.size(); ++i) {
        const double g = info.trainable ? as_doubles(find(out, Observed::gradient, info.name).values)[i] : 0;
        ASSERT_EQ(after[i], before[i] - 0.01 * (g * clip)) << info.name;
      }
    }
  }
}

// The loss scale multiplies raw gradients alone.
TEST(Oracle, LossScaleLeavesTheUpdate) {
  const auto of_scale = [](const char* scale) {
    const auto w = small({std::string("loss_scale=") + scale, "optimizer=sgd", "clip=0.5"});
    return run(w, Track::exact, 1);
  };
  const auto one = of_scale("1"), big = of_scale("1024");
  const double unit = 0x1p-40;
  const auto g1 = values(one, Observed::gradient), g1024 = values(big, Observed::gradient);
  EXPECT_NEAR(largest(g1024), 1024 * largest(g1), 1024 * 1000 * unit);
  EXPECT_EQ(number(one, Observed::loss), number(big, Observed::loss));
  EXPECT_NEAR(number(one, Observed::norm), number(big, Observed::norm), 1000 * unit);
  const auto p1 = values(one, Observed::parameter), p1024 = values(big, Observed::parameter);
  for (std::size_t i = 0; i < p1.size(); ++i) ASSERT_NEAR(p1[i], p1024[i], 1000 * unit);
}

// Fixed and float against double, three steps with every option. Some 100 roundings follow one another from a parameter
// to a gradient, and hostile weights about double what goes through them: 200 * 2^-41 < 2^-33 in Fixed; in float, where
// values up to 4 are rounded by 2^-22, 200 * 2^-22 < 2^-14; relative to the largest gradient (loss, norm, ...).
TEST(Oracle, TracksAgree) {
  for (const auto& c : testing::cases()) {
    auto settings = c.settings;
    settings.insert(settings.end(), {"optimizer=momentum", "clip=0.5"});
    const auto w = small(settings);
    const auto f64 = run(w, Track::f64, 3);
    for (const Track track : {Track::exact, Track::native}) {
      const auto out = run(w, track, 3);
      const double tolerance = track == Track::exact ? 0x1p-33 : 0x1p-14;
      for (const Observed kind : {Observed::loss, Observed::gradient, Observed::norm, Observed::clip, Observed::skipped,
                                  Observed::parameter}) {
        const auto a = values(out, kind), b = values(f64, kind);
        ASSERT_EQ(a.size(), b.size());
        const double scale = kind == Observed::gradient && track == Track::exact ? w.loss_scale : 1;
        const double bound = tolerance * largest(b);
        for (std::size_t i = 0; i < a.size(); ++i) {
          ASSERT_NEAR(a[i] / scale, b[i], bound) << c.name << " " << name_of(track) << " " << name_of(kind);
        }
      }
    }
  }
}

// Integer sums have no order: the samples of a batch may come in any.
TEST(Oracle, ExactIgnoresTheOrderOfSamples) {
  const auto w = small({"batch=4", "tied_head=false"});
  auto batch = batch_of(w, 1);
  const auto forward = make_oracle(w, Track::exact)->step(batch);
  const auto reversed = [&](auto& all, std::int64_t width) {
    for (std::int64_t b = 0; b < 2; ++b) {
      std::swap_ranges(all.begin() + b * width, all.begin() + (b + 1) * width, all.begin() + (3 - b) * width);
    }
  };
  reversed(batch.samples, 1);
  reversed(batch.tokens, batch.sequence);
  reversed(batch.labels, batch.sequence);
  expect_same(forward, make_oracle(w, Track::exact)->step(batch));
}

// A block at two sites is two blocks with the same parameters, masks of their own, and one gradient: their sum.
TEST(Oracle, SharedBlockIsTwoBlocksWithOneGradient) {
  const auto shared = small({"layers=3", "dropout=0.25", "shared_block=[0,2]"}),
             apart = small({"layers=3", "dropout=0.25"});
  const auto oracle = make_oracle(apart, Track::exact);
  const auto fixed = [](const auto& observables, Observed kind, const std::string& name) {
    return std::get<std::vector<Fixed>>(find(observables, kind, name).values);
  };
  std::vector<std::string> block;
  for (const auto& info : workload::parameters(shared)) {
    if (info.name.starts_with("blocks.0.")) block.push_back(info.name.substr(9));
  }
  ASSERT_EQ(block.size(), 16u);
  for (const auto& name : block) {
    std::vector<Fixed> initial;
    for (const auto& info : workload::parameters(shared)) {
      if (info.name != "blocks.0." + name) continue;
      for (const double value : workload::initial_values(shared, info)) initial.push_back(round_to<Fixed>(value));
    }
    oracle->set(Observed::parameter, "blocks.2." + name, initial);
  }
  const auto two = oracle->step(batch_of(apart, 1)), one = make_oracle(shared, Track::exact)->step(batch_of(shared, 1));
  EXPECT_EQ(number(one, Observed::loss), number(two, Observed::loss));
  for (const auto& name : block) {
    auto sum = fixed(two, Observed::gradient, "blocks.0." + name);
    const auto second = fixed(two, Observed::gradient, "blocks.2." + name);
    EXPECT_NE(second, std::vector<Fixed>(second.size())) << name;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i].raw += second[i].raw;
    EXPECT_EQ(fixed(one, Observed::gradient, "blocks.0." + name), sum) << name;
  }
}

// A frozen parameter stays, is not observed but as a parameter, and changes nobody else's gradient.
TEST(Oracle, FrozenParametersStay) {
  const auto w = small({"frozen=[\"*norm1*\",\"token_embedding.weight\"]", "clip=0"});
  const auto frozen = run(w, Track::exact, 1), free = run(small(), Track::exact, 1);
  EXPECT_LT(number(frozen, Observed::norm), number(free, Observed::norm));
  for (const auto& info : workload::parameters(w)) {
    const auto now = as_doubles(find(frozen, Observed::parameter, info.name).values);
    EXPECT_EQ(now == workload::initial_values(w, info), !info.trainable) << info.name;
    if (info.trainable) {
      EXPECT_EQ(as_doubles(find(frozen, Observed::gradient, info.name).values),
                as_doubles(find(free, Observed::gradient, info.name).values));
    } else {
      EXPECT_THROW(find(frozen, Observed::gradient, info.name), InternalError);
      EXPECT_THROW(find(frozen, Observed::state, info.name + ".first_moment"), InternalError);
    }
  }
}

TEST(Oracle, StepWithoutLabelsIsSkippedWithANullLoss) {
  const auto w = small({"clip=5e-7"});
  auto batch = batch_of(w, 1);
  std::ranges::fill(batch.labels, -1);
  batch.label_count = 0;
  for (const Track track : {Track::exact, Track::f64, Track::native}) {
    const auto oracle = make_oracle(w, track);
    const auto out = oracle->step(batch);
    EXPECT_EQ(number(out, Observed::skipped), 2);
    EXPECT_EQ(find(out, Observed::loss, "loss").dims, Dims{0});
    EXPECT_EQ(largest(values(out, Observed::gradient)), 0);
    EXPECT_EQ(number(out, Observed::norm), 0);
    EXPECT_EQ(number(out, Observed::clip), 5e-7 / 1e-6);
    // Neither parameters, nor state, nor the optimizer's count of steps moved: the next step is as good as the first.
    auto next = batch_of(w, 2), as_first = next;
    as_first.step = 1;
    const auto second = oracle->step(next), first = make_oracle(w, track)->step(as_first);
    EXPECT_EQ(values(second, Observed::parameter), values(first, Observed::parameter));
    EXPECT_EQ(values(second, Observed::state), values(first, Observed::state));
  }
}

TEST(Oracle, OverflowSkipsTheStep) {
  const auto w = small({"tied_head=false"});
  const auto oracle = make_oracle(w, Track::exact);
  const auto first = oracle->step(batch_of(w, 1));
  ASSERT_EQ(number(first, Observed::skipped), 0);
  const auto& weight = find(first, Observed::parameter, "final_norm.weight");
  oracle->set(Observed::parameter, "final_norm.weight", std::vector<Fixed>(6, Fixed{fixed_limit - 1}));
  const auto second = oracle->step(batch_of(w, 2));
  EXPECT_EQ(number(second, Observed::skipped), 1);
  for (const Observed kind : {Observed::loss, Observed::gradient, Observed::norm, Observed::clip}) {
    EXPECT_FALSE(has(second, kind));
  }
  oracle->set(Observed::parameter, "final_norm.weight", weight.values);
  // As if the second step had not been: the optimizer's count did not advance either.
  const auto other = make_oracle(w, Track::exact);
  other->step(batch_of(w, 1));
  expect_same(oracle->step(batch_of(w, 3)), other->step(batch_of(w, 3)));
}

// Every raw gradient grows with the loss scale. Doubling it from where the largest is in range to where one is not
// skips the step; the parameters are the initial ones.
TEST(Oracle, GradientOverflowSkipsTheStep) {
  const auto of_scale = [](double scale) {
    return small({"loss_scale=" + std::to_string(static_cast<std::int64_t>(scale)), "batch=1"});
  };
  const double g = largest(values(run(of_scale(1), Track::exact, 1), Observed::gradient));
  const double fits = std::exp2(std::ceil(std::log2(0x1p22 / g)) - 1);
  EXPECT_EQ(number(run(of_scale(fits), Track::exact, 1), Observed::skipped), 0);
  const auto w = of_scale(2 * fits);
  const auto out = run(w, Track::exact, 1);
  EXPECT_EQ(number(out, Observed::skipped), 1);
  for (const auto& info : workload::parameters(w)) {
    EXPECT_EQ(as_doubles(find(out, Observed::parameter, info.name).values), workload::initial_values(w, info));
  }
  EXPECT_EQ(largest(values(out, Observed::state)), 0);
}

TEST(Oracle, NonFiniteGradientsSkipTheStep) {
  const auto w = small({"layers=1"});
  const auto oracle = make_oracle(w, Track::f64);
  std::vector<double> bias(6, 0.0);
  bias[3] = std::numeric_limits<double>::infinity();
  oracle->set(Observed::parameter, "blocks.0.mlp.down.bias", bias);
  const auto out = oracle->step(batch_of(w, 1));
  EXPECT_EQ(number(out, Observed::skipped), 1);
  EXPECT_FALSE(has(out, Observed::gradient));
}

// An update that leaves the range is found by every later step, whoever reads the parameter.
TEST(Oracle, OverflowOfAnUpdateStays) {
  const auto w =
      small({"optimizer=sgd", "learning_rate=1e8", "frozen=[\"b*\",\"f*\",\"t*\"]", "batch=1", "unused=[1]"});
  const auto oracle = make_oracle(w, Track::exact);
  EXPECT_EQ(number(oracle->step(batch_of(w, 1)), Observed::skipped), 0);
  const auto second = oracle->step(batch_of(w, 2));
  EXPECT_EQ(number(second, Observed::skipped), 1);
  const auto& position =
      std::get<std::vector<Fixed>>(find(second, Observed::parameter, "position_embedding.weight").values);
  EXPECT_GT(std::ranges::count(position, Fixed{fixed_invalid}), 0);

  const auto other = make_oracle(w, Track::exact);
  other->set(Observed::parameter, "unused.0", std::vector{Fixed{fixed_limit}});
  EXPECT_EQ(number(other->step(batch_of(w, 1)), Observed::skipped), 1);
}

// update() is the step's own second half.
TEST(Oracle, UpdateRepeatsTheStep) {
  for (const std::string optimizer : {"sgd", "momentum", "adam", "adamw"}) {
    const auto w = small({"optimizer=" + optimizer, optimizer == "adamw" ? "weight_decay=0.1" : "weight_decay=0",
                          "clip=0.3", "warmup_steps=2", "frozen=[\"final_norm.bias\"]"});
    for (const Track track : {Track::exact, Track::f64, Track::native}) {
      const auto whole = make_oracle(w, track), half = make_oracle(w, track);
      for (std::int64_t t = 1; t <= 3; ++t) {
        auto out = whole->step(batch_of(w, t));
        std::map<std::string, Values> gradients;
        for (const auto& info : workload::parameters(w)) {
          if (info.trainable) gradients[info.name] = find(out, Observed::gradient, info.name).values;
        }
        const auto updated = half->update(t, gradients, number(out, Observed::clip));
        std::erase_if(out, [](const Observable& o) { return o.kind < Observed::parameter; });
        expect_same(out, updated);
      }
    }
  }
}

TEST(Oracle, SetReplacesParametersAndState) {
  const auto w = small({"optimizer=momentum"});
  const auto a = make_oracle(w, Track::f64), b = make_oracle(w, Track::f64);
  const auto first = a->step(batch_of(w, 1));
  for (const auto& o : first) {
    if (o.kind >= Observed::parameter) b->set(o.kind, o.name, o.values);
  }
  expect_same(a->step(batch_of(w, 2)), b->step(batch_of(w, 2)));
  EXPECT_THROW(a->set(Observed::parameter, "final_norm", std::vector<double>(6)), InternalError);
  EXPECT_THROW(a->set(Observed::state, "final_norm.bias.first_moment", std::vector<double>(6)), InternalError);
  EXPECT_THROW(a->set(Observed::gradient, "final_norm.bias", std::vector<double>(6)), InternalError);
  EXPECT_THROW(a->set(Observed::parameter, "final_norm.bias", std::vector<double>(7)), InternalError);
  EXPECT_THROW(a->set(Observed::parameter, "final_norm.bias", std::vector<float>(6)), InternalError);
  EXPECT_THROW(a->update(1, {{"final_norm", std::vector<double>(6)}}, 1), InternalError);
}

// The step's gradients are those of what it reads; its update is of what it has.
TEST(Oracle, AStepMayReadOtherValues) {
  const auto w = small({"optimizer=sgd", "learning_rate=1"});
  const auto a = make_oracle(w, Track::f64), b = make_oracle(w, Track::f64);
  const auto moved = [](const std::string& name, const Values& values) -> Values {
    auto result = as_doubles(values);
    for (double& x : result) x += name == "final_norm.bias" ? 0.5 : 0;
    return result;
  };
  const auto read = a->step(batch_of(w, 1), moved);
  b->set(Observed::parameter, "final_norm.bias",
         moved("final_norm.bias", initial_parameters<double>(w).at("final_norm.bias").value.values()));
  const auto had = b->step(batch_of(w, 1));
  for (const auto& o : read) {
    if (o.kind == Observed::gradient) {
      EXPECT_EQ(o.values, find(had, Observed::gradient, o.name).values) << o.name;
    }
  }
  const auto before = initial_parameters<double>(w).at("final_norm.bias").value.values();
  const auto gradient = as_doubles(find(read, Observed::gradient, "final_norm.bias").values);
  const auto after = as_doubles(find(read, Observed::parameter, "final_norm.bias").values);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i] - gradient[i]);
}

TEST(Oracle, RefusesAnIllegalWorkload) {
  auto w = small();
  w.heads = 4;  // does not divide 6
  EXPECT_THROW(make_oracle(w, Track::exact), BadInput);
}

// Each site's mask is drawn anew in each step, and element numbers go on from sample to sample: the two halves of a
// batch give together what the batch gives.
TEST(Oracle, DropoutDependsOnTheSamplesPlace) {
  const auto w = small({"dropout=0.25", "optimizer=sgd", "batch=3"});
  const auto whole = batch_of(w, 1);
  std::vector<std::int64_t> total(values(make_oracle(w, Track::exact)->step(whole), Observed::gradient).size());
  const auto add = [&](const workload::Batch& batch, std::int64_t sign) {
    const auto out = make_oracle(w, Track::exact)->step(batch);
    std::size_t at = 0;
    for (const auto& o : out) {
      if (o.kind != Observed::gradient) continue;
      for (const Fixed g : std::get<std::vector<Fixed>>(o.values)) total[at++] += sign * g.raw;
    }
  };
  add(whole, 1);
  for (std::int64_t k = 0; k < 2; ++k) {
    auto part = workload::part(whole, 2, k);
    part.label_count = whole.label_count;  // N is the global batch's
    add(part, -1);
  }
  EXPECT_EQ(std::ranges::count(total, 0), std::ssize(total));
}

}  // namespace
}  // namespace shardproof::reference
