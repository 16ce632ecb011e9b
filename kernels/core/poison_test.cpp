// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/poison.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

constexpr Dtype all_dtypes[] = {Dtype::fixed, Dtype::f64, Dtype::f32, Dtype::bf16,
                                Dtype::f16,   Dtype::i64, Dtype::i32, Dtype::u8};

TEST(Poison, IsFoundWhereverItIs) {
  constexpr std::int64_t n = 2500;  // beyond two blocks of the scan
  for (const auto dtype : all_dtypes) {
    if (dtype == Dtype::u8) continue;
    const auto size = static_cast<std::int64_t>(size_of(dtype));
    std::vector<std::byte> data(static_cast<std::size_t>(n * size));
    EXPECT_EQ(poison::find(dtype, data.data(), n), -1) << name_of(dtype);
    for (const std::int64_t at : {2499, 1024, 1023, 1, 0}) {  // the first is reported: from the last to the first
      poison::fill(dtype, data.data() + at * size, size);
      EXPECT_EQ(poison::find(dtype, data.data(), n), at) << name_of(dtype);
    }
    EXPECT_EQ(poison::find(dtype, data.data(), 0), -1);
  }
}

TEST(Poison, IsNoOrdinaryNumber) {
  const std::vector<double> doubles{0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), -std::nan(""), 1e-310};
  EXPECT_EQ(poison::find(Dtype::f64, reinterpret_cast<const std::byte*>(doubles.data()), 7), -1);
  const std::vector<float> floats{0, -0.0f, HUGE_VALF, -HUGE_VALF, std::nanf(""), -std::nanf(""), 1e-40f};
  EXPECT_EQ(poison::find(Dtype::f32, reinterpret_cast<const std::byte*>(floats.data()), 7), -1);
}

TEST(Poison, SurvivesTheSignOfANan) {
  std::vector<double> values(3);
  poison::fill(Dtype::f64, reinterpret_cast<std::byte*>(&values[1]), 8);
  values[1] = -values[1];
  EXPECT_EQ(poison::find(Dtype::f64, reinterpret_cast<const std::byte*>(values.data()), 3), 1);
}

TEST(Poison, OutOfRangeFixed) {
  std::vector<Fixed> values(2000, Fixed{fixed_limit - 1});
  values[7].raw = -fixed_limit + 1;
  EXPECT_EQ(poison::find_out_of_range(values.data(), 2000), -1);
  for (const auto bad : {fixed_limit, -fixed_limit, fixed_invalid, std::numeric_limits<std::int64_t>::max()}) {
    values[1500].raw = bad;
    EXPECT_EQ(poison::find_out_of_range(values.data(), 2000), 1500) << bad;
  }
}

struct PoisonTest : ::testing::Test {
  Device device{{.rank = Rank{4}}};
  ImmediateQueue queue{device};
};

std::string message_of(Queue& queue, const Tensor& tensor) {
  try {
    testing::doubles(queue, tensor);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

TEST_F(PoisonTest, FreshMemoryIsRefused) {
  for (const auto dtype : {Dtype::fixed, Dtype::f64, Dtype::f32, Dtype::i64, Dtype::i32}) {
    const Tensor t(queue, {"gradient", dtype, {3, 4}, Category::gradient});
    EXPECT_EQ(
        message_of(queue, t),
        "rank 4: kernel fetch: tensor 'gradient' has poison at index 0: it was read before it was written, or after it "
        "was freed");
    zero(queue, t.rows(0, 2));  // all but the last row
    EXPECT_NE(message_of(queue, t).find("'gradient' has poison at index 8"), std::string::npos) << name_of(dtype);
    // A view's index counts from the start of the tensor.
    EXPECT_NE(message_of(queue, t.rows(1, 2)).find("poison at index 8"), std::string::npos);
    EXPECT_EQ(message_of(queue, t.rows(0, 2)), "no DeviceError");
    zero(queue, t);
    EXPECT_EQ(message_of(queue, t), "no DeviceError");
  }
}

TEST_F(PoisonTest, UpdatesAreReads) {
  const Tensor t(queue, {"t", Dtype::f64, {3}, Category::gradient});
  EXPECT_THROW(queue.submit("k", [&](KernelScope& s) { s.update<double>(t); }), DeviceError);
  EXPECT_THROW(copy(queue, t, Tensor(queue, {"to", Dtype::f64, {3}, Category::gradient})), DeviceError);
}

// An overflow explains an element out of range, which Fixed cannot tell from poison; it explains no other type's
// poison.
TEST_F(PoisonTest, UnderAnOverflowFlagOnlyFixedIsLet) {
  const auto read_under_a_flag = [&]<class T>(T) {
    const Tensor t(queue, {"t", dtype_of<T>(), {3}, Category::gradient});
    queue.submit("raise", [&](KernelScope& s) {
      *s.write<T>(t.rows(0, 1)) = T{};
      s.raise_overflow();
    });
    EXPECT_TRUE(fetch_overflow(queue, t));
    return message_of(queue, t);
  };
  const std::string found = "rank 4: kernel fetch: tensor 't' has poison at index 1";
  EXPECT_EQ(read_under_a_flag(Fixed{}), "no DeviceError");
  EXPECT_EQ(read_under_a_flag(double{}).substr(0, found.size()), found);
  EXPECT_EQ(read_under_a_flag(float{}).substr(0, found.size()), found);
  EXPECT_EQ(read_under_a_flag(std::int64_t{}).substr(0, found.size()), found);
  EXPECT_EQ(read_under_a_flag(std::int32_t{}).substr(0, found.size()), found);
}

TEST_F(PoisonTest, CanBeOff) {
  Device plain{{.poison = false}};
  ImmediateQueue plain_queue(plain);
  const Tensor t(plain_queue, {"t", Dtype::f64, {3}, Category::gradient});
  std::vector<double> poisoned(3);
  poison::fill(Dtype::f64, reinterpret_cast<std::byte*>(poisoned.data()), 24);
  upload<double>(plain_queue, t, poisoned);
  EXPECT_EQ(message_of(plain_queue, t), "no DeviceError");
}

/// Reads memory that is freed, which only a test of what freeing leaves there may do.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] std::int64_t peek(
    const volatile std::int64_t* at) {
  return *at;
}

TEST_F(PoisonTest, FreedMemoryIsPoisoned) {
  Tensor t = testing::make(queue, "t", {4096}, std::vector<double>(4096, 1.5), Dtype::fixed);
  const volatile std::int64_t* stale = nullptr;
  queue.submit("k", [&](KernelScope& s) { stale = &s.read<Fixed>(t)[2000].raw; });
  EXPECT_EQ(peek(stale), (std::int64_t{3} << 39));
  t = Tensor();
  EXPECT_EQ(peek(stale), fixed_invalid);
}

}  // namespace
}  // namespace shardproof
