// SPDX-License-Identifier: Apache-2.0
// f64 and f32 products. A sum of a bias and K products in any order differs from the true one by at most gamma_(K+1)
// (|bias| + sum |a||b|), gamma_n = n u / (1 - n u) (Higham 2002, section 3.1). The yardstick is a loop in long double,
// whose own error, 2^-11 of that or less, the factor covers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <cblas.h>
#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/testing.hpp"
#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {
namespace {

constexpr double yardstick = 1 + 0x1p-10;

template <class S>
double gamma(std::int64_t n) {
  const double nu = static_cast<double>(n) * static_cast<double>(std::numeric_limits<S>::epsilon()) / 2;
  return nu / (1 - nu);
}

template <class S>
std::vector<S> numbers(std::string_view name, std::int64_t n) {
  std::vector<S> values;
  for (const double v : testing::scattered(3, name, n)) values.push_back(static_cast<S>(v));
  return values;
}

template <class S>
class GemmLibraries : public ::testing::Test {
 protected:
  void check(std::int64_t m, std::int64_t n, std::int64_t k) {
    for (int order = 0; order < 4; ++order) {
      const bool a_columns = (order & 1) != 0, b_columns = (order & 2) != 0;
      const std::int64_t gap = order;
      const View<S> a{a_.data(), a_columns ? 1 : k + gap, a_columns ? m + gap : 1};
      const View<S> b{b_.data(), b_columns ? 1 : n + gap, b_columns ? k + gap : 1};
      const S* const bias = order % 3 == 0 ? bias_.data() : nullptr;
      const std::int64_t stride = n + 2;
      std::vector<S> c(static_cast<std::size_t>(m * stride), S{7});
      for (std::int64_t i = 0; i < m; ++i) std::fill_n(c.begin() + i * stride, n, std::numeric_limits<S>::quiet_NaN());
      Accumulator sum(queue_, {"sum", dtype_of<S>(), {m, stride}, Category::gradient});
      queue_.submit("test", [&](KernelScope& scope) {
        Workspace workspace(scope);
        EXPECT_FALSE(multiply<S>(workspace, m, n, k, a, b, bias, c.data(), stride));
        Sums<S> sums(scope, sum);
        for (int part = 0; part < 2; ++part) multiply_add<S>(workspace, m, n, k, a, b, sums, 1, stride);
      });
      const auto twice = fetch<S>(queue_, sum.finish(queue_));
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          long double products = 0, magnitudes = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            const auto p = static_cast<long double>(a.data[i * a.row_stride + l * a.column_stride]) *
                           b.data[l * b.row_stride + j * b.column_stride];
            products += p;
            magnitudes += std::fabs(p);
          }
          const long double start = bias != nullptr ? bias[j] : S{0};
          ASSERT_LE(std::fabs(c[static_cast<std::size_t>(i * stride + j)] - (start + products)),
                    yardstick * gamma<S>(k + 1) * static_cast<double>(std::fabs(start) + magnitudes))
              << m << 'x' << n << 'x' << k << " order " << order << " at " << i << ',' << j;
          ASSERT_LE(std::fabs(twice[static_cast<std::size_t>(1 + i * stride + j)] - 2 * products),
                    yardstick * gamma<S>(2 * k) * static_cast<double>(2 * magnitudes));
        }
        for (const std::int64_t j : {n, n + 1})
          ASSERT_EQ(c[static_cast<std::size_t>(i * stride + j)], S{7}) << "wrote beyond a row";
        for (const std::int64_t j : {std::int64_t{0}, n + 1})
          ASSERT_EQ(twice[static_cast<std::size_t>(i * stride + j)], S{0}) << "added beyond a row";
      }
    }
  }

  Device device_;
  ImmediateQueue queue_{device_};
  std::vector<S> a_ = numbers<S>("a", 100000), b_ = numbers<S>("b", 100000), bias_ = numbers<S>("bias", 1000);
};

using Scalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(GemmLibraries, Scalars);

TYPED_TEST(GemmLibraries, WithinTheForwardErrorBound) {
  for (const std::int64_t m : {0, 1, 2, 17}) {
    for (const std::int64_t n : {0, 1, 3, 31}) {
      for (const std::int64_t k : {0, 1, 5, 64}) this->check(m, n, k);
    }
  }
  this->check(67, 129, 300);
  for (const std::int64_t k : {511, 512, 513, 1025}) this->check(3, 7, k);  // f32 takes a transposed in parts of 512
}

// One row, so that a stride beyond 31 bits needs no memory. The same strides are fine in f32.
TEST(GemmLibrariesSizes, BeyondBlasAreRefused) {
  if (sizeof(blasint) > 4) GTEST_SKIP() << "this BLAS takes 64 bits";
  Device device;
  ImmediateQueue queue(device);
  const auto product = [&]<class S>(std::int64_t a_stride, std::int64_t b_stride, std::int64_t c_stride) {
    const S two = 2, three = 3;
    S c = 0;
    queue.submit("test", [&](KernelScope& scope) {
      Workspace workspace(scope);
      multiply<S>(workspace, 1, 1, 1, {&two, a_stride, 1}, {&three, b_stride, 1}, nullptr, &c, c_stride);
    });
    return c;
  };
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max(), more = most + 1, wraps_to_one = 0x100000001;
  EXPECT_EQ(product.operator()<double>(most, most, most), 6);
  for (const auto size : {more, wraps_to_one}) {
    EXPECT_THROW(product.operator()<double>(size, 1, 1), NotSupported) << size;
    EXPECT_THROW(product.operator()<double>(1, size, 1), NotSupported) << size;
    EXPECT_THROW(product.operator()<double>(1, 1, size), NotSupported) << size;
    EXPECT_EQ(product.operator()<float>(size, size, size), 6);
  }
}

}  // namespace
}  // namespace shardproof::matmul
