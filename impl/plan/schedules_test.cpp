// SPDX-License-Identifier: Apache-2.0
// What every generator makes: proven over a grid of shapes, and the figures and tables of its paper.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include <gtest/gtest.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/timeline.hpp"
#include "impl/plan/weight_versions.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::plan {
namespace {

using enum ActionKind;
using Counts = std::vector<std::int64_t>;

Schedule of(std::string_view name, const ScheduleShape& shape) { return generate(schedule_generator(name), shape); }
ScheduleExtent extent(const ScheduleShape& shape) {
  return {shape.stages(), shape.microbatches, shape.slices == 1 ? 0 : shape.slices};
}

/// Stages 1-8, microbatches 1 to 2 p + 1, chunks 1-3, slices 1-3.
template <class Visit>
void for_each_shape(const Visit& visit) {
  for (std::int64_t p = 1; p <= 8; ++p)
    for (std::int64_t m = 1; m <= 2 * p + 1; ++m)
      for (std::int64_t chunks = 1; chunks <= 3; ++chunks)
        for (std::int64_t slices = 1; slices <= 3; ++slices)
          visit(ScheduleShape{.ranks = p, .microbatches = m, .chunks = chunks, .slices = slices});
}
std::string text_of(const ScheduleShape& s) {
  return "p " + std::to_string(s.ranks) + " m " + std::to_string(s.microbatches) + " chunks " +
         std::to_string(s.chunks) + " slices " + std::to_string(s.slices);
}

TEST(Schedules, AreThoseOfTheTable) {
  std::vector<std::string_view> names;
  for (const auto* generator : schedules()) names.push_back(generator->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"naive", "gpipe", "one_f_one_b", "interleaved", "zb_h1", "zb_h2",
                                                  "zb_v", "dualpipe", "pipedream", "pipedream_2bw"}));
  EXPECT_EQ(schedule_generator("gpipe").name, "gpipe");
  EXPECT_EQ(schedule_generator("1f1b").name, "one_f_one_b");
  EXPECT_THROW(schedule_generator("gpip"), BadInput);
  EXPECT_THROW(schedule_generator(""), BadInput);
}

TEST(Schedules, AreProvenAndParseBackOverTheGrid) {
  std::map<std::string_view, int> proven;
  std::map<std::string, int> refused;
  for_each_shape([&](const ScheduleShape& shape) {
    for (const auto* generator : schedules()) {
      if (const std::string why = generator->refusal(shape); !why.empty()) {
        EXPECT_THROW(generate(*generator, shape), NotSupported);
        ++refused[std::string(generator->name) + " " + why.substr(0, why.find(' '))];
        continue;
      }
      Schedule schedule = generator->generate(shape);
      ++proven[generator->name];
      EXPECT_EQ(parse_schedule(print(schedule)).ranks, schedule.ranks);
      for (const std::int64_t more : {0, 1, 3}) {
        schedule.send_depth += more;
        EXPECT_EQ(texts_of(prove(schedule, extent(shape))), std::vector<std::string>())
            << generator->name << " " << text_of(shape);
      }
    }
  });
  const int shapes = 80;  // sum over p of 2 p + 1
  EXPECT_EQ(proven["naive"], 3 * shapes);
  EXPECT_EQ(proven["gpipe"], 3 * shapes);
  EXPECT_EQ(proven["one_f_one_b"], 3 * shapes);
  EXPECT_EQ(proven["interleaved"], 2 * shapes);
  for (const char* name : {"zb_h1", "zb_h2", "zb_v", "pipedream"}) EXPECT_EQ(proven[name], shapes) << name;
  EXPECT_EQ(proven["dualpipe"], 4) << "2 p of 2, 4, 6 and 8 ranks";
  EXPECT_EQ(proven["pipedream_2bw"], 8 * 2 + 1) << "p and 2 p; of one rank 3 too";
}

