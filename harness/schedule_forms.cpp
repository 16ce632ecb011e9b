// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_forms.hpp"

#include <algorithm>
#include <array>

#include "impl/plan/checker.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::harness {
namespace {

using Value = std::optional<double>;

double ranks(const ScheduleCase& at) { return static_cast<double>(at.shape.ranks); }
double microbatches(const ScheduleCase& at) { return static_cast<double>(at.shape.microbatches); }
double chunks(const ScheduleCase& at) { return static_cast<double>(at.shape.chunks); }
double place(const ScheduleCase& at) { return static_cast<double>(at.rank); }

/// Stages are equal and take some time, their messages none, sequences are whole: what all the papers assume.
bool plain(const ScheduleCase& at) {
  const auto& c = at.costs;
  return c.stages.empty() && c.message == 0 && !c.overlapped && at.shape.slices == 1 &&
         c.forward + c.backward_input + c.backward_weight > 0;
}
bool full(const ScheduleCase& at) { return at.shape.microbatches >= at.shape.ranks; }
bool steady(const ScheduleCase& at) { return at.shape.microbatches >= 2 * at.shape.ranks; }
/// Of whole sequences.
bool whole_and_steady(const ScheduleCase& at) { return at.shape.slices == 1 && steady(at); }
bool in_groups(const ScheduleCase& at) { return at.shape.microbatches % at.shape.ranks == 0; }
bool equal_costs(const ScheduleCase& at) {
  return at.costs.forward == at.costs.backward_input && at.costs.forward == at.costs.backward_weight;
}
/// No W is longer than the F or I that it stands for in another rank's gap.
bool zero_bubble(const ScheduleCase& at) {
  return plain(at) && steady(at) && at.costs.backward_weight <= std::min(at.costs.forward, at.costs.backward_input);
}
Value where(bool holds, double value) { return holds ? Value(value) : std::nullopt; }

Value of_all_time(const ScheduleCase& at) {
  return where(plain(at), (ranks(at) - 1) / (microbatches(at) + ranks(at) - 1));
}
Value of_ideal_time(const ScheduleCase& at) { return where(plain(at), (ranks(at) - 1) / microbatches(at)); }
Value of_chunks(const ScheduleCase& at) {
  return where(plain(at) && in_groups(at), (ranks(at) - 1) / microbatches(at) / chunks(at));
}
Value all_microbatches(const ScheduleCase& at) { return where(at.shape.slices == 1, microbatches(at)); }
Value all_ranks(const ScheduleCase& at) { return where(at.shape.slices == 1 && full(at) && at.rank == 0, ranks(at)); }
Value of_groups(const ScheduleCase& at) {
  const bool holds = in_groups(at) && at.shape.microbatches > at.shape.ranks && at.rank == 0;
  return where(holds, (1 + (ranks(at) - 1) / (ranks(at) * chunks(at))) * ranks(at) * chunks(at));
}
Value h1_time(const ScheduleCase& at) {
  const auto& c = at.costs;
  return where(zero_bubble(at), (ranks(at) - 1) * (c.forward + c.backward_input - c.backward_weight));
}
Value h2_time(const ScheduleCase& at) {
  const auto& c = at.costs;
  return where(zero_bubble(at), (ranks(at) - 1) * (c.forward + c.backward_input - 2 * c.backward_weight));
}
Value h1_activations(const ScheduleCase& at) {
  return where(whole_and_steady(at), ranks(at) - place(at) + place(at) * at.after_input);
}
Value h2_activations(const ScheduleCase& at) {
  return where(whole_and_steady(at), 2 * (ranks(at) - place(at)) - 1 + 2 * place(at) * at.after_input);
}
Value v_bubble(const ScheduleCase& at) { return where(zero_bubble(at) && equal_costs(at), 0); }
Value v_activations(const ScheduleCase& at) { return where(steady(at) && at.after_input == 1, 2 * ranks(at)); }
Value dual_time(const ScheduleCase& at) {
  const auto& c = at.costs;
  const double whole = c.backward_input + c.backward_weight, block = c.forward + whole;
  const bool holds = c.overlapped && c.stages.empty() && c.message == 0 && equal_costs(at);
  return where(holds, (ranks(at) / 2 - 1) * (block + whole - 3 * c.backward_weight));
}
Value dual_activations(const ScheduleCase& at) { return where(at.after_input == 1, ranks(at) + 1); }
Value versions(const ScheduleCase& at) {
  return where(steady(at) && at.shape.replicas.empty(), at.shape.vertical_sync ? ranks(at) : ranks(at) - place(at));
}
Value two_versions(const ScheduleCase& at) {
  const auto& shape = at.shape;
  const std::int64_t per_update = shape.microbatches_per_update == 0 ? shape.ranks : shape.microbatches_per_update;
  return where(shape.microbatches >= 2 * per_update, 2);
}

constexpr std::string_view huang = "Huang et al. 2019, section 2.3", ptdp = "Narayanan et al. 2021, section 2.2.1",
                           zero = "Qi et al. 2024, table 2", deepseek = "DeepSeek-AI 2024, table 2";

constexpr ScheduleForm forms[] = {
    {"gpipe", "bubble_fraction", "(K-1)/(M+K-1)", huang, of_all_time},
    {"gpipe", "bubble_overhead", "(p-1)/m", ptdp, of_ideal_time},
    {"gpipe", "activations", "m", ptdp, all_microbatches},
    {"one_f_one_b", "bubble_overhead", "(p-1)/m", ptdp, of_ideal_time},
    {"one_f_one_b", "activations", "at most p", ptdp, all_ranks},
    {"interleaved", "bubble_overhead", "(1/v)(p-1)/m", "Narayanan et al. 2021, section 2.2.2", of_chunks},
    {"interleaved", "activations", "(1 + (p-1)/(p v)) p v, of chunks", "Korthikanti et al. 2022, section 4.2.3",
     of_groups},
    {"zb_h1", "span_bubble_time", "(p-1)(T_F + T_B - T_W)", zero, h1_time},
    {"zb_h1", "activations", "(p-i) M_B + i M_W", zero, h1_activations},
    {"zb_h2", "span_bubble_time", "(p-1)(T_F + T_B - 2 T_W)", zero, h2_time},
    {"zb_h2", "activations", "(2p-2i-1) M_B + 2i M_W", zero, h2_activations},
    {"zb_v", "bubble_of_span", "0 where T_F = T_B = T_W", "Qi et al. 2024, section 6", v_bubble},
    {"zb_v", "activations", "2p, of chunks", "Qi et al. 2024, section 6", v_activations},
    {"dualpipe", "bubble_time", "(PP/2-1)(F&B + B - 3W)", deepseek, dual_time},
    {"dualpipe", "activations", "PP + 1", deepseek, dual_activations},
    {"pipedream", "weight_versions", "n - i; with vertical sync t - n + 1 to t", "Narayanan et al. 2019, section 3.3",
     versions},
    {"pipedream_2bw", "weight_versions", "2", "Narayanan et al. 2021b, section 3.1", two_versions},
};

constexpr std::array<std::string_view, 7> quantities = {"bubble_fraction", "bubble_overhead",  "bubble_of_span",
                                                        "bubble_time",     "span_bubble_time", "activations",
                                                        "weight_versions"};
// In their order.
constexpr std::array<std::string_view, 7> meanings = {
    "bubble fraction: idle time of all ranks' time",
    "bubble overhead: idle over busy time",
    "bubble of the longest span, first start to last end of a rank",
    "bubble time: makespan less a rank's mean busy time",
    "bubble time of the longest span",
    "activations: the most that a rank holds, in microbatches of a stage",
    "weight versions: the most of a stage's that a rank keeps"};

}  // namespace

