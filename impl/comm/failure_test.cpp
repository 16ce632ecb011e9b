// SPDX-License-Identifier: Apache-2.0
// Calls that do not match, ranks that are lost, waits that are too long: nothing hangs, and the sentence says what,
// who, where and why.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "impl/comm/thread_channel.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::Node, testing::on_ranks, testing::put;

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
}

Tensor numbers(Node& node, std::int64_t n, Dtype dtype = Dtype::f64) {
  Tensor t(node.queue, {"t", dtype, {n}, Category::workspace});
  zero(node.queue, t);
  return t;
}

/// Rank 2 of three makes another second call than the rest. Returns what each rank's error says.
template <class F, class G>
void expect_mismatch(F usual, G odd, const std::vector<std::string>& words) {
  on_ranks(3, {}, [&](Node& node) {
    auto group = node.world.communicator("tp", {Rank{1}, Rank{2}, Rank{0}}, "test");
    group.barrier(node.queue, "before");
    const auto text = error_of<CommError>([&] { node.rank == 2 ? odd(node, group) : usual(node, group); });
    expect_words(text, words);
    expect_words(text, {"rank " + std::to_string(node.rank) + ": ", "2 of axis tp, channel test (purpose ",
                        "rank 1 calls", "rank 2 calls", "differ"});
    // The channel is of no use any more; others are.
    EXPECT_NE(error_of<CommError>([&] { group.barrier(node.queue, "after"); }), "no error");
    node.world.all("other").barrier(node.queue, "p");
  });
}

TEST(CommMismatch, EveryMemberSaysWhatDiffers) {
  const auto reduce = [](std::int64_t n, Operator op, Dtype dtype, std::string_view purpose) {
    return [=](Node& node, Communicator& group) { group.all_reduce(node.queue, numbers(node, n, dtype), op, purpose); };
  };
  const auto usual = reduce(8, Operator::sum, Dtype::f64, "p");
  expect_mismatch(usual, reduce(9, Operator::sum, Dtype::f64, "p"),
                  {"all_reduce 2 sum f64 (8) for p", "(9)", ": they differ in elements"});
  expect_mismatch(usual, reduce(8, Operator::max, Dtype::f64, "p"), {"max", ": they differ in operator"});
  expect_mismatch(usual, reduce(8, Operator::sum, Dtype::f32, "p"), {"f32", ": they differ in dtype"});
  expect_mismatch(usual, reduce(8, Operator::sum, Dtype::f64, "q"), {"for q", ": they differ in purpose"});
  expect_mismatch(usual, [](Node& node, Communicator& group) { group.barrier(node.queue, "p"); },
                  {"barrier 2 for p", "kind"});
  const auto broadcast = [](std::int64_t root) {
    return [=](Node& node, Communicator& group) { group.broadcast(node.queue, numbers(node, 2), root, "p"); };
  };
  expect_mismatch(broadcast(0), broadcast(1), {"from place 1", ": they differ in root"});
  const auto scatter = [](const std::vector<std::int64_t>& counts) {
    return [=](Node& node, Communicator& group) {
      const auto own = counts[static_cast<std::size_t>(group.place())];
      group.reduce_scatter(node.queue, numbers(node, 6), numbers(node, own), counts, Operator::sum, "p");
    };
  };
  expect_mismatch(scatter({1, 2, 3}), scatter({2, 1, 3}), {"[1 2 3]", "[2 1 3]", ": they differ in counts"});
  // What one sends is not what the other expects.
  const auto exchange = [](bool odd) {
    return [=](Node& node, Communicator& group) {
      const std::vector<std::int64_t> ones(3, 1), other = {0, 2, 1};
      group.all_to_all(node.queue, numbers(node, 3), numbers(node, 3), odd ? other : ones, ones, "p");
    };
  };
  expect_mismatch(exchange(false), exchange(true), {"[0 2 1]", ": they differ in counts"});
}

TEST(CommMismatch, RunThreadsNamesTheLowestRank) {
  for (int round = 0; round < 5; ++round) {
    const auto text = error_of<CommError>([] {
      on_ranks(4, {.delays = 3}, [](Node& node) {
        auto group = node.world.all("test");
        group.all_reduce(node.queue, numbers(node, node.rank == 3 ? 4 : 5), Operator::sum, "p");
      });
    });
    EXPECT_TRUE(text.starts_with("rank 0: all_reduce 1 of axis world, channel test (purpose p): ")) << text;
  }
}

