// SPDX-License-Identifier: Apache-2.0
#include "harness/disturbance.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "harness/check_case.hpp"
#include "harness/command.hpp"
#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

constexpr Command command = {"check", "", "", nullptr};

Disturbance parsed(const std::vector<std::string>& args, std::optional<std::uint64_t> standard = 1) {
  DisturbanceOptions disturbance(standard);
  Options options(command);
  disturbance.declare(options);
  options.parse(args);
  return disturbance.disturbance();
}

TEST(Disturbance, OptionsAndWordsAgree) {
  EXPECT_EQ(parsed({}), (Disturbance{.delays = 1}));
  EXPECT_EQ(parsed({"--timeout", "2m"}).timeout_seconds, 120);
  EXPECT_EQ(parsed({"--timeout", "2m"}).threads().timeout_seconds, 120);
  for (const char* text : {"0", "-1", "soon", "nan", "1000001"})
    EXPECT_THROW(parsed({"--timeout", text}), BadInput) << text;
  EXPECT_EQ(parsed({}, {}), Disturbance{});
  const std::vector<std::vector<std::string>> all = {{},
                                                     {"--delays", "off"},
                                                     {"--delays", "7"},
                                                     {"--delays", "18446744073709551615", "--inject", "skip:rank=1"},
                                                     {"--timeout", "0.5"}};
  for (const auto& words : all) EXPECT_EQ(words_of(parsed(words), 1), words);
  EXPECT_EQ(words_of(parsed({"--delays", "1"}, {}), {}), (std::vector<std::string>{"--delays", "1"}));
  for (const char* text : {"0", "-1", "on", "1.5", "18446744073709551616"})
    EXPECT_THROW(parsed({"--delays", text}), BadInput) << text;
  EXPECT_THROW(parsed({"--inject", "skipp"}), BadInput);
}

TEST(Disturbance, InjectionsAreCanonical) {
  EXPECT_EQ(parsed({"--inject", "scale:rank=1,axis=dp"}).injections,
            std::vector<std::string>{"scale:axis=dp,rank=1,factor=2"});
}

/// What `list --faults` prints is what is read, defaults included.
TEST(Disturbance, TheListsOfFaultsAreRight) {
  const std::map<std::string, std::string> values = {{"axis", "dp"},  {"kind", "all_reduce"}, {"purpose", "p"},
                                                     {"rank", "1"},   {"call", "2"},          {"at", "input"},
                                                     {"factor", "3"}, {"element", "4"},       {"ms", "5"}};
  ASSERT_EQ(comm::fault_fields().size(), values.size());
  for (std::size_t k = 0; k < comm::fault_rows().size(); ++k) {
    const std::string name(comm::fault_rows()[k].name);
    const std::string plain = comm::to_text(comm::parse_injections({name}, 2).at(0));
    EXPECT_TRUE(plain.starts_with(name)) << plain;
    for (const auto& field : comm::fault_fields()) {
      const bool has = comm::takes(static_cast<comm::Fault>(k), field);
      const std::string text = name + ":" + field.name + "=" + values.at(field.name);
      if (has)
        EXPECT_EQ(comm::to_text(comm::parse_injections({text}, 2).at(0)).find(text.substr(0, name.size() + 1)), 0u);
      else
        EXPECT_THROW(comm::parse_injections({text}, 2), BadInput) << text;
      const bool shown = has && !field.standard.empty();
      EXPECT_EQ(plain.find(field.name + "=" + field.standard) != std::string::npos, shown)
          << plain << " " << field.name;
    }
  }
}

TEST(Disturbance, SaysWhatTheTransportDoes) {
  EXPECT_FALSE(Disturbance{}.threads().delays);
  const auto odd = Disturbance{.delays = 3, .injections = {"skip"}}.threads(),
             even = Disturbance{.delays = 4}.threads();
  EXPECT_EQ(odd.delays, 3u);
  EXPECT_EQ(odd.chunk_elements, 61);
  EXPECT_GT(odd.send_depth, 0);
  EXPECT_EQ(even.send_depth, 0);
  EXPECT_EQ(odd.injections, std::vector<std::string>{"skip"});
}

const Case four{"tiny", {"layers=3"}, "dp2 pp2 microbatches=2", 4, Track::exact};

TEST(Disturbance, DelaysAndRendezvousChangeNoBit) {
  std::vector<std::string> digests;
  for (const auto delays : std::vector<std::optional<std::uint64_t>>{{}, 1, 2}) {
    const Checked checked = check_case(four, std::vector{Shown::gradient}, {}, {.disturbance = {.delays = delays}});
    EXPECT_EQ(checked.record.verdict, Verdict::pass) << checked.record.reason;
    EXPECT_EQ(checked.record.delays, static_cast<std::int64_t>(delays.value_or(0)));
    digests.push_back(checked.record.digest);
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

// Every rank, and one of them twice.
TEST(Disturbance, ASlowRankChangesNoBit) {
  const Case one{"tiny", {"steps=2", "layers=1"}, "dp2 microbatches=2", 2, Track::exact};
  const auto run = [&](const std::vector<std::string>& injections) {
    const Checked checked =
        check_case(one, std::vector{Shown::gradient}, {}, {.disturbance = {.delays = {}, .injections = injections}});
    EXPECT_EQ(checked.record.verdict, Verdict::pass) << checked.record.reason;
    EXPECT_EQ(checked.record.injections, injections);
    return checked.record.digest;
  };
  EXPECT_EQ(run({"slow:factor=2", "slow:rank=1,factor=3"}), run({}));
}

TEST(Disturbance, AnInjectionIsFoundRecordedAndRerun) {
  const std::string fault = "scale:axis=dp,kind=all_reduce,rank=1,call=3";
  const Checked checked =
      check_case(four, std::vector{Shown::gradient}, {}, {.disturbance = {.delays = {}, .injections = {fault}}});
  EXPECT_EQ(checked.record.verdict, Verdict::fail);
  EXPECT_EQ(checked.code, ExitCode::check_failed);
  EXPECT_EQ(checked.record.injections, std::vector<std::string>{fault});
  EXPECT_NE(checked.record.rerun.find(" --delays off --inject " + fault), std::string::npos) << checked.record.rerun;
}

TEST(Disturbance, OneRankHasNobodyToWaitFor) {
  const Case one{"tiny", {"steps=1", "layers=1"}, "dp1", 1, Track::exact};
  const Checked checked = check_case(one, std::vector{Shown::gradient}, {});
  EXPECT_EQ(checked.record.delays, 0);
  EXPECT_EQ(checked.record.rerun.find("--delays"), std::string::npos) << checked.record.rerun;
}

}  // namespace
}  // namespace shardproof::harness
