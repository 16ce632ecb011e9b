// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizers/optimizers.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/fixed_row.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using optimizers::AdamConstants;
using optimizers::GradientScale;
using testing::bits;

constexpr double scale_of(Dtype dtype) { return dtype == Dtype::fixed ? 65536 : 1; }

template <class S>
S minus(S p, Real<S> step) {
  return finish<S>(term(p) - term(round_to<S>(step)));
}

// Section 9 of ARITHMETIC.md. Nothing is summed, so f64 and f32 are equal too.
template <class S>
void adam_literal(S& p, S raw, Real<S>& m, Real<S>& v, GradientScale scale, const AdamConstants& k) {
  using C = Real<S>;
  double b1t = 1, b2t = 1;
  for (std::int64_t i = 0; i < k.step; ++i) b1t *= k.beta1;
  for (std::int64_t i = 0; i < k.step; ++i) b2t *= k.beta2;
  const C lr = C(k.learning_rate), b1 = C(k.beta1), b2 = C(k.beta2), eps = C(k.epsilon);
  const C r1 = C(1 - k.beta1), r2 = C(1 - k.beta2), c1 = C(1 - b1t), c2 = C(1 - b2t);
  const C g = (real(raw) / C(scale.loss_scale)) * C(scale.clip_factor);
  m = b1 * m + r1 * g;
  v = b2 * v + (r2 * g) * g;
  const C update = (lr * (m / c1)) / (std::sqrt(v / c2) + eps);
  p = minus(p, k.decoupled_decay ? update + C(k.learning_rate * k.weight_decay) * real(p) : update);
}

template <class S>
class OptimizersTest : public ::testing::Test {
 protected:
  using C = Real<S>;
  Device device;
  ImmediateQueue queue{device};
  GradientScale scale{scale_of(dtype_of<S>()), 0.37};

  C unscaled(S g) const { return (real(g) / C(scale.loss_scale)) * C(scale.clip_factor); }
  std::vector<S> gradients(std::int64_t n) {
    return testing::random<S>("g", n, -0.3 * scale.loss_scale, 0.3 * scale.loss_scale);
  }
  static void expect_same(const auto& found, const auto& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(bits(found[i]), bits(expected[i])) << i;
  }

  // Steps from zero state; the parameters and state after them.
  std::string adam_run(std::int64_t n, bool decoupled, const std::vector<std::int64_t>& steps = {1, 2, 3}) {
    auto p = testing::random<S>("p", n);
    std::vector<C> m(p.size()), v(p.size());
    const auto tp = testing::put(queue, "p", {n}, p);
    const auto tm = testing::put(queue, "m", {n}, m), tv = testing::put(queue, "v", {n}, v);
    for (const std::int64_t step : steps) {
      auto g = gradients(n);
      for (auto& value : g) value = mul(value, round_to<S>(C(1) / C(step)));
      if (n > 2) g[1] = S{0};
      const AdamConstants constants{1e-3, 0.9, 0.95, 1e-8, step, decoupled, 0.1};
      optimizers::adam(queue, tp, testing::put(queue, "g", {n}, g), scale, constants, tm, tv);
      for (std::size_t i = 0; i < p.size(); ++i) adam_literal(p[i], g[i], m[i], v[i], scale, constants);
    }
    expect_same(fetch<S>(queue, tp), p);
    expect_same(fetch<C>(queue, tm), m);
    expect_same(fetch<C>(queue, tv), v);
    return testing::bytes_digest(fetch<S>(queue, tp)).substr(0, 16);
  }
};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(OptimizersTest, Scalars);

TYPED_TEST(OptimizersTest, Sgd) {
  using S = TypeParam;
  for (const std::int64_t n : {0, 1, 5, 1009}) {
    auto p = testing::random<S>("p", n);
    const auto g = this->gradients(n);
    const auto tp = testing::put(this->queue, "p", {n}, p);
    optimizers::sgd(this->queue, tp, testing::put(this->queue, "g", {n}, g), this->scale, 0.1);
    for (std::size_t i = 0; i < p.size(); ++i) {
      p[i] = minus(p[i], Real<S>(0.1) * this->unscaled(g[i]));
    }
    this->expect_same(fetch<S>(this->queue, tp), p);
  }
}

TYPED_TEST(OptimizersTest, Momentum) {
  using S = TypeParam;
  for (const std::int64_t n : {0, 1, 5, 1009}) {
    auto p = testing::random<S>("p", n);
    const auto g = this->gradients(n);
    auto m = testing::random<Real<S>>("m", n);
    const auto tp = testing::put(this->queue, "p", {n}, p), tm = testing::put(this->queue, "m", {n}, m);
    optimizers::momentum(this->queue, tp, testing::put(this->queue, "g", {n}, g), this->scale, 0.1, 0.9, tm);
    for (std::size_t i = 0; i < p.size(); ++i) {
      m[i] = Real<S>(0.9) * m[i] + this->unscaled(g[i]);
      p[i] = minus(p[i], Real<S>(0.1) * m[i]);
    }
    this->expect_same(fetch<S>(this->queue, tp), p);
    this->expect_same(fetch<Real<S>>(this->queue, tm), m);
  }
}

TYPED_TEST(OptimizersTest, Adam) {
  for (const std::int64_t n : {0, 1, 5, 1009}) this->adam_run(n, false);
}
TYPED_TEST(OptimizersTest, AdamW) {
  for (const std::int64_t n : {0, 1, 5, 1009}) this->adam_run(n, true);
}

