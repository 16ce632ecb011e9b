// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using testing::bits;

/// Every finished value of a literal text passes through here.
struct Checker {
  bool overflow = false;
  Fixed operator()(Fixed value) {
    overflow = overflow || !in_range(value);
    return value;
  }
};

struct Shape {
  std::int64_t n, hidden;
};
constexpr Shape shapes[] = {{0, 3}, {1, 1}, {3, 2}, {2, 31}, {5, 64}, {4, 97}, {2, 1009}};

template <class S>
struct Data {
  std::vector<S> x, dy, weight, bias, mean, rstd;
};
/// What the kernels give.
template <class S>
struct Results {
  std::vector<S> y, mean, rstd, dx, dweight, dbias;
  bool forward_overflow, input_overflow, weight_overflow;
};

template <class S>
Data<S> random_data(const Shape& s, double size) {
  return {testing::random<S>("x", s.n * s.hidden, -0.8 * size, size),
          testing::random<S>("dy", s.n * s.hidden, -size, size),
          testing::random<S>("weight", s.hidden, -1.5, 2),
          testing::random<S>("bias", s.hidden, -0.5, 1),
          {},
          {}};
}

/// mean and rstd of `data` go into the backward kernels; if it has none, the forward kernel's.
template <class S>
Results<S> run(const Shape& s, const Data<S>& data, double epsilon = 1e-5) {
  Device device;
  ImmediateQueue queue(device);
  const auto rows = [&](const char* name, const std::vector<S>& v) {
    return testing::put(queue, name, {s.n, s.hidden}, v);
  };
  const auto x = rows("x", data.x), dy = rows("dy", data.dy);
  const auto weight = testing::put(queue, "weight", {s.hidden}, data.weight);
  const auto bias = testing::put(queue, "bias", {s.hidden}, data.bias);
  const auto y = testing::blank<S>(queue, "y", {s.n, s.hidden}), dx = testing::blank<S>(queue, "dx", {s.n, s.hidden});
  auto mean = testing::blank<S>(queue, "mean", {s.n}), rstd = testing::blank<S>(queue, "rstd", {s.n});
  Results<S> r;
  layer_norm::forward(queue, x, weight, bias, epsilon, y, mean, rstd);
  r.forward_overflow = device.overflow();
  r.y = fetch<S>(queue, y), r.mean = fetch<S>(queue, mean), r.rstd = fetch<S>(queue, rstd);
  if (!data.mean.empty()) {
    mean = testing::put(queue, "mean", {s.n}, data.mean);
    rstd = testing::put(queue, "rstd", {s.n}, data.rstd);
  }
  device.clear_overflow();
  layer_norm::backward_input(queue, dy, x, mean, rstd, weight, dx);
  r.input_overflow = device.overflow();
  r.dx = fetch<S>(queue, dx);
  Accumulator dweight(queue, {"dweight", dtype_of<S>(), {s.hidden}, Category::gradient});
  Accumulator dbias(queue, {"dbias", dtype_of<S>(), {s.hidden}, Category::gradient});
  device.clear_overflow();
  layer_norm::backward_weight(queue, dy, x, mean, rstd, dweight, dbias);
  layer_norm::backward_weight(queue, dy, x, mean, rstd, Accumulator(), dbias);  // a second microbatch, weight frozen
  layer_norm::backward_weight(queue, dy, x, mean, rstd, dweight, Accumulator());
  const auto total = dweight.finish(queue), bias_total = dbias.finish(queue);
  r.dweight = fetch<S>(queue, total), r.dbias = fetch<S>(queue, bias_total);
  r.weight_overflow = device.overflow();
  return r;
}

