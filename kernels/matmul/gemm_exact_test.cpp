// SPDX-License-Identifier: Apache-2.0
// The exact product against a triple loop over product() and finish(), bit for bit.
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/fixed_row.hpp"
#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {
namespace {

using Random = std::mt19937_64;
/// The raw value of element (i, j).
using Fill = std::function<std::int64_t(std::int64_t, std::int64_t)>;

std::int64_t sign(Random& random) { return (random() & 1) != 0 ? -1 : 1; }

/// Raw values uniform below `limit` in magnitude.
Fill below(Random& random, std::int64_t limit) {
  return [&random, limit](auto, auto) {
    return sign(random) * static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
}
/// Odd multiples of 2^shift: products of shifts that sum to 39 are ties, all of them.
Fill odd_multiples(Random& random, int shift) {
  return [&random, shift](auto, auto) {
    return sign(random) * static_cast<std::int64_t>(random() % 512 * 2 + 1) * (std::int64_t{1} << shift);
  };
}
/// `top` or a little less, of random sign.
Fill near(Random& random, std::int64_t top) {
  return [&random, top](auto, auto) { return sign(random) * (top - static_cast<std::int64_t>(random() % 4)); };
}

/// An m x n matrix stored by rows or by columns, with a gap after each.
struct Matrix {
  Matrix(std::int64_t m, std::int64_t n, bool by_columns, std::int64_t gap, const Fill& fill)
      : row_stride(by_columns ? 1 : n + gap),
        column_stride(by_columns ? m + gap : 1),
        data(static_cast<std::size_t>((m + gap) * (n + gap)), Fixed{fixed_invalid}) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) at(i, j).raw = fill(i, j);
    }
  }
  Fixed& at(std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(i * row_stride + j * column_stride)];
  }
  View<Fixed> view() const { return {data.data(), row_stride, column_stride}; }

  std::int64_t row_stride, column_stride;
  std::vector<Fixed> data;
};

struct Shape {
  std::int64_t m, n, k;
};

FixedSum total(Matrix& a, Matrix& b, std::int64_t i, std::int64_t j, std::int64_t k) {
  FixedSum sum;
  for (std::int64_t l = 0; l < k; ++l) sum += product(a.at(i, l), b.at(l, j));
  return sum;
}

class GemmExact : public ::testing::Test {
 protected:
  /// All stride orders, with and without a bias; returns how many totals were out of range.
  int check(Shape s, const Fill& fill_a, const Fill& fill_b) {
    return check(s, fill_a, fill_b, below(random_, std::int64_t{1} << 44));
  }
  int check(Shape s, const Fill& fill_a, const Fill& fill_b, const Fill& fill_bias) {
    int out_of_range = 0;
    for (int order = 0; order < 4; ++order) {
      Matrix a(s.m, s.k, (order & 1) != 0, order, fill_a), b(s.k, s.n, (order & 2) != 0, 3 - order, fill_b);
      Matrix bias(1, s.n, false, 0, fill_bias);
      const bool has_bias = order % 3 == 0;
      Matrix c(s.m, s.n, false, 2, [](auto, auto) { return 7; });
      bool reported = false;
      queue_.submit("test", [&](KernelScope& scope) {
        Workspace workspace(scope);
        reported = multiply<Fixed>(workspace, s.m, s.n, s.k, a.view(), b.view(), has_bias ? bias.data.data() : nullptr,
                                   c.data.data(), c.row_stride);
      });
      bool expected = false;
      for (std::int64_t i = 0; i < s.m; ++i) {
        for (std::int64_t j = 0; j < s.n; ++j) {
          auto sum = total(a, b, i, j, s.k);
          if (has_bias) sum += term(bias.at(0, j));
          const Fixed value = finish<Fixed>(sum);
          out_of_range += !in_range(value);
          expected |= !in_range(value);
          EXPECT_EQ(c.at(i, j).raw, value.raw)
              << s.m << 'x' << s.n << 'x' << s.k << " order " << order << " at " << i << ',' << j;
          if (HasFailure()) return -1;
        }
        EXPECT_EQ(c.at(i, s.n).raw, fixed_invalid) << "wrote beyond a row";
      }
      EXPECT_EQ(reported, expected);
    }
    return out_of_range;
  }

  Device device_;
  ImmediateQueue queue_{device_};
  Random random_{7};
};

