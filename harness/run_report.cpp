// SPDX-License-Identifier: Apache-2.0
#include "harness/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "harness/budget.hpp"
#include "harness/figures.hpp"
#include "harness/held.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"
#include "impl/plan/layout.hpp"

namespace shardproof::harness {
namespace {

using Row = std::vector<std::string>;

Row throughput(const workload::Workload& workload, const Trained& trained) {
  const auto rate = tokens_per_second(workload, trained);
  const std::int64_t turn = steps_of_a_turn(workload.stale.replicas);
  if (!rate)
    return {"throughput", fmt::format("not measured: no step was taken after the first{}",
                                      turn == 1 ? "" : fmt::format(" {}", turn))};
  const std::int64_t last = std::min(std::ssize(trained.steps), std::max(1 + most_recorded_steps, 2 * turn));
  return {"throughput", fmt::format("{:.0f} tokens/s (wall, quartiles {:.0f} to {:.0f}, steps {} to {})", (*rate)[1],
                                    (*rate)[0], (*rate)[2], turn + 1, last / turn * turn)};
}

/// Nothing unless it was measured.
std::vector<Row> twin(const Record& record) {
  const double median = figure_of(record, "twin_efficiency_median");
  if (std::isnan(median)) return {};
  const double rounds = figure_of(record, "twin_rounds");
  return {
      {"twin", fmt::format("{:.3f} of the speed of {} independent one-rank runs (median of {:.0f} rounds; {:.3f} to "
                           "{:.3f} {})",
                           median, record.ranks, rounds, figure_of(record, "twin_efficiency_low"),
                           figure_of(record, "twin_efficiency_high"),
                           rounds < 6 ? "are all, too few for an interval" : "holds the true one at 95 %")}};
}

/// What the recorded steps say.
std::vector<Row> timing(const Record& record) {
  const auto of = [&](std::string_view name) { return figure_of(record, name); };
  if (std::isnan(of("time_compute_share"))) return {};
  std::vector<Row> rows;
  rows.push_back(
      {"time",
       fmt::format("{:.1f} % compute, {:.1f} % communication, {:.1f} % wait, {:.1f} % copy, {:.1f} % host "
                   "(engine: {:.2f} % as processor time)",
                   100 * of("time_compute_share"), 100 * of("time_communication_share"), 100 * of("time_wait_share"),
                   100 * of("time_copy_share"), 100 * of("time_host_share"), 100 * of("engine_processor_share"))});
  if (record.ranks > 1)
    rows.push_back(
        {"replay", fmt::format("{:.0f} tokens/s (quartiles {:.0f} to {:.0f}) where each rank has a device, of "
                               "{:.0f} operations of the same steps with {}{}; {:.2f} of the wall's time",
                               of("tokens_per_second_replay_median"), of("tokens_per_second_replay_lower_quartile"),
                               of("tokens_per_second_replay_upper_quartile"), of("replay_operations"),
                               of("replay_processor_time") == 1 ? "processor time" : "wall time",
                               over_text(record.fabric), of("replay_over_wall"))});
  std::string bubble;
  for (const std::string kind : {"formula", "replay", "wall"}) {
    const double fraction = of(fmt::format("bubble_{}_fraction", kind));
    if (std::isnan(fraction)) continue;
    bubble += fmt::format("{}{}{} {:.1f} %", bubble.empty() ? "" : ", ", kind,
                          kind == "replay" ? over_text(record.fabric) : "", 100 * fraction);
  }
  if (const double steps = of("bubble_replay_steady_steps"); !std::isnan(steps))
    bubble += fmt::format(" of {:.0f} steps in the steady state", steps);
  else if (!bubble.empty())
    bubble += " of the pipeline's time";
  if (!bubble.empty()) rows.push_back({"bubble", bubble});
  std::string makespan;
  for (const std::string kind : {"formula", "replay", "wall"}) {
    const double seconds = of("pipeline_" + kind + "_seconds");
    if (std::isnan(seconds)) continue;
    makespan += fmt::format("{}{}{} {:.4g} s", makespan.empty() ? "" : ", ", kind,
                            kind == "formula"  ? " at the stages' recorded costs"
                            : kind == "replay" ? over_text(record.fabric)
                                               : "",
                            seconds);
  }
  if (!makespan.empty()) rows.push_back({"pipeline", makespan + " a step"});
  if (const double mfu = of("mfu"); !std::isnan(mfu))
    rows.push_back(
        {"MFU", fmt::format("{:.1f} % of {:.1f} GFLOP/s a rank (f32 matmul 2048^3 on one thread, best of 10)",
                            100 * mfu, 1e-9 * of("peak_flops_per_second"))});
  return rows;
}

Row learning_row(const Learning& learned) {
  std::string text = fmt::format("loss {:.4f} to {:.4f}; mean of the last {} {:.4f}", learned.first_loss,
                                 learned.last_loss, learned.steps, learned.mean);
  if (!learned.floor) return {"learning", text};
  const double percent = 100 * (learned.mean / *learned.floor - 1);  // of one token there is no entropy
  text += std::isfinite(percent) ? fmt::format(", {:.2f} % {}", std::fabs(percent), percent < 0 ? "below" : "above")
                                 : ", above";
  text += fmt::format(" the source's entropy {:.4f} (standard error {:.4f})", *learned.floor, *learned.standard_error);
  return {"learning", text};
}

std::string bytes_text(const std::vector<std::int64_t>& bytes) {
  if (bytes.empty()) return "";
  const auto [least, most] = std::ranges::minmax(bytes);
  return least == most ? print_bytes(most) : fmt::format("{} to {}", print_bytes(least), print_bytes(most));
}

Row row_of(const Held& h, std::string name) {
  std::string form = bytes_text(h.forms);
  if (!h.forms.empty()) form += h.equal ? ", equal" : ", DIFFERS";
  return {std::move(name), bytes_text(h.counted), std::move(form)};
}

// "memory_parameter_peak_bytes" as "parameter peak"
std::string short_name(const std::string& name) {
  std::string text = name.substr(std::string_view("memory_").size());
  text.resize(text.size() - std::string_view("_bytes").size());
  if (text.ends_with("_peak")) text[text.size() - 5] = ' ';
  return text;
}

std::vector<Row> memory(const Record& record) {
  std::vector<Row> rows = {{record.ranks > 1 ? "memory of a rank" : "memory", "counted", "form"}};
  for (const Held& h : held(record, "memory_", "_bytes")) rows.push_back(row_of(h, "  " + short_name(h.name)));
  return rows;
}

std::vector<Row> traffic(const Record& record) {
  std::vector<Row> rows = {{"traffic on the wire, all ranks", "counted", "form"}};
  for (const Held& h : held(record, "traffic_", "_wire_bytes")) {
    if (h.counted == std::vector<std::int64_t>{0}) continue;
    const TrafficName of = traffic_name(h.name);
    rows.push_back(row_of(h, fmt::format("  {} {} {}", of.axis, of.kind, of.purpose)));
  }
  return rows;
}

}  // namespace

std::string mfu_warning(const Record& record) {
  const double mfu = figure_of(record, "mfu");
  if (!(mfu > 1)) return "";
  return fmt::format(
      "the MFU is {:.1f} %: the measured peak, {:.1f} GFLOP/s a rank, is below what the training reached", 100 * mfu,
      1e-9 * figure_of(record, "peak_flops_per_second"));
}

std::string stages_warning(const workload::Workload& workload, const plan::Strategy& strategy) {
  if (!strategy.layers.empty()) return "";
  const auto stages = plan::stage_layers(workload, strategy);
  const auto empty = std::ranges::count_if(stages, [](const plan::Range& layers) { return layers.size() == 0; });
  if (empty == 0) return "";
  return fmt::format("{} of the {} stages of {} {} no layer, for {} has {}", empty, stages.size(),
                     plan::print(strategy), empty == 1 ? "has" : "have", workload.name, workload.layers);
}

std::string digest_text(const std::string& digest, std::int64_t steps) {
  return digest + (steps == 1 ? " (step 1)" : fmt::format(" (steps 1 to {})", steps));
}

std::string report(const Record& record, const workload::Workload& workload, const Trained& trained) {
  std::vector<Row> rows;
  if (!trained.steps.empty()) {
    rows.push_back(throughput(workload, trained));
    for (auto& row : timing(record)) rows.push_back(std::move(row));
    for (auto& row : twin(record)) rows.push_back(std::move(row));
    if (const auto learned = learning(workload, trained.steps)) rows.push_back(learning_row(*learned));
    if (const double mean = figure_of(record, "loss_mean_synchronous"); !std::isnan(mean)) {
      const double reached = figure_of(record, "tokens_to_synchronous_loss");
      const std::string when =
          std::isnan(reached) ? "not reached within" : fmt::format("reached after {:.0f} of", reached);
      rows.push_back(
          {"staleness", fmt::format("the synchronous program's mean at equal tokens is {:.4f}, {} {:.0f} tokens", mean,
                                    when, figure_of(record, "tokens_trained"))});
    } else if (record.contract == "STALE" && record.judged == "unchecked") {
      rows.push_back({"staleness", "not compared with the synchronous program, which --no-check does not train"});
    }
  }
  if (!record.digest.empty()) rows.push_back({"digest", digest_text(record.digest, record.digest_steps)});
  std::string verdict =
      fmt::format("{} (judged: {}; {} elements compared)", name_of(record.verdict), record.judged, record.compared);
  // Why it is no success stands on stderr, with the line that repeats it.
  if (!record.reason.empty() && record.verdict == Verdict::skipped) verdict += ": " + record.reason;
  rows.push_back({"verdict", verdict});
  std::string text = trained.steps.empty() ? "" : table(memory(record));
  if (!trained.steps.empty() && record.ranks > 1) text += table(traffic(record));
  return text + table(rows);
}

}  // namespace shardproof::harness
