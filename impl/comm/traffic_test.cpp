// SPDX-License-Identifier: Apache-2.0
// Bytes copied, against the closed forms of the algorithms.
#include <numeric>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"

namespace shardproof::comm {
namespace {

using testing::Node, testing::on_ranks, testing::put, testing::values;

Traffic counted(Node& node, Kind kind, const std::string& purpose = "p") {
  return node.world.traffic().counts().at({"world", kind, purpose});
}

TEST(Traffic, EqualsItsForms) {
  for (std::int64_t n = 1; n <= 6; ++n) {
    on_ranks(n, {.chunk_elements = 5}, [n](Node& node) {
      auto group = node.world.all("test");
      auto& queue = node.queue;
      const auto tensor = [&](std::int64_t elements) {
        return put(queue, "t", {elements}, values<float>(node.rank, elements));
      };
      const auto expect = [&](Kind kind, std::int64_t calls, std::int64_t payload, std::int64_t wire) {
        EXPECT_EQ(counted(node, kind), (Traffic{calls, payload, wire})) << name_of(kind) << ' ' << n;
      };
      const std::int64_t part = 10, size = 4;
      const std::vector<std::int64_t> counts(static_cast<std::size_t>(n), part);
      for (int k = 0; k < 2; ++k) group.all_reduce(queue, tensor(n * part), Operator::sum, "p");
      if (n > 1) expect(Kind::all_reduce, 2, 2 * n * part * size, 2 * 2 * (n - 1) * part * size);  // 2(n-1)/n of it
      group.reduce_scatter(queue, tensor(n * part), tensor(part), counts, Operator::sum, "p");
      expect(Kind::reduce_scatter, 1, n * part * size, (n - 1) * part * size);
      group.all_gather(queue, tensor(part), tensor(n * part), counts, "p");
      expect(Kind::all_gather, 1, n * part * size, (n - 1) * part * size);
      group.all_to_all(queue, tensor(n * part), tensor(n * part), counts, counts, "p");
      expect(Kind::all_to_all, 1, n * part * size, (n - 1) * part * size);
      group.broadcast(queue, tensor(part), n - 1, "p");
      expect(Kind::broadcast, 1, part * size, node.rank == n - 1 ? 0 : part * size);
      group.barrier(queue, "p");
      expect(Kind::barrier, 1, 0, 0);
      if (n == 1) return;
      if (node.rank == 0) {
        group.send(queue, tensor(part), 1, "p");
        expect(Kind::send, 1, part * size, 0);
      }
      if (node.rank == 1) {
        group.receive(queue, tensor(part), 0, "p");
        expect(Kind::receive, 1, part * size, part * size);
      }
      group.barrier(queue, "q");
      EXPECT_EQ(node.world.traffic().counts().size(), node.rank < 2 ? 8u : 7u);
    });
  }
}

TEST(Traffic, OfUnequalPartsSumsToTheForm) {
  for (const std::int64_t n : {2, 3, 5}) {
    for (const std::int64_t elements : {0, 1, 4, 17}) {
      std::atomic<std::int64_t> reduced = 0, exchanged = 0;
      on_ranks(n, {}, [&](Node& node) {
        auto group = node.world.all("test");
        group.all_reduce(node.queue, put(node.queue, "t", {elements}, values<double>(node.rank, elements)),
                         Operator::sum, "p");
        reduced += counted(node, Kind::all_reduce).wire_bytes;
        // Member k gets k elements from each other and keeps `elements`.
        std::vector<std::int64_t> to, from(static_cast<std::size_t>(n), node.rank);
        for (std::int64_t k = 0; k < n; ++k) to.push_back(k);
        to[static_cast<std::size_t>(node.rank)] = from[static_cast<std::size_t>(node.rank)] = elements;
        const auto total = [](const auto& c) { return std::accumulate(c.begin(), c.end(), std::int64_t{0}); };
        const Tensor out(node.queue, {"out", Dtype::f64, {total(from)}, Category::workspace});
        group.all_to_all(node.queue, put(node.queue, "in", {total(to)}, values<double>(0, total(to))), out, to, from,
                         "p");
        EXPECT_EQ(counted(node, Kind::all_to_all).wire_bytes, 8 * (n - 1) * node.rank);
        exchanged += counted(node, Kind::all_to_all).wire_bytes;
      });
      EXPECT_EQ(reduced, 8 * 2 * (n - 1) * elements);
      EXPECT_EQ(exchanged, 8 * (n - 1) * n * (n - 1) / 2);
    }
  }
}

TEST(Traffic, IsKeptByAxisKindAndPurpose) {
  on_ranks(2, {}, [](Node& node) {
    auto tp = node.world.communicator("tp", {Rank{0}, Rank{1}}, "test"),
         dp = node.world.communicator("dp", {node.world.rank()}, "test");
    const auto t = put(node.queue, "t", {2}, values<double>(0, 2));
    tp.all_reduce(node.queue, t, Operator::sum, "a");
    tp.all_reduce(node.queue, t, Operator::sum, "b");
    dp.all_reduce(node.queue, t, Operator::sum, "a");  // nothing to do in a group of one
    dp.barrier(node.queue, "a");
    const auto counts = node.world.traffic().counts();
    EXPECT_EQ(counts.size(), 3u);
    EXPECT_EQ(counts.at({"tp", Kind::all_reduce, "a"}), (Traffic{1, 16, 16}));
    EXPECT_EQ(counts.at({"tp", Kind::all_reduce, "b"}), (Traffic{1, 16, 16}));
    EXPECT_EQ(counts.at({"dp", Kind::barrier, "a"}), (Traffic{1, 0, 0}));
  });
}

}  // namespace
}  // namespace shardproof::comm
