// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/testing.hpp"
#include "reference/linear.hpp"

namespace shardproof::matmul {
namespace {

using testing::make;
using testing::scattered;

class Matmul : public ::testing::Test {
 protected:
  Tensor numbers(const std::string& name, const Dims& dims, Dtype dtype, int spread = 3) {
    return make(queue_, name, dims, scattered(11, name, elements_of(dims), spread), dtype);
  }
  Accumulator zeros(const std::string& name, const Dims& dims, Dtype dtype) {
    return {queue_, {name, dtype, dims, Category::gradient}};
  }
  template <class S>
  reference::Array<S> array(const Tensor& t) {
    return {t.dims().size() == 1 ? 1 : t.dim(0), t.dims().back(), fetch<S>(queue_, t)};
  }

  /// Columns begin..end-1 of a matrix.
  template <class S>
  Tensor columns(const Tensor& t, std::int64_t begin, std::int64_t end) {
    const auto all = fetch<S>(queue_, t);
    std::vector<S> part;
    for (std::int64_t i = 0; i < t.dim(0); ++i) {
      const auto row = all.begin() + i * t.dim(1);
      part.insert(part.end(), row + begin, row + end);
    }
    Tensor tensor(queue_, {t.name(), t.dtype(), {t.dim(0), end - begin}, Category::workspace});
    upload<S>(queue_, tensor, part);
    return tensor;
  }
  /// y += bias + x w^T, one slice of the inputs after the other; the last adds the bias.
  template <class S>
  void add_slices(const Tensor& x, const Tensor& w, const Tensor& bias, const std::vector<std::int64_t>& ends,
                  const std::function<Accumulator&(std::size_t)>& y) {
    std::int64_t begin = 0;
    for (std::size_t part = 0; part < ends.size(); ++part) {
      forward(queue_, columns<S>(x, begin, ends[part]), columns<S>(w, begin, ends[part]),
              part + 1 == ends.size() ? bias : Tensor(), y(part));
      begin = ends[part];
    }
  }

  Device device_;
  ImmediateQueue queue_{device_};
};

/// Where up to five slices of n inputs end: even ones, and some that are empty.
std::vector<std::vector<std::int64_t>> slicings(std::int64_t n) {
  return {{n}, {n / 3, n}, {0, n, n}, {n / 4, n / 4, n - n / 5, n}, {n / 5, 2 * n / 5, 3 * n / 5, 4 * n / 5, n}};
}

TEST_F(Matmul, ExactEqualsTheOracle) {
  for (const auto& [rows, in, out] : {std::array{0, 3, 2}, {1, 1, 1}, {5, 0, 3}, {13, 24, 17}, {67, 31, 129}}) {
    for (const int spread : {3, 12}) {
      const auto x = numbers("x", {rows, in}, Dtype::fixed, spread), w = numbers("w", {out, in}, Dtype::fixed, spread);
      const auto bias = numbers("bias", {out}, Dtype::fixed), dy = numbers("dy", {rows, out}, Dtype::fixed, spread);
      const Tensor y(queue_, {"y", Dtype::fixed, {rows, out}, Category::activation});
      auto dx = zeros("dx", {rows, in}, Dtype::fixed), dw = zeros("dw", {out, in}, Dtype::fixed),
           db = zeros("db", {out}, Dtype::fixed);
      forward(queue_, x, w, bias, y);
      backward_input(queue_, dy, w, dx);
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        backward_weight(queue_, dy, x, dw);
        backward_bias(queue_, dy, db);
      }

      reference::Arithmetic<Fixed> arithmetic;
      const auto b = array<Fixed>(bias);
      reference::Array<FixedSum> dx_sum(rows, in), dw_sum(out, in), db_sum(1, out);
      reference::linear_input(array<Fixed>(dy), array<Fixed>(w), dx_sum);
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        reference::linear_weight(array<Fixed>(dy), array<Fixed>(x), dw_sum);
        reference::linear_bias(array<Fixed>(dy), db_sum);
      }
      EXPECT_EQ(fetch<Fixed>(queue_, y), reference::linear(arithmetic, array<Fixed>(x), array<Fixed>(w), &b).values());
      EXPECT_EQ(fetch<Fixed>(queue_, dx.finish(queue_)), arithmetic.finish(dx_sum).values());
      const Tensor whole(queue_, {"dx", Dtype::fixed, {rows, in}, Category::activation});
      backward_input(queue_, dy, w, whole);
      EXPECT_EQ(fetch<Fixed>(queue_, whole), arithmetic.finish(dx_sum).values());
      EXPECT_EQ(fetch<Fixed>(queue_, dw.finish(queue_)), arithmetic.finish(dw_sum).values());
      EXPECT_EQ(fetch<Fixed>(queue_, db.finish(queue_)), arithmetic.finish(db_sum).values());

      forward(queue_, x, w, {}, y);
      EXPECT_EQ(fetch<Fixed>(queue_, y),
                reference::linear<Fixed>(arithmetic, array<Fixed>(x), array<Fixed>(w), nullptr).values());
    }
  }
}

