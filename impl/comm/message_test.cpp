// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "impl/comm/thread_channel.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::for_each_type, testing::Node, testing::on_ranks, testing::put, testing::same,
    testing::values;

template <class T>
Tensor blank(Node& node, std::int64_t n) {
  return Tensor(node.queue, {"t", dtype_of<T>(), {n}, Category::workspace});
}

TEST(Messages, EverySizeAndType) {
  for (const std::int64_t depth : {0, 1, 3}) {
    for (const std::int64_t chunk : {std::int64_t{1} << 31, std::int64_t{7}}) {
      on_ranks(2, {.delays = 2, .chunk_elements = chunk, .send_depth = depth}, [](Node& node) {
        auto group = node.world.all("test");
        for_each_type([&]<class T>(T) {
          for (std::int64_t n = 0; n <= 30; ++n) {
            if (node.rank == 0) group.send(node.queue, put(node.queue, "t", {n}, values<T>(0, n)), 1, "p");
            if (node.rank == 1) {
              const auto t = blank<T>(node, n);
              group.receive(node.queue, t, 0, "p");
              ASSERT_TRUE(same(fetch<T>(node.queue, t), values<T>(0, n)));
            }
          }
        });
      });
    }
  }
}

TEST(Messages, InOrderForEachPairOfRanks) {
  // Everybody sends ten numbers to everybody else, and takes them peer by peer.
  for (const std::int64_t depth : {0, 1, 20}) {
    on_ranks(4, {.delays = 5, .send_depth = depth}, [](Node& node) {
      auto group = node.world.all("test");
      WorkerQueue sender(node.device);
      for (std::int64_t k = 0; k < 10; ++k) {
        for (std::int64_t to = 0; to < 4; ++to) {
          if (to == node.rank) continue;
          const std::vector<std::int64_t> content = {100 * node.rank + 10 * to + k};
          group.send(sender, put(node.queue, "t", {1}, content), to, "p");
        }
      }
      for (std::int64_t k = 0; k < 10; ++k) {
        for (std::int64_t from = 3; from >= 0; --from) {
          if (from == node.rank) continue;
          const auto t = blank<std::int64_t>(node, 1);
          group.receive(node.queue, t, from, "p");
          EXPECT_EQ(fetch<std::int64_t>(node.queue, t)[0], 100 * from + 10 * node.rank + k);
        }
      }
      sender.synchronize();
    });
  }
}

TEST(Messages, Depth0MeetsTheReceiver) {
  std::atomic<bool> receiving = false;
  on_ranks(2, {.send_depth = 0}, [&](Node& node) {
    auto group = node.world.all("test");
    const auto t = put(node.queue, "t", {2}, values<double>(0, 2));
    if (node.rank == 0) {
      group.send(node.queue, t, 1, "p");
      EXPECT_TRUE(receiving);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      receiving = true;
      group.receive(node.queue, t, 0, "p");
    }
  });
}

TEST(Messages, DepthIsHowManyMayWait) {
  for (const std::int64_t depth : {1, 2, 5}) {
    std::atomic<std::int64_t> sent = 0, received = 0;
    on_ranks(2, {.send_depth = depth}, [&](Node& node) {
      auto group = node.world.all("test");
      for (std::int64_t k = 0; k < 12; ++k) {
        const auto t = put(node.queue, "t", {2}, values<double>(0, 2));
        if (node.rank == 0) {
          group.send(node.queue, t, 1, "p");
          sent = k + 1;
          EXPECT_LE(k + 1 - received, depth + 1);  // one may be delivered and not yet counted
        } else {
          // Would never come to pass if sends waited earlier.
          if (k == 0) {
            while (sent < depth) std::this_thread::yield();
          }
          group.receive(node.queue, t, 0, "p");
          received = k + 1;
        }
      }
    });
  }
}

