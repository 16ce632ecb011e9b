// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <gtest/gtest.h>

#include "impl/comm/flight_testing.hpp"
#include "impl/comm/testing.hpp"
#include "impl/comm/watch.hpp"

namespace shardproof::comm {
namespace {

using testing::barrier, testing::error_of, testing::Flown, testing::fly, testing::merged;
using Ranks = std::vector<std::int64_t>;

const std::vector<Rank> three = {Rank{0}, Rank{1}, Rank{2}};

Call message(Kind kind, std::int64_t peer, std::int64_t number) {
  // A message's tensor says nothing of who waits for whom.
  return {.kind = kind, .peer = peer, .purpose = "stage_output", .number = number};
}

/// Every sentence that merge() knows, by its telling words: those of `text` must be the one.
void expect_only(const std::vector<std::string>& reasons, std::string_view words) {
  for (const std::string_view known :
       {"was killed by signal", "ended by itself with status", " failed: ", "calls do not match",
        "is stopped (SIGSTOP)", "is waited for and waits for nobody", "in a circle"})
    for (const auto& reason : reasons) EXPECT_EQ(reason.find(known) != std::string::npos, known == words) << reason;
  EXPECT_EQ(reasons.empty(), words.empty());
}

TEST(FlightMerge, NothingIsWrongWhereAllGoOn) {
  const auto all = fly(3);
  for (const auto& one : all) one->make(one->group("dp", three), barrier(1));
  const FlightMerge found = merged(all);
  EXPECT_TRUE(found.waits.empty());
  expect_only(found.reasons, "");
}

TEST(FlightMerge, ARankThatDoesNotComeIsNamed) {
  const auto all = fly(3);
  for (const auto& one : all) one->make(one->group("dp", three), barrier(1));
  for (const int k : {0, 2}) all[k]->begin(all[k]->group("dp", three), barrier(2, "norm"));
  const FlightMerge found = merged(all);
  ASSERT_EQ(found.waits.size(), 2u);
  EXPECT_EQ(found.waits[0].call, "barrier 2 of axis dp, channel gradients (purpose norm), step 1");
  EXPECT_EQ(found.waits[0].waits_for, Ranks{1});
  EXPECT_EQ(found.waits[1].rank, 2);
  EXPECT_EQ(found.waits[1].waits_for, Ranks{1});
  expect_only(found.reasons, "is waited for and waits for nobody");
  EXPECT_EQ(found.reasons.at(0),
            "rank 1 on host host1 is waited for and waits for nobody: it is in step 1, in no call, after barrier 1 of "
            "axis dp, channel gradients (purpose gradient)");
}

TEST(FlightMerge, ARankOfAnotherTrainingIsNamed) {
  const auto all = fly(2);
  all[0]->recorder.begin_training(60, 0, 1);
  all[0]->begin(all[0]->group("dp", {Rank{0}, Rank{1}}), barrier(1));
  all[1]->recorder.end_training();
  EXPECT_EQ(
      merged(all).reasons.at(0),
      "rank 1 is waited for and waits for nobody: of it there is no record here, or it has not begun this training; "
      "rank 1 on host host1 is between trainings");
}

// A process that the training before had no rank for counts it too: its calls of this one are its own.
TEST(FlightMerge, ProcessesCountTrainingsAlike) {
  const auto all = fly(3);
  for (const int k : {0, 1}) all[k]->recorder.begin_training(60, k, 1);
  all[2]->recorder.skip_training();
  EXPECT_EQ(all[2]->read().name(), "process 2 on host host2");
  for (const auto& one : all) one->recorder.begin_training(60, one->recorder.file().process, 1);
  for (const auto& one : all) one->make(one->group("dp", three), barrier(1));
  for (const int k : {0, 2}) all[k]->begin(all[k]->group("dp", three), barrier(2));
  const FlightMerge found = merged(all);
  EXPECT_EQ(found.waits.at(1).waits_for, Ranks{1});
  ASSERT_EQ(found.reasons.size(), 1u);
  EXPECT_TRUE(found.reasons[0].starts_with("rank 1 on host host1 is waited for")) << found.reasons[0];
}

// Processes 0 and 1 of ranks 0-1 and 2-3.
TEST(FlightMerge, RanksOfAProcessAreToldApart) {
  const auto all = fly(2, 2);
  const std::vector<Rank> four = {Rank{0}, Rank{1}, Rank{2}, Rank{3}}, here = {Rank{0}, Rank{1}};
  const auto begin = [&](int process, Rank rank, const std::vector<Rank>& members, std::int64_t number) {
    return all[process]->begin(Flown::group(&members == &four ? "world" : "tp", members, rank), barrier(number));
  };
  for (const int rank : {0, 1, 2}) begin(rank / 2, static_cast<Rank>(rank), four, 1);
  EXPECT_EQ(where(all[0]->read()),
            "in step 1, ranks 0-1 in barrier 1 of axis world, channel gradients (purpose gradient)");
  FlightMerge found = merged(all);
  ASSERT_EQ(found.waits.size(), 3u);
  for (const auto& wait : found.waits) EXPECT_EQ(wait.waits_for, Ranks{3});
  EXPECT_EQ(found.reasons, (std::vector<std::string>{"rank 3 on host host1 is waited for and waits for nobody: it is "
                                                     "in step 1, before its first call"}));
  all[1]->recorder.end(begin(1, Rank{3}, four, 1));
  begin(0, Rank{0}, here, 1);  // now between threads
  found = merged(all);
  EXPECT_EQ(found.waits.at(1).rank, 0);
  EXPECT_EQ(found.waits.at(1).waits_for, Ranks{1});
  all[1]->recorder.file().signal = SIGKILL;
  EXPECT_TRUE(merged(all).reasons.at(0).starts_with("process 1 of ranks 2-3 on host host1 was killed by signal 9"));
}

// What a full table has no room for blames nobody.
TEST(FlightMerge, AFullTableOfGroupsBlamesNobody) {
  const auto all = fly(2);
  const std::vector<Rank> two = {Rank{0}, Rank{1}};
  for (const auto& one : all)
    for (std::uint32_t k = 0; k + 1 < FlightFile::most_groups; ++k)
      one->recorder.row(static_cast<Rank>(one->rank()), one->group("axis" + std::to_string(k), {two[one->rank()]}));
  all[0]->begin(all[0]->group("dp", two), barrier(1));
  all[1]->make(all[1]->group("tp", two), barrier(7));
  all[1]->make(all[1]->group("dp", two), barrier(1));
  const FlightMerge found = merged(all);
  EXPECT_EQ(found.waits.at(0).rank, 0);
  EXPECT_EQ(found.waits.at(0).call, "barrier 1 of axis ?, channel ? (purpose gradient), step 1");
  EXPECT_EQ(found.waits.at(0).waits_for, Ranks{});
  expect_only(found.reasons, "");
  const auto one_lacks = fly(2);
  for (std::uint32_t k = 0; k < FlightFile::most_groups; ++k)
    one_lacks[1]->recorder.row(Rank{1}, one_lacks[1]->group("axis" + std::to_string(k), {Rank{1}}));
  one_lacks[0]->begin(one_lacks[0]->group("dp", two), barrier(1));
  one_lacks[0]->begin(one_lacks[0]->group("pp", two), message(Kind::receive, 1, 1));
  one_lacks[1]->make(one_lacks[1]->group("dp", two), barrier(1));
  expect_only(merged(one_lacks).reasons, "");
}

TEST(FlightMerge, ARankWithoutARecordIsNamed) {
  auto all = fly(3);
  for (const int k : {0, 1}) all[k]->begin(all[k]->group("dp", three), barrier(1));
  all.pop_back();
  expect_only(merged(all).reasons, "is waited for and waits for nobody");
  EXPECT_EQ(merged(all).reasons.at(0), "rank 2 is waited for and waits for nobody: of it there is no record here");
}

// The last of a chain is to blame, whoever waits for those that wait for it.
TEST(FlightMerge, TheEndOfAChainIsNamed) {
  const auto all = fly(3);
  all[0]->begin(all[0]->group("pp", three), message(Kind::receive, 1, 1));
  all[1]->begin(all[1]->group("pp", three), message(Kind::receive, 2, 1));
  const FlightMerge found = merged(all);
  EXPECT_EQ(found.waits.at(0).waits_for, Ranks{1});
  EXPECT_EQ(found.waits.at(1).waits_for, Ranks{2});
  ASSERT_EQ(found.reasons.size(), 1u);
  EXPECT_TRUE(found.reasons[0].starts_with("rank 2 on host host2 is waited for")) << found.reasons[0];
}

TEST(FlightMerge, AMessageThatIsThereIsWaitedForByNobody) {
  const auto all = fly(2);
  const std::vector<Rank> two = {Rank{0}, Rank{1}};
  all[1]->make(all[1]->group("pp", two), message(Kind::send, 0, 1));
  all[0]->begin(all[0]->group("pp", two), message(Kind::receive, 1, 1));
  all[1]->begin(all[1]->group("pp", two), message(Kind::send, 0, 2));
  const FlightMerge found = merged(all);
  EXPECT_EQ(found.waits.at(0).waits_for, Ranks{});
  EXPECT_EQ(found.waits.at(1).waits_for, Ranks{0}) << "it has not come to the second message";
}

TEST(FlightMerge, ACircleIsShown) {
  const auto all = fly(3);
  for (const int k : {1, 2}) all[k]->begin(all[k]->group("pp", three), message(Kind::receive, k == 1 ? 2 : 1, 1));
  all[0]->begin(all[0]->group("pp", three), message(Kind::receive, 1, 1));
  const auto reasons = merged(all).reasons;
  expect_only(reasons, "in a circle");
  EXPECT_EQ(reasons.at(0),
            "ranks wait in a circle: rank 1 for rank 2 in receive 1 from rank 2 of axis pp, channel gradients (purpose "
            "stage_output), step 1; rank 2 for rank 1 in receive 1 from rank 1 of axis pp, channel gradients (purpose "
            "stage_output), step 1");
}

TEST(FlightMerge, AKilledRankCountsBeforeThoseThatWait) {
  const auto all = fly(3);
  for (const auto& one : all) one->begin(one->group("dp", three), barrier(1));
  all[1]->recorder.file().signal = SIGKILL;
  all[2]->recorder.file().stopped_ns = flight_clock();
  const auto reasons = merged(all).reasons;
  expect_only(reasons, "was killed by signal");
  EXPECT_EQ(
      reasons.at(0),
      "rank 1 on host host1 was killed by signal 9 (Killed) in step 1, in barrier 1 of axis dp, channel gradients "
      "(purpose gradient)");
}

TEST(FlightMerge, ARankThatEndedByItselfIsNamed) {
  const auto all = fly(2);
  all[0]->recorder.file().status = 3;
  expect_only(merged(all).reasons, "ended by itself with status");
}

TEST(FlightMerge, AStoppedRankIsNamed) {
  const auto all = fly(3);
  for (const int k : {0, 1}) all[k]->begin(all[k]->group("dp", three), barrier(1));
  all[2]->recorder.file().stopped_ns = flight_clock();
  expect_only(merged(all).reasons, "is stopped (SIGSTOP)");
  EXPECT_TRUE(merged(all).reasons.at(0).starts_with("rank 2 on host host2 is stopped (SIGSTOP), since 0 s, in step 1"));
}

TEST(FlightMerge, AJobThatWasEndedFromOutsideIsTold) {
  const auto all = fly(2);
  all[0]->recorder.file().asked = SIGTERM;
  const std::string outside =
      "the job was ended from outside, by signal 15 (Terminated): who is waited for may have been about to come";
  EXPECT_EQ(merged(all).reasons, std::vector<std::string>{outside});
  all[0]->begin(all[0]->group("dp", {Rank{0}, Rank{1}}), barrier(1));
  ASSERT_EQ(merged(all).reasons.size(), 2u);
  EXPECT_EQ(merged(all).reasons[0], outside);
  EXPECT_TRUE(merged(all).reasons[1].starts_with("rank 1 on host host1 is waited for"));
  all[1]->recorder.file().signal = SIGKILL;
  expect_only(merged(all).reasons, "was killed by signal");
}

TEST(FlightMerge, AFailureIsToldInItsWords) {
  const auto all = fly(2);
  all[0]->begin(all[0]->group("dp", {Rank{0}, Rank{1}}), barrier(1));
  all[1]->recorder.decide(6, "no memory for activation");
  expect_only(merged(all).reasons, " failed: ");
  EXPECT_EQ(merged(all).reasons.at(0), "rank 1 on host host1 failed: no memory for activation");
}

TEST(FlightMerge, CallsThatDoNotMatchAreTold) {
  const auto all = fly(3);
  for (const auto& one : all) one->make(one->group("dp", three), barrier(1));
  for (const auto& one : all) one->begin(one->group("dp", three), barrier(one->rank() == 2 ? 3 : 2));
  const auto reasons = merged(all).reasons;
  expect_only(reasons, "calls do not match");
  EXPECT_EQ(
      reasons.at(0),
      "calls do not match: rank 0 on host host0 calls barrier 2 for gradient, rank 2 on host host2 calls barrier 3 "
      "for gradient, of axis dp, channel gradients, in step 1");
}

TEST(FlightMerge, RefusesWhatDoesNotBelongTogether) {
  Flown one(0, 2), of_more(1, 3), twin(1, 2);
  const auto refused = [](std::vector<FlownRecord> records) {
    records[0].origin = "a", records[1].origin = "b";
    return error_of<BadInput>([&] { merge(records); });
  };
  EXPECT_EQ(refused({one.read(), of_more.read()}), "a and b: flight records of different jobs");
  FlownRecord other_job = twin.read();
  other_job.job = "another";
  EXPECT_EQ(refused({one.read(), other_job}), "a and b: flight records of different jobs");
  EXPECT_EQ(refused({twin.read(), twin.read()}), "a and b: two flight records of rank 1");
  EXPECT_EQ(refused({one.read(), twin.read()}), "no error");
}

/// Process 0's view of three.
struct WatchTest : ::testing::Test {
  std::vector<std::unique_ptr<Flown>> all = fly(3);
  Watch watch{all[0]->recorder, [this](std::int64_t k) { return all[static_cast<std::size_t>(k)]->path; }};
  const Group group = all[0]->group("dp", three);

