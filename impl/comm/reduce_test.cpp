// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/reduce.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::expected, testing::for_each_type, testing::same;

TEST(Reduce, IntoAnyOfItsInputsOrElsewhere) {
  // Sizes around one and two blocks of each element size.
  for_each_type([]<class T>(T) {
    for (std::size_t inputs = 1; inputs <= 5; ++inputs) {
      for (const std::int64_t n : {0, 1, 31, 1023, 1025, 2048, 2049, 4097, 8191, 8193}) {
        std::vector<std::int64_t> ranks;
        std::vector<T> right(static_cast<std::size_t>(n));
        for (std::size_t k = 0; k < inputs; ++k) ranks.push_back(static_cast<std::int64_t>(k));
        for (std::int64_t i = 0; i < n; i += 97)
          right[static_cast<std::size_t>(i)] = expected<T>(ranks, i, Operator::sum);
        const std::size_t in_place = static_cast<std::size_t>(n) % (inputs + 1);
        std::vector<std::vector<T>> data(inputs + 1);
        std::vector<const std::byte*> pointers;
        for (std::size_t k = 0; k < inputs; ++k) {
          data[k].resize(static_cast<std::size_t>(n));
          for (std::int64_t i = 0; i < n; i += 97)
            data[k][static_cast<std::size_t>(i)] = testing::value<T>(ranks[k], i);
          pointers.push_back(reinterpret_cast<const std::byte*>(data[k].data()));
        }
        data[inputs].resize(static_cast<std::size_t>(n));
        auto& out = data[in_place];
        reduce(dtype_of<T>(), Operator::sum, pointers, reinterpret_cast<std::byte*>(out.data()), n);
        ASSERT_TRUE(same(out, right)) << name_of(dtype_of<T>()) << ' ' << inputs << ' ' << n << ' ' << in_place;
      }
    }
  });
}

TEST(Reduce, RefusesWhatItCannot) {
  const double a[1] = {1}, b[1] = {2};
  double out[1];
  const std::byte* inputs[] = {reinterpret_cast<const std::byte*>(a), reinterpret_cast<const std::byte*>(b)};
  auto* to = reinterpret_cast<std::byte*>(out);
  EXPECT_THROW(reduce(Dtype::f64, Operator::bit_or, inputs, to, 1), InternalError);
  EXPECT_THROW(reduce(Dtype::bf16, Operator::sum, inputs, to, 1), NotSupported);
}

}  // namespace
}  // namespace shardproof::comm