constexpr std::int64_t one = std::int64_t{1} << 40;
constexpr std::int64_t exact_limit = std::int64_t{1} << 53, small = std::int64_t{1} << 38;

TEST_F(GemmExact, SmallShapes) {
  for (int i = 0; i < 150; ++i) {
    const auto draw = [&] { return static_cast<std::int64_t>(random_() % 41); };
    check({draw(), draw(), draw()}, below(random_, 4 * one), below(random_, 4 * one));
  }
}

TEST_F(GemmExact, EmptyAndSingle) {
  for (const std::int64_t m : {0, 1, 9}) {
    for (const std::int64_t n : {0, 1, 25}) {
      for (const std::int64_t k : {0, 1, 2}) check({m, n, k}, below(random_, one), below(random_, one));
    }
  }
}

TEST_F(GemmExact, AroundBlockEdges) {
  for (const Shape s :
       {Shape{127, 25, 511}, {128, 24, 512}, {129, 49, 513}, {7, 767, 33}, {9, 769, 515}, {257, 3, 1025}}) {
    check(s, below(random_, one), below(random_, one));
  }
}

TEST_F(GemmExact, TiesGoToEven) {
  for (const int shift : {0, 10, 19, 30, 39})
    check({17, 29, 45}, odd_multiples(random_, shift), odd_multiples(random_, 39 - shift));
}

TEST_F(GemmExact, FastProductAtItsLimits) {
  ASSERT_TRUE(!has_fma || fma_fits(exact_limit - 1, small));
  check({9, 26, 40}, near(random_, exact_limit - 1), near(random_, small));
  check({9, 26, 40}, near(random_, small), near(random_, exact_limit - 1));
}

TEST_F(GemmExact, BeyondTheFastProduct) {
  ASSERT_FALSE(fma_fits(exact_limit, small));
  check({9, 70, 40}, near(random_, exact_limit + 3), near(random_, small));
  check({9, 70, 40}, near(random_, small), near(random_, exact_limit + 3));
  check({9, 70, 40}, near(random_, std::int64_t{1} << 46), near(random_, std::int64_t{1} << 46));
  EXPECT_GT(check({9, 70, 40}, near(random_, fixed_limit - 1), near(random_, fixed_limit - 1)), 0);
}

// More than 1,024 products of 2^51 may leave an int64's half; of random signs they do not, and the fast product stays.
TEST_F(GemmExact, WhereTheBoundFailsTotalsAreTrue) {
  EXPECT_EQ(check({66, 30, 1200}, near(random_, exact_limit - 1), near(random_, small)), 0);
  EXPECT_EQ(check({3, 200, 4500}, near(random_, exact_limit - 1), near(random_, small)), 0);
  const Fill positive = [](auto, auto) { return exact_limit - 1; };
  // 2,047 products of 2^51 are in range; the 2,048th is not; nor is a total that wraps an int64.
  EXPECT_EQ(check({3, 5, 2046}, positive, [](auto, auto) { return small; }), 0);
  EXPECT_EQ(check({3, 5, 2049}, positive, [](auto, auto) { return small; }), 4 * 15);
  EXPECT_EQ(check({3, 5, 8192}, positive, [](auto, auto) { return small; }), 4 * 15);
}

TEST_F(GemmExact, PartialSumsMayLeaveTheRange) {
  const Fill ones = [](auto, auto) { return one; };
  const std::int64_t half = fixed_limit / 2;
  const auto sums = [&](std::vector<std::int64_t> terms) {
    return check({1, 1, std::ssize(terms)}, ones, [=](auto k, auto) { return terms[static_cast<std::size_t>(k)]; });
  };
  // With a bias (two of the four orders) of magnitude below 2^44.
  EXPECT_EQ(sums({half, half, half, half, half, -half, -half, -half, -half}), 0);
  EXPECT_EQ(sums({half, half, -(std::int64_t{1} << 44)}), 0);
  EXPECT_EQ(sums({half, half, std::int64_t{1} << 44}), 4);
  EXPECT_EQ(sums({-half, -half, -(std::int64_t{1} << 44)}), 4);
}

TEST_F(GemmExact, BiasIsPartOfTheTotal) {
  const Fill ones = [](auto, auto) { return one; }, large = [](auto, auto) { return fixed_limit - 6; };
  // Two of the four orders have a bias.
  EXPECT_EQ(check(
                {2, 3, 5}, ones, [](auto, auto) { return 1; }, large),
            0);
  EXPECT_EQ(check(
                {2, 3, 6}, ones, [](auto, auto) { return 1; }, large),
            2 * 6);
}

