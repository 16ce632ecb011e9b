// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/accumulator.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

constexpr std::int64_t one = std::int64_t{1} << 40;

struct AccumulatorTest : ::testing::Test {
  Device device;
  ImmediateQueue queue{device};

  Accumulator make(Dims dims, Dtype dtype = Dtype::fixed) {
    return {queue, {"gradient", dtype, dims, Category::gradient}};
  }
  /// Adds values[i] to element i under the tight bound, unless another is given. Returns whether there were two lanes.
  bool add(const Accumulator& to, const std::vector<int128>& values, double bound = -1) {
    if (bound < 0) {
      for (const auto v : values) bound = std::max(bound, std::fabs(static_cast<double>(v)) * 0x1p-40);
    }
    bool wide = false;
    queue.submit("add", [&, to](KernelScope& scope) {
      AccumulatorView<Fixed> view(scope, to, bound);
      for (std::size_t i = 0; i < values.size(); ++i) view.add(static_cast<std::int64_t>(i), {values[i]});
      wide = view.wide();
    });
    return wide;
  }
  std::vector<std::int64_t> raws(const Tensor& t) {
    std::vector<std::int64_t> raws;
    for (const auto f : fetch<Fixed>(queue, t)) raws.push_back(f.raw);
    return raws;
  }
};

TEST_F(AccumulatorTest, StartsAtZeroAndAdds) {
  auto sum = make({2});
  EXPECT_FALSE(add(sum, {3, -5}));
  EXPECT_FALSE(add(sum, {4, one}));
  const Tensor total = sum.finish(queue);
  EXPECT_EQ(raws(total), (std::vector<std::int64_t>{7, one - 5}));
  EXPECT_FALSE(fetch_overflow(queue, total));
  EXPECT_EQ(device.memory().peak_total(), 16);  // one lane was enough
}

TEST_F(AccumulatorTest, ASecondLaneOnceTheBoundFails) {
  auto sum = make({2});
  EXPECT_FALSE(add(sum, {1000 * one, -7}));
  EXPECT_FALSE(add(sum, {one, 1}, 2e6));
  EXPECT_TRUE(add(sum, {one, 1}, 2e6));  // 4e6 + 1000 >= 2^21
  EXPECT_TRUE(add(sum, {-one, 2}));
  EXPECT_EQ(device.memory().current(Category::gradient), 16);
  EXPECT_EQ(device.memory().current(Category::workspace), 16);
  const Tensor total = sum.finish(queue);
  EXPECT_EQ(raws(total), (std::vector<std::int64_t>{1001 * one, -3}));
  EXPECT_FALSE(fetch_overflow(queue, total));
  EXPECT_EQ(device.memory().current(Category::workspace), 0);  // finishing frees the second lane
}

TEST_F(AccumulatorTest, PartialSumsMayLeaveTheRangeAndReturn) {
  auto sum = make({3});
  const int128 top = fixed_limit - 1;
  for (int i = 0; i < 100; ++i) add(sum, {top, -top, i});
  for (int i = 0; i < 99; ++i) add(sum, {-top, top, i});
  const Tensor total = sum.finish(queue);
  EXPECT_EQ(raws(total), (std::vector<std::int64_t>{fixed_limit - 1, -fixed_limit + 1, 99 + 99 * 98}));
  EXPECT_FALSE(fetch_overflow(queue, total));
  EXPECT_FALSE(device.overflow());
}

TEST_F(AccumulatorTest, ATotalOutOfRangeIsAnOverflow) {
  // Beyond 2^62, beyond 2^63, and 5 modulo 2^64: low lanes that look like anything.
  for (const int128 total : {static_cast<int128>(fixed_limit), static_cast<int128>(fixed_limit) * 2,
                             static_cast<int128>(fixed_limit) * 3, (static_cast<int128>(1) << 64) + 5}) {
    for (const int128 sign : {1, -1}) {
      auto sum = make({2});
      add(sum, {sign * (total - 1), 8});
      EXPECT_TRUE(add(sum, {sign, 1}));
      const Tensor finished = sum.finish(queue);
      EXPECT_TRUE(fetch_overflow(queue, finished));
      EXPECT_TRUE(device.overflow());
      EXPECT_EQ(raws(finished), (std::vector<std::int64_t>{fixed_invalid, 9}));
      device.clear_overflow();
    }
  }
}

