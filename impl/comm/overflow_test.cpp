// SPDX-License-Identifier: Apache-2.0
// Overflow flags and poison across ranks.
#include <algorithm>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::Node, testing::on_ranks, testing::put;

Tensor fixed(Node& node, const std::vector<std::int64_t>& raws) {
  std::vector<Fixed> values;
  for (const auto raw : raws) values.push_back({raw});
  return put(node.queue, "t", {std::ssize(raws)}, values);
}

TEST(CommOverflow, TheTrueTotalDecides) {
  constexpr std::int64_t top = fixed_limit - 1;
  struct Case {
    std::vector<std::int64_t> raws;  // one of each rank
    bool fits;
  };
  const Case cases[] = {
      {{top, 0}, true},
      {{top, 1}, false},
      {{-top, -1}, false},
      {{top, top}, false},
      {{-top, -top}, false},
      {{top, 1, 0}, false},
      {{top, 1, -1}, true},                 // leaves the range and returns
      {{top, top, -top}, true},             // beyond 2^62 on the way
      {{top, top, top, -top, -top}, true},  // beyond 2^63
      {{-top, -top, -top, top, top}, true},
      {{top, top, top, top}, false},  // 2^64 - 4: modulo 2^64 it is -4
      {{-top, -top, -top, -top}, false},
      {{top, top, top, top, 4}, false},  // modulo 2^64 it is 0
      {{top, top, 2, 0, 0}, false},      // 2^63: modulo 2^64 the most negative
      {{-fixed_limit / 2, -fixed_limit / 2, 1}, true},
      {{-fixed_limit / 2, -fixed_limit / 2, 0}, false},
  };
  for (const Case& each : cases) {
    const auto& raws = each.raws;
    const bool fits = each.fits;
    on_ranks(std::ssize(raws), {}, [&](Node& node) {
      auto group = node.world.all("test");
      // The judged element in every member's part, beside zeros.
      const auto n = 3 * group.size();
      for (std::int64_t at = 0; at < n; ++at) {
        std::vector<std::int64_t> own(static_cast<std::size_t>(n), 0);
        own[static_cast<std::size_t>(at)] = raws[static_cast<std::size_t>(node.rank)];
        const auto tensor = fixed(node, own);
        node.device.clear_overflow();
        group.all_reduce(node.queue, tensor, Operator::sum, "p");
        ASSERT_EQ(fetch_overflow(node.queue, tensor), !fits) << raws.size() << ' ' << raws[0] << ' ' << at;
        ASSERT_EQ(node.device.overflow(), !fits);
        if (!fits) continue;
        std::int64_t total = 0;
        for (const auto raw : raws)
          total = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(raw));
        ASSERT_EQ(fetch<Fixed>(node.queue, tensor)[static_cast<std::size_t>(at)].raw, total);
      }
    });
  }
}

TEST(CommOverflow, AFlagReachesEveryMember) {
  for (std::int64_t bad = 0; bad < 3; ++bad) {
    on_ranks(3, {.delays = 1}, [&](Node& node) {
      auto group = node.world.all("test");
      const auto input = [&](std::int64_t n) {
        auto t =
            fixed(node, std::vector<std::int64_t>(static_cast<std::size_t>(n), node.rank == bad ? fixed_invalid : 1));
        node.device.clear_overflow();
        return t;
      };
      const auto blank = [&](std::int64_t n) {
        return Tensor(node.queue, {"out", Dtype::fixed, {n}, Category::workspace});
      };
      const auto up = [&](const Tensor& t) { return fetch_overflow(node.queue, t) && node.device.overflow(); };
      for (const auto op : {Operator::sum, Operator::max}) {
        const auto t = input(4);
        group.all_reduce(node.queue, t, op, "p");
        EXPECT_TRUE(up(t));
      }
      const auto scattered = blank(1), gathered = blank(3), exchanged = blank(3);
      group.reduce_scatter(node.queue, input(3), scattered, {1, 1, 1}, Operator::sum, "p");
      EXPECT_TRUE(up(scattered));
      group.all_gather(node.queue, input(1), gathered, {1, 1, 1}, "p");
      EXPECT_TRUE(up(gathered));
      group.all_to_all(node.queue, input(3), exchanged, {1, 1, 1}, {1, 1, 1}, "p");
      EXPECT_TRUE(up(exchanged));
      for (std::int64_t root = 0; root < 3; ++root) {
        const auto t = input(2);
        group.broadcast(node.queue, t, root, "p");
        EXPECT_EQ(fetch_overflow(node.queue, t), root == bad) << root;
      }
      // A message carries it to its receiver alone.
      const auto t = input(2);
      if (node.rank == bad) group.send(node.queue, t, (bad + 1) % 3, "p");
      if (node.rank == (bad + 1) % 3) {
        group.receive(node.queue, t, bad, "p");
        EXPECT_TRUE(up(t));
      }
      // And the next call is clean.
      std::vector<std::int64_t> ones(2, 1);
      const auto clean = fixed(node, ones);
      node.device.clear_overflow();
      group.all_reduce(node.queue, clean, Operator::sum, "p");
      EXPECT_FALSE(fetch_overflow(node.queue, clean) || node.device.overflow());
    });
  }
}

TEST(CommOverflow, AFlagOfAnyDtypeTravels) {
  on_ranks(2, {}, [](Node& node) {
    auto group = node.world.all("test");
    const auto t = put(node.queue, "t", {2}, std::vector<double>{1, 2});
    if (node.rank == 1) {
      node.queue.submit("raise", [&](KernelScope& scope) {
        scope.update<double>(t);
        scope.raise_overflow();
      });
    }
    group.all_reduce(node.queue, t, Operator::sum, "p");
    EXPECT_TRUE(fetch_overflow(node.queue, t));
  });
}

TEST(CommPoison, UnwrittenInputsAreRefused) {
  const auto text = error_of<DeviceError>([] {
    on_ranks(2, {}, [](Node& node) {
      auto group = node.world.all("test");
      const Tensor t(node.queue, {"never_written", Dtype::f32, {3}, Category::workspace});
      if (node.rank == 0) zero(node.queue, t);
      group.all_reduce(node.queue, t, Operator::sum, "p");
    });
  });
  EXPECT_NE(text.find("rank 1: kernel all_reduce: tensor 'never_written' has poison at index 0"), std::string::npos)
      << text;
}

TEST(CommPoison, ReceiveBuffersArePoisonedFirst) {
  // The call fails after the buffers were opened: what they held before is gone.
  for (const bool poison : {true, false}) {
    const auto run = [&] {
      run_threads(2, {}, [&](World& world) {
        Device device({.rank = world.rank(), .poison = poison});
        ImmediateQueue queue(device);
        auto group = world.all("test");
        const auto in = put(queue, "in", {2}, std::vector<double>{1, 2});
        const auto out = put(queue, "out", {4}, std::vector<double>{1, 2, 3, 4});
        const auto text = error_of<CommError>([&] {
          if (world.rank() == Rank{0}) group.all_gather(queue, in, out, {2, 2}, "p");
          if (world.rank() == Rank{1}) group.barrier(queue, "p");
        });
        EXPECT_NE(text, "no error");
        const auto read = error_of<DeviceError>([&] { fetch<double>(queue, out); });
        EXPECT_EQ(read == "no error", !poison || world.rank() == Rank{1}) << read;
      });
    };
    run();
  }
}

}  // namespace
}  // namespace shardproof::comm