// Sections 5 and 7 of ARITHMETIC.md in Fixed, a row at a time.
Results<Fixed> literal(const Shape& s, const Data<Fixed>& data, const Results<Fixed>& found) {
  Results<Fixed> r;
  const auto h = static_cast<double>(s.hidden);
  const auto finish_checked = [](Checker& check, FixedSum sum) { return check(finish<Fixed>(sum)); };
  Checker forward, input, weight;
  std::vector<FixedSum> dweight(static_cast<std::size_t>(s.hidden)), dbias(dweight);
  for (std::int64_t row = 0; row < s.n; ++row) {
    const Fixed* x = data.x.data() + row * s.hidden;
    const Fixed* dy = data.dy.data() + row * s.hidden;
    const auto w = [&](std::int64_t c) { return data.weight[static_cast<std::size_t>(c)]; };
    {
      FixedSum sum, squares;
      for (std::int64_t c = 0; c < s.hidden; ++c) sum += term(x[c]);
      const Fixed m = forward(round_to<Fixed>(real(finish_checked(forward, sum)) / h));
      for (std::int64_t c = 0; c < s.hidden; ++c) {
        const Fixed d = forward(sub(x[c], m));
        squares += product(d, d);
      }
      const Fixed var = forward(round_to<Fixed>(real(finish_checked(forward, squares)) / h));
      const Fixed rstd = forward(round_to<Fixed>(1.0 / std::sqrt(real(var) + 1e-5)));
      r.mean.push_back(m);
      r.rstd.push_back(rstd);
      for (std::int64_t c = 0; c < s.hidden; ++c) {
        const Fixed xh = forward(mul(forward(sub(x[c], m)), rstd));
        r.y.push_back(finish_checked(forward, product(xh, w(c)) + term(data.bias[static_cast<std::size_t>(c)])));
      }
    }
    const auto at = static_cast<std::size_t>(row);
    const Fixed m = data.mean.empty() ? found.mean[at] : data.mean[at];
    const Fixed rstd = data.rstd.empty() ? found.rstd[at] : data.rstd[at];
    const auto normalised = [&](Checker& check, std::int64_t c) { return check(mul(check(sub(x[c], m)), rstd)); };
    FixedSum g_sum, gx_sum;
    for (std::int64_t c = 0; c < s.hidden; ++c) {
      const Fixed g = input(mul(dy[c], w(c)));
      g_sum += term(g);
      gx_sum += product(g, normalised(input, c));
    }
    const Fixed m1 = round_to<Fixed>(real(finish_checked(input, g_sum)) / h);
    const Fixed m2 = round_to<Fixed>(real(finish_checked(input, gx_sum)) / h);
    for (std::int64_t c = 0; c < s.hidden; ++c) {
      const Fixed g = mul(dy[c], w(c));
      const Fixed xh = normalised(input, c);
      r.dx.push_back(input(mul(rstd, finish_checked(input, term(g) - term(m1) - product(xh, m2)))));
      const auto i = static_cast<std::size_t>(c);
      for (int part = 0; part < 2; ++part) {
        dweight[i] += product(dy[c], normalised(weight, c));
        dbias[i] += term(dy[c]);
      }
    }
  }
  for (const auto sum : dweight) r.dweight.push_back(finish_checked(weight, sum));
  for (const auto sum : dbias) r.dbias.push_back(finish_checked(weight, sum));
  r.forward_overflow = forward.overflow, r.input_overflow = input.overflow, r.weight_overflow = weight.overflow;
  return r;
}

void expect_same(const char* what, const std::vector<Fixed>& found, const std::vector<Fixed>& expected) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i].raw, expected[i].raw) << what << " " << i;
}

/// Flags are equal, and so is every bit where they are down. Returns how many of the three were up.
int expect_literal(const Shape& s, const Data<Fixed>& data) {
  const auto found = run(s, data);
  const auto expected = literal(s, data, found);
  EXPECT_EQ(found.forward_overflow, expected.forward_overflow);
  EXPECT_EQ(found.input_overflow, expected.input_overflow);
  EXPECT_EQ(found.weight_overflow, expected.weight_overflow);
  if (!expected.forward_overflow) {
    expect_same("y", found.y, expected.y);
    expect_same("mean", found.mean, expected.mean);
    expect_same("rstd", found.rstd, expected.rstd);
  }
  if (!expected.input_overflow) expect_same("dx", found.dx, expected.dx);
  if (!expected.weight_overflow) {
    expect_same("dweight", found.dweight, expected.dweight);
    expect_same("dbias", found.dbias, expected.dbias);
  }
  return expected.forward_overflow + expected.input_overflow + expected.weight_overflow;
}

TEST(LayerNormFixed, EqualsTheDefinition) {
  for (const auto& shape : shapes) {
    SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.hidden));
    EXPECT_EQ(expect_literal(shape, random_data<Fixed>(shape, 3)), 0);
    expect_literal(shape, random_data<Fixed>(shape, 500));                 // the sums leave the FMA's range
    EXPECT_EQ(expect_literal(shape, random_data<Fixed>(shape, 1e-9)), 0);  // a few units: many ties
  }
}