TEST_F(AccumulatorTest, TheVerdictDoesNotDependOnOrderOrBounds) {
  constexpr std::size_t parts = 24, elements = 64;
  const RandomStream random(11, "parts");
  std::vector<std::vector<int128>> values(parts, std::vector<int128>(elements));
  std::vector<int128> exact(elements);
  for (std::size_t p = 0; p < parts; ++p) {
    for (std::size_t i = 0; i < elements; ++i) {
      const auto at = 2 * (p * elements + i);
      const auto bits = std::uint64_t{random.word(at)} << 32 | random.word(at + 1);
      values[p][i] = static_cast<std::int64_t>(bits) >> (i % 4);  // totals around the limit
      exact[i] += values[p][i];
    }
  }
  std::vector<std::int64_t> expected;
  for (const auto e : exact) expected.push_back(finish<Fixed>({e}).raw);
  ASSERT_TRUE(std::ranges::count(expected, fixed_invalid) > 5 && std::ranges::count(expected, fixed_invalid) < 60);
  for (const std::size_t stride : {1u, 5u, 7u, 11u, 23u}) {  // coprime to 24: a permutation
    for (const double loose : {1.0, 1e9, std::nan("")}) {
      auto sum = make({static_cast<std::int64_t>(elements)});
      for (std::size_t p = 0; p < parts; ++p) add(sum, values[p * stride % parts], loose == 1.0 ? -1 : loose);
      const Tensor total = sum.finish(queue);
      EXPECT_EQ(raws(total), expected) << stride << ' ' << loose;
      EXPECT_TRUE(fetch_overflow(queue, total));
    }
  }
}

TEST_F(AccumulatorTest, SumsJustBelowAndAboveTheLimit) {
  for (const std::int64_t last : {0, 1}) {
    auto sum = make({1});
    for (int i = 0; i < 4; ++i) add(sum, {fixed_limit / 4 - (i == 0 ? 1 : 0)});
    add(sum, {last});
    const Tensor total = sum.finish(queue);
    EXPECT_EQ(fetch_overflow(queue, total), last == 1);
    EXPECT_EQ(raws(total)[0], last == 1 ? fixed_invalid : fixed_limit - 1);
  }
}

TEST_F(AccumulatorTest, ABoundThatRoundsAwayHidesNothing) {
  // 2^-40 is lost when it is added to a bound of nearly 2^22; 512 of them are the step from the last double to 2^22.
  auto sum = make({1});
  add(sum, {fixed_limit - 512});
  for (int i = 0; i < 512; ++i) add(sum, {1});
  EXPECT_EQ(raws(sum.finish(queue))[0], fixed_invalid);
}

TEST_F(AccumulatorTest, RestartsForTheNextStep) {
  auto sum = make({1});
  add(sum, {static_cast<int128>(1) << 70});
  EXPECT_TRUE(fetch_overflow(queue, sum.finish(queue)));
  EXPECT_THROW(add(sum, {1}), InternalError);
  sum.restart(queue);
  device.clear_overflow();
  EXPECT_FALSE(add(sum, {1}));  // one lane, bound zero again
  const Tensor total = sum.finish(queue);
  EXPECT_EQ(raws(total), std::vector<std::int64_t>{1});
  EXPECT_FALSE(fetch_overflow(queue, total));
  EXPECT_FALSE(device.overflow());

  sum.restart(queue);
  add(sum, {5}, 1e9);
  sum.restart(queue);  // without finish: the second lane goes too
  EXPECT_EQ(device.memory().current(Category::workspace), 0);
  EXPECT_FALSE(add(sum, {6}));
  EXPECT_EQ(raws(sum.finish(queue)), std::vector<std::int64_t>{6});
}