TEST(Schedules, SayWhatTheyCannotServe) {
  const auto why = [](std::string_view name, const ScheduleShape& shape) {
    return schedule_generator(name).refusal(shape);
  };
  EXPECT_EQ(why("gpipe", {.ranks = 2, .microbatches = 2, .chunks = 2}), "chunks 2: a rank holds 1 stage");
  EXPECT_EQ(why("zb_v", {.ranks = 2, .microbatches = 2}), "chunks 1: a rank holds 2 stages");
  EXPECT_EQ(why("interleaved", {.ranks = 2, .microbatches = 2}),
            "chunks 1: a rank holds at least 2 stages, chunks 2; with one it is one_f_one_b");
  EXPECT_EQ(why("zb_h1", {.ranks = 2, .microbatches = 2, .slices = 2}), "slices 2: it takes whole sequences, slices 1");
  EXPECT_EQ(why("dualpipe", {.ranks = 3, .microbatches = 6}), "ranks 3: it needs an even number, as 4");
  EXPECT_EQ(why("dualpipe", {.ranks = 4, .microbatches = 6}),
            "microbatches 6: it needs an even number of at least two a rank, as 8");
  EXPECT_EQ(why("dualpipe", {.ranks = 4, .microbatches = 11}),
            "microbatches 11: it needs an even number of at least two a rank, as 12");
  EXPECT_EQ(why("pipedream_2bw", {.ranks = 4, .microbatches = 10}),
            "microbatches 10: a multiple of those of an update, as 8 or 12");
  EXPECT_EQ(why("pipedream_2bw", {.ranks = 4, .microbatches = 9, .microbatches_per_update = 3}),
            "microbatches per update 3: at least one a rank, 4");
  EXPECT_EQ(why("pipedream", {.ranks = 4, .microbatches = 9, .replicas = {2, 1}}),
            "replicas 2,1: they must be from 1 and their sum, 3, the number of ranks, 4");
  EXPECT_EQ(why("gpipe", {.ranks = 2, .microbatches = 9, .replicas = {1, 1}}),
            "replicas and vertical sync are pipedream's alone");
}

// Narayanan et al. 2021, section 2.2; Korthikanti et al. 2023, section 4.2.3 for interleaved: p (1 + (p-1)/(p v)) of
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
          EXPECT_EQ(peak_in_flight(of("interleaved", {p, m, v})).front(), std::min(p * v + p - 1, m * v))
              << p << m << v;
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

struct ZeroBubbleRow {
  std::int64_t p, m, v;
  ActionCosts costs;                 // T_F, T_B, T_W, T_comm in ms: Qi et al. 2024, table 9
  double f1b1, interleaved, h1, h2;  // bubble rates: table 5
};