TYPED_TEST(OptimizersTest, AdamInStepsOfAnyOrder) { this->adam_run(5, false, {3, 1, 9000, 9000, 2, 9001, 700}); }

// The bits that a device must give as well.
TYPED_TEST(OptimizersTest, AdamBitsArePinned) {
  const char* const expected = dtype_of<TypeParam>() == Dtype::fixed ? "09465f3db46097ec"
                               : dtype_of<TypeParam>() == Dtype::f64 ? "92c1960418ad0950"
                                                                     : "d9b2967c0e74fc24";
  EXPECT_EQ(this->adam_run(10007, true), expected);
}

TYPED_TEST(OptimizersTest, TheLossScaleIsAPowerOfTwo) {
  using S = TypeParam;
  const auto p = testing::put(this->queue, "p", {1}, testing::random<S>("p", 1));
  for (const double bad : {0.0, 3.0, -2.0, std::nan("")}) {
    EXPECT_THROW(optimizers::sgd(this->queue, p, p, GradientScale{bad, 1}, 0.1), InternalError) << bad;
  }
}

TEST(OptimizersFloat, ACorrectedReciprocalDivides) {
  // All significands against divisors 1 - 0.9^t and 1 - 0.95^t, and the divisor with the longest significand.
  std::vector<float> divisors{std::nextafter(1.0f, 0.0f)};
  double b1 = 1, b2 = 1;
  for (int t = 1; t <= 4; ++t) {
    divisors.push_back(static_cast<float>(1 - (b1 *= 0.9)));
    divisors.push_back(static_cast<float>(1 - (b2 *= 0.95)));
  }
  for (const float c : divisors) {
    const float r = 1 / c;
    std::int64_t wrong = 0;
    for (std::int32_t k = 0; k < 1 << 23; ++k) {
      const float x = 1 + static_cast<float>(k) * 0x1p-23f;
      wrong += divide_by(x, c, r) != x / c;
    }
    EXPECT_EQ(wrong, 0) << c;
  }
}

TEST(OptimizersFloat, ACorrectedReciprocalDividesAtTheEnds) {
  constexpr float largest = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  for (const double b : {0.9, 0.95, 0.999, 0.5}) {
    const auto c = static_cast<float>(1 - b), r = 1 / c;
    for (const float x : {infinity, largest, std::nextafter(largest, 0.0f), 1e38f, 1.7e30f, 1.7e-29f, 0x1p-100f}) {
      EXPECT_EQ(bits(divide_by(x, c, r)), bits(x / c)) << x << " / " << c;
      EXPECT_EQ(bits(divide_by(-x, c, r)), bits(-x / c)) << -x << " / " << c;
    }
    EXPECT_EQ(divide_by(0.0f, c, r), 0.0f);
    EXPECT_TRUE(std::isnan(divide_by(std::nanf(""), c, r)));
    for (float x = 0x1p-100f; x > 0; x *= 0.49f) ASSERT_LE(std::abs(bits(divide_by(x, c, r)) - bits(x / c)), 1) << x;
    // The numbers about the one whose quotient is the largest float.
    float x = largest * c;
    for (int k = 0; k < 8; ++k) x = std::nextafter(x, 0.0f);
    for (int k = 0; k < 16; ++k, x = std::nextafter(x, infinity)) {
      EXPECT_TRUE(divide_by(x, c, r) == x / c || x / c == largest) << x << " / " << c;
    }
  }
}

// g*g of 1e20 is beyond float: the second moment is infinite, and the step zero.
TEST(OptimizersFloat, AdamOfAGradientWhoseSquareIsInfinite) {
  Device device;
  ImmediateQueue queue(device);
  for (const float g : {1e20f, -1e20f, 3e38f, 1e-25f, 0.0f}) {
    float p = 0.5f, m = 0, v = 0;
    const auto tp = testing::put<float>(queue, "p", {1}, {p}), tg = testing::put<float>(queue, "g", {1}, {g});
    const auto tm = testing::put<float>(queue, "m", {1}, {m}), tv = testing::put<float>(queue, "v", {1}, {v});
    for (std::int64_t step = 1; step <= 2; ++step) {
      const AdamConstants constants{1e-3, 0.9, 0.999, 1e-8, step, true, 0.1};
      optimizers::adam(queue, tp, tg, {}, constants, tm, tv);
      adam_literal(p, g, m, v, GradientScale{}, constants);
    }
    EXPECT_EQ(bits(fetch<float>(queue, tp)[0]), bits(p)) << g;
    EXPECT_TRUE(std::isfinite(p)) << g;
    EXPECT_EQ(bits(fetch<float>(queue, tm)[0]), bits(m)) << g;
    EXPECT_EQ(bits(fetch<float>(queue, tv)[0]), bits(v)) << g;
  }
}

TEST(OptimizersFixed, AParameterBeyondTheRangeRaisesOverflow) {
  Device device;
  ImmediateQueue queue(device);
  for (const auto& [p, g, overflow] :
       {std::tuple{4e6, -1e5, false}, {4e6, -2e5, true}, {0.0, 4e6, true}, {4e6, 2e5, false}}) {
    const auto tp = testing::make(queue, "p", {1}, std::vector{p}, Dtype::fixed);
    const auto tg = testing::make(queue, "g", {1}, std::vector{g}, Dtype::fixed);
    optimizers::sgd(queue, tp, tg, {}, p == 0.0 ? 1.5 : 1.0);
    EXPECT_EQ(fetch_overflow(queue, tp), overflow) << p << " " << g;
  }
}

}  // namespace
}  // namespace shardproof