TEST(LayerNormFixed, AConstantRowHasNoDeviation) {
  const Shape shape{2, 5};
  auto data = random_data<Fixed>(shape, 1);
  std::fill(data.x.begin(), data.x.end(), round_to<Fixed>(4e5));
  EXPECT_EQ(expect_literal(shape, data), 0);
  EXPECT_EQ(run(shape, data).rstd[0], round_to<Fixed>(1 / std::sqrt(1e-5)));
}

// Factors of every size, mean and rstd of no real row: whatever can leave the range does so somewhere, and the flag is
// up exactly where the definition says, whether or not an output shows it.
TEST(LayerNormFixed, OverflowIsTheDefinitions) {
  int up = 0, down = 0;
  for (int seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const Shape shape{1, 1 + seed % 4};
    const auto pick = [&](const char* name, std::int64_t n, int spread) {
      std::vector<Fixed> values;
      for (const double v : testing::scattered(static_cast<std::uint64_t>(seed), name, n, spread)) {
        values.push_back(round_to<Fixed>(seed % 5 == 0 ? v * 0x1p-12 : v));
      }
      return values;
    };
    const Data<Fixed> data{
        pick("x", shape.hidden, 21),    pick("dy", shape.hidden, 21), pick("weight", shape.hidden, 14),
        pick("bias", shape.hidden, 21), pick("mean", 1, 10),          pick("rstd", 1, 18)};
    const int raised = expect_literal(shape, data);
    up += raised;
    down += 3 - raised;
    if (HasFailure()) return;
  }
  EXPECT_GT(up, 500);
  EXPECT_GT(down, 500);
}

std::vector<Fixed> fixed(std::initializer_list<double> values) {
  std::vector<Fixed> result;
  for (const double v : values) result.push_back(round_to<Fixed>(v));
  return result;
}

TEST(LayerNormFixed, WhatNoOutputShowsRaisesOverflow) {
  // xh = 10 * 1e6 is out of range, but dy = 0 hides it from dx and dweight.
  const Data<Fixed> large_xh{fixed({10, 10}), fixed({0, 0}), fixed({1, 1}), fixed({0, 0}), fixed({0}), fixed({1e6})};
  auto found = run({1, 2}, large_xh);
  EXPECT_FALSE(found.forward_overflow);
  EXPECT_TRUE(found.input_overflow);
  EXPECT_TRUE(found.weight_overflow);
  EXPECT_EQ(found.dx, fixed({0, 0}));
  // g = 3000 * 3000 is out of range, but rstd = 0 hides it.
  const Data<Fixed> large_g{fixed({1, 2}), fixed({3000, 0}), fixed({3000, 1}), fixed({0, 0}), fixed({0}), fixed({0})};
  found = run({1, 2}, large_g);
  EXPECT_TRUE(found.input_overflow);
  EXPECT_FALSE(found.weight_overflow);
  EXPECT_EQ(found.dx, fixed({0, 0}));
  // The sum of g is out of range, g and g minus the mean that an invalid sum gives are not.
  const auto ones = fixed({1, 1, 1, 1});
  const Data<Fixed> large_sum{ones, fixed({1.1e6, 1.1e6, 1.1e6, 1.1e6}), ones, ones, fixed({1}), fixed({0})};
  EXPECT_TRUE(run({1, 4}, large_sum).input_overflow);
  // The same sum in small numbers, 2^64 - 4 * 2^40 raw: 64 bits would take it for -4.
  const Shape wide{1, 8196};
  const auto all = [&](double value) { return std::vector<Fixed>(8196, round_to<Fixed>(value)); };
  const Data<Fixed> wrapping{all(1), all(2047), all(1), all(0), fixed({1}), fixed({0})};
  EXPECT_TRUE(run(wide, wrapping).input_overflow);
  // A sum of squares out of range under an epsilon that makes rstd look right.
  const Data<Fixed> spread{fixed({3000, -3000}), fixed({0, 0}), fixed({1, 1}), fixed({0, 0}), {}, {}};
  EXPECT_TRUE(run({1, 2}, spread, 1e8).forward_overflow);
}

TEST(LayerNormFixed, ASumThatOverflowsRaisesItWhateverTheMean) {
  // The sum is -2^23, which as an invalid number reads as -2^23: mean, rstd and y come out in range.
  const Shape shape{1, 4};
  auto data = random_data<Fixed>(shape, 1);
  std::fill(data.x.begin(), data.x.end(), Fixed{-(std::int64_t{1} << 61)});
  EXPECT_TRUE(run(shape, data).forward_overflow);
}

