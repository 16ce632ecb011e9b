// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/functions.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using testing::bits;

struct Shape {
  std::int64_t n, vocab;
};
constexpr Shape shapes[] = {{0, 3}, {1, 1}, {3, 2}, {7, 31}, {5, 64}, {4, 257}, {3, 1009}};
constexpr double smoothings[] = {0, 0.1};
constexpr double factor = 65536.0 / 12;

/// Every third row has no label; the others' labels walk over the vocabulary, its ends too.
std::vector<std::int32_t> labels_of(const Shape& s) {
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < s.n; ++r) {
    labels.push_back(r % 3 == 1 ? -1
                                : static_cast<std::int32_t>(r * (s.vocab - 1) / std::max<std::int64_t>(s.n - 1, 1)));
  }
  return labels;
}

/// What the kernels give.
template <class S>
struct Results {
  std::vector<S> row_max, row_sum, dlogits;
  double loss;
  bool overflow;
};

template <class S>
Results<S> run(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels,
               double smoothing) {
  Device device;
  ImmediateQueue queue(device);
  const auto z = testing::put(queue, "logits", {s.n, s.vocab}, logits);
  const auto t = testing::put(queue, "labels", {s.n}, labels);
  const auto top = testing::blank<S>(queue, "row_max", {s.n}), sum = testing::blank<S>(queue, "row_sum", {s.n});
  const auto dz = testing::blank<S>(queue, "dlogits", {s.n, s.vocab});
  const WideTotal loss(queue, dtype_of<S>(), "loss");
  cross_entropy::forward(queue, z, t, smoothing, top, sum, loss);
  const bool overflow = device.overflow();
  cross_entropy::forward(queue, z, t, smoothing, top, sum, loss);  // a second microbatch adds its losses
  cross_entropy::backward(queue, z, t, top, sum, smoothing, factor, dz);
  return {fetch<S>(queue, top), fetch<S>(queue, sum), fetch<S>(queue, dz), loss.fetch(queue), overflow};
}

// Section 6 of ARITHMETIC.md; sums of S run in order.
template <class S>
struct Literal {
  using C = Real<S>;
  std::vector<S> row_max, row_sum, losses;
  bool overflow = false;

  S checked(S value) {
    overflow = overflow || !in_range(value);
    return value;
  }
  S exponential(S z, S m) { return checked(round_to<S>(exp_of(real(checked(sub(z, m)))))); }

  Literal(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double a) {
    for (std::int64_t r = 0; r < s.n; ++r) {
      const S* z = logits.data() + r * s.vocab;
      S m = z[0];
      for (std::int64_t j = 1; j < s.vocab; ++j) m = z[j] > m ? z[j] : m;
      Sum<S> total{}, z_sum{};
      for (std::int64_t j = 0; j < s.vocab; ++j) {
        total += term(exponential(z[j], m));
        z_sum += term(z[j]);
      }
      const S sum = checked(finish<S>(total));
      row_max.push_back(m);
      row_sum.push_back(sum);
      const auto label = labels[static_cast<std::size_t>(r)];
      if (label < 0) continue;
      if (a == 0) {
        losses.push_back(checked(finish<S>(term(round_to<S>(log_of(real(sum)))) + term(m) - term(z[label]))));
      } else {
        losses.push_back(checked(round_to<S>(((log_of(real(sum)) + real(m)) - C(1 - a) * real(z[label])) -
                                             C(a / static_cast<double>(s.vocab)) * real(checked(finish<S>(z_sum))))));
      }
    }
  }
};

/// dz from the kernel's own maxima and sums: nothing is summed, so it is the same in every track.
template <class S>
S gradient(S z, S m, S sum, bool hit, double a, std::int64_t vocab) {
  using C = Real<S>;
  const C p = real(round_to<S>(exp_of(real(sub(z, m))))) / real(sum);
  const C indicator = hit ? C(1) : C(0);
  if (a == 0) return round_to<S>((p - indicator) * C(factor));
  return round_to<S>(((p - C(1 - a) * indicator) - C(a / static_cast<double>(vocab))) * C(factor));
}

