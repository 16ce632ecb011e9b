// SPDX-License-Identifier: Apache-2.0
// The generators against their papers: orders, activations, versions of weights, bubbles. Zero Bubble's table 5 is in
// suites/papers/schedules.json.
#include <algorithm>

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/timeline.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;
using Counts = std::vector<std::int64_t>;

Schedule of(std::string_view name, const ScheduleShape& shape) { return generate(schedule_generator(name), shape); }

// Narayanan et al. 2021, section 2.2; Korthikanti et al. 2022, section 4.2.3 for interleaved: p (1 + (p-1)/(p v)) of
// 1F1B's chunks of v.
TEST(Schedules, HoldSoManyActivations) {
  for (std::int64_t p = 1; p <= 8; ++p)
    for (const std::int64_t m : {p, 2 * p, 3 * p + 1, std::int64_t{1}}) {
      Counts all, ahead;
      for (std::int64_t r = 0; r < p; ++r) all.push_back(m), ahead.push_back(std::min(p - r, m));
      EXPECT_EQ(peak_in_flight(of("gpipe", {p, m})), all);
      EXPECT_EQ(peak_in_flight(of("naive", {p, m})), Counts(static_cast<std::size_t>(p), 1));
      EXPECT_EQ(peak_in_flight(of("one_f_one_b", {p, m})), ahead);
      for (const std::int64_t v : {2, 3})
        if (m % p == 0) {
          Counts chunks;  // two more a rank that follows, as Narayanan et al. go ahead
          for (std::int64_t r = 0; r < p; ++r) chunks.push_back(std::min((v - 1) * p + 1 + 2 * (p - 1 - r), m * v));
          EXPECT_EQ(peak_in_flight(of("interleaved", {p, m, v})), chunks) << p << m << v;
          EXPECT_EQ(chunks.front(), std::min(p * v + p - 1, m * v));
        }
    }
}

// Qi et al. 2024, table 2: of worker i (from 1) H1 (p - i + 1) M_B + (i - 1) M_W, H2 (2p - 2i + 1) M_B + (2i - 2) M_W.
TEST(Schedules, ZeroBubbleHoldsWhatItsTableSays) {
  const double after_input = 0.25;  // M_W of M_B
  for (const std::int64_t p : {1, 2, 4, 8})
    for (const std::int64_t ahead : {1, 2}) {
      const auto peaks = peak_activations(of(ahead == 1 ? "zb_h1" : "zb_h2", {p, 4 * p}), after_input);
      for (std::int64_t r = 0; r < p; ++r)
        EXPECT_DOUBLE_EQ(peaks[static_cast<std::size_t>(r)],
                         static_cast<double>(ahead * (p - 1 - r) + 1) + after_input * static_cast<double>(ahead * r))
            << p << " " << r;
    }
}

// GPipe (K-1)/(M+K-1) of the time; PTD-P (p-1)/m of the ideal one, and 1/v of that.
TEST(Schedules, HaveTheBubblesOfTheirPapers) {
  const ActionCosts costs{.forward = 1, .backward_input = 1.5, .backward_weight = 0.5};
  for (std::int64_t p = 1; p <= 8; ++p)
    for (const std::int64_t m : {p, 2 * p, 8 * p, 2 * p + 1}) {
      const double others = static_cast<double>(p - 1), n = static_cast<double>(m);
      EXPECT_DOUBLE_EQ(timeline(of("gpipe", {p, m}), costs).bubble_fraction(), others / (n + others));
      EXPECT_DOUBLE_EQ(timeline(of("one_f_one_b", {p, m}), costs).bubble_overhead(), others / n);
      for (const std::int64_t v : {2, 3, 4})
        if (m % p == 0) {
          EXPECT_NEAR(timeline(of("interleaved", {p, m, v}), costs).bubble_overhead(),
                      others / n / static_cast<double>(v), 1e-12);
        }
    }
}

// Qi et al. 2024, section 6: where F, I and W take the same time.
TEST(Schedules, TheVOfZeroBubbleHasNoBubbleAndTheMemoryOf1F1B) {
  for (std::int64_t p = 1; p <= 12; ++p)
    for (const std::int64_t m : {2 * p, 2 * p + 1, 3 * p, 5 * p}) {
      const Schedule schedule = of("zb_v", {.ranks = p, .microbatches = m, .chunks = 2});
      EXPECT_NEAR(timeline(schedule).bubble_of_span(), 0, 1e-12) << p << " " << m;
      const auto peaks = peak_in_flight(schedule);
      EXPECT_EQ(*std::ranges::max_element(peaks), 2 * p) << p << " " << m;
    }
}

