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
};

class ExactProductRowTest : public ::testing::TestWithParam<Case> {};

std::vector<Fixed> values(std::string_view name, std::int64_t n, double top) {
  std::vector<Fixed> result;
  for (const double v : testing::uniform(5, name, n, -top, top)) result.push_back(round_to<Fixed>(v));
  // Ties: an odd raw value times one half.
  if (n > 1) result[0] = Fixed{3}, result[1] = Fixed{std::int64_t{1} << 39};
  return result;
}

TEST_P(ExactProductRowTest, IsTheSumOfRoundedProducts) {
  const auto [m, n, k, left, right] = GetParam();
  const auto a = values("a", m * k, left), b = values("b", k * n, right);
  std::vector<Fixed> c(static_cast<std::size_t>(m * n), Fixed{fixed_invalid});
  std::uint64_t top = 0;
  for (const Fixed v : b) top = std::max(top, magnitude(v));
  const ExactProductRow row{a.data(), b.data(), c.data(), n, k, top};
  for (std::int64_t i = 0; i < m; ++i) row(HostTeam<32>{}, i);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      FixedSum sum;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += product(a[static_cast<std::size_t>(i * k + l)], b[static_cast<std::size_t>(l * n + j)]);
      }
      ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)].raw, finish<Fixed>(sum).raw) << i << "," << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ExactProductRowTest,
                         ::testing::Values(Case{3, 5, 7, 1, 1}, Case{2, 33, 64, 30, 60}, Case{1, 1, 0, 1, 1},
                                           Case{0, 4, 4, 1, 1}, Case{2, 3, 4096, 40, 50}, Case{4, 7, 11, 9000, 0.2},
                                           Case{3, 2, 5, 2000, 2000}, Case{2, 2, 9, 4e6, 4e6}));

}  // namespace
}  // namespace shardproof::matmul
