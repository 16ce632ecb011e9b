// SPDX-License-Identifier: Apache-2.0
// Groups that begin while others do, with members of some processes and several of each.
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::expected, testing::Node, testing::on_ranks, testing::put, testing::values;

TEST(Groups, BeginWhileOthersDo) {
  constexpr std::int64_t ranks = 7;
  on_ranks(ranks, {}, [](Node& node) {
    std::vector<Communicator> groups;
    std::vector<std::vector<std::int64_t>> members;
    // Every set of two or three ranks, in one order on all ranks, each at its own pace.
    for (std::int64_t a = 0; a < ranks; ++a)
      for (std::int64_t b = a + 1; b < ranks; ++b)
        for (std::int64_t c = b; c < ranks; ++c) {
          std::vector<std::int64_t> set = {b, a};  // not in order of rank
          if (c > b) set.push_back(c);
          if (std::ranges::find(set, node.rank) == set.end()) continue;
          std::this_thread::sleep_for(std::chrono::microseconds((node.rank * 31 + b * 17 + c) % 5 * 100));
          std::vector<Rank> named;
          for (const auto rank : set) named.push_back(static_cast<Rank>(rank));
          groups.push_back(node.world.communicator("set", named, "test"));
          members.push_back(set);
        }
    for (std::size_t k = 0; k < groups.size(); ++k) {
      const auto t = put(node.queue, "t", {5}, values<std::int64_t>(node.rank, 5));
      groups[k].all_reduce(node.queue, t, Operator::sum, "p");
      std::vector<std::int64_t> right;
      for (std::int64_t i = 0; i < 5; ++i) right.push_back(expected<std::int64_t>(members[k], i, Operator::sum));
      EXPECT_EQ(fetch<std::int64_t>(node.queue, t), right);
    }
  });
}

TEST(Groups, OpenAgain) {
  on_ranks(5, {.delays = 3}, [](Node& node) {
    for (int round = 0; round < 3; ++round) {
      auto group = node.world.all("test");
      const auto t = put(node.queue, "t", {1}, std::vector<std::int64_t>{node.rank});
      if (node.rank == 0) group.send(node.queue, t, 4, "p");
      if (node.rank == 4) group.receive(node.queue, t, 0, "p");
      group.broadcast(node.queue, t, 4, "p");
      EXPECT_EQ(fetch<std::int64_t>(node.queue, t)[0], 0);
    }
  });
}

TEST(Groups, EveryMessageBetweenMembers) {
  // Within processes and between them, of sizes around the pieces, in both directions at once.
  for (const std::int64_t depth : {0, 1, 3}) {
    on_ranks(5, {.delays = 7, .chunk_elements = 3, .send_depth = depth}, [](Node& node) {
      auto group = node.world.communicator("ring", {Rank{3}, Rank{0}, Rank{4}, Rank{1}, Rank{2}}, "test");
      WorkerQueue sender(node.device);
      for (std::int64_t k = 0; k < 8; ++k)
        for (std::int64_t to = 0; to < 5; ++to)
          if (to != group.place())
            group.send(sender, put(node.queue, "t", {k}, values<Fixed>(10 * group.place() + to, k)), to, "p", {k, to});
      for (std::int64_t k = 0; k < 8; ++k)
        for (std::int64_t from = 4; from >= 0; --from) {
          if (from == group.place()) continue;
          const Tensor t(node.queue, {"t", Dtype::fixed, {k}, Category::workspace});
          group.receive(node.queue, t, from, "p", {k, group.place()});
          EXPECT_TRUE(testing::same(fetch<Fixed>(node.queue, t), values<Fixed>(10 * from + group.place(), k)));
        }
      sender.synchronize();
    });
  }
}

TEST(Groups, SumsOfEverySizeAroundTheSharedPieces) {
  // A process's piece has 2^18 bytes; up to 2^14 every process adds all; parts of a few elements are empty for some.
  const auto processes = testing::job->size();
  on_ranks(processes + 1, {}, [](Node& node) {
    auto group = node.world.all("test");
    const auto ranks = group.size();
    for (const std::int64_t n : {0, 1, 3, 2047, 2048, 2049, 32767, 32768, 32769, 100003}) {
      const auto right = [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int64_t> all, sums;
        for (std::int64_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
        for (auto i = begin; i < end; ++i) sums.push_back(expected<std::int64_t>(all, i, Operator::sum));
        return sums;
      };
      const auto t = put(node.queue, "t", {n}, values<std::int64_t>(node.rank, n));
      // Back to back: who is done early gives its next elements while others still read.
      std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), n / ranks);
      counts.back() += n % ranks;
      const auto own = counts[static_cast<std::size_t>(node.rank)], begin = n / ranks * node.rank;
      const Tensor part(node.queue, {"part", Dtype::i64, {own}, Category::workspace});
      group.reduce_scatter(node.queue, t, part, counts, Operator::sum, "p");
      group.all_reduce(node.queue, t, Operator::sum, "p");
      EXPECT_EQ(fetch<std::int64_t>(node.queue, part), right(begin, begin + own));
      EXPECT_EQ(fetch<std::int64_t>(node.queue, t), right(0, n));
    }
  });
}