TEST(CommTimeout, SaysWhoIsMissingAndWhere) {
  std::atomic<int> ended = 0;
  on_ranks(3, {.timeout_seconds = 0.05}, [&](Node& node) {
    auto group = node.world.communicator("dp", {Rank{0}, Rank{1}, Rank{2}}, "gradients");
    if (node.rank == 2) {  // lives, but never calls
      while (ended < 2) std::this_thread::yield();
      return;
    }
    const auto text =
        error_of<HangError>([&] { group.all_reduce(node.queue, numbers(node, 3), Operator::sum, "gradient"); });
    ++ended;
    expect_words(
        text,
        {"rank " + std::to_string(node.rank) + ": all_reduce 1 of axis dp, channel gradients (purpose gradient): ",
         "no rank began or ended a call for 0.05 s while rank ", " waited for rank 2, which waits in no call"});
  });
}

TEST(CommTimeout, ADeadlockIsNamedFromBothEnds) {
  const auto text = error_of<HangError>([] {
    on_ranks(2, {.timeout_seconds = 0.05}, [](Node& node) {
      auto group = node.world.communicator("pp", {Rank{0}, Rank{1}}, "test");
      group.receive(node.queue, numbers(node, 3), 1 - node.rank, node.rank == 0 ? "activation" : "gradient");
    });
  });
  expect_words(text, {"rank 0: receive 1 of axis pp, channel test (purpose activation): ",
                      "no rank began or ended a call for 0.05 s while rank ", " waited for rank ",
                      ", which waits in receive 1 of axis pp, channel test (purpose "});
}

TEST(CommTimeout, AWaitIsNoHangWhileOthersGoOn) {
  on_ranks(3, {.timeout_seconds = 1}, [](Node& node) {
    auto all = node.world.all("all");
    if (node.rank < 2) {
      auto group = node.world.communicator("pp", {Rank{0}, Rank{1}}, "test");
      for (int k = 0; k < 14; ++k) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        group.barrier(node.queue, "p");
      }
    }
    all.barrier(node.queue, "end");
  });
}

TEST(CommTimeout, AnInjectedDelayEndsWithIt) {
  const auto text = error_of<HangError>([] {
    on_ranks(2, {.timeout_seconds = 0.05, .injections = {"delay:rank=1,ms=1e6"}},
             [](Node& node) { node.world.all("test").barrier(node.queue, "p"); });
  });
  expect_words(text, {"rank 0: barrier 1", "rank 0 waited for rank 1, which waits in no call"});
}

TEST(CommTimeout, APollEndsWaitsAndDelays) {
  for (const auto& injections : {std::vector<std::string>{}, {"delay:ms=1e6"}}) {
    std::atomic<int> polls = 0;
    const auto poll = [&] {
      if (++polls > 3) throw BadInput("stop");
    };
    const auto text = error_of<BadInput>([&] {
      on_ranks(2, {.timeout_seconds = 1000, .poll = poll, .injections = injections}, [](Node& node) {
        auto group = node.world.all("test");
        if (node.rank == 0) group.barrier(node.queue, "p");
        if (node.rank == 1) group.receive(node.queue, numbers(node, 1), 0, "p");
      });
    });
    EXPECT_EQ(text.substr(6), ": stop");
  }
}

