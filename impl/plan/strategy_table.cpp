// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/strategy_table.hpp"

#include <numeric>

#include <fmt/format.h>

#include "impl/plan/schedule.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::plan {
namespace {

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleGenerator* generator : schedules()) names.emplace_back(generator->name);
  names.push_back(fmt::format("{}PATH", ScheduleSource::prefix));
  return names;
}

std::vector<std::string> switch_names() { return {"off", "on"}; }

std::vector<std::string> boundary_names() { return {"whole", "scattered"}; }

std::vector<std::string> attention_names() { return {"stored", "tiled"}; }

std::vector<std::string> sync_names() { return {"all_reduce"}; }

std::vector<std::string> optimizer_names() {
  const auto names = workload::names_of(workload::OptimizerKind{});
  return {names.begin(), names.end()};
}

std::string_view without_data_group(const Strategy& s) { return s.dp == 1 ? "with dp1" : ""; }
std::string_view without_stages(const Strategy& s) { return s.pp == 1 ? "with pp1" : ""; }
/// A file says itself for how many ranks it is.
std::string_view without_pipeline(const Strategy& s) {
  const auto file = s.schedule.file();
  return s.pipeline_ranks() > 1 || (file && file->schedule.ranks.size() != 1) ? "" : "with pp1";
}
std::string_view without_chunks(const Strategy& s) {
  return s.pp == 1 ? "with pp1" : s.schedule.is_file() ? "with a file's schedule, whose stages are its own" : "";
}
std::string_view without_boundary(const Strategy& s) { return s.pp == 1 ? "with pp1" : s.tp == 1 ? "with tp1" : ""; }
std::string_view without_order(const Strategy& s) {
  return (s.dp > 1) + (s.pipeline_ranks() > 1) + (s.tp > 1) < 2 ? "where fewer than two axes are above 1" : "";
}

// A schedule is made and proven whole, which for so many takes seconds and some hundred megabytes.
constexpr std::int64_t most_pipeline_ranks = std::int64_t{1} << 17, most_stages = std::int64_t{1} << 18;
// Per rank a schedule has an action or two for each.
constexpr std::int64_t most_microbatches = std::int64_t{1} << 22;

bool is_stale(const Strategy& s) { return schedule_generator(s.schedule).stale != workload::StaleProgram::Rule::none; }

/// Of a schedule whose stages update by themselves, what needs all of them at once.
std::string wrong_stale(const Strategy& s, const workload::Workload& given) {
  const workload::Workload w = with_program_keys(given, s);
  std::vector<std::string> wrong;
  if (w.clip > 0)
    wrong.push_back(
        fmt::format("clip is {}, and no stage has the whole gradient when it updates (legal: clip=off)", w.clip));
  if (w.tied_head && w.stale.stage_layers.size() > 1)
    wrong.push_back(
        "tied_head is true, one weight of the first and the last stage, which update by themselves (legal: --set "
        "tied_head=false)");
  if (!w.shared_block.empty()) {
    std::int64_t end = 0;
    for (const auto layers : w.stale.stage_layers) {
      end += layers;
      if ((w.shared_block[0] < end) != (w.shared_block[1] < end)) {
        wrong.push_back(
            fmt::format("shared_block is {},{}, one block of two stages, which update by themselves (legal: layers "
                        "that put both on "
                        "one stage, or --set shared_block=)",
                        w.shared_block[0], w.shared_block[1]));
        break;
      }
    }
  }
  if (s.schedule == "pipedream" && s.microbatches > 1)
    wrong.push_back(
        fmt::format("microbatches is {}, and each batch is one minibatch (legal: microbatches=1)", s.microbatches));
  if (w.steps > most_microbatches / s.pp / s.microbatches)
    wrong.push_back(
        fmt::format("steps {}: stages x microbatches x steps must be at most {}", w.steps, most_microbatches));
  return workload::joined(wrong, "; ");
}

std::string_view without_versions(const Strategy& s) {
  return s.schedule == "pipedream" ? "" : "without schedule=pipedream";
}

std::string too_many_ranks(const Strategy& s, const workload::Workload&) {
  return s.pp > most_pipeline_ranks ? fmt::format("a pipeline is of at most {} ranks", most_pipeline_ranks) : "";
}

