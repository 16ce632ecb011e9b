// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul_cuda.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/cuda_values.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof::matmul {
namespace {

using testing::from_device, testing::on_device;

struct Shape {
  std::int64_t m, n, k;
};
constexpr Shape shapes[] = {{0, 3, 2}, {3, 0, 2}, {3, 5, 0}, {1, 1, 1}, {7, 13, 31}, {5, 300, 3}, {2, 3, 1025}};

TEST(MatmulCuda, ExactIsTheSumOfRoundedProducts) {
  cuda::Stream stream;
  for (const auto& [m, n, k] : shapes) {
    for (const double size : {1.0, 3000.0, 4e6}) {  // by FMA, in 128 bits, out of range
      const auto a = testing::random<Fixed>("a", m * k, -size, size),
                 b = testing::random<Fixed>("b", k * n, -size, size);
      const auto top = fold_magnitude(HostTeam<32>{}, k * n, [p = b.data()](std::int64_t i) { return p[i]; });
      const auto a_gpu = on_device(stream, a), b_gpu = on_device(stream, b);
      const cuda::Buffer<Fixed> c_gpu(m * n);
      launch(stream, {{a_gpu.data(), k, 1}, {b_gpu.data(), n, 1}, nullptr, c_gpu.data(), n, k, top, 0}, m);
      const auto c = from_device(stream, c_gpu);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          FixedSum sum;
          for (std::int64_t l = 0; l < k; ++l) {
            sum += product(a[static_cast<std::size_t>(i * k + l)], b[static_cast<std::size_t>(l * n + j)]);
          }
          ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)].raw, finish<Fixed>(sum).raw) << i << "," << j << "," << size;
        }
      }
    }
  }
}

template <class S>
void expect_within_bound(const Shape& shape, bool a_transposed, bool b_transposed) {
  const auto [m, n, k] = shape;
  const auto a = testing::random<S>("a", m * k), b = testing::random<S>("b", k * n);
  cuda::Stream stream;
  CuBlas blas;
  const auto a_gpu = on_device(stream, a), b_gpu = on_device(stream, b);
  const cuda::Buffer<S> c_gpu(m * n);
  blas.multiply<S>(stream, m, n, k, {a_gpu.data(), a_transposed}, {b_gpu.data(), b_transposed}, c_gpu.data());
  const auto c = from_device(stream, c_gpu);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      long double sum = 0, magnitudes = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const long double x = a[static_cast<std::size_t>(a_transposed ? l * m + i : i * k + l)];
        const long double y = b[static_cast<std::size_t>(b_transposed ? j * k + l : l * n + j)];
        sum += x * y, magnitudes += std::fabs(x * y);
      }
      // gamma_(K+1) (Higham 2002, section 3.1); long double's own error is far below it.
      const double units = static_cast<double>(k + 1) * testing::roundoff<S>;
      const auto bound = static_cast<double>(magnitudes) * units / (1 - units);
      const double error = std::fabs(static_cast<double>(c[static_cast<std::size_t>(i * n + j)] - sum));
      ASSERT_LE(error, bound) << i << "," << j << " of " << m << "x" << n << "x" << k;
    }
  }
}

TEST(MatmulCuda, CublasIsWithinItsBound) {
  for (const auto& shape : shapes) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        expect_within_bound<float>(shape, a, b);
        expect_within_bound<double>(shape, a, b);
      }
    }
  }
}

TEST(MatmulCuda, SizesThatCublasCannotTakeAreRefused) {
  cuda::Stream stream;
  CuBlas blas;
  const std::int64_t large = std::int64_t{1} << 31;
  EXPECT_THROW(blas.multiply<float>(stream, large, 1, 1, {nullptr}, {nullptr}, nullptr), InternalError);
}

}  // namespace
}  // namespace shardproof::matmul
