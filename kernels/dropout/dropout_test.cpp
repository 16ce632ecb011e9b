// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout/dropout.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

using testing::bits;

dropout::Site site_of(double probability, std::uint64_t first = 0) {
  return {probability, RandomStream(11, "dropout.embedding.step.3"), first};
}

TEST(DropoutMask, KeepsWordsFromTheThresholdOn) {
  const std::uint64_t first = (std::uint64_t{1} << 33) + 5;
  for (const double p : {0.0, 0.1, 0.5, 0.999}) {
    const auto site = site_of(p, first);
    for (const std::int64_t n : {0, 1, 3, 1024, 2051}) {
      std::vector<std::uint8_t> mask(static_cast<std::size_t>(n), 9);
      dropout::fill_mask(site, 7, n, mask.data());
      for (std::int64_t i = 0; i < n; ++i) {
        const auto word = site.stream.word(first + 7 + static_cast<std::uint64_t>(i));
        const bool kept = static_cast<double>(word) >= std::floor(p * 0x1p32);
        ASSERT_EQ(mask[static_cast<std::size_t>(i)], kept ? 1 : 0) << "p " << p << ", element " << i;
      }
    }
  }
}

TEST(DropoutMask, AWordAtTheThresholdIsKept) {
  const auto word = site_of(0).stream.word(0);
  std::uint8_t kept = 9;
  dropout::fill_mask(site_of(word * 0x1p-32), 0, 1, &kept);
  EXPECT_EQ(kept, 1);
  dropout::fill_mask(site_of((word + 1.0) * 0x1p-32), 0, 1, &kept);
  EXPECT_EQ(kept, 0);
}

TEST(DropoutMask, PartsAreThePartsOfTheWhole) {
  const auto site = site_of(0.3);
  std::vector<std::uint8_t> whole(3000), part(1501);
  dropout::fill_mask(site, 0, 3000, whole.data());
  dropout::fill_mask(site, 1499, 1501, part.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 1499));
  const auto shifted = site_of(0.3, 1499);
  std::vector<std::uint8_t> again(1501);
  dropout::fill_mask(shifted, 0, 1501, again.data());
  EXPECT_EQ(again, part);
}

template <class S>
class DropoutTest : public ::testing::Test {
 protected:
  Device device;
  ImmediateQueue queue{device};

  // kept ? mul(x, k) : 0 with k = R(1/(1-p)); nothing is summed, so f64 and f32 are equal too.
  void expect_equal(double p, const std::vector<S>& x) {
    const auto n = std::ssize(x);
    const auto site = site_of(p, 3);
    const S k = round_to<S>(static_cast<Real<S>>(1.0 / (1.0 - p)));
    const auto in = testing::put(queue, "x", {n}, x);
    const auto mask = testing::blank<std::uint8_t>(queue, "mask", {n});
    const auto y = testing::blank<S>(queue, "y", {n}), dx = testing::blank<S>(queue, "dx", {n});
    dropout::forward(queue, site, in, mask, y);
    dropout::backward(queue, p, mask, in, dx);
    const auto kept = fetch<std::uint8_t>(queue, mask);
    const auto found = fetch<S>(queue, y), found_dx = fetch<S>(queue, dx);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(kept[i], static_cast<double>(site.stream.word(3 + i)) >= std::floor(p * 0x1p32) ? 1 : 0);
      const S expected = kept[i] != 0 ? mul(x[i], k) : S{0};
      ASSERT_EQ(bits(found[i]), bits(expected)) << i;
      ASSERT_EQ(bits(found_dx[i]), bits(expected)) << i;
    }
  }
};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(DropoutTest, Scalars);

TYPED_TEST(DropoutTest, EqualsTheDefinition) {
  for (const std::int64_t n : {0, 1, 13, 2048, 5003}) {
    for (const double p : {0.0, 0.1, 0.9}) this->expect_equal(p, testing::random<TypeParam>("x", n, -3, 3));
  }
}

TYPED_TEST(DropoutTest, LargeNumbersToo) {  // beyond the FMA's range in Fixed
  this->expect_equal(0.9, testing::random<TypeParam>("x", 3001, -3e5, 3e5));
}

TEST(DropoutFixed, OverflowOfAKeptElementOnly) {
  Device device;
  ImmediateQueue queue(device);
  const auto x = testing::make(queue, "x", {2}, std::vector{3e6, 1.0}, Dtype::fixed);  // times 2 is out of range
  for (const bool kept : {true, false}) {
    const auto mask = testing::put<std::uint8_t>(queue, "mask", {2}, {static_cast<std::uint8_t>(kept), 1});
    const auto dx = testing::blank<Fixed>(queue, "dx", {2});
    dropout::backward(queue, 0.5, mask, x, dx);
    EXPECT_EQ(fetch_overflow(queue, dx), kept);
  }
}

}  // namespace
}  // namespace shardproof
