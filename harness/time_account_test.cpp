// SPDX-License-Identifier: Apache-2.0
#include "harness/time_account.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "harness/trace.hpp"

namespace shardproof::harness {
namespace {

const auto group = std::make_shared<const std::string>("tp activation of ranks 0 1");
constexpr double ns = 1e-9;

TimeSpan span(std::int64_t start, std::int64_t end, std::thread::id thread = {}) { return {start, end, 0, 0, thread}; }
ExchangeSpan all_reduce(std::int64_t start, std::int64_t end, std::int64_t place, std::thread::id thread = {}) {
  return {span(start, end, thread), "all_reduce", "loss", group, 2, place, 0, 1, 8};
}
ExchangeSpan message(std::string_view kind, std::int64_t start, std::int64_t end, std::int64_t place) {
  return {span(start, end), kind, "stage_output", group, 2, place, 1 - place, 1, 8};
}
Spans rank_of(std::vector<KernelSpan> kernels, std::vector<ExchangeSpan> exchanges, std::int64_t end = 200) {
  return {std::move(kernels), std::move(exchanges), {}, {{span(0, end), 1}}};
}

TEST(TimeAccount, ACollectiveWaitsForTheLastMember) {
  const std::vector<Spans> ranks = {
      rank_of({{span(0, 10), "upload"}, {span(10, 100), "all_reduce"}}, {all_reduce(40, 90, 0)}),
      rank_of({{span(60, 95), "all_reduce"}}, {all_reduce(70, 95, 1)})};
  const auto accounts = time_accounts(ranks);
  const auto& first = accounts[0][0];
  EXPECT_DOUBLE_EQ(first.copy, 10 * ns);
  EXPECT_DOUBLE_EQ(first.compute, 40 * ns);  // before and after the exchange
  EXPECT_DOUBLE_EQ(first.wait, 30 * ns);
  EXPECT_DOUBLE_EQ(first.communication, 20 * ns);
  EXPECT_DOUBLE_EQ(first.host, 100 * ns);
  EXPECT_DOUBLE_EQ(first.total(), 200 * ns);
  const auto& second = accounts[1][0];
  EXPECT_DOUBLE_EQ(second.wait, 0);
  EXPECT_DOUBLE_EQ(second.communication, 25 * ns);
  EXPECT_DOUBLE_EQ(second.compute, 10 * ns);
}

TEST(TimeAccount, AReceiveWaitsForItsSendAndASendForRoom) {
  const std::vector<Spans> ranks = {rank_of({{span(50, 70), "send"}}, {message("send", 50, 70, 0)}),
                                    rank_of({{span(20, 80), "receive"}}, {message("receive", 20, 80, 1)})};
  const auto accounts = time_accounts(ranks);
  EXPECT_DOUBLE_EQ(accounts[0][0].wait, 20 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][0].communication, 0);
  EXPECT_DOUBLE_EQ(accounts[1][0].wait, 30 * ns);
  EXPECT_DOUBLE_EQ(accounts[1][0].communication, 30 * ns);
}

TEST(TimeAccount, WhatComputationHidesIsNotExposed) {
  std::thread::id other;
  std::thread([&] { other = std::this_thread::get_id(); }).join();
  const auto spans = [&](std::int64_t place) {
    return rank_of({{span(0, 100), "matmul"}, {span(20, 120, other), "all_reduce"}},
                   {all_reduce(20, 120, place, other)});
  };
  const auto accounts = time_accounts(std::vector{spans(0), spans(1)});
  EXPECT_DOUBLE_EQ(accounts[0][0].compute, 100 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][0].communication, 20 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][0].host, 80 * ns);
}

TEST(TimeAccount, OfSeveralStepsAndNone) {
  Spans rank = rank_of({{span(0, 10), "matmul"}, {span(110, 130), "matmul"}}, {}, 100);
  rank.steps.push_back({span(110, 210), 2});
  const auto accounts = time_accounts(std::vector{rank});
  ASSERT_EQ(accounts[0].size(), 2u);
  EXPECT_DOUBLE_EQ(accounts[0][0].compute, 10 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][1].compute, 20 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][1].host, 80 * ns);
  EXPECT_TRUE(time_accounts(std::vector<Spans>(2))[1].empty());
}

// Whatever the clock on the wall says: a thread that is set aside has no processor time.
TEST(TimeAccount, TheEngineIsWhatTheThreadDoesBetweenKernels) {
  const auto with_cpu = [](auto s, std::int64_t from, std::int64_t to) {
    s.cpu_start = from, s.cpu_end = to;
    return s;
  };
  Spans rank = rank_of({}, {}, 0);
  rank.steps = {with_cpu(StepSpan{span(0, 100), 1}, 1000, 1050), with_cpu(StepSpan{span(100, 200), 2}, 1050, 1150)};
  rank.kernels = {with_cpu(KernelSpan{span(10, 60), "matmul"}, 1005, 1035),
                  with_cpu(KernelSpan{span(100, 190), "matmul"}, 1050, 1140)};
  rank.kernels.push_back(rank.kernels.back());
  std::thread other([] {});
  rank.kernels.back().thread = other.get_id();
  other.join();
  const auto accounts = time_accounts(std::vector{rank});
  EXPECT_DOUBLE_EQ(accounts[0][0].engine, 20 * ns);
  EXPECT_DOUBLE_EQ(accounts[0][1].engine, 10 * ns);
}

TEST(Trace, CutsAKernelAtItsExchanges) {
  const auto text =
      chrome_trace(std::vector<Spans>{rank_of({{span(1000, 9000), "all_reduce"}}, {all_reduce(2000, 7000, 0)}, 10000),
                                      rank_of({{span(3000, 7000), "all_reduce"}}, {all_reduce(3000, 7000, 1)}, 10000)});
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(R"("args":{"name":"rank 1"})"));
  EXPECT_TRUE(has(R"({"name":"all_reduce","ph":"X","pid":0,"tid":2,"ts":1.000,"dur":1.000})")) << text;
  EXPECT_TRUE(has(R"({"name":"all_reduce","ph":"X","pid":0,"tid":2,"ts":7.000,"dur":2.000})"));
  EXPECT_TRUE(has(R"({"name":"all_reduce loss","ph":"X","pid":0,"tid":5,"ts":2.000,"dur":1.000})"));
  EXPECT_TRUE(has(R"({"name":"all_reduce loss","ph":"X","pid":0,"tid":4,"ts":3.000,"dur":4.000})"));
  Spans long_run = rank_of({{span(10, 20), "early"}, {span(210, 220), "late"}}, {});
  long_run.steps.push_back({span(200, 300), 2});
  const auto cut = chrome_trace(std::vector{long_run}, 1);
  EXPECT_NE(cut.find("early"), cut.npos);
  EXPECT_EQ(cut.find("late"), cut.npos);
  EXPECT_TRUE(has(R"({"name":"step 1","ph":"X","pid":1,"tid":0,"ts":0.000,"dur":10.000})"));
}

}  // namespace
}  // namespace shardproof::harness