// DeepSeek-AI 2024, table 2: bubble (PP/2 - 1)(F&B + B - 3W), activations PP + 1; here F = W, B = 2 F, F&B = F + B.
TEST(Schedules, DualPipeHasTheBubbleOfItsTable) {
  for (const std::int64_t p : {2, 4, 8, 16})
    for (const std::int64_t m : {2 * p, 2 * p + 2, 5 * p}) {
      const Schedule schedule = of("dualpipe", {p, m});
      const Timeline line = timeline(schedule, {.overlapped = true});
      const std::int64_t bubble = (p / 2 - 1) * (3 + 2 - 3);
      EXPECT_DOUBLE_EQ(line.makespan, static_cast<double>(3 * m + bubble)) << p << " " << m;
      EXPECT_DOUBLE_EQ(line.busy, static_cast<double>(3 * m * p));
      EXPECT_LE(timeline(schedule).makespan, line.makespan) << "each on its own is free to go on";
      const auto peaks = peak_in_flight(schedule);
      EXPECT_EQ(*std::ranges::max_element(peaks), p + 1) << p << " " << m;
    }
}

// Narayanan et al. 2019, section 3.3: stage i (from 0) of n keeps n - i versions; a minibatch reads one version in
// forward and backward, with vertical sync the same on all stages: w(t - n + 1).
TEST(Schedules, PipeDreamKeepsItsVersions) {
  for (std::int64_t n = 1; n <= 8; ++n)
    for (const bool sync : {false, true}) {
      const Schedule schedule = of("pipedream", {.ranks = n, .microbatches = 3 * n, .vertical_sync = sync});
      const ScheduleIndex index(schedule, extent_of(schedule));
      const WeightVersions versions = weight_versions(schedule, index);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto rank = static_cast<std::size_t>(i);
        EXPECT_EQ(versions.most_kept[rank], sync ? n : n - i) << n << " " << i;
        for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
          const Action& a = schedule.ranks[rank][k];
          const std::int64_t delay = sync ? n - 1 : n - 1 - i;
          if (a.kind != update) {
            EXPECT_EQ(versions.read[rank][k], std::max<std::int64_t>(a.microbatch - delay, 0)) << print(a);
          }
        }
      }
    }
}

// Narayanan et al. 2021b, section 3.1: two versions; microbatch k (from 1) of m an update reads max(floor((k-1)/m) - 1,
// 0).
TEST(Schedules, DoubleBufferedWeightsAreTwo) {
  for (const std::int64_t p : {1, 2, 4, 8})
    for (const std::int64_t m : {p, p + 3}) {
      const Schedule schedule = of("pipedream_2bw", {.ranks = p, .microbatches = 4 * m, .microbatches_per_update = m});
      const ScheduleIndex index(schedule, extent_of(schedule));
      const WeightVersions versions = weight_versions(schedule, index);
      EXPECT_TRUE(versions.findings.empty());
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        EXPECT_EQ(versions.most_kept[r], 2);
        for (std::size_t k = 0; k < schedule.ranks[r].size(); ++k) {
          const Action& a = schedule.ranks[r][k];
          if (a.kind != update) {
            EXPECT_EQ(versions.read[r][k], std::max<std::int64_t>(a.microbatch / m - 1, 0)) << print(a);
          }
        }
      }
    }
}

