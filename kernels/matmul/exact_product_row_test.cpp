// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/exact_product_row.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/testing.hpp"

namespace shardproof::matmul {
namespace {

struct Case {
  std::int64_t m, n, k;
  double left, right;  ///< magnitudes; the first product fits an FMA, the others need 128 bits
  bool transposed = false, biased = false;
};

class ExactProductRowTest : public ::testing::TestWithParam<Case> {};

std::vector<Fixed> values(std::string_view name, std::int64_t n, double top) {
  std::vector<Fixed> result;
  for (const double v : testing::uniform(5, name, n, -top, top)) result.push_back(round_to<Fixed>(v));
  // Ties: an odd raw value times one half.
  if (n > 1) result[0] = Fixed{3}, result[1] = Fixed{std::int64_t{1} << 39};
  return result;
}

std::uint64_t top_of(const std::vector<Fixed>& values) {
  std::uint64_t top = 0;
  for (const Fixed v : values) top = std::max(top, magnitude(v));
  return top;
}

TEST_P(ExactProductRowTest, IsTheSumOfRoundedProducts) {
  const auto [m, n, k, left, right, transposed, biased] = GetParam();
  const auto a = values("a", m * k, left), b = values("b", k * n, right);
  const auto bias = biased ? values("bias", n, 4e6) : std::vector<Fixed>();
  std::vector<Fixed> c(static_cast<std::size_t>(m * n), Fixed{fixed_invalid});
  const auto matrix = [t = transposed](const std::vector<Fixed>& x, std::int64_t rows, std::int64_t columns) {
    return t ? ExactProductRow::Matrix{x.data(), 1, rows} : ExactProductRow::Matrix{x.data(), columns, 1};
  };
  const auto at_a = matrix(a, m, k), at_b = matrix(b, k, n);
  const ExactProductRow row{at_a, at_b, biased ? bias.data() : nullptr, c.data(), n, k, top_of(b), top_of(bias)};
  for (std::int64_t i = 0; i < m; ++i) row(HostTeam<32>{}, i);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      FixedSum sum = biased ? term(bias[static_cast<std::size_t>(j)]) : FixedSum{};
      for (std::int64_t l = 0; l < k; ++l) sum += product(at_a(i, l), at_b(l, j));
      ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)].raw, finish<Fixed>(sum).raw) << i << "," << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ExactProductRowTest,
                         ::testing::Values(Case{3, 5, 7, 1, 1}, Case{2, 33, 64, 30, 60}, Case{1, 1, 0, 1, 1},
                                           Case{0, 4, 4, 1, 1}, Case{2, 3, 4096, 40, 50}, Case{4, 7, 11, 9000, 0.2},
                                           Case{3, 2, 5, 2000, 2000}, Case{2, 2, 9, 4e6, 4e6},
                                           Case{3, 5, 7, 1, 1, true}, Case{4, 3, 6, 1, 1, true, true},
                                           Case{2, 7, 1, 1, 1, false, true}, Case{2, 4, 0, 1, 1, false, true},
                                           Case{3, 2, 5, 2000, 2000, true, true}));

}  // namespace
}  // namespace shardproof::matmul