TEST(Schedules, ZeroBubblesTableFromItsProfiledTimes) {
  const std::vector<ZeroBubbleRow> rows = {
      {8, 24, 3, {18.522, 18.086, 9.337, 0.601}, 0.2431, 0.1055, 0.1585, 0.1083},
      {8, 32, 3, {18.513, 18.086, 9.331, 0.626}, 0.1985, 0.0818, 0.1242, 0.0837},
      {8, 64, 3, {18.546, 18.097, 9.321, 0.762}, 0.124, 0.0443, 0.0674, 0.0444},
      {8, 24, 4, {29.718, 29.444, 19.927, 0.527}, 0.2347, 0.0808, 0.1323, 0.0698},
      {8, 32, 4, {29.802, 29.428, 19.53, 0.577}, 0.1898, 0.0628, 0.1045, 0.0559},
      {8, 64, 4, {29.935, 29.621, 19.388, 0.535}, 0.1091, 0.032, 0.0554, 0.0294},
      {16, 48, 3, {11.347, 11.248, 8.132, 0.377}, 0.2552, 0.1104, 0.1397, 0.0672},
      {16, 64, 3, {11.307, 11.254, 8.101, 0.379}, 0.2082, 0.0852, 0.1088, 0.0516},
      {16, 128, 3, {11.325, 11.308, 8.109, 0.378}, 0.1251, 0.0445, 0.0576, 0.0266},
      {32, 96, 2, {10.419, 10.207, 7.715, 0.408}, 0.2646, 0.1493, 0.1421, 0.0641},
      {32, 128, 2, {10.408, 10.204, 7.703, 0.408}, 0.2168, 0.1164, 0.1106, 0.049},
      {32, 256, 2, {10.402, 10.248, 7.698, 0.46}, 0.1352, 0.0624, 0.0594, 0.0257},
  };
  for (const ZeroBubbleRow& row : rows) {
    const auto rate = [&](std::string_view name, const ScheduleShape& shape, double part = 1) {
      ActionCosts costs = row.costs;
      for (double* cost : {&costs.forward, &costs.backward_input, &costs.backward_weight}) *cost *= part;
      return timeline(of(name, shape), costs).bubble_of_span();
    };
    const std::string where = "p " + std::to_string(row.p) + " m " + std::to_string(row.m);
    EXPECT_NEAR(rate("one_f_one_b", {row.p, row.m}), row.f1b1, 5e-5) << where;  // four decimals
    EXPECT_NEAR(rate("zb_h1", {row.p, row.m}), row.h1, 5e-5) << where;
    EXPECT_NEAR(rate("zb_h2", {row.p, row.m}), row.h2, 5e-5) << where;
    EXPECT_NEAR(rate("interleaved", {row.p, row.m, row.v}, 1 / static_cast<double>(row.v)), row.interleaved, 0.004)
        << where;
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
      const double bubble = static_cast<double>(p / 2 - 1) * (3 + 2 - 3);
      EXPECT_DOUBLE_EQ(line.makespan, static_cast<double>(3 * m) + bubble) << p << " " << m;
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

TEST(Schedules, PipeDreamGivesMinibatchesToReplicasInTurn) {
  const Schedule schedule = of("pipedream", {.ranks = 3, .microbatches = 5, .replicas = {2, 1}});
  EXPECT_EQ(print(schedule),
            "0F0,0F2,0B0,0U0,0F4,0B2,0U2,0B4,0U4\n"
            "0F1,0F3,0B1,0U1,0B3,0U3\n"
            "1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2,1F3,1B3,1U3,1F4,1B4,1U4\n");
  EXPECT_EQ(texts_of(prove(schedule, {2, 5, 0})), std::vector<std::string>());
  for (const std::vector<std::int64_t>& replicas : {Counts{1, 1, 2}, Counts{3, 1}, Counts{2, 2, 1}, Counts{4}}) {
    const ScheduleShape shape{.ranks = std::accumulate(replicas.begin(), replicas.end(), std::int64_t{0}),
                              .microbatches = 11,
                              .replicas = replicas};
    EXPECT_EQ(texts_of(prove(of("pipedream", shape), extent(shape))), std::vector<std::string>());
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

// Random costs: no action starts before what it needs has ended, and the makespan is at least the busiest rank's time
// and the longest chain's. Dependencies are written here again, from the actions' names alone.
TEST(Schedules, NoActionStartsBeforeWhatItNeeds) {
  std::uint64_t draw = 0;
  const RandomStream random(7, "schedules");
  const auto cost = [&] { return static_cast<double>(1 + random.word(draw++) % 1000) / 100; };
  for_each_shape([&](const ScheduleShape& shape) {
    if (shape.microbatches % 3 != 0) return;
    for (const auto* generator : schedules()) {
      if (!generator->refusal(shape).empty()) continue;
      const Schedule schedule = generator->generate(shape);
      ActionCosts costs{cost(), cost(), cost(), cost()};
      for (std::int64_t s = 0; s < shape.stages(); ++s) costs.stages.push_back(cost());
      const Timeline line = timeline(schedule, costs);
      std::map<std::tuple<std::int64_t, char, std::int64_t, std::int64_t>, std::pair<Span, std::size_t>> spans;
      double busiest = 0;
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        double busy = 0, last = 0;
        for (std::size_t k = 0; k < schedule.ranks[r].size(); ++k) {
          const Action& a = schedule.ranks[r][k];
          const Span& span = line.ranks[r][k];
          ASSERT_GE(span.start, last);
          last = span.end;
          busy += span.end - span.start;
          for (const char kind : {'F', 'I', 'W'})
            if (letter_of(a.kind) == kind || (a.kind == backward && kind != 'F'))
              spans[{a.stage, kind, a.microbatch, a.slice}] = {span, r};
        }
        busiest = std::max(busiest, busy);
      }
      EXPECT_GE(line.makespan, busiest * (1 - 1e-12));
      for (const auto& [name, there] : spans) {
        const auto [stage, kind, m, slice] = name;
        const auto after = [&](std::int64_t of_stage, char of_kind, std::int64_t of_slice) {
          const auto before = spans.find({of_stage, of_kind, m, of_slice});
          ASSERT_NE(before, spans.end());
          if (before->second.first.start == there.first.start && before->second.second == there.second) return;  // B
          const double hop = before->second.second == there.second ? 0 : costs.message;
          EXPECT_GE(there.first.start, (before->second.first.end + hop) * (1 - 1e-12)) << generator->name;
        };
        if (kind == 'F' && stage > 0) after(stage - 1, 'F', slice);
        if (kind == 'F' && slice > 0) after(stage, 'F', slice - 1);
        if (kind == 'I') after(stage, 'F', slice);
        if (kind == 'I' && stage + 1 < shape.stages()) after(stage + 1, 'I', slice);
        if (kind == 'I' && slice != Action::whole && slice + 1 < shape.slices) after(stage, 'I', slice + 1);
        if (kind == 'W') after(stage, 'I', slice);
      }
    }
  });
}

/// A fault planted in a schedule, and what must be said of it.
struct Planted {
  const char* fault;
  void (*plant)(Schedule&);
  std::string_view says;
};

std::vector<Action>& last(Schedule& s) { return s.ranks.back(); }
std::size_t first_of(const std::vector<Action>& actions, bool (*is)(const Action&)) {
  return static_cast<std::size_t>(std::ranges::find_if(actions, is) - actions.begin());
}
bool is_forward(const Action& a) { return a.kind == forward; }
bool is_inputs(const Action& a) { return is_input_backward(a); }
bool is_weights(const Action& a) { return is_weight_backward(a); }

const Planted planted[] = {
    {"missing",
     [](Schedule& s) {
       const auto is_kept = [](const Action& a) { return a.kind == update; };
       last(s).erase(std::find_if_not(last(s).rbegin(), last(s).rend(), is_kept).base() - 1);
     },
     "is missing"},
    {"doubled", [](Schedule& s) { last(s).push_back(last(s).front()); }, "is doubled"},
    {"early",
     [](Schedule& s) {
       auto& actions = last(s);
       const std::size_t at = first_of(actions, is_inputs);
       std::rotate(actions.begin(), actions.begin() + static_cast<std::ptrdiff_t>(at),
                   actions.begin() + static_cast<std::ptrdiff_t>(at) + 1);
     },
     "comes before"},
    {"weights first",
     [](Schedule& s) {
       auto& actions = last(s);
       const std::size_t at = first_of(actions, is_weights);
       const Action weights = {actions[at].stage, backward_weight, actions[at].microbatch, actions[at].slice};
       actions.insert(actions.begin(), weights);
     },
     "comes before"},
    {"another rank",
     [](Schedule& s) {
       auto& there = s.ranks.front();
       const std::size_t at = first_of(last(s), is_weights);
       there.push_back(last(s)[at]);
       last(s).erase(last(s).begin() + static_cast<std::ptrdiff_t>(at));
     },
     "belongs on rank"},
    {"no such stage", [](Schedule& s) { last(s).front().stage += 1000; }, "is of stage 10"},
    {"no such microbatch", [](Schedule& s) { last(s).front().microbatch += 1000; }, "is of microbatch 10"},
};

TEST(Schedules, PlantedFaultsAreRejected) {
  for (const auto* generator : schedules()) {
    const ScheduleShape shape{.ranks = 4, .microbatches = 8, .chunks = generator->chunks};
    for (const Planted& one : planted) {
      Schedule schedule = generate(*generator, shape);
      one.plant(schedule);
      const auto texts = texts_of(prove(schedule, extent(shape)));
      const auto says = [&](const std::string& text) { return text.find(one.says) != text.npos; };
      EXPECT_TRUE(std::ranges::any_of(texts, says))
          << generator->name << ", " << one.fault << ": " << (texts.empty() ? "accepted" : texts.front());
    }
  }
}

/// Two forwards of the last rank exchanged: the one that arrives first is not the one that is waited for. Rank 0 sends
/// in the old order, so no depth helps.
TEST(Schedules, SwappedForwardsAreADeadlock) {
  for (const auto* generator : schedules()) {
    const ScheduleShape shape{.ranks = 4, .microbatches = 8, .chunks = generator->chunks};
    Schedule schedule = generate(*generator, shape);
    schedule.send_depth += 8;
    auto& actions = schedule.ranks.back();
    const std::size_t a = first_of(actions, is_forward);
    const auto same_stage = [&](const Action& b) { return is_forward(b) && b.stage == actions[a].stage; };
    const auto b = std::find_if(actions.begin() + static_cast<std::ptrdiff_t>(a) + 1, actions.end(), same_stage);
    std::swap(actions[a].microbatch, b->microbatch);
    const auto texts = texts_of(prove(schedule, extent(shape)));
    const auto says = [&](const std::string& text) {
      return text.starts_with("deadlock") || text.find("comes before") != text.npos;  // where it went back in between
    };
    EXPECT_TRUE(std::ranges::any_of(texts, says)) << generator->name;
    if (generator->name == "gpipe") {
      EXPECT_EQ(texts.size(), 1u);
      EXPECT_NE(texts[0].find("rank 3 waits in 3F1 for 2F1 of rank 2, which sent 2F0 first"), std::string::npos)
          << texts[0];
    }
  }
}

/// A chain of so many ranks in which one works at a time: what grew with the square of them would take minutes here.
TEST(Schedules, LongPipelinesAreProvenInLinearTime) {
  for (const char* name : {"naive", "gpipe", "one_f_one_b", "zb_h1"}) {
    const ScheduleShape shape{.ranks = 1 << 17, .microbatches = 1};
    EXPECT_EQ(prove(of(name, shape), extent(shape)).size(), 0u) << name;
  }
  const ScheduleShape many{.ranks = 2, .microbatches = 2, .chunks = 1 << 16};
  EXPECT_EQ(prove(of("interleaved", many), extent(many)).size(), 0u);
}

TEST(Schedules, NeighboursThatBothSendFirstNeedADepth) {
  for (const char* name :
       {"one_f_one_b", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe", "pipedream", "pipedream_2bw"}) {
    const ScheduleShape shape{.ranks = 4, .microbatches = 8, .chunks = schedule_generator(name).chunks};
    Schedule schedule = of(name, shape);
    EXPECT_EQ(texts_of(prove(schedule, extent(shape))), std::vector<std::string>()) << name;
    schedule.send_depth = 0;
    const auto texts = texts_of(prove(schedule, extent(shape)));
    ASSERT_EQ(texts.size(), 1u) << name;
    EXPECT_TRUE(texts[0].starts_with("deadlock with rendezvous sends:")) << texts[0];
  }
}

TEST(Schedules, AVersionThatIsNotThereIsRejected) {
  const auto broken = [](std::string_view name, const ScheduleShape& shape, WeightRule rule, const auto& plant) {
    Schedule schedule = of(name, shape);
    schedule.weights = rule;
    plant(schedule);
    const auto texts = texts_of(prove(schedule, extent(shape)));
    return texts.empty() ? "accepted" : texts.front();
  };
  const auto nothing = [](Schedule&) {};
  EXPECT_EQ(broken("pipedream", {.ranks = 4, .microbatches = 8}, WeightRule::flushed, nothing),
            "rank 0: 0F4 comes after an update of stage 0, and its schedule flushes before updates");
  const auto late = [](Schedule& s) {  // the last rank's first update moves behind its fifth forward
    auto& actions = s.ranks.back();
    const auto at = actions.begin() + 2;
    std::rotate(at, at + 1, actions.begin() + 13);
  };
  EXPECT_EQ(
      broken("pipedream", {.ranks = 4, .microbatches = 12, .vertical_sync = true}, WeightRule::vertical_sync, late),
      "accepted")
      << "versions lag behind by more than one update";
  const auto never = [](Schedule& s) {
    std::erase_if(s.ranks.back(), [](const Action& a) { return a.kind == update; });
  };
  EXPECT_NE(
      broken("pipedream", {.ranks = 4, .microbatches = 12, .vertical_sync = true}, WeightRule::vertical_sync, never)
          .find("before it is written: 0 updates have been made"),
      std::string::npos);
  EXPECT_NE(broken("pipedream_2bw", {.ranks = 4, .microbatches = 16}, WeightRule::double_buffered, never)
                .find("3F8 reads version 1 of stage 3's weights before it is written"),
            std::string::npos);
}

// The papers' figures of few ranks, read off them.
TEST(Schedules, LookLikeTheirPapersFigures) {
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
  // Its figure 4 below, of 2 ranks in place of 4.
  EXPECT_EQ(drawn("interleaved", {2, 4, 2}),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
  // Narayanan et al. 2019, figure 4: the steady state of one forward and one backward.
  EXPECT_EQ(drawn("pipedream", {2, 3}), "0F0,0F1,0B0,0U0,0F2,0B1,0U1,0B2,0U2\n1F0,1B0,1U0,1F1,1B1,1U1,1F2,1B2,1U2\n");
  // Qi et al. 2024, figure 3 (H1), its last two of 4 ranks; figure 2's 1F1B has the same order of F and backward.
  EXPECT_EQ(drawn("zb_h1", {2, 4}),
            "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0F3,0I2,0W2,0I3,0W3\n1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1F3,1I3,1W2,1W3\n");
}

}  // namespace
}  // namespace shardproof::plan
