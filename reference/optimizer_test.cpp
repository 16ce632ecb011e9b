// SPDX-License-Identifier: Apache-2.0
#include "reference/optimizer.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;
using workload::OptimizerKind;

template <class S>
class Optimizer : public ::testing::Test {
 public:
  /// The parameter after each step from 1, and the state after the last.
  void run(std::initializer_list<double> gradients, double scale = 1, double clip_factor = 1) {
    Arithmetic<S> arithmetic;
    std::int64_t t = 0;
    for (const double gradient : gradients) {
      optimize(arithmetic, workload, {learning_rate, ++t, scale, clip_factor}, array<S>(1, 1, {gradient}), parameter);
      path.push_back(parameter.value[0][0]);
    }
  }

  double learning_rate = 0.5;
  workload::Workload workload;
  Parameter<S> parameter{{"p", {1}, true, true}, array<S>(1, 1, {1}), {}, Array<Real<S>>(1, 1), Array<Real<S>>(1, 1)};
  std::vector<S> path;
};
TYPED_TEST_SUITE(Optimizer, testing::Scalars);

TYPED_TEST(Optimizer, Sgd) {
  this->workload.optimizer = OptimizerKind::sgd;
  this->run({2, -0.5});
  expect(this->path, {0, 0.25});  // 1 - .5*2, 0 + .5*.5
}

TYPED_TEST(Optimizer, RawGradientsAreUnscaledAndClipped) {
  this->workload.optimizer = OptimizerKind::sgd;
  this->run({2048}, 1024, 0.25);
  expect(this->path, {0.75});  // g = 2048/1024*.25 = .5
}

TYPED_TEST(Optimizer, Momentum) {
  this->workload.optimizer = OptimizerKind::momentum;
  this->workload.momentum = 0.5;
  this->learning_rate = 0.25;
  this->run({2, -4});
  expect(this->path, {0.5, 1.25});  // m = 2, then .5*2 - 4 = -3
  EXPECT_EQ(this->parameter.first[0][0], -3);
}

// b1 = 1/2, b2 = 3/4. g = 2: m = 1, v = 1/4*4 = 1; m/(1-1/2) = 2, v/(1-3/4) = 4: change lr*2/(2+eps).
// g = -2: m = 1/2 - 1 = -1/2, v = 3/4 + 1 = 7/4; m/(3/4) = -2/3, v/(7/16) = 4: change -lr*(2/3)/(2+eps).
TYPED_TEST(Optimizer, Adam) {
  this->workload.optimizer = OptimizerKind::adam;
  this->workload.beta1 = 0.5;
  this->workload.beta2 = 0.75;
  this->workload.epsilon = 2;
  this->workload.weight_decay = 0.25;  // adamw's only
  this->run({2, -2});
  expect(this->path, {1 - 0.25, 0.75 + 1.0 / 12}, 2);
  EXPECT_EQ(this->parameter.first[0][0], -0.5);
  EXPECT_EQ(this->parameter.second[0][0], 1.75);
}

// As before with eps = 0, and lr*wd*p = .125*p: 1 - .5 - .125, then .375 + 1/6 - .125*.375.
TYPED_TEST(Optimizer, AdamW) {
  this->workload.optimizer = OptimizerKind::adamw;
  this->workload.beta1 = 0.5;
  this->workload.beta2 = 0.75;
  this->workload.epsilon = 0;
  this->workload.weight_decay = 0.25;
  this->run({2, -2});
  expect(this->path, {0.375, 0.328125 + 1.0 / 6}, 2);
}

TYPED_TEST(Optimizer, AdamWOutsideTheDecayGroup) {
  this->workload.optimizer = OptimizerKind::adamw;
  this->workload.beta1 = 0.5;
  this->workload.beta2 = 0.75;
  this->workload.epsilon = 0;
  this->workload.weight_decay = 0.25;
  this->parameter.info.decays = false;
  this->run({2, -2});
  expect(this->path, {0.5, 0.5 + 1.0 / 6}, 2);
}

// The state of the exact track is double: a gradient of 2^-40 is squared to 2^-80, which Q23.40 would lose.
TEST(OptimizerExact, StateIsDouble) {
  Arithmetic<Fixed> arithmetic;
  workload::Workload workload;
  workload.optimizer = OptimizerKind::adam;
  workload.beta1 = 0.5;
  workload.beta2 = 0.75;
  workload.epsilon = 0;
  const workload::Parameter info{"p", {1}, true, true};
  Parameter<Fixed> parameter{info, array<Fixed>(1, 1, {1}), {}, Array<double>(1, 1), Array<double>(1, 1)};
  optimize(arithmetic, workload, {0.5, 1, 1, 1}, Array<Fixed>(1, 1, {Fixed{1}}), parameter);
  EXPECT_EQ(parameter.second[0][0], 0x1p-82);
  expect(parameter.value, {0.5});
}

}  // namespace
}  // namespace shardproof::reference