TEST_F(Matmul, SlicesOfTheInputsSumToTheOracle) {
  for (const auto& [rows, in, out] : {std::array{0, 3, 2}, {1, 1, 1}, {4, 5, 0}, {5, 0, 3}, {13, 24, 17}}) {
    const auto x = numbers("x", {rows, in}, Dtype::fixed, 9), w = numbers("w", {out, in}, Dtype::fixed, 9);
    const auto bias = numbers("bias", {out}, Dtype::fixed);
    reference::Arithmetic<Fixed> arithmetic;
    const auto b = array<Fixed>(bias);
    const auto expected = reference::linear(arithmetic, array<Fixed>(x), array<Fixed>(w), &b).values();
    for (const auto& ends : slicings(in)) {
      // As several ranks sum their finished parts, and as one sum.
      std::vector<Accumulator> parts;
      for (std::size_t p = 0; p < ends.size(); ++p) parts.push_back(zeros("y", {rows, out}, Dtype::fixed));
      add_slices<Fixed>(x, w, bias, ends, [&](std::size_t part) -> Accumulator& { return parts[part]; });
      std::vector<Fixed> sum(expected.size());
      for (auto& part : parts) {
        const auto values = fetch<Fixed>(queue_, part.finish(queue_));
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i].raw += values[i].raw;
      }
      EXPECT_EQ(sum, expected);
      auto y = zeros("y", {rows, out}, Dtype::fixed);
      add_slices<Fixed>(x, w, bias, ends, [&](std::size_t) -> Accumulator& { return y; });
      EXPECT_EQ(fetch<Fixed>(queue_, y.finish(queue_)), expected);
    }
  }
}

TEST_F(Matmul, OnlyTheTotalOverSlicesOverflows) {
  // Products of 2^20: three of a sign leave the range, eight and more an int64; so does the bias beside three.
  const std::int64_t in = 40;
  std::vector<double> x(in, 1024), w(in, 1024);
  for (std::size_t k = in / 2; k < in; ++k) w[k] = -1024;
  const auto run = [&](double bias) {
    auto y = zeros("y", {1, 1}, Dtype::fixed);
    add_slices<Fixed>(make(queue_, "x", {1, in}, x, Dtype::fixed), make(queue_, "w", {1, in}, w, Dtype::fixed),
                      make(queue_, "bias", {1}, std::array{bias}, Dtype::fixed), {3, 3, 17, 20, in},
                      [&](std::size_t) -> Accumulator& { return y; });
    return y.finish(queue_);
  };
  EXPECT_EQ(testing::doubles(queue_, run(0x1p-40)), std::vector{0x1p-40});
  for (std::size_t k = 0; k < 3; ++k) w[in - 1 - k] = 0;
  EXPECT_FALSE(fetch_overflow(queue_, run(0x1p20 - 1)));
  EXPECT_TRUE(fetch_overflow(queue_, run(0x1p20)));
}