template <class S>
void expect_gradient(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double a,
                     const Results<S>& found) {
  for (std::int64_t r = 0; r < s.n; ++r) {
    const auto row = static_cast<std::size_t>(r);
    for (std::int64_t j = 0; j < s.vocab; ++j) {
      const auto i = static_cast<std::size_t>(r * s.vocab + j);
      const S expected =
          labels[row] < 0 ? S{0}
                          : gradient(logits[i], found.row_max[row], found.row_sum[row], j == labels[row], a, s.vocab);
      // == and not bits: 0 * factor may be -0.
      ASSERT_TRUE(found.dlogits[i] == expected) << r << "," << j;
    }
  }
}

/// Returns whether it overflowed.
bool expect_literal(const Shape& s, const std::vector<Fixed>& logits, double smoothing) {
  const auto labels = labels_of(s);
  const auto found = run(s, logits, labels, smoothing);
  const Literal<Fixed> expected(s, logits, labels, smoothing);
  EXPECT_EQ(found.overflow, expected.overflow);
  if (expected.overflow) return true;
  EXPECT_TRUE(found.row_max == expected.row_max);
  EXPECT_TRUE(found.row_sum == expected.row_sum);
  WideSum sum;
  for (const Fixed loss : expected.losses) sum.add(2 * static_cast<int128>(loss.raw));
  EXPECT_EQ(found.loss, to_double(sum));
  expect_gradient(s, logits, labels, smoothing, found);
  return false;
}

TEST(CrossEntropyFixed, EqualsTheDefinition) {
  for (const auto& shape : shapes) {
    for (const double smoothing : smoothings) {
      SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.vocab));
      const auto n = shape.n * shape.vocab;
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -6, 6), smoothing));
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -3000, 2000), smoothing));
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -1e-11, 1e-11), smoothing));  // ties in the max
      EXPECT_FALSE(expect_literal(shape, std::vector<Fixed>(static_cast<std::size_t>(n), Fixed{-5}), smoothing));
    }
  }
}

TEST(CrossEntropyFixed, OverflowIsTheDefinitions) {
  int up = 0;
  constexpr int cases = 600;
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const Shape shape{1 + seed % 2, 1 + seed % 5};
    std::vector<Fixed> z;
    for (const double v : testing::scattered(static_cast<std::uint64_t>(seed), "z", shape.n * shape.vocab, 21)) {
      z.push_back(round_to<Fixed>(v));
    }
    if (seed % 3 == 0) z.back() = Fixed{fixed_limit - 1};
    up += expect_literal(shape, z, smoothings[seed % 2]);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(up, 50);
  EXPECT_LT(up, cases - 50);
}

TEST(CrossEntropyFixed, OnlyTotalsOverflow) {
  const auto fixed = [](std::initializer_list<double> values) {
    std::vector<Fixed> result;
    for (const double v : values) result.push_back(round_to<Fixed>(v));
    return result;
  };
  const Shape shape{1, 5};
  // Partial sums of z leave the range and return; without smoothing they are not summed at all.
  EXPECT_FALSE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, -1.5e6, -1.5e6}), 0.1));
  EXPECT_TRUE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, 1.5e6, 1.5e6}), 0.1));
  EXPECT_FALSE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, 1.5e6, 1.5e6}), 0));
  EXPECT_TRUE(expect_literal(shape, fixed({3e6, 3e6, 3e6, 3e6, -3e6}), 0));  // fin(z - max)
}

TEST(CrossEntropyFixed, ALossMayOverflowAlone) {
  // z - max is one unit inside the range; log 2 more is outside.
  const std::int64_t half = fixed_limit / 2;
  for (const std::int64_t below : {half, half - 2 * (std::int64_t{1} << 40)}) {
    const std::vector<Fixed> z{Fixed{half - 1}, Fixed{half - 1}, Fixed{-below}};
    EXPECT_EQ(run<Fixed>({1, 3}, z, {2}, 0).overflow, below == half);
    EXPECT_FALSE(run<Fixed>({1, 3}, z, {-1}, 0).overflow);  // no label, no loss
  }
}