TEST(Messages, LendTheTensorUntilDelivered) {
  on_ranks(2, {}, [](Node& node) {
    auto group = node.world.all("test");
    auto& memory = node.device.memory();
    if (node.rank == 0) {
      auto t = std::optional(put(node.queue, "t", {4}, values<double>(0, 4)));
      group.send(node.queue, *t, 1, "p");
      t.reset();
      EXPECT_EQ(memory.current_total(), 32);  // nobody has taken it
      group.barrier(node.queue, "sent");
      group.barrier(node.queue, "received");
      EXPECT_EQ(memory.current_total(), 0);
    } else {
      group.barrier(node.queue, "sent");
      const auto t = blank<double>(node, 4);
      group.receive(node.queue, t, 0, "p");
      group.barrier(node.queue, "received");
      EXPECT_EQ(fetch<double>(node.queue, t), values<double>(0, 4));
      EXPECT_EQ(memory.peak_total(), 32);
    }
  });
}

TEST(Messages, OutliveTheirSender) {
  std::atomic<bool> gone = false;
  run_threads(2, {.timeout_seconds = 20, .send_depth = 3}, [&](World& world) {
    {
      Node node(world);
      auto group = world.all("test");
      for (std::int64_t k = 0; k < 3; ++k) {
        if (node.rank == 0) group.send(node.queue, put(node.queue, "t", {5}, values<float>(k, 5)), 1, "p");
      }
      while (node.rank == 1 && !gone) std::this_thread::yield();
      for (std::int64_t k = 0; node.rank == 1 && k < 3; ++k) {
        const auto t = blank<float>(node, 5);
        group.receive(node.queue, t, 0, "p");
        EXPECT_EQ(fetch<float>(node.queue, t), values<float>(k, 5));
      }
    }
    gone = true;
  });
}

TEST(Messages, OneThatNobodyReceivesIsAnError) {
  const auto run = [](std::int64_t sent, std::int64_t received) {
    return error_of<CommError>([&] {
      on_ranks(2, {.send_depth = 3}, [&](Node& node) {
        auto group = node.world.communicator("pp", {Rank{1}, Rank{0}}, "test");
        for (std::int64_t k = 0; k < sent; ++k) {
          if (node.rank == 0) group.send(node.queue, put(node.queue, "t", {5}, values<float>(k, 5)), 0, "p", {2, k});
        }
        for (std::int64_t k = 0; k < received; ++k) {
          if (node.rank == 1) group.receive(node.queue, blank<float>(node, 5), 1, "p", {2, k});
        }
      });
    });
  };
  EXPECT_EQ(run(2, 2), "no error");
  EXPECT_EQ(run(2, 1),
            "rank 0's send 2 f32 (5) for p, stage 2, microbatch 1, axis pp, channel test: rank 1 did not receive it");
  EXPECT_EQ(run(3, 0),
            "rank 0's send 1 f32 (5) for p, stage 2, microbatch 0, axis pp, channel test: rank 1 did not receive it, "
            "nor were 2 other messages of the channel");
  // An error of a rank's own explains it.
  EXPECT_EQ(error_of<BadInput>([] {
              on_ranks(2, {}, [](Node& node) {
                auto group = node.world.all("test");
                if (node.rank == 1) throw BadInput("no");
                group.send(node.queue, put(node.queue, "t", {5}, values<float>(0, 5)), 1, "p");
              });
            }),
            "rank 1: no");
}

