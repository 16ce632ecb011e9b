// SPDX-License-Identifier: Apache-2.0
#include "harness/exit_code.hpp"

#include <new>

#include <gtest/gtest.h>

#include "harness/signals.hpp"
#include "harness/verdict.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/non_finite.hpp"

namespace shardproof::harness {
namespace {

TEST(ExitCode, WorstFollowsTheAgreedOrder) {
  const ExitCode order[] = {ExitCode::interrupted,   ExitCode::internal,     ExitCode::rank_lost,    ExitCode::hang,
                            ExitCode::out_of_memory, ExitCode::write_failed, ExitCode::environment,  ExitCode::usage,
                            ExitCode::non_finite,    ExitCode::check_failed, ExitCode::inconclusive, ExitCode::pass};
  for (std::size_t i = 0; i < std::size(order); ++i)
    for (std::size_t j = i; j < std::size(order); ++j) {
      EXPECT_EQ(worst({order[i], order[j]}), order[i]);
      EXPECT_EQ(worst({order[j], order[i]}), order[i]);
    }
  EXPECT_EQ(worst({}), ExitCode::pass);
}

TEST(ExitCode, EveryExceptionHasOne) {
  EXPECT_EQ(exit_code_of(Interrupted("x")), ExitCode::interrupted);
  EXPECT_EQ(exit_code_of(BadInput("x")), ExitCode::usage);
  EXPECT_EQ(exit_code_of(NotSupported("x")), ExitCode::usage);
  EXPECT_EQ(exit_code_of(NonFinite("x")), ExitCode::non_finite);
  EXPECT_EQ(exit_code_of(NotBuilt("x")), ExitCode::environment);
  EXPECT_EQ(exit_code_of(OutOfMemory("x")), ExitCode::out_of_memory);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), ExitCode::out_of_memory);
  EXPECT_EQ(exit_code_of(DeviceError("x")), ExitCode::internal);
  EXPECT_EQ(exit_code_of(CommError("x")), ExitCode::rank_lost);
  EXPECT_EQ(exit_code_of(RankLost("x")), ExitCode::rank_lost);
  EXPECT_EQ(exit_code_of(HangError("x")), ExitCode::hang);
  EXPECT_EQ(exit_code_of(WriteError("x")), ExitCode::write_failed);
  EXPECT_EQ(exit_code_of(InternalError("x")), ExitCode::internal);
  EXPECT_EQ(exit_code_of(std::runtime_error("x")), ExitCode::internal);
}

TEST(ExitCode, ExhaustedMemoryIsSaidInWords) {
  EXPECT_EQ(reason_of(std::bad_alloc()), "this machine's memory is exhausted");
  EXPECT_EQ(reason_of(BadInput("x")), "x");
}

TEST(Verdict, OnlyPassPasses) {
  for (const std::string& name : verdict_names()) {
    const Verdict verdict = verdict_named(name);
    EXPECT_EQ(name_of(verdict), name);
    EXPECT_EQ(exit_code_of(verdict) == ExitCode::pass, name == "pass") << name;
  }
  EXPECT_EQ(name_of(Verdict()), "error");
  EXPECT_EQ(verdict_names().size(), 7u);
}

TEST(Verdict, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    verdict_named("passed");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "unknown verdict \"passed\": did you mean \"pass\"?");
  }
}

}  // namespace
}  // namespace shardproof::harness
