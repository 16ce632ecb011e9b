// SPDX-License-Identifier: Apache-2.0
// Hostile shapes and values on the device: the CPU's rows, bit by bit.
#include "kernels/layer_norm/layer_norm_cuda.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/cuda_values.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof::layer_norm {
namespace {

using testing::from_device, testing::on_device;

template <class T>
void expect_bits(const std::vector<T>& found, const std::vector<T>& expected, const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(testing::bits(found[i]), testing::bits(expected[i])) << what << " " << i;
  }
}

/// Whether the rows overflow.
template <class S>
bool run(std::int64_t n, std::int64_t hidden, double size) {
  const auto x = testing::random<S>("x", n * hidden, -0.8 * size, size), dy = testing::random<S>("dy", n * hidden);
  const auto weight = testing::random<S>("weight", hidden, -1.5, 2), bias = testing::random<S>("bias", hidden);
  std::vector<S> y(x.size()), dx(x.size()), mean(static_cast<std::size_t>(n)), rstd(mean);
  const auto epsilon = static_cast<Real<S>>(1e-5);
  const ForwardRow<S> forward{x.data(),    weight.data(), bias.data(), y.data(),
                              mean.data(), rstd.data(),   hidden,      epsilon};
  const BackwardRow<S> backward{dy.data(), x.data(), mean.data(), rstd.data(), weight.data(), dx.data(), hidden};
  bool overflow = false;
  for (std::int64_t r = 0; r < n; ++r) {
    overflow = forward(HostTeam<row_lanes<S>>{}, r) || overflow;
    overflow = backward(HostTeam<row_lanes<S>>{}, r) || overflow;
  }

  cuda::Stream stream;
  const auto x_gpu = on_device(stream, x), dy_gpu = on_device(stream, dy), weight_gpu = on_device(stream, weight),
             bias_gpu = on_device(stream, bias);
  const cuda::Buffer<S> y_gpu(n * hidden), dx_gpu(n * hidden), mean_gpu(n), rstd_gpu(n);
  cuda::Buffer<std::int32_t> flag(1);
  flag.zero(stream);
  launch(stream,
         ForwardRow<S>{x_gpu.data(), weight_gpu.data(), bias_gpu.data(), y_gpu.data(), mean_gpu.data(), rstd_gpu.data(),
                       hidden, epsilon},
         n, flag.data());
  launch(stream,
         BackwardRow<S>{dy_gpu.data(), x_gpu.data(), mean_gpu.data(), rstd_gpu.data(), weight_gpu.data(), dx_gpu.data(),
                        hidden},
         n, flag.data());
  expect_bits(from_device(stream, y_gpu), y, "y");
  expect_bits(from_device(stream, mean_gpu), mean, "mean");
  expect_bits(from_device(stream, rstd_gpu), rstd, "rstd");
  expect_bits(from_device(stream, dx_gpu), dx, "dx");
  EXPECT_EQ(from_device(stream, flag)[0] != 0, overflow);
  return overflow;
}

TEST(LayerNormCuda, GivesTheHostsBits) {
  for (const auto& [n, hidden] : {std::pair{0, 3}, {1, 1}, {3, 2}, {2, 31}, {5, 64}, {4, 97}, {2, 1009}}) {
    EXPECT_FALSE(run<Fixed>(n, hidden, 1));
    EXPECT_FALSE(run<double>(n, hidden, 1e3));
    EXPECT_FALSE(run<float>(n, hidden, 1e-3));
  }
}

TEST(LayerNormCuda, RowsThatOverflowSaySo) {
  EXPECT_FALSE(run<Fixed>(3, 97, 150));
  EXPECT_TRUE(run<Fixed>(3, 97, 4e6));
}

}  // namespace
}  // namespace shardproof::layer_norm
