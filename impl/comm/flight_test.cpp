// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/flight.hpp"

#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "impl/comm/flight_testing.hpp"
#include "impl/comm/testing.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::comm {
namespace {

using testing::barrier, testing::error_of, testing::Flown, testing::Node, testing::on_ranks, testing::put,
    testing::values;

const std::vector<Rank> both = {Rank{0}, Rank{1}};

TEST(Flight, SaysWhatIsOpenAndWhatHasEnded) {
  Flown one(0, 2);
  const Group group = one.group("dp", both);
  one.make(group, barrier(1, "first"));
  const int slot = one.begin(group, barrier(2, "second"));
  FlownRecord record = one.read();
  EXPECT_EQ(record.host, "host0");
  EXPECT_EQ(record.processes, 2);
  ASSERT_EQ(record.groups.size(), 1u);
  EXPECT_EQ(record.groups[0].members, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(record.groups[0].calls, 2);
  ASSERT_EQ(record.open.size(), 1u);
  EXPECT_EQ(print(record.open[0], record.groups[0]), "barrier 2 of axis dp, channel gradients (purpose second)");
  EXPECT_EQ(where(record), "in step 1, in " + print(record.open[0], record.groups[0]));
  ASSERT_EQ(record.ended.size(), 1u);
  EXPECT_LE(record.ended[0].begin_ns, record.ended[0].end_ns);
  EXPECT_LE(record.ended[0].end_ns, record.open[0].begin_ns);
  one.recorder.end(slot);
  one.recorder.end_step(0.25);
  record = one.read();
  EXPECT_TRUE(record.open.empty());
  EXPECT_EQ(where(record), "in step 2, in no call, after barrier 2 of axis dp, channel gradients (purpose second)");
}

TEST(Flight, SaysWhatACallIsAbout) {
  Flown one(1, 2);
  const Group group = one.group("pp", both);
  on_ranks(1, {}, [&](Node& node) {
    const Tensor tensor = put(node.queue, "t", {3, 2}, values<float>(0, 6));
    one.begin(group, {.kind = Kind::receive,
                      .output = tensor,
                      .peer = 0,
                      .purpose = "stage_output",
                      .tag = {.stage = 1, .microbatch = 4},
                      .number = 7});
    one.begin(group, {.kind = Kind::all_reduce, .op = Operator::max, .output = tensor, .purpose = "norm", .number = 3});
  });
  const FlownRecord record = one.read();
  ASSERT_EQ(record.open.size(), 2u);
  EXPECT_EQ(print(record.open[0], record.groups[0]),
            "receive 7 from rank 0 of axis pp, channel gradients (purpose stage_output, stage 1, microbatch 4)");
  EXPECT_EQ(print_signature(record.open[1]), "all_reduce 3 max f32 (6) for norm");
  EXPECT_EQ(record.open[0].place, 0) << "messages have no place among collectives";
  EXPECT_EQ(record.open[1].place, 1);
}

TEST(Flight, KeepsTheLastCallsInTheirOrder) {
  Flown one(0, 1);
  const Group group = one.group("dp", {Rank{0}});
  const int open = one.begin(group, barrier(1, "long"));
  const auto calls = 2 * static_cast<std::int64_t>(FlightFile::most_ended) + 3;
  for (std::int64_t k = 2; k <= calls; ++k) one.make(group, barrier(k));
  const FlownRecord record = one.read();
  ASSERT_EQ(record.ended.size(), std::size_t{FlightFile::most_ended});
  EXPECT_EQ(record.ended.back().number, calls);
  EXPECT_EQ(record.ended.front().number, calls - static_cast<std::int64_t>(FlightFile::most_ended) + 1);
  ASSERT_EQ(record.open.size(), 1u) << "a long call is not forgotten";
  EXPECT_EQ(record.open[0].purpose, "long");
  one.recorder.end(open);
  EXPECT_TRUE(one.read().open.empty());
}

TEST(Flight, GoesOnWithoutASlot) {
  Flown one(0, 1);
  const Group group = one.group("dp", {Rank{0}});
  std::vector<int> slots;
  for (std::int64_t k = 1; k <= FlightFile::most_open; ++k) slots.push_back(one.begin(group, barrier(k)));
  const int none = one.begin(group, barrier(1000));
  EXPECT_EQ(none, -1);
  one.recorder.end(none);
  one.recorder.end(slots[5]);
  EXPECT_EQ(one.begin(group, barrier(1001)), slots[5]);
  EXPECT_EQ(one.read().groups[0].calls, std::int64_t{FlightFile::most_open} + 2);
}

TEST(Flight, GroupsBeyondTheTableShareItsLastRow) {
  Flown one(0, 1);
  std::uint16_t last = 0;
  for (std::uint32_t k = 0; k < FlightFile::most_groups + 3; ++k)
    last = one.recorder.row(Rank{0}, one.group("axis" + std::to_string(k), {Rank{0}}));
  EXPECT_EQ(last, FlightFile::most_groups - 1);
  EXPECT_EQ(one.read().groups.back().axis, "?");
  EXPECT_EQ(one.read().groups.back().rank, -1);
  EXPECT_EQ(one.recorder.row(Rank{0}, one.group("axis3", {Rank{0}})), 3);
}

TEST(Flight, ATrainingForgetsTheOneBefore) {
  Flown one(0, 1);
  one.make(one.group("dp", {Rank{0}}), barrier(1));
  one.recorder.end_step(2);
  one.recorder.end_training();
  EXPECT_EQ(where(one.read()), "between trainings");
  one.recorder.begin_training(3, 0, 1);
  const FlownRecord record = one.read();
  EXPECT_TRUE(record.groups.empty() && record.ended.empty());
  EXPECT_EQ(record.training, 2);
  EXPECT_EQ(record.median_step_ns, 0);
  EXPECT_EQ(where(record), "in step 1, before its first call");
}

// At least the timeout, and 10 median steps: 6, 1, 7 s; the slow first one counts no more than any other.
TEST(Flight, TheDeadlineGrowsWithTheSteps) {
  Flown one(0, 1);
  EXPECT_EQ(one.read().deadline_ns, 60'000'000'000);
  for (const double seconds : {7.0, 1.0, 6.5}) one.recorder.end_step(seconds);
  EXPECT_EQ(one.read().deadline_ns, 65'000'000'000);
  for (int k = 0; k < 40; ++k) one.recorder.end_step(0.5);
  EXPECT_EQ(one.read().deadline_ns, 60'000'000'000);
  one.recorder.begin_training(0, 0, 1);
  one.recorder.end_step(7);
  EXPECT_EQ(one.read().deadline_ns, 0) << "none was asked for";
}

TEST(Flight, TheFirstFailureCounts) {
  Flown one(0, 1);
  one.recorder.decide(6, "out of memory");
  one.recorder.decide(10, "broken");
  EXPECT_EQ(one.read().failure, "out of memory");
  EXPECT_EQ(one.read().exit_code, 6);
}

// A wait that another's failure ends is what the record is there for.
TEST(Flight, ACallThatAnErrorEndsStaysOpen) {
  Flown one(0, 2);
  const Group group = one.group("dp", both);
  const auto row = one.recorder.row(Rank{0}, group);
  { const InFlight ends(&one.recorder, row, group, barrier(1)); }
  EXPECT_TRUE(one.read().open.empty());
  try {
    const InFlight fails(&one.recorder, row, group, barrier(2, "last_words"));
    throw CommError("another rank has died");
  } catch (const CommError&) {
    const InFlight while_it_is_handled(&one.recorder, row, group, barrier(3));
  }
  ASSERT_EQ(one.read().open.size(), 1u);
  EXPECT_EQ(one.read().open[0].purpose, "last_words");
  const InFlight nowhere(nullptr, 0, group, barrier(4));
}

TEST(Flight, ThreadsAreBlockedTogether) {
  Flown one(0, 2);
  {
    const Blocked first(&one.recorder, "MPI_Finalize");
    const std::int64_t since = one.read().blocked_ns;
    EXPECT_GT(since, 0);
    { const Blocked second(&one.recorder, "MPI_Comm_create_group"); }
    EXPECT_GT(one.read().blocked_ns, since) << "something went on, and the first is blocked yet";
    EXPECT_EQ(one.read().blocked_in, "MPI_Finalize");
  }
  EXPECT_EQ(one.read().blocked_ns, 0);
}

TEST(Flight, SurvivesItsProcess) {
  Flown one(0, 2);
  const Group group = one.group("dp", both);
  const pid_t child = fork();
  if (child == 0) {
    one.begin(group, barrier(1, "last_words"));
    std::raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const std::string text = read_file(one.path);
  const FlownRecord record = read_flight(std::as_bytes(std::span(text)), "f");
  ASSERT_EQ(record.open.size(), 1u);
  EXPECT_EQ(record.open[0].purpose, "last_words");
}

TEST(Flight, OthersReadWhatThereIs) {
  Flown one(0, 2);
  const auto seen = MappedFlight::open(one.path);
  ASSERT_NE(seen, nullptr);
  one.begin(one.group("dp", both), barrier(1));
  EXPECT_EQ(read_flight(seen->bytes(), "f").open.size(), 1u);
  EXPECT_EQ(MappedFlight::open(one.path.string() + ".none"), nullptr);
  EXPECT_EQ(MappedFlight::open("/dev/null"), nullptr);
  EXPECT_NE(error_of<WriteError>([] { MappedFlight::create("/nowhere/f"); }).find("cannot write /nowhere/f: "),
            std::string::npos);
}

TEST(Flight, RefusesWhatIsNone) {
  Flown one(0, 2);
  one.begin(one.group("dp", both), barrier(1));
  const std::string whole = read_file(one.path);
  const auto refused = [](std::string text) {
    return error_of<BadInput>([&] { read_flight(std::as_bytes(std::span(text)), "f"); });
  };
  EXPECT_EQ(refused(whole), "no error");
  EXPECT_EQ(refused(""), "f: no flight record");
  EXPECT_EQ(refused("{\"schema\": 1, \"and\": \"so on\"}"), "f: no flight record");
  EXPECT_EQ(refused(whole.substr(0, 5000)),
            "f: a flight record of 5000 bytes: cut; whole ones have " + std::to_string(whole.size()));
  const auto with = [&](std::size_t offset, std::string_view bytes) {
    std::string text = whole;
    return text.replace(offset, bytes.size(), bytes);
  };
  EXPECT_EQ(refused(with(offsetof(FlightFile, version), "\7")), "f: a flight record of version 7; this binary reads 1");
  EXPECT_EQ(refused(with(offsetof(FlightFile, process), "\5")),
            "f: a damaged flight record: its process is out of range");
  EXPECT_EQ(refused(with(offsetof(FlightFile, phase), "\5")), "f: a damaged flight record: its phase is out of range");
  EXPECT_EQ(refused(with(offsetof(FlightFile, groups) + offsetof(FlightGroup, members), "3-1")),
            "f: a damaged flight record: its members is out of range");
  EXPECT_EQ(refused(with(offsetof(FlightFile, open) + offsetof(FlightCall, kind), "\x63")),
            "f: a damaged flight record: its call is out of range");
}

TEST(Flight, MembersAreRanges) {
  EXPECT_EQ(print_members({Rank{0}, Rank{1}, Rank{2}, Rank{5}, Rank{4}}, 20), "0-2,5,4");
  EXPECT_EQ(print_members({Rank{10}, Rank{20}}, 4), "") << "too long to say";
}

TEST(Flight, WhatMustAgreeIsInTheSignature) {
  on_ranks(1, {}, [&](Node& node) {
    const Tensor six = put(node.queue, "t", {6}, values<float>(0, 6));
    const Call call{.kind = Kind::broadcast, .output = six, .peer = 1, .purpose = "weights", .number = 3};
    const auto same = signature_hash(call);
    EXPECT_EQ(signature_hash(Call(call)), same);
    std::vector<Call> others(6, call);
    others[0].kind = Kind::all_reduce, others[1].output = put(node.queue, "t", {5}, values<float>(0, 5)),
    others[2].peer = 0;
    others[3].purpose = "weight", others[4].number = 4,
    others[5].output = put(node.queue, "t", {6}, values<std::int32_t>(0, 6));
    for (const Call& other : others) EXPECT_NE(signature_hash(other), same);
    Call max = call, sum = call;
    max.kind = sum.kind = Kind::all_reduce, max.op = Operator::max;
    EXPECT_NE(signature_hash(max), signature_hash(sum));
    Call gather{.kind = Kind::all_gather, .output = six, .outputs = {2, 4}, .purpose = "weights", .number = 1};
    const auto uneven = signature_hash(gather);
    gather.outputs = {4, 2};
    EXPECT_NE(signature_hash(gather), uneven);
  });
}

}  // namespace
}  // namespace shardproof::comm