TEST(Messages, OfAnEarlierOpeningAreNotReceived) {
  // Both ends count from 1 again after they opened the channel anew.
  const auto message = [](Node& node) { return put(node.queue, "t", {5}, values<float>(0, 5)); };
  const auto refused = error_of<CommError>([&] {
    on_ranks(2, {}, [&](Node& node) {
      auto other = node.world.all("other");
      std::optional first(node.world.all("test"));
      if (node.rank == 0) first->send(node.queue, message(node), 1, "p");
      first.reset();
      other.barrier(node.queue, "p");
      node.world.all("test");
    });
  });
  EXPECT_EQ(
      refused,
      "rank 1: rank 0's send 1 f32 (5) for p, axis world, channel test: rank 1 did not receive it before it opened the "
      "channel again");
  const auto late = error_of<CommError>([&] {
    on_ranks(2, {}, [&](Node& node) {
      auto other = node.world.all("other");
      if (node.rank == 0) {
        auto only = node.world.all("test");
        other.barrier(node.queue, "opened");
        only.send(node.queue, message(node), 1, "p");
        return;
      }
      node.world.all("test");
      auto second = node.world.all("test");
      other.barrier(node.queue, "opened");
      second.receive(node.queue, blank<float>(node, 5), 0, "p");
    });
  });
  EXPECT_TRUE(late.ends_with("rank 0 sent it from its opening 1 of the channel, rank 1 receives in its opening 2"))
      << late;
  // A sender may be one opening ahead, and its last message on its way while it opens the next.
  on_ranks(2, {.delays = 9, .send_depth = 2}, [&](Node& node) {
    for (int k = 0; k < 20; ++k) {
      auto group = node.world.all("test");
      if (node.rank == 0) group.send(node.queue, message(node), 1, "p");
      if (node.rank == 1) group.receive(node.queue, blank<float>(node, 5), 0, "p");
    }
  });
}

TEST(Messages, AReceiverThatStopsHalfwayFreesTheSender) {
  ThreadState state(2, {});
  ThreadBoard board(state, {"pp", {Rank{0}, Rank{1}}, "test"});
  Device device({.rank = Rank{0}});
  ImmediateQueue queue(device);
  const auto t = put(queue, "t", {3}, values<double>(0, 3));
  const Call send{.kind = Kind::send, .input = t, .peer = 1, .purpose = "p", .number = 1};
  const Call receive{.kind = Kind::receive, .output = t, .peer = 0, .purpose = "p", .number = 1};
  board.mailbox.send(0, send, {Signature(send), t}, 1);
  const auto halfway =
      error_of<BadInput>([&] { board.mailbox.receive(1, receive, [](const Message&) { throw BadInput("halfway"); }); });
  EXPECT_EQ(halfway, "halfway");
  EXPECT_EQ(error_of<Abandoned>([&] {
              board.mailbox.send(0, send, {Signature(send), t}, 1);
            }),
            "rank 0: send 1 of axis pp, channel test (purpose p): rank 1 stopped in the middle of the call");
  board.mailbox.detach(0);  // does not wait for it
  EXPECT_EQ(board.mailbox.undelivered(), "");
}

TEST(Messages, ASenderLeavesWhileTheyAreReceived) {
  for (std::uint64_t round = 1; round <= 20; ++round) {
    on_ranks(3, {.delays = round, .send_depth = 4}, [](Node& node) {
      {
        auto group = node.world.all("test");
        for (std::int64_t k = 0; node.rank != 1 && k < 4; ++k) {
          group.send(node.queue, put(node.queue, "t", {999}, values<float>(k, 999)), 1, "p");
        }
        for (std::int64_t k = 0; node.rank == 1 && k < 8; ++k) {
          const auto t = blank<float>(node, 999);
          group.receive(node.queue, t, k % 2 * 2, "p");
          EXPECT_TRUE(same(fetch<float>(node.queue, t), values<float>(k / 2, 999)));
        }
      }
      if (node.rank != 1) {
        EXPECT_EQ(node.device.memory().current_total(), 0);
      }
    });
  }
}

TEST(Messages, BothWaysOnTwoQueues) {
  // Rendezvous both ways at once works where each direction has its own queue.
  on_ranks(2, {.delays = 7, .send_depth = 0}, [](Node& node) {
    auto group = node.world.all("test");
    WorkerQueue out(node.device), in(node.device);
    std::vector<Tensor> received;
    for (std::int64_t k = 0; k < 20; ++k) {
      group.send(out, put(node.queue, "t", {3}, values<std::int32_t>(node.rank, 3, std::to_string(k))), 1 - node.rank,
                 "p");
      received.push_back(blank<std::int32_t>(node, 3));
      group.receive(in, received.back(), 1 - node.rank, "p");
    }
    in.synchronize();
    out.synchronize();
    for (std::int64_t k = 0; k < 20; ++k) {
      EXPECT_EQ(fetch<std::int32_t>(node.queue, received[static_cast<std::size_t>(k)]),
                values<std::int32_t>(1 - node.rank, 3, std::to_string(k)));
    }
  });
}

