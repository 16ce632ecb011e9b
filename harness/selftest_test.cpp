// SPDX-License-Identifier: Apache-2.0
#include "harness/selftest.hpp"

#include <gtest/gtest.h>

#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

TEST(Selftest, EveryInjectedFaultParses) {
  const auto faults = injected_faults(faults_file());
  EXPECT_GE(faults.size(), 10u);
  for (const auto& fault : faults) {
    EXPECT_NO_THROW(comm::parse_injections({fault.inject}, 3)) << fault.id;
    EXPECT_FALSE(fault.observables.empty()) << fault.id;
  }
}

TEST(Selftest, AFileThatIsNoneIsRefused) {
  EXPECT_THROW(injected_faults("{}"), BadInput);
  EXPECT_THROW(injected_faults(R"({"faults": [{"id": "A01", "planted": {"inject": "skip"}}]})"), BadInput);
  EXPECT_TRUE(injected_faults(R"({"faults": [{"id": "A01", "not_applicable": "why"}]})").empty());
}

TEST(Selftest, WhatIsFoundIsHeldAgainstWhatIsExpected) {
  const std::vector<Case> cases = {parse_case("tiny steps=1 | dp2 | 2 ranks | exact | cpu | threads")};
  InjectedFault fault{"X01", "", "repeat:axis=dp,purpose=gradient", {"gradient of final_norm.*"}, 1};
  Outcome outcome = plant(fault, cases);
  EXPECT_TRUE(outcome.caught);
  EXPECT_TRUE(outcome.expected) << outcome.finding.observable;
  EXPECT_EQ(outcome.finding.step, 1);
  EXPECT_EQ(outcome.case_text, print(cases[0]));

  fault.step = 2;
  EXPECT_FALSE(plant(fault, cases).expected);
  fault.step = 0;
  EXPECT_TRUE(plant(fault, cases).expected);
  fault.observables = {"loss", "gradient of blocks.*"};
  outcome = plant(fault, cases);
  EXPECT_TRUE(outcome.caught);
  EXPECT_FALSE(outcome.expected);
}

TEST(Selftest, AFaultThatChangesNothingSurvives) {
  const std::vector<Case> cases = {parse_case("tiny steps=1 | dp2 | 2 ranks | exact | cpu | threads")};
  EXPECT_FALSE(plant({"X01", "", "delay:ms=0", {"*"}, 0}, cases).caught);
  EXPECT_FALSE(plant({"X02", "", "skip:axis=pp", {"*"}, 0}, cases).caught) << "there is no pipeline";
}

}  // namespace
}  // namespace shardproof::harness
