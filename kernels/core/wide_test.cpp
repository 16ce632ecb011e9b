// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/wide.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/philox.hpp"
#include "kernels/core/wide_total.hpp"

namespace shardproof {
namespace {

constexpr int128 int128_max = static_cast<int128>(~uint128{0} >> 1);
constexpr int128 int128_min = -int128_max - 1;

/// A non-negative integer in decimal, most significant digit last.
class Decimal {
 public:
  void add(uint128 value) {
    int carry = 0;
    for (std::size_t i = 0; value > 0 || carry > 0; ++i, value /= 10) {
      if (i == digits_.size()) digits_.push_back(0);
      const int sum = digits_[i] + static_cast<int>(value % 10) + carry;
      digits_[i] = sum % 10;
      carry = sum / 10;
    }
  }
  /// this - other, where this >= other.
  void subtract(const Decimal& other) {
    int borrow = 0;
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      const int difference = digits_[i] - borrow - (i < other.digits_.size() ? other.digits_[i] : 0);
      digits_[i] = (difference + 10) % 10;
      borrow = difference < 0;
    }
  }
  std::string text() const {
    std::string text;
    for (auto i = digits_.size(); i > 0; --i) text += static_cast<char>('0' + digits_[i - 1]);
    while (text.size() > 1 && text[0] == '0') text.erase(0, 1);
    return text.empty() ? "0" : text;
  }

 private:
  std::vector<int> digits_;
};

/// The nearest double by decimal arithmetic and the C library's strtod.
double by_decimals(const std::vector<int128>& terms) {
  Decimal plus, minus;
  for (const auto t : terms)
    t < 0 ? minus.add(uint128{0} - static_cast<uint128>(t)) : plus.add(static_cast<uint128>(t));
  const auto p = plus.text(), m = minus.text();
  const bool negative = p.size() < m.size() || (p.size() == m.size() && p < m);
  (negative ? minus : plus).subtract(negative ? plus : minus);
  const double magnitude = std::strtod((negative ? minus : plus).text().c_str(), nullptr);
  return negative ? -magnitude : magnitude;
}

WideSum sum_of(const std::vector<int128>& terms) {
  WideSum sum;
  for (const auto t : terms) sum.add(t);
  return sum;
}

void expect_right(const std::vector<int128>& terms) {
  EXPECT_EQ(to_double(sum_of(terms)), by_decimals(terms)) << "the sum of " << terms.size() << " terms";
  std::vector<int128> negated;
  for (const auto t : terms) {
    if (t == int128_min) return;
    negated.push_back(-t);
  }
  EXPECT_EQ(to_double(sum_of(negated)), -by_decimals(terms));
}

std::vector<int128> random_terms(std::uint64_t seed, std::size_t n) {
  const RandomStream random(seed, "terms");
  std::vector<int128> terms;
  for (std::uint64_t i = 0; i < n; ++i) {
    uint128 bits = 0;
    for (std::uint64_t k = 0; k < 4; ++k) bits = bits << 32 | random.word(8 * i + k);
    terms.push_back(static_cast<int128>(bits) >> (random.word(8 * i + 4) % 128));
  }
  return terms;
}

TEST(Wide, SingleTermsOfEveryLength) {
  expect_right({});
  for (int bit = 0; bit < 127; ++bit) {
    const int128 power = static_cast<int128>(1) << bit;
    for (const int128 near : {power - 1, power, power + 1}) expect_right({near});
  }
  expect_right({int128_max});
  expect_right({int128_min});
}

TEST(Wide, Ties) {
  // 53 bits, then a half: to even, unless a bit far below decides.
  for (const int up : {1, 2, 10, 40, 70}) {
    const int128 half = static_cast<int128>(1) << (up - 1);
    for (const std::int64_t mantissa :
         {std::int64_t{1} << 52, (std::int64_t{1} << 52) + 1, (std::int64_t{1} << 53) - 1}) {
      const int128 value = (static_cast<int128>(mantissa) << up) + half;
      expect_right({value});
      expect_right({value, 1});
      expect_right({value, -1});
    }
  }
}

/// A tie that only the last bit of a sum of 144 bits decides.
TEST(Wide, TiesBeyond128Bits) {
  WideSum sum;
  sum.add(static_cast<int128>((std::int64_t{1} << 53) + 1) << 70);
  for (auto& lane : sum.lane) lane *= 1 << 20;  // so many of these terms: (2^53 + 1) * 2^90
  EXPECT_EQ(to_double(sum), 0x1p143);
  sum.add(1);
  EXPECT_EQ(to_double(sum), 0x1p143 + 0x1p91);
  sum.add(-2);
  EXPECT_EQ(to_double(sum), 0x1p143);
}

TEST(Wide, SumsBeyond128Bits) {
  expect_right(std::vector<int128>(1000, int128_max));
  expect_right(std::vector<int128>(1000, int128_min));
  expect_right({int128_max, int128_max, int128_min, int128_min, 5});
  expect_right({int128_max, 1, int128_min});  // cancels to 0
  expect_right({int128_min, int128_min, int128_min, -1});
  // Squares of the largest raw values in range, as a norm sums them.
  const auto raw = static_cast<int128>(fixed_limit - 1);
  expect_right(std::vector<int128>(4097, raw * raw));
}

TEST(Wide, RandomTerms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) expect_right(random_terms(seed, seed % 37 + 1));
}

TEST(Wide, LanesAddInAnyOrder) {
  auto terms = random_terms(5, 1000);
  const auto all = sum_of(terms);
  std::ranges::reverse(terms);
  std::vector<WideSum> parts(7);
  for (std::size_t i = 0; i < terms.size(); ++i) parts[i * i % parts.size()].add(terms[i]);
  WideSum total;
  for (const auto& part : parts) total += part;
  EXPECT_EQ(total, all);
  EXPECT_EQ(to_double(total), by_decimals(terms));
}

/// 2^31 - 1 equal terms: lanes as full and carries as long as they get.
TEST(Wide, FullLanes) {
  constexpr std::int64_t terms = std::numeric_limits<std::int32_t>::max();
  const auto many = [](int128 term) {
    WideSum sum;
    sum.add(term);
    for (auto& lane : sum.lane) lane *= terms;
    return to_double(sum);
  };
  // terms has 31 bits, so that terms * 2^127 is a double; the 1 that is missing from 2^127 is far below its last bit.
  EXPECT_EQ(many(int128_max), static_cast<double>(terms) * 0x1p127);
  EXPECT_EQ(many(int128_min), static_cast<double>(terms) * -0x1p127);
  EXPECT_EQ(many(-1), -static_cast<double>(terms));
}

TEST(WideTotal, StartsAtZeroAndIsFetched) {
  Device device;
  ImmediateQueue queue(device);
  for (const auto dtype : {Dtype::fixed, Dtype::f64, Dtype::f32}) {
    const WideTotal total(queue, dtype, "total");
    EXPECT_EQ(total.fetch(queue), 0.0);
  }
  const WideTotal total(queue, Dtype::fixed, "total");
  const auto sum = sum_of({int128_max, int128_max, -3});
  upload<std::int64_t>(queue, total.tensor(), sum.lane);
  EXPECT_EQ(total.fetch(queue), by_decimals({int128_max, int128_max, -3}));
  const WideTotal real_total(queue, Dtype::f32, "total");
  upload<double>(queue, real_total.tensor(), std::array{2.5});
  EXPECT_EQ(real_total.fetch(queue), 2.5);
}

}  // namespace
}  // namespace shardproof
