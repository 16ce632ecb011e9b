// SPDX-License-Identifier: Apache-2.0
// The oracle's update in float against its update in double, from the same input.
#include "harness/judge_update.hpp"

#include <cmath>
#include <map>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/judge_compare.hpp"
#include "reference/oracle.hpp"

namespace shardproof::harness {
namespace {

/// Magnitudes from far below epsilon to far above the parameters; every 11th gradient zero.
std::vector<double> hostile(std::size_t n, std::mt19937_64& random, double smallest_exponent, double greatest = 2) {
  std::uniform_real_distribution<double> exponent(smallest_exponent, greatest), mantissa(-1, 1);
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = i % 11 == 0 ? 0 : static_cast<float>(mantissa(random) * std::pow(10, exponent(random)));
  }
  return values;
}

/// Greatest error over bound of parameters and of states.
struct Worst {
  double parameter = 0, state = 0;
};

/// `subnormal`: gradients are, and parameters and state so small that it shows.
Worst worst_of(const std::string& optimizer, bool subnormal = false) {
  std::vector<std::string> settings = {"optimizer=" + optimizer, "clip=1", "layers=1"};
  if (optimizer == "adamw") settings.emplace_back("weight_decay=0.1");
  const auto workload = workload::load("tiny", settings);
  const auto rough = reference::make_oracle(workload, Track::native),
             fine = reference::make_oracle(workload, Track::f64);
  std::mt19937_64 random(7);
  Worst worst;
  for (std::int64_t step = 1; step <= 4; ++step) {
    const double clip = step % 2 == 0 ? 0.3 : 1;
    std::map<std::string, Values> gradients, rough_gradients;
    std::vector<UpdateInput> inputs;
    std::vector<std::vector<double>> kept;
    kept.reserve(400);
    const auto keep = [&](std::vector<double> values) {
      return std::span<const double>(kept.emplace_back(std::move(values)));
    };
    const auto set = [&](Observed kind, const std::string& name, std::span<const double> values) {
      fine->set(kind, name, std::vector<double>(values.begin(), values.end()));
      rough->set(kind, name, std::vector<float>(values.begin(), values.end()));
    };
    for (const auto& p : workload::parameters(workload)) {
      const auto n = static_cast<std::size_t>(p.elements());
      UpdateInput input;
      input.parameter = keep(subnormal ? hostile(n, random, -40, -34) : hostile(n, random, -6));
      input.gradient = keep(subnormal ? hostile(n, random, -44, -37) : hostile(n, random, -30));
      input.clip_factor = clip, input.learning_rate = workload::learning_rate(workload, step), input.taken = step;
      set(Observed::parameter, p.name, input.parameter);
      if (optimizer == "momentum") {
        input.first = keep(subnormal ? hostile(n, random, -44, -37) : hostile(n, random, -30));
        set(Observed::state, p.name + ".momentum", input.first);
      } else if (optimizer != "sgd") {
        auto squares = subnormal ? std::vector<double>(n) : hostile(n, random, -40);
        for (auto& x : squares) x = std::fabs(x);
        input.first = keep(subnormal ? hostile(n, random, -44, -37) : hostile(n, random, -20));
        input.second = keep(std::move(squares));
        set(Observed::state, p.name + ".first_moment", input.first);
        set(Observed::state, p.name + ".second_moment", input.second);
      }
      inputs.push_back(input);
      gradients.emplace(p.name, std::vector<double>(input.gradient.begin(), input.gradient.end()));
      rough_gradients.emplace(p.name, std::vector<float>(input.gradient.begin(), input.gradient.end()));
    }
    const auto fine_result = fine->update(step, gradients, clip),
               rough_result = rough->update(step, rough_gradients, clip);
    std::size_t k = 0;
    for (const auto& p : workload::parameters(workload)) {
      const auto bounds = update_bounds(workload, p, inputs[k++], 0x1p-24 + 0x1p-53, 0x1p-149);
      for (std::size_t i = 0; i < fine_result.size(); ++i) {
        const auto& name = fine_result[i].name;
        const bool parameter = name == p.name;
        const auto& bound = parameter                           ? bounds.parameter
                            : name == p.name + ".second_moment" ? bounds.second
                                                                : bounds.first;
        if (!parameter && !name.starts_with(p.name + ".")) continue;
        const auto result =
            compare_bounded(as_doubles(rough_result[i].values), as_doubles(fine_result[i].values), bound);
        EXPECT_EQ(result.outside, 0) << optimizer << " step " << step << " " << name << " element " << result.index
                                     << ": " << result.candidate << " " << result.oracle << " error " << result.error
                                     << " bound " << result.bound;
        double& greatest = parameter ? worst.parameter : worst.state;
        greatest = std::max(greatest, result.worst);
      }
    }
  }
  return worst;
}

TEST(UpdateBounds, FloatStaysWithinThemAndComesNear) {
  for (const std::string optimizer : {"sgd", "momentum", "adam", "adamw"}) {
    const Worst worst = worst_of(optimizer);
    EXPECT_GT(worst.parameter, 0.3) << optimizer;
    EXPECT_GT(worst.state, optimizer == "sgd" ? -1 : 0.3) << optimizer;
  }
}

TEST(UpdateBounds, SubnormalFloatStaysWithinThem) {
  for (const std::string optimizer : {"sgd", "momentum", "adam", "adamw"}) {
    const Worst worst = worst_of(optimizer, true);
    EXPECT_GT(worst.parameter, 0.1) << optimizer;
  }
}

TEST(UpdateBounds, AFrozenParameterMayNotMove) {
  const auto workload = workload::load("tiny", std::vector<std::string>{"frozen=final_norm.bias"});
  for (const auto& p : workload::parameters(workload)) {
    if (p.trainable) continue;
    const std::vector<double> values(static_cast<std::size_t>(p.elements()), 1);
    UpdateInput input;
    input.parameter = values;
    input.learning_rate = 1;
    const auto bounds = update_bounds(workload, p, input, 1, 1);
    EXPECT_EQ(bounds.parameter, std::vector<double>(values.size(), 0));
    EXPECT_TRUE(bounds.first.empty() && bounds.second.empty());
  }
}

}  // namespace
}  // namespace shardproof::harness