/// As if ranks, chunks and replicas were the schedule's own: those are refused by themselves.
std::string wrong_shape(const Strategy& s, const workload::Workload& w) {
  if (s.pp > most_pipeline_ranks) return "";
  if (is_stale(s))
    if (auto why = wrong_stale(s, w); !why.empty()) return why;
  Strategy own = s;
  own.chunks = 0, own.replicas = {};
  return schedule_generator(s.schedule).refusal(schedule_shape(own));
}

std::string wrong_chunks(const Strategy& s, const workload::Workload& w) {
  if (!wrong_shape(s, w).empty()) return "";
  const ScheduleShape shape = schedule_shape(s);
  if (s.pp <= most_pipeline_ranks && shape.chunks > most_stages / s.pp)
    return fmt::format("stages, ranks x chunks, must be at most {}", most_stages);
  const std::string why = schedule_generator(s.schedule).refusal(shape);
  return why.empty() ? "" : fmt::format("schedule={}: {}", s.schedule.text(), why);
}

std::string wrong_replicas(const Strategy& s, const workload::Workload& w) {
  const std::int64_t given = std::ssize(s.replicas), ranks = s.pipeline_ranks();
  if (ranks > most_pipeline_ranks)
    return fmt::format("they are {} ranks, a pipeline is of at most {}", ranks, most_pipeline_ranks);
  if (given != s.pp) return fmt::format("it has {} stage{}, pp{} has {}", given, given == 1 ? "" : "s", s.pp, s.pp);
  for (std::size_t stage = 0; stage < s.replicas.size(); ++stage)
    if (const std::int64_t r = s.replicas[stage]; w.steps % r != 0)
      return fmt::format("steps {}: the ranks of stage {} take {} in turn, a multiple of that as {}", w.steps, stage, r,
                         (w.steps / r + 1) * r);
  return schedule_generator(s.schedule).refusal(schedule_shape(s, w.steps));
}

std::string wrong_layers(const Strategy& s, const workload::Workload& w) {
  Strategy shaped = s;
  if (!wrong_chunks(s, w).empty()) shaped.chunks = 0;  // refused by themselves
  const auto given = static_cast<std::int64_t>(s.layers.size()), stages = schedule_shape(shaped).stages();
  const std::int64_t sum = std::accumulate(s.layers.begin(), s.layers.end(), std::int64_t{0});
  if (given != stages && stages > 0)
    return fmt::format(
        "it has {} stage{}, {} has {}", given, given == 1 ? "" : "s",
        stages == s.pp ? fmt::format("pp{}", s.pp) : fmt::format("pp{} schedule={}", s.pp, s.schedule.text()), stages);
  if (sum != w.layers) return fmt::format("it sums to {}, {} has {} layers", sum, w.name, w.layers);
  return "";
}

std::string too_many_microbatches(const Strategy& s, const workload::Workload&) {
  return s.microbatches > most_microbatches / std::max<std::int64_t>(schedule_shape(s).stages(), 1)
             ? fmt::format("stages x microbatches must be at most {}", most_microbatches)
             : "";
}

std::string wrong_optimizer(const Strategy& s, const workload::Workload& w) {
  const auto findings = workload::findings(with_program_keys(w, s));
  return findings.empty() || !workload::findings(w).empty() ? "" : findings.front();
}

using S = Strategy;
using enum KeyKind;