TEST(LayerNormFixed, OnlyTotalsOfAWeightGradientOverflow) {
  const auto ones = fixed({1, 1, 1});
  for (const double size : {3e6, 1.5e6, -1.5e6}) {
    // xh = 1. Two microbatches: 2 * size in all, 3 * size before the last row.
    const Data<Fixed> data{ones, fixed({size, size, -size}), fixed({1}), fixed({0}), fixed({0, 0, 0}), ones};
    EXPECT_EQ(run({3, 1}, data).weight_overflow, size == 3e6);
    expect_literal({3, 1}, data);
  }
}

TEST(LayerNormFixed, ManySmallRowsNeedTheSecondLaneToo) {
  // xh = 1, and every product fits an FMA, but their magnitudes sum to 2.6e6 in each microbatch; the total is -3.6e6.
  const Shape shape{1300, 1};
  Data<Fixed> data{{}, {}, fixed({1}), fixed({0}), {}, {}};
  for (int r = 0; r < 1300; ++r) data.dy.push_back(round_to<Fixed>(r % 13 < 2 ? 2000.0 : -2000.0));
  data.x.assign(1300, round_to<Fixed>(1.0));
  data.mean.assign(1300, Fixed{0});
  data.rstd.assign(1300, round_to<Fixed>(1.0));
  EXPECT_FALSE(run(shape, data).weight_overflow);
  expect_literal(shape, data);
}

template <class S>
class LayerNormTest : public ::testing::Test {};
using Floats = ::testing::Types<double, float>;
TYPED_TEST_SUITE(LayerNormTest, Floats);

TYPED_TEST(LayerNormTest, IsWithinItsBound) {
  using S = TypeParam;
  using Wide = long double;
  const double u = testing::roundoff<S>;
  for (const auto& shape : shapes) {
    SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.hidden));
    const auto data = random_data<S>(shape, 3);
    const auto found = run(shape, data);
    const auto h = static_cast<double>(shape.hidden);
    const auto count = static_cast<std::size_t>(shape.hidden);
    std::vector<Wide> dweight(count), dbias(count), weight_size(count), bias_size(count);
    for (std::int64_t row = 0; row < shape.n; ++row) {
      const auto first = static_cast<std::size_t>(row * shape.hidden);
      Wide sum = 0, size = 0, squares = 0, top = 0;
      for (std::size_t c = 0; c < count; ++c) {
        sum += data.x[first + c];
        size += std::fabs(Wide(data.x[first + c]));
        top = std::max(top, std::fabs(Wide(data.x[first + c])));
      }
      const Wide m = sum / h;
      // gamma_h of the sum's magnitudes, one rounding by the division.
      const Wide mean_error = 1.01L * (h + 1) * u * size / h;
      EXPECT_LE(std::fabs(found.mean[static_cast<std::size_t>(row)] - m), mean_error);
      for (std::size_t c = 0; c < count; ++c) squares += (data.x[first + c] - m) * (data.x[first + c] - m);
      const Wide variance = squares / h + static_cast<Wide>(static_cast<S>(1e-5));
      // Sum: gamma_(h+3) for h squares of rounded differences and a division; a shifted mean adds its square, as the
      // differences sum to zero; its rounding adds 2 u |d| to a difference, hence 2 u top max(d) at most. The square
      // root halves the relative error; it, the division and the addition of epsilon round once each.
      const Wide variance_error = (h + 3) * u * variance + mean_error * mean_error + 4 * u * mean_error * top;
      const Wide rstd_error = 1.01L * (variance_error / variance / 2 + 3 * u);  // relative
      const Wide s = 1 / std::sqrt(variance);
      EXPECT_LE(std::fabs(found.rstd[static_cast<std::size_t>(row)] - s), rstd_error * s);

      // Backward from the kernel's own mean and rstd.
      const Wide fm = found.mean[static_cast<std::size_t>(row)], fs = found.rstd[static_cast<std::size_t>(row)];
      Wide g_sum = 0, gx_sum = 0, g_size = 0, gx_size = 0;
      for (std::size_t c = 0; c < count; ++c) {
        const Wide xh = (data.x[first + c] - m) * s, w = data.weight[c], b = data.bias[c], y = xh * w + b;
        // d: the mean's error and a rounding; xh: those times s, rstd's error, a rounding; then a product and a sum.
        const Wide xh_error =
            1.01L * ((mean_error + u * std::fabs(data.x[first + c] - m)) * s + std::fabs(xh) * (rstd_error + u));
        const Wide y_error = xh_error * std::fabs(w) + 1.01L * u * (std::fabs(xh * w) + std::fabs(y));
        ASSERT_LE(std::fabs(found.y[first + c] - y), y_error) << row << "," << c;
        const Wide dy = data.dy[first + c], g = dy * w, gx = g * (data.x[first + c] - fm) * fs;
        g_sum += g, gx_sum += gx, g_size += std::fabs(g), gx_size += std::fabs(gx);
        const Wide term = dy * (data.x[first + c] - fm) * fs;
        dweight[c] += 2 * term, weight_size[c] += 2 * std::fabs(term), dbias[c] += 2 * dy,
            bias_size[c] += 2 * std::fabs(dy);
      }
      // Sums: g is rounded once and gx four times before gamma_h, then the division.
      const Wide m1 = g_sum / h, m2 = gx_sum / h;
      const Wide m1_error = 1.01L * (h + 2) * u * g_size / h, m2_error = 1.01L * (h + 5) * u * gx_size / h;
      for (std::size_t c = 0; c < count; ++c) {
        const Wide xh = (data.x[first + c] - fm) * fs, g = Wide(data.dy[first + c]) * data.weight[c];
        // inner: g once; xh twice and m2, their product once; two subtractions round each partial result.
        const Wide parts = std::fabs(g) + std::fabs(m1) + std::fabs(xh * m2);
        const Wide inner_error = 1.01L * (m1_error + std::fabs(xh) * m2_error + 6 * u * parts);
        const Wide inner = g - m1 - xh * m2;
        ASSERT_LE(std::fabs(found.dx[first + c] - fs * inner), fs * inner_error + 1.01L * u * std::fabs(fs * inner))
            << row << "," << c;
      }
    }
    for (std::size_t c = 0; c < count; ++c) {
      // 2n terms in two kernels, each term rounded three times.
      const double terms = 2.0 * static_cast<double>(shape.n);
      ASSERT_LE(std::fabs(found.dweight[c] - dweight[c]), 1.01L * (terms + 3) * u * weight_size[c]) << c;
      ASSERT_LE(std::fabs(found.dbias[c] - dbias[c]), 1.01L * terms * u * bias_size[c]) << c;
    }
  }
}