template <class S>
class CrossEntropyTest : public ::testing::Test {};
using Floats = ::testing::Types<double, float>;
TYPED_TEST_SUITE(CrossEntropyTest, Floats);

TYPED_TEST(CrossEntropyTest, IsWithinItsBound) {
  using S = TypeParam;
  const double u = testing::roundoff<S>;
  for (const auto& shape : shapes) {
    for (const double smoothing : smoothings) {
      SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.vocab));
      const auto logits = testing::random<S>("z", shape.n * shape.vocab, -6, 6);
      const auto labels = labels_of(shape);
      const auto found = run(shape, logits, labels, smoothing);
      const Literal<S> expected(shape, logits, labels, smoothing);
      const auto v = static_cast<double>(shape.vocab);
      double loss = 0, loss_bound = 0;
      std::size_t labelled = 0;
      for (std::size_t r = 0; r < labels.size(); ++r) {
        EXPECT_EQ(found.row_max[r], expected.row_max[r]);
        // The same V positive terms in two orders: each within gamma_V of their sum.
        const double z = static_cast<double>(expected.row_sum[r]);
        EXPECT_NEAR(static_cast<double>(found.row_sum[r]), z, 2.02 * v * u * z);
        if (labels[r] < 0) continue;
        loss += 2 * static_cast<double>(expected.losses[labelled++]);
        // log turns that relative difference into an absolute one. Each loss rounds log and at most three sums of
        // numbers below log V + 2 * 6 (|z| <= 6), in both texts; (a/V) sum z differs by 2 gamma_V * 6.
        const double size = std::log(v) + 12;
        loss_bound += 2 * (2.02 * v * u * (1 + 6 * smoothing) + 2 * 5 * u * size);
      }
      EXPECT_NEAR(found.loss, loss, loss_bound + 0x1p-50 * std::fabs(loss));
      expect_gradient(shape, logits, labels, smoothing, found);
    }
  }
}

TYPED_TEST(CrossEntropyTest, ANonFiniteLogitMakesTheGradientNonFinite) {
  using S = TypeParam;
  const Shape shape{1, 70};
  for (const std::size_t at : {0u, 33u, 69u}) {
    for (const S value : {std::numeric_limits<S>::infinity(), std::numeric_limits<S>::quiet_NaN()}) {
      auto logits = testing::random<S>("z", 70);
      logits[at] = value;
      EXPECT_TRUE(std::isnan(run(shape, logits, {5}, 0).dlogits[5])) << at;
    }
  }
}

template <class S>
class CrossEntropyRefusal : public ::testing::Test {};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(CrossEntropyRefusal, Scalars);

TYPED_TEST(CrossEntropyRefusal, OfLabelsAndShapes) {
  using S = TypeParam;
  const auto z = testing::random<S>("z", 6);
  for (const std::int32_t label : {-2, 3}) EXPECT_THROW(run<S>({2, 3}, z, {0, label}, 0), DeviceError);
  Device device;
  ImmediateQueue queue(device);
  const auto logits = testing::put(queue, "logits", {2, 3}, z);
  const auto labels = testing::put<std::int32_t>(queue, "labels", {2}, {0, 3});
  const auto row = testing::put(queue, "row", {2}, testing::random<S>("row", 2));
  EXPECT_THROW(cross_entropy::backward(queue, logits, labels, row, row, 0, 1, logits), DeviceError);
  const WideTotal loss(queue, dtype_of<S>(), "loss");
  EXPECT_THROW(cross_entropy::forward(queue, logits, labels.rows(0, 1), 0, row, row, loss), InternalError);
  const auto no_vocabulary = testing::blank<S>(queue, "none", {2, 0});
  EXPECT_THROW(cross_entropy::forward(queue, no_vocabulary, labels, 0, row, row, loss), NotSupported);
}

}  // namespace
}  // namespace shardproof
