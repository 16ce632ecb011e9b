// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_forms.hpp"

#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

/// Shapes that every paper covers, and those around them that its form does not hold for.
std::vector<plan::ScheduleShape> shapes_of(const plan::ScheduleGenerator& generator) {
  std::vector<plan::ScheduleShape> shapes;
  for (const std::int64_t p : {1, 2, 3, 4, 6, 8})
    for (std::int64_t m = 1; m <= 4 * p + 1; ++m)
      for (const std::int64_t chunks : {1, 2, 3})
        for (const std::int64_t slices : {1, 2})
          for (const bool sync : {false, true}) {
            const plan::ScheduleShape shape{
                .ranks = p, .microbatches = m, .chunks = chunks, .slices = slices, .vertical_sync = sync};
            if (generator.refusal(shape).empty()) shapes.push_back(shape);
          }
  return shapes;
}

// Exact but for rounding: fewer than 10^4 additions of numbers below 10^3 give less than 10^4 * 10^3 * 2^-53.
constexpr double rounding = 1e-8;

TEST(ScheduleForms, AreWhatIsMeasuredWhereverTheyHold) {
  const std::vector<plan::ActionCosts> costs = {{},
                                                {.overlapped = true},
                                                {.forward = 2, .backward_input = 1.5, .backward_weight = 1},
                                                {.forward = 1, .backward_input = 1, .backward_weight = 2},
                                                {.forward = 0, .backward_input = 1, .backward_weight = 0},
                                                {.forward = 0, .backward_input = 0, .backward_weight = 0},
                                                {.message = 0.5}};
  std::map<std::string, std::int64_t> held;
  for (const ScheduleForm& form : schedule_forms()) {
    const plan::ScheduleGenerator& generator = plan::schedule_generator(form.schedule);
    for (const plan::ScheduleShape& shape : shapes_of(generator))
      for (const plan::ActionCosts& cost : costs) {
        if (cost.overlapped && form.schedule != "dualpipe") continue;
        const plan::Schedule schedule = generator.generate(shape);
        const plan::Timeline line = plan::timeline(schedule, cost);
        for (ScheduleCase at{.shape = shape, .costs = cost}; at.rank < schedule.ranks.size(); ++at.rank)
          for (const double after : {1.0, 0.25}) {
            at.after_input = after;
            const auto value = form.value(at);
            if (!value) continue;
            ++held[std::string(form.schedule) + " " + std::string(form.quantity)];
            EXPECT_NEAR(measured(form.quantity, schedule, line, at), *value, rounding)
                << form.schedule << " " << form.text << ": ranks " << shape.ranks << " microbatches "
                << shape.microbatches << " chunks " << shape.chunks << " rank " << at.rank;
          }
      }
  }
  for (const ScheduleForm& form : schedule_forms())
    EXPECT_GE(held[std::string(form.schedule) + " " + std::string(form.quantity)], 12)
        << form.schedule << form.quantity;
}

TEST(ScheduleForms, SayNothingWhereTheirPaperDoesNotHold) {
  const auto value = [](std::string_view schedule, std::string_view quantity, const ScheduleCase& at) {
    return schedule_form(schedule, quantity)->value(at);
  };
  const plan::ScheduleShape shape{.ranks = 4, .microbatches = 8};
  EXPECT_EQ(value("gpipe", "bubble_fraction", {.shape = shape}), 3.0 / 11);
  EXPECT_FALSE(value("gpipe", "bubble_fraction", {.shape = shape, .costs = {.message = 1}}));
  EXPECT_FALSE(value("gpipe", "bubble_fraction", {.shape = shape, .costs = {.stages = {1, 2, 1, 1}}}));
  EXPECT_FALSE(value("gpipe", "bubble_fraction", {.shape = {.ranks = 4, .microbatches = 8, .slices = 2}}));
  EXPECT_FALSE(value("interleaved", "bubble_overhead", {.shape = {.ranks = 4, .microbatches = 9, .chunks = 2}}));
  EXPECT_EQ(value("zb_h1", "span_bubble_time", {.shape = shape, .costs = {3, 2, 1}}), 3 * (3 + 2 - 1));
  EXPECT_FALSE(value("zb_h1", "span_bubble_time", {.shape = shape, .costs = {1, 2, 2}})) << "W longer than F";
  EXPECT_FALSE(value("dualpipe", "bubble_time", {.shape = shape})) << "blocks are not overlapped";
  EXPECT_EQ(schedule_form("naive", "bubble_fraction"), nullptr);
}

}  // namespace
}  // namespace shardproof::harness