// Six parts that grow beyond an int64 and stay there, or of which the last three take away what the first added.
TEST_F(GemmExact, AddsToAccumulatorsOfBothWidths) {
  const Shape s{11, 27, 4095};
  const std::int64_t first = 2, stride = s.n + 3;
  for (const auto top : {one, exact_limit - 1, exact_limit + 3}) {
    for (const bool returns : {false, true}) {
      Accumulator sum(queue_, {"sum", Dtype::fixed, {s.m, stride}, Category::gradient});
      std::vector<FixedSum> expected(static_cast<std::size_t>(s.m * stride));
      for (int part = 0; part < 6; ++part) {
        Matrix a(s.m, s.k, part % 2 == 0, 1, [&](auto, auto) { return returns && part >= 3 ? -top : top; });
        Matrix b(s.k, s.n, part % 3 == 0, 0, [&](auto k, auto j) { return k == part ? j : small; });
        queue_.submit("test", [&](KernelScope& scope) {
          Workspace workspace(scope);
          Sums<Fixed> sums(scope, sum);
          multiply_add<Fixed>(workspace, s.m, s.n, s.k, a.view(), b.view(), sums, first, stride);
        });
        for (std::int64_t i = 0; i < s.m; ++i) {
          for (std::int64_t j = 0; j < s.n; ++j) {
            expected[static_cast<std::size_t>(first + i * stride + j)] += total(a, b, i, j, s.k);
          }
        }
      }
      const auto values = fetch<Fixed>(queue_, sum.finish(queue_));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(values[i].raw, finish<Fixed>(expected[i]).raw) << top << ' ' << returns << ' ' << i;
      }
    }
  }
}

// The second lane is for what one element may reach, not for the sum over parts; where it comes late, it has all parts.
TEST_F(GemmExact, PartsOfAnAccumulatorGrowByTheLargestBound) {
  constexpr std::int64_t parts = 8;
  const auto values_of = [&](const std::vector<std::vector<double>>& kernels, std::int64_t& lane_bytes) {
    Accumulator sum(queue_, {"sum", Dtype::fixed, {1, parts}, Category::gradient});
    const auto before = device_.memory().current_total();
    for (const auto& values : kernels) {
      queue_.submit("test", [&](KernelScope& scope) {
        Workspace workspace(scope);
        Sums<Fixed> sums(scope, sum);
        const Fixed unit{one};
        for (std::int64_t part = 0; part < parts; ++part) {
          const auto value = round_to<Fixed>(values[static_cast<std::size_t>(part)]);
          multiply_add<Fixed>(workspace, 1, 1, 1, {&value, 1, 1}, {&unit, 1, 1}, sums, part, parts);
        }
      });
    }
    lane_bytes = device_.memory().current_total() - before;
    return fetch<Fixed>(queue_, sum.finish(queue_));
  };
  std::vector<double> level, rising{1, 2, 4, 0x1.8p20, 0x1.8p21, 0x1.8p21, -0x1p21, 5};
  std::int64_t lane_bytes = 0;
  for (std::int64_t part = 0; part < parts; ++part) level.push_back(0x1p19 + static_cast<double>(part));
  for (const auto* once : {&level, &rising}) {
    const auto values = values_of({*once, *once}, lane_bytes);
    EXPECT_EQ(lane_bytes, once == &level ? 0 : parts * 8);
    for (std::size_t i = 0; i < parts; ++i) EXPECT_EQ(values[i], round_to<Fixed>(2 * (*once)[i])) << i;
  }
}

TEST_F(GemmExact, WorkspaceIsFreedAndBounded) {
  Matrix a(300, 1100, false, 0, below(random_, one)), b(1100, 800, false, 0, below(random_, one)),
      c(300, 800, false, 0, below(random_, one));
  for (int i = 0; i < 2; ++i) {
    queue_.submit("test", [&](KernelScope& scope) {
      Workspace workspace(scope);
      for (int repeat = 0; repeat < 3; ++repeat) {
        multiply<Fixed>(workspace, 300, 800, 1100, a.view(), b.view(), nullptr, c.data.data(), 800);
      }
    });
  }
  EXPECT_EQ(device_.memory().current_total(), 0);
  EXPECT_LE(device_.memory().peak(Category::workspace), 4 << 20);
}

}  // namespace
}  // namespace shardproof::matmul