  void SetUp() override {
    watch.begin_training(60, 0, 1);
    for (const int k : {1, 2}) all[k]->recorder.begin_training(60, k, 1);
  }
  void others_make(std::int64_t number) {
    for (const int k : {1, 2}) all[k]->make(all[k]->group("dp", three), barrier(number));
  }
  template <class E>
  std::string found() {
    return error_of<E>([&] { watch.check(); });
  }
};

TEST_F(WatchTest, FindsNothingWhereAllIsWell) {
  const std::uint16_t row = watch.row(Rank{0}, group);
  all[0]->begin(group, barrier(1));
  EXPECT_EQ(found<CommError>(), "no error");
  others_make(1);
  EXPECT_EQ(found<CommError>(), "no error");
  watch.check_call(row);
  EXPECT_EQ(watch.reason(), "");
}

TEST_F(WatchTest, SeesThatAnotherHasDied) {
  all[2]->recorder.file().signal = SIGSEGV;
  EXPECT_TRUE(found<RankLost>().starts_with("rank 2 on host host2 was killed by signal 11"));
}

TEST_F(WatchTest, SeesAnotherCallWhileItWaits) {
  watch.row(Rank{0}, group);
  all[0]->begin(group, barrier(1));
  all[1]->begin(all[1]->group("dp", three), barrier(1, "norm"));
  EXPECT_TRUE(
      found<CommError>().starts_with("calls do not match: rank 0 on host host0 calls barrier 1 for gradient, "
                                     "rank 1 on host host1 calls barrier 1 for norm"))
      << found<CommError>();
}

TEST_F(WatchTest, TellsTheCallsThoughAnotherHasFailedBefore) {
  watch.row(Rank{0}, group);
  all[0]->begin(group, barrier(1));
  all[1]->begin(all[1]->group("dp", three), barrier(1, "norm"));
  all[1]->recorder.decide(9, "it has seen it first");
  EXPECT_TRUE(found<CommError>().starts_with("calls do not match: rank 0 on host host0")) << found<CommError>();
}

TEST_F(WatchTest, SeesAnotherCallAfterwards) {
  const std::uint16_t row = watch.row(Rank{0}, group);
  all[0]->make(group, barrier(1));
  others_make(2);
  EXPECT_EQ(found<CommError>(), "no error") << "it is in no call";
  EXPECT_NE(error_of<CommError>([&] { watch.check_call(row); }), "no error");
}

// A broadcast's root may be far ahead: its signatures of earlier calls have been written over.
TEST_F(WatchTest, AMemberFarAheadIsNoMismatch) {
  const std::uint16_t row = watch.row(Rank{0}, group);
  for (std::int64_t k = 1; k <= static_cast<std::int64_t>(FlightGroup::kept) + 1; ++k) others_make(k);
  all[0]->make(group, barrier(1));
  watch.check_call(row);
}

TEST_F(WatchTest, AnythingThatGoesOnIsProgress) {
  const std::int64_t long_ago = flight_clock() - 100'000'000'000;
  for (const auto& one : all) one->recorder.file().progress_ns = long_ago;
  EXPECT_FALSE(watch.goes_on());
  others_make(1);
  EXPECT_TRUE(watch.goes_on());
}

}  // namespace
}  // namespace shardproof::comm
