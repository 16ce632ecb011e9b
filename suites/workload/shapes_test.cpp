// SPDX-License-Identifier: Apache-2.0
// What the conformance shapes promise, trained by the oracle.
#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "reference/oracle.hpp"
#include "suites/workload/batch.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

struct Step {
  std::optional<double> loss, norm;
  double clip_factor = 1;
  std::int64_t skipped = 0;
};

std::vector<Step> train(const Workload& w) {
  const Corpus corpus(w);
  const auto oracle = reference::make_oracle(w, Track::exact);
  std::vector<Step> steps;
  for (std::int64_t t = 1; t <= std::min<std::int64_t>(w.steps, 8); ++t) {
    Step step;
    for (const Observable& observable : oracle->step(batch(w, corpus, t))) {
      if (size_of(observable.values) != 1) continue;
      const double value = as_doubles(observable.values)[0];
      if (observable.kind == Observed::loss) step.loss = value;
      if (observable.kind == Observed::norm) step.norm = value;
      if (observable.kind == Observed::clip) step.clip_factor = value;
      if (observable.kind == Observed::skipped) step.skipped = static_cast<std::int64_t>(value);
    }
    steps.push_back(step);
  }
  return steps;
}

/// A model that has learnt nothing has a loss near ln vocab; no gradient vanishes, none overflows.
TEST(Shapes, TrainWithoutOverflow) {
  for (const Workload& w : built_in()) {
    if (w.hidden > 64) continue;  // laptop and larger
    const auto steps = train(w);
    ASSERT_GE(steps.size(), 3u) << w.name;
    for (std::size_t t = 0; t < steps.size(); ++t) {
      const bool no_label = w.name == "w15" && t % 3 == 2;
      EXPECT_EQ(steps[t].skipped, no_label ? 2 : 0) << w.name << ", step " << t + 1;
      EXPECT_EQ(steps[t].loss.has_value(), !no_label) << w.name;
      if (no_label) continue;
      EXPECT_LT(*steps[t].loss, 2 * std::log(static_cast<double>(w.vocab))) << w.name;
      EXPECT_GT(*steps[t].norm, 0.1) << w.name;
    }
  }
}

TEST(Shapes, ClipBindsInSomeStepsAndNotInOthers) {
  for (const char* name : {"w03", "w04", "w05"}) {
    int binds = 0, passes = 0;
    for (const Step& step : train(load(name))) ++(step.clip_factor < 1 ? binds : passes);
    EXPECT_GT(binds, 0) << name;
    EXPECT_GT(passes, 0) << name;
  }
}

}  // namespace
}  // namespace shardproof::workload