TEST_F(Matmul, ALargeBiasWidensTheSum) {
  const auto x = make(queue_, "x", {2, 1}, std::array{1., -1.}, Dtype::fixed);
  const auto w = make(queue_, "w", {1, 1}, std::array{0x1.8p20}, Dtype::fixed);
  const auto bias = make(queue_, "bias", {1}, std::array{0x1.8p21}, Dtype::fixed);
  auto y = zeros("y", {2, 1}, Dtype::fixed);
  forward(queue_, x, w, bias, y);
  const auto sum = y.finish(queue_);
  EXPECT_TRUE(fetch_overflow(queue_, sum));
  EXPECT_EQ(fetch<Fixed>(queue_, sum), (std::vector{Fixed{fixed_invalid}, round_to<Fixed>(0x1.8p20)}));
}

// Each product is rounded once, and is in at most K + slices + 1 sums: gamma_(K+7) of Higham 2002, section 3.1.
TEST_F(Matmul, FloatSlicesOfTheInputsWithinTheirBound) {
  const std::int64_t rows = 3, in = 67, out = 5;
  const auto check = [&]<class S>(S) {
    const auto dtype = dtype_of<S>();
    const auto x = numbers("x", {rows, in}, dtype, 10), w = numbers("w", {out, in}, dtype, 10),
               bias = numbers("bias", {out}, dtype, 10);
    const auto a = testing::doubles(queue_, x), b = testing::doubles(queue_, w), c = testing::doubles(queue_, bias);
    const double nu = static_cast<double>(in + 7) * (sizeof(S) == 8 ? 0x1p-53 : 0x1p-24);
    for (const auto& ends : slicings(in)) {
      auto y = zeros("y", {rows, out}, dtype);
      add_slices<S>(x, w, bias, ends, [&](std::size_t) -> Accumulator& { return y; });
      const auto got = testing::doubles(queue_, y.finish(queue_));
      for (std::int64_t i = 0; i < rows * out; ++i) {
        const auto o = static_cast<std::size_t>(i % out);
        long double sum = c[o], magnitudes = std::fabs(c[o]);
        for (std::size_t k = 0; k < static_cast<std::size_t>(in); ++k) {
          const auto p = static_cast<long double>(a[static_cast<std::size_t>(i / out * in) + k]) *
                         b[o * static_cast<std::size_t>(in) + k];
          sum += p;
          magnitudes += std::fabs(p);
        }
        EXPECT_LE(std::fabs(got[static_cast<std::size_t>(i)] - sum), 1.001 * nu / (1 - nu) * magnitudes);
      }
    }
  };
  check(double{});
  check(float{});
}

TEST_F(Matmul, FloatsMultiplyTheRightOperands) {
  // Small whole numbers: every order of summation gives the same.
  for (const auto dtype : {Dtype::f64, Dtype::f32}) {
    const auto x = make(queue_, "x", {3, 2}, std::array{1., 2., 3., 4., 5., 6.}, dtype);
    const auto w = make(queue_, "w", {2, 2}, std::array{1., -1., 0., 2.}, dtype);
    const auto bias = make(queue_, "bias", {2}, std::array{10., 20.}, dtype);
    const auto dy = make(queue_, "dy", {3, 2}, std::array{1., 0., 0., 1., 2., 3.}, dtype);
    const auto y = make(queue_, "y", {3, 2}, std::array{0., 0., 0., 0., 0., 0.}, dtype);
    auto dx = zeros("dx", {3, 2}, dtype), dw = zeros("dw", {2, 2}, dtype), db = zeros("db", {2}, dtype);
    forward(queue_, x, w, bias, y);
    backward_input(queue_, dy, w, dx);
    backward_weight(queue_, dy, x, dw);
    backward_bias(queue_, dy, db);
    EXPECT_EQ(testing::doubles(queue_, y), (std::vector{9., 24., 9., 28., 9., 32.}));
    EXPECT_EQ(testing::doubles(queue_, dx.finish(queue_)), (std::vector{1., -1., 0., 2., 2., 4.}));
    const Tensor whole(queue_, {"dx", dtype, {3, 2}, Category::activation});
    backward_input(queue_, dy, w, whole);
    EXPECT_EQ(testing::doubles(queue_, whole), (std::vector{1., -1., 0., 2., 2., 4.}));
    EXPECT_EQ(testing::doubles(queue_, dw.finish(queue_)), (std::vector{11., 14., 18., 22.}));
    EXPECT_EQ(testing::doubles(queue_, db.finish(queue_)), (std::vector{3., 4.}));
  }
}