TEST(Schedules, HaveTheOrderOfTheirPapers) {
  const auto drawn = [](std::string_view name, const ScheduleShape& shape) { return print(of(name, shape)); };
  EXPECT_EQ(drawn("gpipe", {2, 3}), "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
  EXPECT_EQ(drawn("naive", {2, 3}), "0F0,0B0,0F1,0B1,0F2,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(drawn("gpipe", {.ranks = 1, .microbatches = 2, .slices = 2}),
            "0F0.0,0F0.1,0F1.0,0F1.1,0B0.1,0B0.0,0B1.1,0B1.0\n");
  // Narayanan et al. 2021, figure 4 above, its first 8 microbatches.
  EXPECT_EQ(drawn("one_f_one_b", {4, 8}),
            "0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7\n"
            "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7\n"
            "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7\n"
            "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7\n");
  // Its figure 4 below; the same as PyTorch's ScheduleInterleaved1F1B.
  EXPECT_EQ(drawn("interleaved", {4, 8, 2}),
            "0F0,0F1,0F2,0F3,4F0,4F1,4F2,4F3,0F4,0F5,0F6,4B0,0F7,4B1,4F4,4B2,4F5,4B3,4F6,0B0,4F7,0B1,0B2,0B3,4B4,4B5"
            ",4B6,4B7,0B4,0B5,0B6,0B7\n"
            "1F0,1F1,1F2,1F3,5F0,5F1,5F2,5F3,1F4,5B0,1F5,5B1,1F6,5B2,1F7,5B3,5F4,1B0,5F5,1B1,5F6,1B2,5F7,1B3,5B4,5B5"
            ",5B6,5B7,1B4,1B5,1B6,1B7\n"
            "2F0,2F1,2F2,2F3,6F0,6F1,6F2,6B0,6F3,6B1,2F4,6B2,2F5,6B3,2F6,2B0,2F7,2B1,6F4,2B2,6F5,2B3,6F6,6B4,6F7,6B5"
            ",6B6,6B7,2B4,2B5,2B6,2B7\n"
            "3F0,3F1,3F2,3F3,7F0,7B0,7F1,7B1,7F2,7B2,7F3,7B3,3F4,3B0,3F5,3B1,3F6,3B2,3F7,3B3,7F4,7B4,7F5,7B5,7F6,7B6"
            ",7F7,7B7,3B4,3B5,3B6,3B7\n");
  // Qi et al. 2024, section 6; the same as PyTorch's ScheduleZBVZeroBubble.
  EXPECT_EQ(drawn("zb_v", {.ranks = 4, .microbatches = 8, .chunks = 2}),
            "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,7I3,7W3,0F7,0I0,0W0,7F4,7I4,7W4,0I1"
            ",0W1,7F5,7I5,7W5,0I2,0W2,7F6,7I6,7W6,0I3,0W3,7F7,7I7,7W7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7\n"
            "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,6I2,6W2,1F6,1I0,1W0,6F4,6I3,6W3,1F7,1I1,1W1,6F5"
            ",6I4,6W4,1I2,1W2,6F6,6I5,6W5,1I3,1W3,6F7,6I6,6W6,1I4,6I7,1I5,1W4,1I6,1W5,1I7,1W6,6W7,1W7\n"
            "2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,5I1,5W1,2F5,2I0,2W0,5F4,5I2,5W2,2F6,2I1,2W1,5F5,5I3,5W3,2F7"
            ",2I2,2W2,5F6,5I4,5W4,2I3,2W3,5F7,5I5,5W5,2I4,5I6,2I5,5I7,2I6,2W4,2I7,2W5,5W6,5W7,2W6,2W7\n"
            "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,4I0,4W0,3F4,3I0,3W0,4F4,4I1,4W1,3F5,3I1,3W1,4F5,4I2,4W2,3F6,3I2,3W2,4F6"
            ",4I3,4W3,3F7,3I3,3W3,4F7,4I4,4W4,3I4,4I5,3I5,4I6,3I6,4I7,3I7,3W4,4W5,4W6,4W7,3W5,3W6,3W7\n");
  // DeepSeek-AI 2024, figure 5: the same as their program (github.com/deepseek-ai/DualPipe).
  EXPECT_EQ(drawn("dualpipe", {8, 20}),
            "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F10,7I10,7W10,7F11,7I11,7W11,7F12,7I12,7W12,7F13,0F7,7B13,7F14,0B0,0F8,7B14"
            ",7F15,0B1,0F9,7B15,7F16,0B2,7B16,7F17,0B3,7B17,7F18,0B4,7B18,7F19,0B5,7B19,0I6,0W6,0I7,0W7,0I8,0W8,0I9"
            ",0W9\n"
            "1F0,1F1,1F2,1F3,1F4,6F10,1F5,6F11,6I10,6W10,6F12,6I11,6W11,6F13,1F6,6B12,6F14,1B0,1F7,6B13,6F15,1B1,1F8"
            ",6B14,6F16,1B2,1F9,6B15,6F17,1B3,6B16,6F18,1B4,6B17,6F19,1B5,6B18,1B6,6I19,1I7,6W19,1I8,1W7,1I9,1W8"
            ",1W9\n"
            "2F0,2F1,2F2,5F10,2F3,5F11,2F4,5F12,5I10,5W10,5F13,2F5,5B11,5F14,2B0,2F6,5B12,5F15,2B1,2F7,5B13,5F16,2B2"
            ",2F8,5B14,5F17,2B3,2F9,5B15,5F18,2B4,5B16,5F19,2B5,5B17,2B6,5B18,2I7,5I19,2I8,2W7,2I9,5W19,2W8,2W9\n"
            "3F0,4F10,3F1,4F11,3F2,4F12,3F3,4F13,3F4,4B10,4F14,3B0,3F5,4B11,4F15,3B1,3F6,4B12,4F16,3B2,3F7,4B13,4F17"
            ",3B3,3F8,4B14,4F18,3B4,3F9,4B15,4F19,3B5,4B16,3B6,4B17,3B7,4I18,3I8,4I19,3I9,4W18,3W8,4W19,3W9\n"
            "3F10,4F0,3F11,4F1,3F12,4F2,3F13,4F3,3F14,4B0,4F4,3B10,3F15,4B1,4F5,3B11,3F16,4B2,4F6,3B12,3F17,4B3,4F7"
            ",3B13,3F18,4B4,4F8,3B14,3F19,4B5,4F9,3B15,4B6,3B16,4B7,3B17,4I8,3I18,4I9,3I19,4W8,3W18,4W9,3W19\n"
            "2F10,2F11,2F12,5F0,2F13,5F1,2F14,5F2,5I0,5W0,5F3,2F15,5B1,5F4,2B10,2F16,5B2,5F5,2B11,2F17,5B3,5F6,2B12"
            ",2F18,5B4,5F7,2B13,2F19,5B5,5F8,2B14,5B6,5F9,2B15,5B7,2B16,5B8,2I17,5I9,2I18,2W17,2I19,5W9,2W18,2W19\n"
            "1F10,1F11,1F12,1F13,1F14,6F0,1F15,6F1,6I0,6W0,6F2,6I1,6W1,6F3,1F16,6B2,6F4,1B10,1F17,6B3,6F5,1B11,1F18"
            ",6B4,6F6,1B12,1F19,6B5,6F7,1B13,6B6,6F8,1B14,6B7,6F9,1B15,6B8,1B16,6I9,1I17,6W9,1I18,1W17,1I19,1W18"
            ",1W19\n"
            "0F10,0F11,0F12,0F13,0F14,0F15,0F16,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,0F17,7B3,7F4,0B10,0F18,7B4"
            ",7F5,0B11,0F19,7B5,7F6,0B12,7B6,7F7,0B13,7B7,7F8,0B14,7B8,7F9,0B15,7B9,0I16,0W16,0I17,0W17,0I18,0W18"
            ",0I19,0W19\n");
  // Qi et al. 2024, sections 3.1 and 3.2, of whose tables the bubbles and activations are.
  EXPECT_EQ(drawn("zb_h1", {4, 8}),
            "0F0,0F1,0F2,0F3,0I0,0W0,0F4,0I1,0W1,0F5,0I2,0W2,0F6,0I3,0W3,0F7,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7\n"
            "1F0,1F1,1F2,1I0,1F3,1I1,1W0,1F4,1I2,1W1,1F5,1I3,1W2,1F6,1I4,1W3,1F7,1I5,1W4,1I6,1W5,1I7,1W6,1W7\n"
            "2F0,2F1,2I0,2F2,2I1,2F3,2I2,2W0,2F4,2I3,2W1,2F5,2I4,2W2,2F6,2I5,2W3,2F7,2I6,2W4,2I7,2W5,2W6,2W7\n"
            "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3W0,3F4,3I4,3W1,3F5,3I5,3W2,3F6,3I6,3W3,3F7,3I7,3W4,3W5,3W6,3W7\n");
  EXPECT_EQ(drawn("zb_h2", {4, 8}),
            "0F0,0F1,0F2,0F3,0F4,0F5,0F6,0I0,0W0,0F7,0I1,0W1,0I2,0W2,0I3,0W3,0I4,0W4,0I5,0W5,0I6,0W6,0I7,0W7\n"
            "1F0,1F1,1F2,1F3,1F4,1I0,1F5,1I1,1F6,1I2,1W0,1F7,1I3,1W1,1I4,1W2,1I5,1W3,1I6,1W4,1I7,1W5,1W6,1W7\n"
            "2F0,2F1,2F2,2I0,2F3,2I1,2F4,2I2,2F5,2I3,2F6,2I4,2W0,2F7,2I5,2W1,2I6,2W2,2I7,2W3,2W4,2W5,2W6,2W7\n"
            "3F0,3I0,3F1,3I1,3F2,3I2,3F3,3I3,3F4,3I4,3F5,3I5,3F6,3I6,3W0,3F7,3I7,3W1,3W2,3W3,3W4,3W5,3W6,3W7\n");
  // Narayanan et al. 2019, section 3.2: NUM_OPT_ACTIVE_MINIBATCHES forwards, then one forward and one backward.
  EXPECT_EQ(drawn("pipedream", {2, 3}), "0F0,0F1,0B0,0U0,0F2,0B1,0U1,0B2,0U2\n1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2\n");
  EXPECT_EQ(drawn("pipedream_2bw", {2, 4}),
            "0F0,0F1,0B0,0F2,0B1,0U1,0F3,0B2,0B3,0U3\n1F0,1B0,1F1,1B1,1U1,1F2,1B2,1F3,1B3,1U3\n");
}

}  // namespace
}  // namespace shardproof::plan