TEST_F(AccumulatorTest, CarriesTheFlagOfWhatIsAdded) {
  const Tensor bad(queue, {"bad", Dtype::fixed, {1}, Category::activation});
  queue.submit("write", [&](KernelScope& s) { s.write<Fixed>(bad)->raw = fixed_invalid; });
  auto sum = make({1});
  queue.submit("add", [&](KernelScope& scope) {
    scope.read<Fixed>(bad);
    AccumulatorView<Fixed>(scope, sum, 1).add(0, {1});
  });
  add(sum, {1});
  EXPECT_TRUE(fetch_overflow(queue, sum.finish(queue)));
}

TEST_F(AccumulatorTest, FloatsJustAdd) {
  auto sum = make({2}, Dtype::f32);
  for (int i = 0; i < 3; ++i) {
    queue.submit("add", [&](KernelScope& scope) {
      AccumulatorView<float> view(scope, sum, 1e30);
      EXPECT_FALSE(view.wide());
      view.add(0, 0.5f);
      view.data()[1] += 0.25f;
    });
  }
  EXPECT_EQ(testing::doubles(queue, sum.finish(queue)), (std::vector<double>{1.5, 0.75}));
}

TEST_F(AccumulatorTest, FloatsThatNobodyHasAddedToAreZero) {
  const auto old_values = [&](const Accumulator& sum) {
    queue.submit("add", [&](KernelScope& scope) {
      AccumulatorView<double> view(scope, sum, 0);
      for (std::int64_t i = 0; i < 3; ++i) view.add(i, 7);
    });
  };
  const std::vector<double> zeros(3), ones{0, 1, 0};
  auto sum = make({3}, Dtype::f64), other = make({3}, Dtype::f64);
  EXPECT_EQ(testing::doubles(queue, sum.finish(queue)), zeros);
  for (const auto& way : std::vector<std::function<void()>>{
           [] {},
           [&] { queue.submit("exchange", [&](KernelScope& scope) { AccumulatorExchange(scope, sum).begin(0); }); },
           [&] {
             add_window(queue, sum, {0, 3}, other, {0, 3}, 1, 3);
           },
           [&] {
             add_window(queue, other, {0, 3}, sum, {0, 3}, 1, 3);
           },
           [&] { queue.submit("view", [&](KernelScope& scope) { AccumulatorView<double>(scope, sum, 0); }); }}) {
    sum.restart(queue);
    old_values(sum);
    sum.restart(queue);
    other.restart(queue);
    way();
    queue.submit("add", [&](KernelScope& scope) { AccumulatorView<double>(scope, sum, 0).add(1, 1); });
    EXPECT_EQ(testing::doubles(queue, sum.finish(queue)), ones);
    EXPECT_EQ(testing::doubles(queue, other.finish(queue)), zeros);
  }
}