// gamma_n of Higham 2002, section 3.1, against the sum in double (f32) or long double (f64).
TEST_F(Matmul, FloatBiasGradientWithinItsBound) {
  const std::int64_t rows = 1000, out = 67;
  for (const auto dtype : {Dtype::f64, Dtype::f32}) {
    const auto dy = numbers("dy", {rows, out}, dtype, 10);
    auto db = zeros("db", {out}, dtype);
    backward_bias(queue_, dy, db);
    const auto got = testing::doubles(queue_, db.finish(queue_)), d = testing::doubles(queue_, dy);
    const double nu = static_cast<double>(rows) * (dtype == Dtype::f64 ? 0x1p-53 : 0x1p-24);
    for (std::int64_t j = 0; j < out; ++j) {
      long double sum = 0, magnitudes = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        sum += d[static_cast<std::size_t>(i * out + j)];
        magnitudes += std::fabs(d[static_cast<std::size_t>(i * out + j)]);
      }
      EXPECT_LE(std::fabs(got[static_cast<std::size_t>(j)] - sum),
                1.001 * nu / (1 - nu) * static_cast<double>(magnitudes));
    }
  }
}

TEST_F(Matmul, BiasGradientIsATrueTotal) {
  const double large = 0x1.8p21;  // three of them leave the range, and an int64 soon after
  const std::vector<double> up(6, large), down(6, -large);
  const auto grow = make(queue_, "grow", {6, 1}, up, Dtype::fixed),
             shrink = make(queue_, "shrink", {6, 1}, down, Dtype::fixed);
  const auto little = make(queue_, "little", {1, 1}, std::array{0x1p-40}, Dtype::fixed);
  auto db = zeros("db", {1}, Dtype::fixed);
  for (const auto* t : {&grow, &grow, &shrink, &little, &shrink}) backward_bias(queue_, *t, db);
  EXPECT_EQ(testing::doubles(queue_, db.finish(queue_)), std::vector{0x1p-40});
  db.restart(queue_);
  for (const auto* t : {&grow, &grow, &shrink}) backward_bias(queue_, *t, db);
  EXPECT_TRUE(fetch_overflow(queue_, db.finish(queue_)));
}

TEST_F(Matmul, OverflowRaisesTheOutputsFlag) {
  const auto x = make(queue_, "x", {1, 2}, std::array{4096., 4096.}, Dtype::fixed);
  const auto w = make(queue_, "w", {2, 2}, std::array{1., 1., 1024., 0x1p-40}, Dtype::fixed);
  const auto y = make(queue_, "y", {1, 2}, std::array{0., 0.}, Dtype::fixed);
  forward(queue_, x, w, {}, y);
  EXPECT_TRUE(fetch_overflow(queue_, y));  // 4096 * 1024 is 2^22
  EXPECT_EQ(fetch<Fixed>(queue_, y)[0], (Fixed{std::int64_t{8192} << 40}));
  EXPECT_EQ(fetch<Fixed>(queue_, y)[1], Fixed{fixed_invalid});
}