constexpr KeyRow table[] = {
    {.name = "dp",
     .member = &S::dp,
     .kind = layout,
     .meaning = "ranks that see different samples; dp*, pp* or tp* takes what the others leave of the ranks",
     .is_axis = true},
    {.name = "pp",
     .member = &S::pp,
     .kind = layout,
     .meaning = "ranks that hold different layers",
     .is_axis = true,
     .refused = too_many_ranks},
    {.name = "tp",
     .member = &S::tp,
     .kind = layout,
     .meaning = "ranks that hold different slices of each layer",
     .is_axis = true},
    {.name = "order",
     .member = &S::order,
     .kind = layout,
     .meaning = "axes of the mesh, outermost first",
     .no_effect = without_order},
    {.name = "schedule",
     .member = &S::schedule,
     .kind = layout,
     .meaning = "order of the pipeline's forwards and backwards; pipedream and pipedream_2bw are programs of their own",
     .names = schedule_names,
     .no_effect = without_pipeline,
     .refused = wrong_shape},
    {.name = "chunks",
     .member = &S::chunks,
     .kind = layout,
     .meaning = "stages that a pipeline rank holds, of schedules that deal out several",
     .no_effect = without_chunks,
     .refused = wrong_chunks},
    {.name = "vertical_sync",
     .member = &S::vertical_sync,
     .kind = program,
     .meaning = "of pipedream: a step reads the version that it met on the first stage on all of them",
     .names = switch_names,
     .no_effect = without_versions},
    {.name = "replicas",
     .member = &S::replicas,
     .kind = program,
     .meaning = "of pipedream: ranks of each stage, which take steps in turn and sum their gradients",
     .empty = "one",
     .least = 1,
     .no_effect = without_versions,
     .refused = wrong_replicas},
    {.name = "microbatches",
     .member = &S::microbatches,
     .kind = layout,
     .meaning = "parts that a data rank's samples are accumulated over",
     .refused = too_many_microbatches},
    {.name = "layers",
     .member = &S::layers,
     .kind = layout,
     .meaning = "layers of each stage; balanced: the first stages get one more",
     .empty = "balanced",
     .no_effect = without_stages,
     .refused = wrong_layers},
    {.name = "boundary",
     .member = &S::boundary,
     .kind = layout,
     .meaning = "what crosses stages: all of it from every tensor rank, or a part each, gathered behind it",
     .names = boundary_names,
     .no_effect = without_boundary},
    {.name = "attention",
     .member = &S::attention,
     .kind = layout,
     .meaning = "what attention keeps: probabilities, or of their rows maximum and sum",
     .names = attention_names,
     .is_other_algebra = true},
    {.name = "sync",
     .member = &S::sync,
     .kind = layout,
     .meaning = "how gradients meet in the data group",
     .names = sync_names,
     .no_effect = without_data_group},
    {.name = "optimizer",
     .member = &S::optimizer,
     .kind = program,
     .meaning = "in place of the workload's",
     .names = optimizer_names,
     .refused = wrong_optimizer},
    {.name = "clip",
     .member = &S::clip,
     .kind = program,
     .meaning = "largest norm of the whole gradient, in place of the workload's"},
};

struct Print {
  const KeyRow& row;
  std::string operator()(std::int64_t value) const {
    return value == 0 ? "the schedule's" : std::to_string(value);  // of chunks alone
  }
  std::string operator()(const std::string& value) const { return value.empty() ? "the workload's" : value; }
  std::string operator()(const ScheduleSource& value) const { return value.text(); }
  std::string operator()(const std::optional<double>& value) const {
    if (!value) return "the workload's";
    return *value == 0 ? "off" : fmt::format("{}", *value);
  }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return values.empty() ? std::string(row.empty) : fmt::format("{}", fmt::join(values, ","));
  }
  std::string operator()(const std::array<Axis, axis_count>& order) const {
    return fmt::format("{},{},{}", name_of(order[0]), name_of(order[1]), name_of(order[2]));
  }
};

struct Legal {
  const KeyRow& row;
  std::string operator()(std::int64_t S::*) const { return text(row.is_axis ? "1 ... or *" : "1 ..."); }
  std::string operator()(std::string S::*) const { return text(workload::joined(row.names(), " | ")); }
  std::string operator()(ScheduleSource S::*) const { return text(workload::joined(row.names(), " | ")); }
  std::string operator()(std::optional<double> S::*) const { return text("off | NUMBER"); }
  std::string operator()(std::vector<std::int64_t> S::*) const { return text(fmt::format("{} | N,N,...", row.empty)); }
  std::string operator()(std::array<Axis, axis_count> S::*) const { return text("a permutation of pp,dp,tp"); }

 private:
  std::string text(std::string_view values) const {
    return fmt::format("{}{}{}", row.name, row.is_axis ? "" : "=", values);
  }
};

}  // namespace

std::span<const KeyRow> strategy_table() { return table; }

bool is_standard(const KeyRow& row, const Strategy& strategy) {
  return std::visit([&](auto member) { return strategy.*member == Strategy{}.*member; }, row.member);
}

void set_standard(const KeyRow& row, Strategy& strategy) {
  std::visit([&](auto member) { strategy.*member = Strategy{}.*member; }, row.member);
}

std::string written(const KeyRow& row, const Strategy& strategy) {
  const std::string value = std::visit([&](auto member) { return Print{row}(strategy.*member); }, row.member);
  return fmt::format("{}{}{}", row.name, row.is_axis ? "" : "=", value);
}

std::string legal_values(const KeyRow& row) { return std::visit(Legal{row}, row.member); }

}  // namespace shardproof::plan
