// SPDX-License-Identifier: Apache-2.0
// Gradients of the whole model against differences of its loss, in double.
#include "reference/model.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "reference/testing/workloads.hpp"

namespace shardproof::reference {
namespace {

class Gradients : public ::testing::TestWithParam<testing::Case> {};

// With D(h) = (f(x+h) - f(x-h))/2h, (4 D(h) - D(2h))/3 = f' - 4h^4 f'''''/5! + ..., so with h = 2^-12 and derivatives
// up to 2^8 the truncation is below 2^-44. A loss of some 2^2 carries, after a few hundred roundings of random sign, an
// error of at most d = 2^-46, which enters with d/h * (4/3 + 1/6): 1.5 * 2^-34. Together less than 2^-33.
constexpr double step = 0x1p-12, bound = 0x1p-33;

TEST_P(Gradients, AreTheDerivativesOfTheLoss) {
  const auto workload = testing::small(GetParam().settings);
  const auto batch = workload::batch(workload, workload::Corpus(workload), 1);
  ASSERT_GT(batch.label_count, 0);
  const auto labels = static_cast<double>(batch.label_count);
  Arithmetic<double> arithmetic;
  auto parameters = initial_parameters<double>(workload);
  const auto loss_and_gradients = [&](Parameters<double>& at) {
    std::vector<double> losses;
    for (std::int64_t b = 0; b < batch.size(); ++b) {
      train_sample(arithmetic, workload, batch, b, 1 / labels, at, losses);
    }
    return std::accumulate(losses.begin(), losses.end(), 0.0) / labels;
  };
  auto moved = parameters;
  loss_and_gradients(parameters);
  double largest = 0;
  for (const auto& [name, parameter] : parameters) {
    for (std::int64_t i = 0; i < parameter.value.rows(); ++i) {
      for (std::int64_t j = 0; j < parameter.value.columns(); ++j) {
        double& x = moved.at(name).value[i][j];
        const double x0 = x;
        const auto difference = [&](double h) {
          x = x0 + h;
          const double above = loss_and_gradients(moved);
          x = x0 - h;
          const double below = loss_and_gradients(moved);
          x = x0;
          return (above - below) / (2 * h);
        };
        const double expected = (4 * difference(step) - difference(2 * step)) / 3;
        ASSERT_NEAR(parameter.gradient[i][j], expected, bound) << name << "[" << i << "," << j << "]";
        largest = std::max(largest, std::fabs(expected));
      }
    }
  }
  EXPECT_GT(largest, 1e6 * bound);  // the bound is small beside what it judges
}

INSTANTIATE_TEST_SUITE_P(Options, Gradients, ::testing::ValuesIn(testing::cases()),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace shardproof::reference