TEST_F(AccumulatorTest, OnlyTheFirstAssignsAndNeverAFixed) {
  const auto blanks = [&]<class S>(S, Accumulator& sum) {
    std::vector<bool> found;
    for (const bool assigns : {true, true, false}) {
      queue.submit("ask", [&](KernelScope& scope) {
        AccumulatorView<S> view(scope, sum, 0, assigns);
        found.push_back(view.take_blank());
        EXPECT_FALSE(view.take_blank());
        if (found.back()) *view.data() = S{};
      });
    }
    return found;
  };
  auto sum = make({1}, Dtype::f32), fixed = make({1});
  EXPECT_EQ(blanks(float{}, sum), (std::vector<bool>{true, false, false}));
  sum.restart(queue);
  EXPECT_EQ(blanks(float{}, sum), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(blanks(Fixed{}, fixed), std::vector<bool>(3, false));
}

/// Replaces each accumulator by the sum of all, as ranks would. Returns whether that took lanes.
bool exchange_sums(Queue& queue, const std::vector<Accumulator>& sums) {
  bool lanes = false;
  queue.submit("exchange", [&](KernelScope& scope) {
    std::vector<AccumulatorExchange> ends;
    std::vector<std::int64_t*> data;
    double bound = 0;
    for (const auto& sum : sums) bound += ends.emplace_back(scope, sum).bound();
    std::int64_t n = 0;
    for (auto& end : ends) {
      const Tensor t = end.begin(bound);
      lanes = t.dtype() == Dtype::i64;
      n = t.elements();
      data.push_back(lanes ? scope.update<std::int64_t>(t) : &scope.update<Fixed>(t)->raw);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t total = 0;
      for (const auto* d : data) total += d[i];
      for (auto* d : data) d[i] = total;
    }
    for (auto& end : ends) end.end();
  });
  return lanes;
}

TEST_F(AccumulatorTest, ExchangedSumsAreTrueTotals) {
  const int128 huge = static_cast<int128>(1) << 110;
  const std::vector<std::vector<int128>> parts = {
      {huge, -1, fixed_limit - 1, -huge - 7, (static_cast<int128>(1) << 53) - 1},
      {-huge - 3, -1, fixed_limit - 1, huge, 1},
      {1, -1, 3 - fixed_limit, huge, -(static_cast<int128>(1) << 53)}};
  std::vector<Accumulator> sums;
  for (const auto& part : parts) {
    sums.push_back(make({5}));
    add(sums.back(), part);
  }
  EXPECT_TRUE(exchange_sums(queue, sums));
  for (auto& sum : sums) {
    EXPECT_TRUE(add(sum, {1, 0, 2 - fixed_limit, -huge, 0}));  // goes on with two lanes
    EXPECT_EQ(raws(sum.finish(queue)), (std::vector<std::int64_t>{-1, -3, 3, -7, 0}));
  }
  EXPECT_FALSE(device.overflow());
  EXPECT_EQ(device.memory().current(Category::workspace) + device.memory().current(Category::communication), 0);
}

TEST_F(AccumulatorTest, ExchangesKeepOneLaneWhileTheTotalOfBoundsAllows) {
  for (const double last : {0x1p20 - 1, 0x1p20}) {
    std::vector<Accumulator> sums = {make({2}), make({2})};
    add(sums[0], {3, -4}, 0x1p20);
    add(sums[1], {1, 9}, last);
    EXPECT_EQ(exchange_sums(queue, sums), last == 0x1p20);
    EXPECT_EQ(add(sums[1], {0, 0}, 1), true) << "the bound is the total's";
    for (auto& sum : sums) EXPECT_EQ(raws(sum.finish(queue)), (std::vector<std::int64_t>{4, 5}));
  }
}

TEST_F(AccumulatorTest, ExchangesShowAFlagAndRefuseWhatIsFinished) {
  auto sum = make({1});
  queue.submit("raise", [&](KernelScope& scope) {
    EXPECT_FALSE(AccumulatorExchange(scope, sum).overflow());
    AccumulatorView<Fixed>(scope, sum, 1).add(0, {1});
    scope.raise_overflow();
  });
  queue.submit("ask", [&](KernelScope& scope) { EXPECT_TRUE(AccumulatorExchange(scope, sum).overflow()); });
  sum.finish(queue);
  EXPECT_THROW(exchange_sums(queue, {sum}), InternalError);
}

TEST_F(AccumulatorTest, WindowsGoAlongWithTheirLanes) {
  const int128 huge = static_cast<int128>(1) << 100;
  auto from = make({2, 3}), to = make({2, 5});
  add(from, {1, huge, 3, 4, 5, -huge});
  add_window(queue, from, {1, 3}, to, {2, 5}, 2, 2);
  add_window(queue, from, {1, 3}, to, {3, 5}, 2, 1);  // huge and 5 once more, a column farther
  add(to, {0, 0, -huge, -huge, 0, 0, 0, 0, huge, 0});
  EXPECT_EQ(raws(to.finish(queue)), (std::vector<std::int64_t>{0, 0, 0, 3, 0, 0, 0, 5, 5, 0}));
  auto small = make({1, 2});
  EXPECT_THROW(add_window(queue, from, {0, 3}, small, {1, 2}, 1, 2), InternalError);
  EXPECT_THROW(add_window(queue, small, {1, 2}, from, {0, 3}, 1, 2), InternalError);
}

TEST_F(AccumulatorTest, EmptyOnesWork) {
  auto sum = make({0, 3});
  EXPECT_TRUE(add(sum, {}, 1e9));
  EXPECT_EQ(sum.finish(queue).elements(), 0);
  EXPECT_FALSE(Accumulator());
  EXPECT_TRUE(sum);
}

}  // namespace
}  // namespace shardproof
