// SPDX-License-Identifier: Apache-2.0
#include "harness/span_text.hpp"

#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace shardproof::harness {
namespace {

template <class Span>
void expect_times(const Span& read, const Span& written, std::int64_t offset) {
  EXPECT_EQ(read.start, written.start + offset);
  EXPECT_EQ(read.end, written.end + offset);
  EXPECT_EQ(read.cpu_start, written.cpu_start);  // of each thread's own clock
  EXPECT_EQ(read.cpu_end, written.cpu_end);
}

TEST(SpanText, ReadsBack) {
  constexpr std::int64_t late = std::int64_t{1} << 60;  // a clock since 1970 in nanoseconds
  Spans spans;
  std::thread other([&] {
    spans.kernels.push_back({{late + 1, late + 2, 3, 4, std::this_thread::get_id()}, "matmul"});
  });
  other.join();
  spans.kernels.push_back({{late + 5, late + 8, 6, 7, std::this_thread::get_id()}, "all_reduce"});
  spans.exchanges.push_back({{late + 6, late + 7, 1, 2, std::this_thread::get_id()},
                             "all_reduce",
                             "gradient",
                             std::make_shared<const std::string>("dp gradients of ranks 0 2"),
                             2,
                             1,
                             4,
                             9,
                             1024});
  spans.actions.push_back({{late, late + 9, 0, 8, std::this_thread::get_id()}, 'W', 3, 5});
  spans.steps.push_back({{late - 1, late + 10, 0, 9, std::this_thread::get_id()}, 17});
  std::set<std::string> names;
  Spans read;
  {
    const auto said = nlohmann::ordered_json::parse(json_of(spans).dump());
    read = spans_of(said, -100, names);
  }
  ASSERT_EQ(read.kernels.size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    expect_times(read.kernels[k], spans.kernels[k], -100);
    EXPECT_EQ(read.kernels[k].name, spans.kernels[k].name);
  }
  EXPECT_NE(read.kernels[0].thread, read.kernels[1].thread);
  EXPECT_EQ(read.kernels[1].thread, read.steps.at(0).thread);
  const auto &exchange = read.exchanges.at(0), &written = spans.exchanges[0];
  expect_times(exchange, written, -100);
  EXPECT_EQ(exchange.kind, written.kind);
  EXPECT_EQ(exchange.purpose, written.purpose);
  EXPECT_EQ(*exchange.group, *written.group);
  EXPECT_EQ(exchange.members, 2);
  EXPECT_EQ(exchange.place, 1);
  EXPECT_EQ(exchange.peer, 4);
  EXPECT_EQ(exchange.number, 9);
  EXPECT_EQ(exchange.payload_bytes, 1024);
  expect_times(read.actions.at(0), spans.actions[0], -100);
  EXPECT_EQ(read.actions[0].kind, 'W');
  EXPECT_EQ(read.actions[0].stage, 3);
  EXPECT_EQ(read.actions[0].microbatch, 5);
  expect_times(read.steps.at(0), spans.steps[0], -100);
  EXPECT_EQ(read.steps[0].step, 17);
}

}  // namespace
}  // namespace shardproof::harness