TEST(Groups, SharedMemoryAddsFloatsInTheOrderOfProcesses) {
  const auto processes = testing::job->size();
  testing::job->run({processes, processes}, {.timeout_seconds = 20}, [&](World& world) {
    Node node(world);
    auto group = world.all("test");
    for (const std::int64_t n : {5, 100003}) {
      // 2^24 + 1 + 1 + ... in this order stays 2^24: each 1 is half of a unit of its last place, and goes to even.
      const float own = node.rank == 0 ? 0x1p24f : 1.0f;
      const auto t = put(node.queue, "t", {n}, std::vector<float>(static_cast<std::size_t>(n), own));
      group.all_reduce(node.queue, t, Operator::sum, "p");
      EXPECT_EQ(fetch<float>(node.queue, t), std::vector<float>(static_cast<std::size_t>(n), 0x1p24f));
    }
  });
}

TEST(Groups, SharedMemoryShowsCallsThatDiffer) {
  const auto processes = testing::job->size();
  const auto differ = [&](Dtype dtype, std::int64_t elements, Operator op) {
    testing::job->run({processes, processes}, {.timeout_seconds = 20}, [&](World& world) {
      Node node(world);
      auto group = world.all("test");
      const bool odd = node.rank + 1 == processes;
      const Tensor t(node.queue, {"t", odd ? dtype : Dtype::f32, {odd ? elements : 4}, Category::workspace});
      zero(node.queue, t);
      const auto text =
          testing::error_of<CommError>([&] { group.all_reduce(node.queue, t, odd ? op : Operator::sum, "p"); });
      EXPECT_NE(text.find(" reduces other elements, or otherwise"), std::string::npos) << text;
    });
  };
  differ(Dtype::f32, 5, Operator::sum);
  differ(Dtype::i32, 4, Operator::sum);
  differ(Dtype::f32, 4, Operator::max);
}

/// Of this process, while it exists.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t most) : resource_(resource) {
    ::getrlimit(resource_, &before_);
    const rlimit limit{most, before_.rlim_max};
    ::setrlimit(resource_, &limit);
  }
  ~Limited() { ::setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  const __rlimit_resource resource_;
  rlimit before_{};
};

TEST(Groups, ReduceWhereOneProcessCannotShareMemory) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const auto processes = testing::job->size(), own = testing::job->process();
  const auto reduces = [&] {
    testing::job->run({processes, processes}, {.timeout_seconds = 20}, [&](World& world) {
      Node node(world);
      auto group = world.all("test");
      const auto t = put(node.queue, "t", {3}, std::vector<std::int64_t>(3, node.rank + 1));
      group.all_reduce(node.queue, t, Operator::sum, "p");
      EXPECT_EQ(fetch<std::int64_t>(node.queue, t), std::vector<std::int64_t>(3, processes * (processes + 1) / 2));
    });
  };
  for (const std::int64_t one : {std::int64_t{0}, processes - 1}) {
    std::optional<Limited> limited;
    if (own == one) limited.emplace(RLIMIT_NOFILE, 0);  // opens no file
    reduces();
  }
  {
    std::optional<Limited> limited;
    if (own == 0) limited.emplace(RLIMIT_FSIZE, 4096);  // its file gets no length
    reduces();
  }
  std::signal(SIGXFSZ, handler);
}

TEST(Groups, ClocksAreCompared) {
  constexpr std::int64_t apart = 1'000'000'000'000;  // far beyond what a round trip takes
  const auto clock = [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - apart * testing::job->process();
  };
  const auto offsets = testing::job->clock_offsets(testing::job->size(), clock);
  ASSERT_EQ(std::ssize(offsets), testing::job->process() == 0 ? testing::job->size() : 0);
  for (std::size_t k = 0; k < offsets.size(); ++k)
    EXPECT_NEAR(static_cast<double>(offsets[k]), static_cast<double>(apart) * static_cast<double>(k), 1e-2 * apart);
}

}  // namespace
}  // namespace shardproof::comm
