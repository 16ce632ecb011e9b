// SPDX-License-Identifier: Apache-2.0
// Adam and AdamW on the device: the CPU's bits, at sizes around a block's.
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/testing/cuda_values.hpp"
#include "kernels/core/testing/values.hpp"
#include "kernels/optimizers/optimizers.hpp"
#include "kernels/optimizers/optimizers_cuda.hpp"

namespace shardproof::optimizers {
namespace {

template <class S, bool decoupled>
void expect_host_bits(std::int64_t n) {
  using C = Real<S>;
  const auto g = testing::random<S>("g", n);
  auto p = testing::random<S>("p", n);
  auto m = testing::random<C>("m", n, -0.1, 0.1), v = testing::random<C>("v", n, 0, 0.1);
  auto row = adam_row<S, decoupled>({.loss_scale = 4, .clip_factor = 0.7}, {1e-2, 0.9, 0.999, 1e-8, 3, decoupled, 0.1});

  cuda::Stream stream;
  const auto p_gpu = testing::on_device(stream, p), g_gpu = testing::on_device(stream, g);
  const auto m_gpu = testing::on_device(stream, m), v_gpu = testing::on_device(stream, v);
  row.p = p_gpu.data(), row.g = g_gpu.data(), row.m = m_gpu.data(), row.v = v_gpu.data();
  launch(stream, row, n);
  const auto p_found = testing::from_device(stream, p_gpu);
  const auto m_found = testing::from_device(stream, m_gpu), v_found = testing::from_device(stream, v_gpu);

  row.p = p.data(), row.g = g.data(), row.m = m.data(), row.v = v.data();
  row(HostTeam<row_lanes<S>>{}, n);
  for (std::size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(testing::bits(p_found[i]), testing::bits(p[i])) << i;
    ASSERT_EQ(testing::bits(m_found[i]), testing::bits(m[i])) << i;
    ASSERT_EQ(testing::bits(v_found[i]), testing::bits(v[i])) << i;
  }
}

TEST(AdamCuda, GivesTheHostsBits) {
  for (const std::int64_t n : {0, 1, 255, 256, 257, 1000}) {
    expect_host_bits<Fixed, false>(n), expect_host_bits<Fixed, true>(n);
    expect_host_bits<double, false>(n), expect_host_bits<double, true>(n);
    expect_host_bits<float, false>(n), expect_host_bits<float, true>(n);
  }
}

}  // namespace
}  // namespace shardproof::optimizers