TEST(CommTimeout, AWaitBelowItIsNone) {
  on_ranks(2, {.timeout_seconds = 5}, [](Node& node) {
    auto group = node.world.all("test");
    if (node.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    group.barrier(node.queue, "p");
  });
}

TEST(CommLost, ARankThatEnds) {
  const auto text = error_of<RankLost>([] {
    on_ranks(3, {}, [](Node& node) {
      auto group = node.world.all("test");
      group.barrier(node.queue, "p");
      if (node.rank != 1) group.all_reduce(node.queue, numbers(node, 3), Operator::sum, "late");
    });
  });
  EXPECT_EQ(text, "rank 0: all_reduce 2 of axis world, channel test (purpose late): rank 1 has ended");
  const auto message = error_of<RankLost>([] {
    on_ranks(2, {.send_depth = 0}, [](Node& node) {
      auto group = node.world.all("test");
      if (node.rank == 0) group.send(node.queue, numbers(node, 3), 1, "p");
    });
  });
  EXPECT_EQ(message, "rank 0: send 1 of axis world, channel test (purpose p): rank 1 has ended");
}

template <class E>
void expect_cause(const std::string& cause) {
  // Rank 2 fails; 0 and 1 wait for each other's third on another channel, 3 for a message, 4 on a worker's event.
  const auto text = error_of<E>([&] {
    on_ranks(5, {.delays = 1}, [&](Node& node) {
      auto all = node.world.all("all");
      all.barrier(node.queue, "start");
      auto messages = node.world.all("messages"), more = node.world.all("more");
      WorkerQueue worker(node.device);
      if (node.rank == 2) throw E(cause);
      if (node.rank < 2) all.barrier(node.queue, "end");
      if (node.rank == 3) messages.receive(node.queue, numbers(node, 1), 4, "p");
      if (node.rank == 4) more.all_reduce(worker, numbers(node, 1), Operator::sum, "p").wait();
    });
  });
  EXPECT_EQ(text, "rank 2: " + cause);
}

TEST(CommLost, TheFirstErrorIsTheOneThatIsThrown) {
  expect_cause<BadInput>("strategy: no");
  expect_cause<NotSupported>("no");
  expect_cause<NotBuilt>("no");
  expect_cause<DeviceError>("no");
  expect_cause<OutOfMemory>("no");
  expect_cause<CommError>("no");
  expect_cause<HangError>("no");
  expect_cause<RankLost>("no");
  expect_cause<WriteError>("no");
  expect_cause<InternalError>("no");
  expect_cause<Error>("no");
  EXPECT_EQ(error_of<Error>([] { on_ranks(2, {}, [](Node&) { throw std::runtime_error("odd"); }); }).substr(6),
            ": odd");
  // A name that is there already is not written twice.
  EXPECT_EQ(error_of<DeviceError>([] { on_ranks(1, {}, [](Node&) { throw DeviceError("rank 0: kernel"); }); }),
            "rank 0: kernel");
}

TEST(CommLost, TheFirstFailureInTimeIsTheOneThatIsThrown) {
  // Ranks 2 and 3 disagree first, but are slow to say so.
  std::atomic<int> first = 0, second = 0;
  const auto text = error_of<CommError>([&] {
    on_ranks(4, {}, [&](Node& node) {
      const bool high = node.rank >= 2;
      const std::vector<Rank> pair = high ? std::vector{Rank{2}, Rank{3}} : std::vector{Rank{0}, Rank{1}};
      auto group = node.world.communicator("tp", pair, "test");
      while (!high && first < 2) std::this_thread::yield();
      try {
        group.all_reduce(node.queue, numbers(node, node.rank), Operator::sum, "p");
      } catch (const CommError&) {
        ++(high ? first : second);
        while (second < 2) std::this_thread::yield();
        if (high) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        throw;
      }
    });
  });
  EXPECT_TRUE(text.starts_with("rank 2: all_reduce 1 of axis tp")) << text;
}

TEST(CommLost, AMemberThatStopsHalfwayIsTheCause) {
  const auto run = [](bool swallow) {
    ThreadState state(2, {});
    ThreadBoard board(state, {"tp", {Rank{0}, Rank{1}}, "test"});
    run_threads(2, {}, [&](World& world) {
      const auto place = static_cast<std::int64_t>(world.rank());
      const Call call{.kind = Kind::all_reduce, .purpose = "p", .number = 1};
      try {
        Meeting meeting(board.rendezvous, place, {&call}, true);
        if (place == 1) throw BadInput("halfway");
        meeting.leave();
      } catch (const BadInput&) {
        if (!swallow) throw;
      }
    });
  };
  EXPECT_EQ(error_of<BadInput>([&] { run(false); }), "rank 1: halfway");
  EXPECT_EQ(error_of<CommError>([&] { run(true); }),
            "rank 0: all_reduce 1 of axis tp, channel test (purpose p): rank 1 stopped in the middle of the call");
}

TEST(CommLost, AnErrorOfARanksOwnExplainsTheHangBeforeIt) {
  // As where a worker stops and its host finds out late.
  std::atomic<bool> over = false;
  const auto text = error_of<BadInput>([&] {
    on_ranks(2, {.timeout_seconds = 0.05}, [&](Node& node) {
      auto group = node.world.all("test");
      if (node.rank == 0) {
        try {
          group.barrier(node.queue, "p");
        } catch (const HangError&) {
          over = true;
          throw;
        }
      }
      while (!over) std::this_thread::yield();
      throw BadInput("no");
    });
  });
  EXPECT_EQ(text, "rank 1: no");
}

TEST(CommLost, NobodysMemoryIsReadAfterItLeft) {
  // Members of "left" keep reducing large tensors while rank 0, a member too, is stopped by an error of its other
  // queue.
  for (std::int64_t round = 0; round < 10; ++round) {
    const auto text = error_of<BadInput>([&] {
      on_ranks(4, {.delays = static_cast<std::uint64_t>(round)}, [&](Node& node) {
        auto group = node.world.all("left");
        for (std::int64_t call = 0;; ++call) {
          if (node.rank == round % 4 && call == round) throw BadInput("stop");
          const auto t = numbers(node, 20000);
          group.all_reduce(node.queue, t, Operator::sum, "p");
        }
      });
    });
    EXPECT_EQ(text, "rank " + std::to_string(round % 4) + ": stop");
  }
}

TEST(RunThreads, RefusesWhatIsNotLegal) {
  const auto run = [](std::int64_t ranks, const ThreadsOptions& options) {
    return error_of<BadInput>([&] { run_threads(ranks, options, [](World&) { FAIL(); }); });
  };
  expect_words(run(65, {}), {"65", "at most 64", "mpirun"});
  expect_words(run(0, {}), {"ranks 0: at least 1"});
  expect_words(run(-3, {.timeout_seconds = 0, .chunk_elements = 0, .send_depth = -1}),
               {"ranks -3", "timeout", "chunk_elements 0", "send_depth -1"});
}

TEST(RunThreads, RefusesGroupsThatAreNone) {
  on_ranks(3, {}, [](Node& node) {
    const auto group = [&](std::vector<Rank> members) {
      return error_of<InternalError>([&] { node.world.communicator("tp", std::move(members), "test"); });
    };
    const auto self = node.world.rank();
    expect_words(group({self, Rank{3}}), {"axis tp: no rank 3"});
    expect_words(group({self, Rank{-1}}), {"axis tp: no rank -1"});
    expect_words(group({self, self}), {"a rank twice"});
    expect_words(group({Rank{static_cast<std::int32_t>((node.rank + 1) % 3)}}), {"is not in its own group"});
    expect_words(group({}), {"is not in its own group"});
    // One end per rank and channel, at a time.
    {
      const auto first = node.world.all("mine");
      expect_words(error_of<InternalError>([&] { node.world.all("mine"); }), {"channel mine of axis world is in use"});
      node.world.all("another").barrier(node.queue, "p");
    }
    node.world.all("mine").barrier(node.queue, "p");
  });
}

TEST(Communicator, RefusesSizesThatAreNotItsTensors) {
  on_ranks(2, {}, [](Node& node) {
    auto group = node.world.all("test");
    const auto two = numbers(node, 2), three = numbers(node, 3), narrow = numbers(node, 2, Dtype::f32);
    auto& queue = node.queue;
    const auto text = [](auto f) { return error_of<InternalError>(f); };
    expect_words(text([&] { group.all_reduce(queue, two, Operator::bit_or, "p"); }),
                 {"all_reduce on axis world (purpose p)", "integers"});
    expect_words(text([&] { group.reduce_scatter(queue, two, two, {1, 1}, Operator::sum, "p"); }), {"output"});
    expect_words(text([&] {
                   group.reduce_scatter(queue, three, two, {1, 1}, Operator::sum, "p");
                 }),
                 {"'t' has 3 elements, the counts 2"});
    expect_words(text([&] { group.all_gather(queue, two, three, {3}, "p"); }), {"one count per member"});
    expect_words(text([&] { group.all_gather(queue, two, two, {3, -1}, "p"); }), {"negative"});
    expect_words(text([&] { group.all_gather(queue, two, two, {1, 1}, "p"); }), {"input"});
    expect_words(text([&] { group.all_gather(queue, narrow, numbers(node, 4), {2, 2}, "p"); }), {"two dtypes"});
    expect_words(text([&] { group.broadcast(queue, two, 2, "p"); }), {"root"});
    expect_words(text([&] { group.all_to_all(queue, two, three, {1, 1}, {1, 1}, "p"); }), {"the counts 2"});
    expect_words(text([&] { group.send(queue, two, node.rank, "p"); }), {"destination"});
    expect_words(text([&] { group.receive(queue, two, -1, "p"); }), {"source"});
    // None of them counts as a call.
    group.barrier(queue, "p");
    const auto overlapping = text([&] {
      group.all_gather(queue, numbers(node, 4).rows(0, 2), numbers(node, 4), {2, 2}, "p");
    });
    EXPECT_EQ(overlapping, "no error");
    const auto whole = numbers(node, 4);
    expect_words(text([&] { group.all_gather(queue, whole.rows(1, 2), whole, {2, 2}, "p"); }), {"'t' and 't' overlap"});
  });
}

TEST(Work, OfBothQueues) {
  on_ranks(2, {}, [](Node& node) {
    auto group = node.world.all("test");
    WorkerQueue worker(node.device);
    // On a worker the error is in the Work and stops the queue; on an immediate queue it leaves the call.
    const auto t = numbers(node, node.rank == 0 ? 2 : 3);
    const auto work = group.all_reduce(worker, t, Operator::sum, "p");
    EXPECT_NE(error_of<CommError>([&] { work.wait(); }), "no error");
    EXPECT_NE(error_of<CommError>([&] { work.before(node.queue); }), "no error");
    EXPECT_NE(error_of<CommError>([&] { worker.synchronize(); }), "no error");
    EXPECT_NE(error_of<CommError>([&] { group.barrier(node.queue, "p"); }), "no error");
    // Work that is not waited for is done in order.
    auto other = node.world.all("other");
    const auto ones = put(node.queue, "ones", {5}, std::vector<double>(5, 1));
    for (int k = 0; k < 10; ++k) other.all_reduce(worker, ones, Operator::sum, "p");
    other.barrier(worker, "p").wait();
    EXPECT_EQ(fetch<double>(node.queue, ones), std::vector<double>(5, 1024));
  });
}

TEST(Channel, CollectivesOnTwoQueuesAreRefused) {
  // Rank 1 never comes, so one of rank 0's calls finds the other waiting.
  std::atomic<bool> over = false;
  on_ranks(2, {.timeout_seconds = 0.1}, [&](Node& node) {
    auto group = node.world.all("test");
    while (node.rank == 1 && !over) std::this_thread::yield();
    if (node.rank == 1) return;
    WorkerQueue worker(node.device);
    const auto work = group.all_reduce(worker, numbers(node, 3), Operator::sum, "p");
    const auto first = error_of<Error>([&] { group.all_reduce(node.queue, numbers(node, 3), Operator::sum, "p"); });
    const auto second = error_of<Error>([&] { work.wait(); });
    expect_words(first + second, {"channel test of axis world: collectives on two queues at once",
                                  "0.1 s while rank 0 waited for rank 1"});
    over = true;
  });
}

// Who leaves a wait by an error is gone for the others too, though its thread still lives.
TEST(Failure, NobodyMeetsAMemberThatHasGone) {
  std::atomic<bool> entered = false, gone = false;
  const auto poll = [&] {
    if (entered && !gone.exchange(true)) throw BadInput("stop");
  };
  const auto text = error_of<BadInput>([&] {
    on_ranks(2, {.timeout_seconds = 1000, .poll = poll}, [&](Node& node) {
      auto group = node.world.communicator("dp", {Rank{0}, Rank{1}}, "test");
      const Tensor tensor = numbers(node, 3);
      if (node.rank == 1) {
        while (!gone) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 0 is out of its wait
        group.all_reduce(node.queue, tensor, Operator::sum, "x");
        ADD_FAILURE() << "rank 1 met a member that has gone";
        return;
      }
      entered = true;
      try {
        group.all_reduce(node.queue, tensor, Operator::sum, "x");
      } catch (const BadInput&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));  // rank 1 arrives
        throw;
      }
    });
  });
  EXPECT_NE(text.find("rank 0: stop"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardproof::comm
