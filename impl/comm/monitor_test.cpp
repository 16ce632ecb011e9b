// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/monitor.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impl/comm/flight_record.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::comm {
namespace {

namespace fs = std::filesystem;

constexpr int hang = 8, lost = 9;

/// A process of a job of two, which does `work` under a monitor that this test has launched.
struct MonitorTest : ::testing::Test {
  const fs::path folder = fs::temp_directory_path() / ("monitor_test." + std::to_string(getpid()));
  const Launched process_0 = {0, 2, "test"};

  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directory(folder);
    setenv("PMIX_NAMESPACE", ("monitor_test." + std::to_string(getpid())).c_str(), 1);
  }
  void TearDown() override {
    EXPECT_FALSE(fs::exists(flight_path(job_name(process_0), 0))) << "nothing is left behind";
    fs::remove_all(folder);
    unsetenv("PMIX_NAMESPACE");
  }

  /// The launched process's exit code and what was said.
  std::pair<int, std::string> monitored(const std::function<void(FlightRecorder&)>& work) const {
    const std::string said = folder / "stderr";
    const pid_t launched = fork();
    if (launched == 0) {
      if (std::freopen(said.c_str(), "w", stderr) == nullptr) _exit(99);
      const auto recorder = begin_monitored(process_0, hang, lost);
      work(*recorder);
      _exit(0);
    }
    int status = 0;
    waitpid(launched, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(said)};
  }
  FlownRecord kept() const {
    const std::string text = read_file(folder / "flight" / "rank-0.flight");
    return read_flight(std::as_bytes(std::span(text)), "kept");
  }
};

TEST_F(MonitorTest, PassesOnTheExitCode) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "flight");
    recorder.file().phase = static_cast<std::uint32_t>(Phase::ending);
    recorder.decide(3);
    _exit(3);
  });
  EXPECT_EQ(code, 3);
  EXPECT_EQ(said, "");
  EXPECT_FALSE(fs::exists(folder / "flight")) << "it ended well";
}

TEST_F(MonitorTest, KeepsTheRecordOfAFailureOfAnyCode) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "flight");
    recorder.begin_training(60, 0, 1);
    recorder.decide(6, "no memory");
    _exit(6);
  });
  EXPECT_EQ(code, 6);
  EXPECT_EQ(kept().failure, "no memory");
}

TEST_F(MonitorTest, SaysWhatKilledIt) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "flight");
    recorder.begin_training(60, 0, 1);
    std::raise(SIGKILL);
  });
  EXPECT_EQ(code, lost);
  EXPECT_TRUE(said.starts_with("shardproof: rank 0 on host ")) << said;
  EXPECT_NE(said.find(" was killed by signal 9 (Killed) in step 1, before its first call"), std::string::npos) << said;
  EXPECT_EQ(kept().signal, SIGKILL);
}

TEST_F(MonitorTest, SaysThatItEndedByItself) {
  const auto [code, said] = monitored([](FlightRecorder&) { _exit(0); });
  EXPECT_EQ(code, lost) << "it has decided on no code";
  EXPECT_NE(said.find("process 0 on host"), std::string::npos) << said;
  EXPECT_NE(said.find(" ended by itself with status 0 before its first training"), std::string::npos) << said;
}

// Who writes over memory that is not its own may write over its record too.
TEST_F(MonitorTest, SurvivesADamagedRecord) {
  const auto [code, said] = monitored([](FlightRecorder& recorder) {
    std::memset(static_cast<void*>(&recorder.file().phase), 0x77, 64);
    std::raise(SIGSEGV);
  });
  EXPECT_EQ(code, lost);
  EXPECT_NE(said.find("process 0 was lost: process 0: a damaged flight record"), std::string::npos) << said;
}

TEST_F(MonitorTest, EndsWhatIsStopped) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "flight");
    recorder.begin_training(0.1, 0, 1);
    std::raise(SIGSTOP);
  });
  EXPECT_EQ(code, hang);
  EXPECT_NE(said.find(" is stopped (SIGSTOP) in step 1, before its first call"), std::string::npos) << said;
  EXPECT_GT(kept().stopped_ns, 0);
}

TEST_F(MonitorTest, EndsWhatIsStuck) {
  const auto [code, said] = monitored([](FlightRecorder& recorder) {
    recorder.begin_training(0.1, 0, 1);
    const Blocked blocked(&recorder, "MPI_Comm_create_group");
    recorder.file().blocked_ns -= static_cast<std::int64_t>((grace_seconds + 10.2) * 1e9);
    pause();
  });
  EXPECT_EQ(code, hang);
  EXPECT_NE(said.find(" is stuck in step 1, in MPI_Comm_create_group, for longer than 30 s"), std::string::npos)
      << said;
}

// A launcher that gives up continues what is stopped, and asks it to end.
TEST_F(MonitorTest, AStopThatTheEndOfTheJobEndsIsKept) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "flight");
    recorder.begin_training(60, 0, 1);
    const pid_t worker = getpid(), monitor = getppid();
    if (fork() == 0) {
      while (recorder.file().stopped_ns == 0) usleep(1000);
      kill(worker, SIGCONT);
      usleep(300'000);  // its monitor sees that
      kill(monitor, SIGTERM);
      _exit(0);
    }
    std::raise(SIGSTOP);
    pause();
  });
  EXPECT_EQ(code, 128 + SIGTERM);
  EXPECT_GT(kept().stopped_ns, 0);
}

TEST_F(MonitorTest, WhatWasLeftBehindIsRemoved) {
  const fs::path path = flight_path("left_behind." + std::to_string(getpid()), 0);
  const auto make_old = [&] { fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(2)); };
  auto mapped = MappedFlight::create(path);
  make_old();
  remove_stale_flights();
  EXPECT_TRUE(fs::exists(path)) << "its process lives";
  mapped.reset();
  fs::last_write_time(path, fs::file_time_type::clock::now());
  remove_stale_flights();
  EXPECT_TRUE(fs::exists(path)) << "it may be about to be locked";
  make_old();
  remove_stale_flights();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(MonitorTest, SaysWhereItCannotKeepTheRecord) {
  const auto [code, said] = monitored([&](FlightRecorder& recorder) {
    recorder.keep_in(folder / "none" / "flight");
    std::raise(SIGKILL);
  });
  EXPECT_EQ(code, lost);
  EXPECT_NE(said.find("cannot write " + (folder / "none/flight/rank-0.flight").string() + ": No such file"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace shardproof::comm
