// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/observable.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

std::vector<Observable> run_of_three_steps() {
  std::vector<Observable> all;
  for (const std::int64_t step : {1, 2, 10}) {  // 10: numbers, not text, give the order
    const auto seed = static_cast<std::uint64_t>(step);
    std::vector<Fixed> raw;
    for (const auto v : testing::uniform(seed, "gradient", 2600)) raw.push_back(round_to<Fixed>(v));
    std::vector<float> floats;
    for (const auto v : testing::uniform(seed, "float", 33)) floats.push_back(static_cast<float>(v));
    all.push_back({step, Observed::state, "b.momentum", {50, 3}, testing::uniform(seed, "state", 150)});
    all.push_back({step, Observed::parameter, "b", {33}, floats});
    all.push_back({step, Observed::parameter, "a", {0}, std::vector<Fixed>{}});
    all.push_back({step, Observed::gradient, "b", {13, 200}, raw});
    all.push_back({step, Observed::gradient, "B", {1}, std::vector<double>{0.5}});
    all.push_back({step, Observed::skipped, "", {1}, std::vector<std::int64_t>{0}});
    all.push_back({step, Observed::loss, "", {1}, std::vector<double>{5.5}});
  }
  return all;
}

TEST(Observable, DigestIsTheTextOfArithmeticMd) {
  std::vector<Observable> all{
      {2, Observed::loss, "", {0}, std::vector<double>{}},  // null
      {1, Observed::gradient, "w", {2, 1}, std::vector<Fixed>{{-1}, {std::int64_t{1} << 40}}},
      {1, Observed::loss, "", {1}, std::vector<double>{1.0}},
      {1, Observed::parameter, "w", {1}, std::vector<float>{2.0f}},
      {1, Observed::skipped, "", {1}, std::vector<std::int64_t>{258}},
      {1, Observed::parameter, "unused.0", {0}, std::vector<double>{}},
  };
  std::string text;
  text += "1 loss  f64 1\n" + std::string("\0\0\0\0\0\0\xf0\x3f", 8);
  text += "1 gradient w q23.40 2x1\n" + std::string(8, '\xff') + std::string("\0\0\0\0\0\1\0\0", 8);
  text += "1 skipped  i64 1\n" + std::string("\2\1\0\0\0\0\0\0", 8);
  text += "1 parameter unused.0 f64 0\n";
  text += "1 parameter w f32 1\n" + std::string("\0\0\0\x40", 4);
  text += "2 loss  null 0\n";
  EXPECT_EQ(digest_of(all), Sha256().add(text).finish_hex());
}

TEST(Observable, DigestDoesNotDependOnCollection) {
  auto all = run_of_three_steps();
  const auto digest = digest_of(all);
  std::ranges::reverse(all);
  EXPECT_EQ(digest_of(all), digest);
  for (std::ptrdiff_t turn = 1; turn < 6; ++turn) {
    std::rotate(all.begin(), all.begin() + 5, all.end());
    EXPECT_EQ(digest_of(all), digest);
  }
}

TEST(Observable, StepByStepIsTheSameDigest) {
  auto all = run_of_three_steps();
  const auto whole = digest_of(all);
  Digest digest;
  digest.add({});
  for (const std::size_t begin : {0u, 7u, 14u}) {
    std::vector<Observable> step(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                 all.begin() + static_cast<std::ptrdiff_t>(begin) + 7);
    std::ranges::reverse(step);
    digest.add(step);
    EXPECT_THROW(digest.add(step), InternalError) << "a step twice";
  }
  EXPECT_THROW(digest.add({all[0]}), InternalError) << "an earlier step";
  EXPECT_EQ(digest.finish(), whole);
  EXPECT_THROW(Digest().add({all[0], all[7]}), InternalError) << "two steps at once";
}

TEST(Observable, AnyBitOfAnyElementChangesTheDigest) {
  auto all = run_of_three_steps();
  const auto digest = digest_of(all);
  std::int64_t elements = 0;
  for (const auto& o : all) elements += size_of(o.values);
  const RandomStream random(2, "flips");
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto at = static_cast<std::int64_t>(random.word(2 * i)) % elements;
    const auto bit = random.word(2 * i + 1);
    const auto* o = all.data();
    for (; at >= size_of(o->values); ++o) at -= size_of(o->values);
    auto& values = all[static_cast<std::size_t>(o - all.data())].values;
    const auto flip = [&] {
      std::visit(
          [&]<class T>(std::vector<T>& v) {
            using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
            auto& element = v[static_cast<std::size_t>(at)];
            element =
                std::bit_cast<T>(std::bit_cast<Bits>(element) ^ Bits{1} << (i % 2 == 0 ? 0 : bit % (8 * sizeof(T))));
          },
          values);
    };
    flip();
    ASSERT_NE(digest_of(all), digest) << "flip " << i;
    flip();
  }
  EXPECT_EQ(digest_of(all), digest);
}

TEST(Observable, EveryLabelMatters) {
  const std::vector<Observable> base{{1, Observed::gradient, "w", {2, 3}, std::vector<double>(6)}};
  const auto digest = digest_of(base);
  const auto changed = [&](auto change) {
    auto copy = base;
    change(copy[0]);
    return digest_of(copy);
  };
  EXPECT_NE(changed([](Observable& o) { o.step = 2; }), digest);
  EXPECT_NE(changed([](Observable& o) { o.kind = Observed::parameter; }), digest);
  EXPECT_NE(changed([](Observable& o) { o.name = "v"; }), digest);
  EXPECT_NE(changed([](Observable& o) { o.dims = {3, 2}; }), digest);
  EXPECT_NE(changed([](Observable& o) { o.values = std::vector<std::int64_t>(6); }), digest);
}

TEST(Observable, ZerosHaveOneSign) {
  for (const double zero : {0.0, -0.0}) {
    const std::vector<Observable> doubles{{1, Observed::loss, "", {1}, std::vector<double>{zero}}};
    const std::vector<Observable> plus{{1, Observed::loss, "", {1}, std::vector<double>{0.0}}};
    EXPECT_EQ(digest_of(doubles), digest_of(plus));
    const std::vector<Observable> floats{{1, Observed::loss, "", {1}, std::vector<float>{static_cast<float>(zero)}}};
    const std::vector<Observable> plus_float{{1, Observed::loss, "", {1}, std::vector<float>{0.0f}}};
    EXPECT_EQ(digest_of(floats), digest_of(plus_float));
  }
}

TEST(Observable, RefusesNonsense) {
  const Observable o{1, Observed::gradient, "w", {2}, std::vector<double>(2)};
  EXPECT_THROW(digest_of(std::vector{o, o}), InternalError);
  auto misfit = o;
  misfit.dims = {3};
  EXPECT_THROW(digest_of(std::vector{misfit}), InternalError);
}

TEST(Observable, AsDoubles) {
  EXPECT_EQ(as_doubles(std::vector<Fixed>{{std::int64_t{3} << 39}}), std::vector<double>{1.5});
  EXPECT_EQ(as_doubles(std::vector<float>{0.1f}), std::vector<double>{static_cast<double>(0.1f)});
  EXPECT_EQ(as_doubles(std::vector<std::int64_t>{-7}), std::vector<double>{-7});
  EXPECT_EQ(dtype_of(Values(std::vector<Fixed>{})), Dtype::fixed);
  EXPECT_EQ(dtype_of(Values(std::vector<std::int64_t>{})), Dtype::i64);
}

}  // namespace
}  // namespace shardproof
