// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/inject.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {
namespace {

using testing::error_of, testing::Node, testing::on_ranks, testing::put;
using Numbers = std::vector<double>;

TEST(Injection, TextGoesBothWays) {
  for (const std::string text :
       {"skip", "skip:at=input", "repeat:kind=reduce_scatter", "scale:axis=tp,factor=0.5", "delay:rank=2,ms=12.5",
        "corrupt:axis=tp,kind=all_reduce,purpose=mlp_row_output,rank=1,call=3,at=output,element=5",
        "wrong_group:call=1", "slow:rank=1,factor=3", "slow:factor=1.5"}) {
    const auto once = to_text(parse_injections({text}, 3)[0]);
    EXPECT_EQ(to_text(parse_injections({once}, 3)[0]), once);
    EXPECT_TRUE(once.starts_with(text)) << once;
  }
  EXPECT_EQ(to_text(parse_injections({"scale"}, 1)[0]), "scale:factor=2");
  const auto i = parse_injections({"delay:ms=3,call=2,rank=0,kind=send,purpose=q"}, 1)[0];
  EXPECT_EQ(to_text(i), "delay:kind=send,purpose=q,rank=0,call=2,ms=3");
}

TEST(Injection, EveryFindingAtOnce) {
  const auto text = error_of<BadInput>([] {
    parse_injections({"slow:factor=0.5", "slow:axis=tp,factor=1001", "slow:call=1", "corupt",
                      "skip:kind=reduce,rank=4,call=0", "corrupt:elment=1,element=x,element=2,at=", "scale:ms=3",
                      "repeat:kind=send", "delay:", "delay:ms=1,", "scale:factor=1e9", "delay:ms=nan", "skip:at=both"},
                     4);
  });
  for (const std::string line :
       {"--inject corupt: fault \"corupt\": one of skip repeat scale corrupt delay wrong_group slow mismatch fail",
        "--inject slow:factor=0.5: factor \"0.5\": 1 to 1000", "factor \"1001\": 1 to 1000",
        "axis \"tp\": no parameter of slow", "call \"1\": no parameter of slow",
        "kind \"reduce\": one of all_reduce reduce_scatter", "rank \"4\": 0 to 3", "call \"0\": a whole number from 1",
        "unknown field \"elment\": did you mean \"element\"?", "element \"x\": a whole number from 0",
        "element \"2\": given twice", "at \"\": a value is missing", "ms \"3\": no parameter of scale",
        "repeat has no effect on send", "a field is missing after ':'", "a field is missing after ','",
        "factor \"1e9\": a number of at most 2^21", "ms \"nan\"", "at \"both\": one of input output"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nin\n" << text;
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 18);
}

/// Each rank's tensor of (rank + 1) * {1, 10, 100, 1000}, all-reduced over three ranks. Results by rank.
template <class T = double>
std::vector<std::vector<T>> all_reduced(const std::vector<std::string>& specs, Operator op = Operator::sum,
                                        int calls = 1) {
  std::vector<std::vector<T>> results(3);
  on_ranks(3, {.injections = specs}, [&](Node& node) {
    auto group = node.world.communicator("tp", {Rank{0}, Rank{1}, Rank{2}}, "test");
    for (int k = 0; k < calls; ++k) {
      std::vector<T> own;
      for (const std::int64_t v : {1, 10, 100, 1000}) {
        if constexpr (std::is_same_v<T, Fixed>) {
          own.push_back({(node.rank + 1) * v});
        } else {
          own.push_back(static_cast<T>((node.rank + 1) * v));
        }
      }
      const auto t = put(node.queue, "t", {4}, own);
      group.all_reduce(node.queue, t, op, "p");
      results[static_cast<std::size_t>(node.rank)] = fetch<T>(node.queue, t);
    }
  });
  return results;
}

Numbers times(double c) { return {c, 10 * c, 100 * c, 1000 * c}; }

TEST(Inject, AllReduce) {
  using Results = std::vector<Numbers>;
  EXPECT_EQ(all_reduced({}), (Results{times(6), times(6), times(6)}));
  EXPECT_EQ(all_reduced({"skip"}), (Results{times(1), times(2), times(3)}));
  EXPECT_EQ(all_reduced({"skip:rank=1"}), (Results{times(6), times(2), times(6)}));
  EXPECT_EQ(all_reduced({"skip:rank=1,at=input"}), (Results{times(4), times(4), times(4)}));
  EXPECT_EQ(all_reduced({"skip:rank=2,at=input"}, Operator::max), (Results{times(2), times(2), times(2)}));
  EXPECT_EQ(all_reduced({"skip:rank=0,at=input"}, Operator::min), (Results{times(2), times(2), times(2)}));
  EXPECT_EQ(all_reduced({"repeat"}), (Results{times(18), times(18), times(18)}));
  EXPECT_EQ(all_reduced({"repeat:rank=0"}), (Results{times(18), times(6), times(6)}));
  EXPECT_EQ(all_reduced({"scale:rank=1,factor=10"}), (Results{times(24), times(24), times(24)}));
  EXPECT_EQ(all_reduced({"scale:rank=1,factor=0.5,at=output"}), (Results{times(6), times(3), times(6)}));
  EXPECT_EQ(all_reduced({"wrong_group"}), (Results{times(5), times(4), times(3)}));
  EXPECT_EQ(all_reduced({"wrong_group:rank=1"}, Operator::max), (Results{times(3), times(2), times(3)}));
  // Several at once.
  EXPECT_EQ(all_reduced({"scale:rank=0,factor=3", "skip:rank=2"}), (Results{times(8), times(8), times(3)}));
}

TEST(Inject, CorruptFlipsTheLowestBit) {
  for (const std::int64_t element : {0, 2, 7}) {  // modulo the four elements
    const auto spec = "corrupt:rank=1,element=" + std::to_string(element);
    const auto at = static_cast<std::size_t>(element % 4);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      Numbers right = times(6), odd = times(6);
      const double own = times(2)[at];
      right[at] += std::nextafter(own, 1e9) - own;
      EXPECT_EQ(all_reduced({spec})[rank], right) << "the contribution";
      odd[at] = std::nextafter(odd[at], 1e9);
      EXPECT_EQ(all_reduced({spec + ",at=output"})[rank], rank == 1 ? odd : times(6)) << "the result";
      const auto fixed = all_reduced<Fixed>({spec})[rank];
      for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(fixed[i].raw, static_cast<std::int64_t>(times(6)[i]) + (i == at ? 1 : 0));
    }
  }
}

TEST(Inject, FiltersChooseTheCall) {
  using Results = std::vector<Numbers>;
  const Results right{times(6), times(6), times(6)}, skipped{times(1), times(2), times(3)};
  EXPECT_EQ(all_reduced({"skip:call=3"}, Operator::sum, 3), skipped);
  EXPECT_EQ(all_reduced({"skip:call=2"}, Operator::sum, 3), right);
  EXPECT_EQ(all_reduced({"skip:axis=tp,kind=all_reduce,purpose=p"}), skipped);
  // A filter that lets nothing through is an error: the run would pass by doing nothing.
  for (const std::string spec : {"skip:axis=dp", "skip:kind=all_gather", "skip:purpose=q", "skip:call=4"}) {
    EXPECT_EQ(error_of<BadInput>([&] { all_reduced({spec}, Operator::sum, 3); }),
              "--inject " + spec + ": no call matched");
  }
}

TEST(Inject, OtherCollectives) {
  const auto run = [](const std::vector<std::string>& specs, auto f) {
    std::vector<Numbers> results(3);
    on_ranks(3, {.injections = specs}, [&](Node& node) {
      auto group = node.world.all("test");
      const double r = static_cast<double>(node.rank);
      const auto in = put(node.queue, "in", {3}, Numbers{r, 10 + r, 20 + r});
      const auto out = put(node.queue, "out", {3}, Numbers{-1, -1, -1});
      results[static_cast<std::size_t>(node.rank)] = f(node, group, in, out);
      EXPECT_EQ(fetch<double>(node.queue, in), (Numbers{r, 10 + r, 20 + r})) << "a contribution is changed in a copy";
    });
    return results;
  };
  using Results = std::vector<Numbers>;
  const auto gather = [](Node& node, Communicator& group, const Tensor& in, const Tensor& out) {
    group.all_gather(node.queue, in.rows(0, 1), out, {1, 1, 1}, "p");
    return fetch<double>(node.queue, out);
  };
  EXPECT_EQ(run({"skip:rank=1"}, gather), (Results{{0, 1, 2}, {-1, -1, -1}, {0, 1, 2}}));
  EXPECT_EQ(run({"scale:rank=1,factor=7"}, gather), (Results{{0, 7, 2}, {0, 7, 2}, {0, 7, 2}}));
  EXPECT_EQ(run({"wrong_group:rank=1"}, gather), (Results{{0, 1, 2}, {2, 0, 1}, {0, 1, 2}}));
  const auto scatter = [](Node& node, Communicator& group, const Tensor& in, const Tensor& out) {
    group.reduce_scatter(node.queue, in, out.rows(0, 1), {1, 1, 1}, Operator::sum, "p");
    return fetch<double>(node.queue, out.rows(0, 1));
  };
  EXPECT_EQ(run({"delay"}, scatter), (Results{{3}, {33}, {63}}));
  EXPECT_EQ(run({"repeat:rank=2"}, scatter), (Results{{3}, {33}, {126}}));
  EXPECT_EQ(run({"wrong_group:rank=1"}, scatter), (Results{{3}, {33 - 11}, {63}}));
  EXPECT_EQ(run({"skip:rank=0,at=input"}, scatter), (Results{{3}, {23}, {43}}));
  const auto exchange = [](Node& node, Communicator& group, const Tensor& in, const Tensor& out) {
    group.all_to_all(node.queue, in, out, {1, 1, 1}, {1, 1, 1}, "p");
    return fetch<double>(node.queue, out);
  };
  EXPECT_EQ(run({"wrong_group:rank=0"}, exchange), (Results{{2, 0, 1}, {10, 11, 12}, {20, 21, 22}}));
  EXPECT_EQ(run({"skip:rank=0,at=input"}, exchange), (Results{{0, 1, 2}, {0, 11, 12}, {0, 21, 22}}));
  const auto broadcast = [](Node& node, Communicator& group, const Tensor& in, const Tensor& out) {
    const auto t = node.rank == 0 ? in : out;
    group.broadcast(node.queue, t, 0, "p");
    return fetch<double>(node.queue, t);
  };
  EXPECT_EQ(run({"skip:rank=1"}, broadcast), (Results{{0, 10, 20}, {-1, -1, -1}, {0, 10, 20}}));
  EXPECT_EQ(run({"skip:rank=0"}, broadcast), (Results{{0, 10, 20}, {0, 0, 0}, {0, 0, 0}}));
  EXPECT_EQ(run({"scale:rank=2"}, broadcast), (Results{{0, 10, 20}, {0, 10, 20}, {0, 20, 40}}));
  const auto message = [](Node& node, Communicator& group, const Tensor& in, const Tensor& out) {
    if (node.rank == 0) group.send(node.queue, in, 2, "p");
    if (node.rank == 2) group.receive(node.queue, out, 0, "p");
    return fetch<double>(node.queue, out);
  };
  EXPECT_EQ(run({"skip:kind=send"}, message)[2], (Numbers{0, 0, 0}));
  EXPECT_EQ(run({"skip:kind=receive"}, message)[2], (Numbers{-1, -1, -1}));
  EXPECT_EQ(run({"scale:kind=send"}, message)[2], (Numbers{0, 20, 40}));
  EXPECT_EQ(run({"scale"}, message)[2], (Numbers{0, 40, 80})) << "at both ends";
}

TEST(Inject, IntegersAreScaledAsIntegers) {
  const auto scaled = []<class T>(const std::string& factor, const std::vector<T>& values) {
    std::vector<T> result;
    on_ranks(2, {.injections = {"scale:kind=broadcast,rank=1,factor=" + factor}}, [&](Node& node) {
      auto group = node.world.all("test");
      const auto t = put(node.queue, "t", {std::ssize(values)}, values);
      group.broadcast(node.queue, t, 0, "p");
      if (node.rank == 1) result = fetch<T>(node.queue, t);
    });
    return result;
  };
  using Wide = std::vector<std::int64_t>;
  constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1, large = (std::int64_t{1} << 62) + 1;  // no doubles
  EXPECT_EQ(scaled("1", Wide{odd, -odd, large, 0}), (Wide{odd, -odd, large, 0}));
  EXPECT_EQ(scaled("-3", Wide{odd, -odd, large, 7}), (Wide{-3 * odd, 3 * odd, large, -21}));
  EXPECT_EQ(scaled("0", Wide{odd, large}), (Wide{0, 0}));
  EXPECT_EQ(scaled("0.5", Wide{5, -5, 1000}), (Wide{2, -2, 500}));
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(scaled("2", Bytes{100, 128, 0}), (Bytes{200, 128, 0}));
  EXPECT_EQ(scaled("-1", Bytes{1, 0}), (Bytes{1, 0}));
}

TEST(Inject, ASkippedResultIsPoisonWhereNothingWasWritten) {
  const auto text = error_of<DeviceError>([] {
    on_ranks(2, {.injections = {"skip:rank=1"}}, [](Node& node) {
      auto group = node.world.all("test");
      const Tensor out(node.queue, {"gathered", Dtype::f32, {2}, Category::workspace});
      group.all_gather(node.queue, put(node.queue, "in", {1}, std::vector<float>{1}), out, {1, 1}, "p");
      fetch<float>(node.queue, out);
    });
  });
  EXPECT_NE(text.find("rank 1: kernel fetch: tensor 'gathered' has poison"), std::string::npos) << text;
}

TEST(Inject, DelayDelays) {
  // Not how long it takes, only that it is not shorter.
  on_ranks(2, {.injections = {"delay:rank=1,ms=20"}}, [](Node& node) {
    auto group = node.world.all("test");
    const auto begin = std::chrono::steady_clock::now();
    group.barrier(node.queue, "p");
    EXPECT_TRUE(node.rank == 0 || std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
  });
}

TEST(Inject, AccumulatorsButNotTheirBounds) {
  on_ranks(2, {.injections = {"corrupt:rank=0,call=1,element=1"}}, [](Node& node) {
    auto group = node.world.all("test");
    for (const double bound : {1.0, 1e9}) {  // one lane, two lanes
      Accumulator sum(node.queue, {"gradient", Dtype::fixed, {3}, Category::gradient});
      node.queue.submit("add", [&](KernelScope& scope) {
        AccumulatorView<Fixed> view(scope, sum, bound);
        for (std::int64_t i = 0; i < 3; ++i) view.add(i, {4});
      });
      group.all_reduce(node.queue, sum, "gradient");
      const auto total = fetch<Fixed>(node.queue, sum.finish(node.queue));
      EXPECT_EQ(total[0].raw, 8);
      EXPECT_EQ(total[1].raw, bound == 1.0 ? 9 : 8);
    }
  });
}

}  // namespace
}  // namespace shardproof::comm