TEST(Messages, BesideCollectivesOfTheSameChannel) {
  on_ranks(3, {.delays = 8}, [](Node& node) {
    auto group = node.world.all("test");
    WorkerQueue worker(node.device);
    const auto ring = (node.rank + 1) % 3, back = (node.rank + 2) % 3;
    std::vector<Tensor> received;
    for (std::int64_t k = 0; k < 10; ++k) {
      const auto t = put(node.queue, "t", {3}, values<double>(node.rank, 3));
      group.send(worker, t, ring, "p");
      received.push_back(blank<double>(node, 3));
      group.receive(worker, received.back(), back, "p");
      group.barrier(node.queue, "p");
    }
    worker.synchronize();
    for (const auto& t : received) EXPECT_EQ(fetch<double>(node.queue, t), values<double>(back, 3));
  });
}

TEST(Messages, EndsThatDoNotMatch) {
  struct Case {
    std::int64_t elements;
    Dtype dtype;
    std::string_view purpose, differs;
  };
  for (const auto& c :
       {Case{3, Dtype::f64, "p", "they differ in elements"}, Case{2, Dtype::f32, "p", "they differ in dtype"},
        Case{2, Dtype::f64, "q", "they differ in purpose"}}) {
    const auto text = error_of<CommError>([&] {
      on_ranks(2, {.send_depth = 0}, [&](Node& node) {
        auto group = node.world.communicator("pp", {Rank{1}, Rank{0}}, "test");
        if (node.rank == 0) group.send(node.queue, put(node.queue, "t", {2}, values<double>(0, 2)), 0, "p");
        if (node.rank == 1)
          group.receive(node.queue, Tensor(node.queue, {"t", c.dtype, {c.elements}, Category::workspace}), 1,
                        c.purpose);
      });
    });
    EXPECT_TRUE(
        text.starts_with("rank 0: send 1 of axis pp, channel test (purpose p): calls do not match: rank 0 calls send 1 "
                         "f64 (2) for p, rank 1 calls receive 1 "))
        << text;
    EXPECT_TRUE(text.ends_with(c.differs)) << text;
  }
}

TEST(Messages, SwappedOnesAreNoPair) {
  // Alike in number, dtype, size and purpose: only the tag tells them apart.
  const auto run = [](std::vector<Tag> sent, std::vector<Tag> expected) {
    return error_of<CommError>([&] {
      on_ranks(2, {}, [&](Node& node) {
        auto group = node.world.all("test");
        for (std::size_t k = 0; k < sent.size(); ++k) {
          if (node.rank == 0) group.send(node.queue, put(node.queue, "t", {2}, values<double>(0, 2)), 1, "p", sent[k]);
          if (node.rank == 1) group.receive(node.queue, blank<double>(node, 2), 0, "p", expected[k]);
        }
      });
    });
  };
  EXPECT_EQ(run({{1, 0}, {1, 1}, {}}, {{1, 0}, {1, 1}, {}}), "no error");
  const auto swapped = run({{1, 0}, {1, 1}}, {{1, 1}, {1, 0}});
  EXPECT_NE(swapped.find("calls do not match: rank 0 calls send 1 f64 (2) for p, stage 1, microbatch 0, rank 1 calls "
                         "receive 1 f64 (2) for p, stage 1, microbatch 1: they differ in microbatch"),
            std::string::npos)
      << swapped;
  EXPECT_TRUE(run({{1, 0}}, {{2, 0}}).ends_with("stage 2, microbatch 0: they differ in stage"));
  EXPECT_TRUE(run({{1, 0}}, {Tag{}}).ends_with(": they differ in stage, microbatch"));
}

}  // namespace
}  // namespace shardproof::comm