TEST(LayerNorm, RefusesSizesThatDoNotAgree) {
  Device device;
  ImmediateQueue queue(device);
  constexpr std::int64_t n = 3, hidden = 64;
  const auto rows = testing::put(queue, "rows", {n, hidden}, std::vector<double>(n * hidden));
  const auto row = testing::put(queue, "row", {hidden}, std::vector<double>(hidden));
  const auto column = testing::put(queue, "column", {n}, std::vector<double>(n));
  const auto gradient = [&](std::int64_t size) {
    return Accumulator(queue, {"gradient", Dtype::f64, {size}, Category::gradient});
  };
  for (const std::int64_t size : {0, 1, 63, 65}) {
    EXPECT_THROW(layer_norm::backward_weight(queue, rows, rows, column, column, gradient(size), {}), InternalError);
    EXPECT_THROW(layer_norm::backward_weight(queue, rows, rows, column, column, {}, gradient(size)), InternalError);
  }
  layer_norm::backward_weight(queue, rows, rows, column, column, gradient(hidden), gradient(hidden));
  const auto y = testing::blank<double>(queue, "y", {n, hidden});
  EXPECT_THROW(layer_norm::forward(queue, rows, column, row, 1, y, column, column), InternalError);
  EXPECT_THROW(layer_norm::forward(queue, rows, row, row, 1, row, column, column), InternalError);
  EXPECT_THROW(layer_norm::backward_input(queue, rows, rows, column, row, row, y), InternalError);
  EXPECT_THROW(layer_norm::backward_input(queue, rows, rows, column, column, row, column), InternalError);
}

// The bits that a device must give as well.
template <class S>
std::string digest_of_bits() {
  const Shape shape{3, 1009};
  const auto found = run(shape, random_data<S>(shape, 3));
  return testing::bytes_digest(found.y).substr(0, 16) + " " + testing::bytes_digest(found.dx).substr(0, 16);
}
TEST(LayerNormBits, ArePinned) {
  EXPECT_EQ(digest_of_bits<Fixed>(), "79499736f93992ea 5a81a60424271d1f");
  EXPECT_EQ(digest_of_bits<double>(), "ca43ac6fb09714e2 b7323ba0d742c02d");
  EXPECT_EQ(digest_of_bits<float>(), "0500a1ba0b05591f e1a90362f1333ee8");
}

}  // namespace
}  // namespace shardproof