TEST_F(Matmul, CountsFlops) {
  const auto x = numbers("x", {5, 3}, Dtype::f32), w = numbers("w", {7, 3}, Dtype::f32),
             dy = numbers("dy", {5, 7}, Dtype::f32);
  const Tensor y(queue_, {"y", Dtype::f32, {5, 7}, Category::activation});
  auto dx = zeros("dx", {5, 3}, Dtype::f32), dw = zeros("dw", {7, 3}, Dtype::f32), db = zeros("db", {7}, Dtype::f32);
  const auto spent = [&](auto&& kernel) {
    const auto before = device_.flops().model();
    kernel();
    return device_.flops().model() - before;
  };
  EXPECT_EQ(spent([&] { forward(queue_, x, w, {}, y); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(spent([&] { forward(queue_, x, w, {}, zeros("y", {5, 7}, Dtype::f32)); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(spent([&] { backward_input(queue_, dy, w, dx); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(spent([&] { backward_input(queue_, dy, w, numbers("whole", {5, 3}, Dtype::f32)); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(spent([&] { backward_weight(queue_, dy, x, dw); }), 2 * 5 * 3 * 7);
  EXPECT_EQ(spent([&] { backward_bias(queue_, dy, db); }), 0);
  device_.flops().set_recomputing(true);
  EXPECT_EQ(spent([&] { forward(queue_, x, w, {}, y); }), 0);
  EXPECT_EQ(device_.flops().hardware(), 6 * 2 * 5 * 3 * 7);
}

TEST_F(Matmul, RefusesWhatDoesNotFit) {
  const auto x = numbers("x", {5, 3}, Dtype::f64), w = numbers("w", {7, 3}, Dtype::f64),
             y = numbers("y", {5, 7}, Dtype::f64);
  const auto narrow = numbers("narrow", {7, 2}, Dtype::f64), vector = numbers("vector", {6}, Dtype::f64);
  auto dx = zeros("dx", {5, 3}, Dtype::f64), dw = zeros("dw", {7, 3}, Dtype::f64);
  EXPECT_THROW(forward(queue_, x, narrow, {}, y), InternalError);
  EXPECT_THROW(forward(queue_, x, w, vector, y), InternalError);
  EXPECT_THROW(forward(queue_, x, w, {}, x), InternalError);
  EXPECT_THROW(forward(queue_, vector, w, {}, y), InternalError);
  EXPECT_THROW(forward(queue_, x, narrow, {}, zeros("y", {5, 7}, Dtype::f64)), InternalError);
  EXPECT_THROW(forward(queue_, x, w, vector, zeros("y", {5, 7}, Dtype::f64)), InternalError);
  EXPECT_THROW(forward(queue_, x, w, {}, dx), InternalError);
  EXPECT_THROW(backward_input(queue_, x, w, dx), InternalError);
  EXPECT_THROW(backward_input(queue_, y, w, dw), InternalError);
  EXPECT_THROW(backward_input(queue_, x, w, x), InternalError);
  EXPECT_THROW(backward_input(queue_, y, w, y), InternalError);
  EXPECT_THROW(backward_weight(queue_, y, w, dw), InternalError);
  EXPECT_THROW(backward_weight(queue_, y, x, dx), InternalError);
  EXPECT_THROW(backward_bias(queue_, y, dx), InternalError);
}

TEST_F(Matmul, SeesPoisonAndForeignTensors) {
  const auto w = numbers("w", {7, 3}, Dtype::fixed);
  const Tensor unwritten(queue_, {"unwritten", Dtype::fixed, {5, 3}, Category::activation});
  const Tensor y(queue_, {"y", Dtype::fixed, {5, 7}, Category::activation});
  const auto message = [&](const Tensor& x) {
    try {
      forward(queue_, x, w, {}, y);
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message(unwritten).find("'unwritten' has poison at index 0"), std::string::npos);
  Device other({.rank = Rank{1}});
  ImmediateQueue other_queue(other);
  const auto foreign = make(other_queue, "foreign", {5, 3}, scattered(1, "x", 15), Dtype::fixed);
  EXPECT_NE(message(foreign).find("'foreign' belongs to rank 1"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::matmul