std::span<const std::string_view> schedule_quantities() { return quantities; }
std::string_view meaning_of(std::string_view quantity) {
  return meanings.at(static_cast<std::size_t>(std::ranges::find(quantities, quantity) - quantities.begin()));
}
std::span<const ScheduleForm> schedule_forms() { return forms; }

const ScheduleForm* schedule_form(std::string_view schedule, std::string_view quantity) {
  const auto* const found = std::ranges::find_if(
      forms, [&](const ScheduleForm& form) { return form.schedule == schedule && form.quantity == quantity; });
  return found == std::end(forms) ? nullptr : found;
}

double measured(std::string_view quantity, const plan::Schedule& schedule, const plan::Timeline& timeline,
                const ScheduleCase& at) {
  if (quantity == "activations") return plan::peak_activations(schedule, at.after_input).at(at.rank);
  if (quantity == "weight_versions") {
    const plan::ScheduleIndex index(schedule, plan::extent_of(schedule));
    return static_cast<double>(plan::weight_versions(schedule, index).most_kept.at(at.rank));
  }
  const double busy = timeline.busy / static_cast<double>(schedule.ranks.size());
  if (quantity == "bubble_fraction") return timeline.bubble_fraction();
  if (quantity == "bubble_overhead") return timeline.bubble_overhead();
  if (quantity == "bubble_of_span") return timeline.bubble_of_span();
  return (quantity == "bubble_time" ? timeline.makespan : timeline.longest_span()) - busy;
}

}  // namespace shardproof::harness
