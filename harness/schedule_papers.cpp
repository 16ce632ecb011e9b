// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_papers.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/timeline.hpp"
#include "impl/plan/weight_versions.hpp"

namespace shardproof::harness {
namespace {

constexpr std::int64_t most = 4096;  // of ranks, microbatches and chunks of a cell

const std::vector<std::string>& quantities() {
  static const std::vector<std::string> names = {"bubble_fraction", "bubble_overhead", "bubble_of_span",
                                                 "bubble_time",     "activations",     "weight_versions"};
  return names;
}

struct Cell {
  PaperCell shown;
  plan::ScheduleShape shape;
  plan::ActionCosts costs;
  std::size_t rank = 0;
  double after_input = 1;
};

double value_of(const Cell& cell) {
  const plan::Schedule schedule = generate(plan::schedule_generator(cell.shown.schedule), cell.shape);
  const std::string& quantity = cell.shown.quantity;
  if (quantity == "activations") return plan::peak_activations(schedule, cell.after_input).at(cell.rank);
  if (quantity == "weight_versions") {
    const plan::ScheduleIndex index(schedule, plan::extent_of(schedule));
    return static_cast<double>(plan::weight_versions(schedule, index).most_kept.at(cell.rank));
  }
  const plan::Timeline line = plan::timeline(schedule, cell.costs);
  if (quantity == "bubble_fraction") return line.bubble_fraction();
  if (quantity == "bubble_overhead") return line.bubble_overhead();
  if (quantity == "bubble_of_span") return line.bubble_of_span();
  return line.makespan - line.busy / static_cast<double>(schedule.ranks.size());
}

void read_costs(Fields& fields, const nlohmann::ordered_json& object, plan::ActionCosts& costs) {
  if (!fields.has("costs")) return;
  const nlohmann::ordered_json& list = object["costs"];
  const auto legal = [](const nlohmann::ordered_json& v) { return v.is_number() && v.get<double>() >= 0; };
  if (!list.is_array() || list.size() != 4 || !std::all_of(list.begin(), list.end(), legal))
    return fields.report("\"costs\" must be four numbers from 0");
  costs.forward = list[0], costs.backward_input = list[1], costs.backward_weight = list[2], costs.message = list[3];
}

Cell read_cell(const nlohmann::ordered_json& object, const std::string& origin, std::vector<std::string>& findings) {
  Fields fields(object, origin, findings);
  Cell cell;
  PaperCell& shown = cell.shown;
  shown.where = fields.text("where");
  std::vector<std::string> names;
  for (const auto* generator : plan::schedules()) names.emplace_back(generator->name);
  shown.schedule = fields.choice("schedule", names);
  const auto count = [&](const std::string& key, std::int64_t minimum) {
    const std::int64_t value = fields.integer(key, minimum);
    if (value > most) fields.report(fmt::format("\"{}\" is {}: at most {}", key, value, most));
    return value;
  };
  cell.shape = {.ranks = count("ranks", 1), .microbatches = count("microbatches", 1)};
  if (fields.has("chunks")) cell.shape.chunks = count("chunks", 1);
  if (fields.has("vertical_sync")) cell.shape.vertical_sync = fields.boolean("vertical_sync");
  if (fields.has("rank")) cell.rank = static_cast<std::size_t>(count("rank", 0));
  if (fields.has("overlapped")) cell.costs.overlapped = fields.boolean("overlapped");
  if (fields.has("after_input")) cell.after_input = fields.number("after_input", 0, 1);
  read_costs(fields, object, cell.costs);
  shown.quantity = fields.choice("quantity", quantities());
  shown.published = fields.number("published");
  shown.tolerance = fields.number("tolerance", 0, 0.01);
  fields.finish();
  if (static_cast<std::int64_t>(cell.rank) >= cell.shape.ranks)
    fields.report(fmt::format("\"rank\" is {} of {}", cell.rank, cell.shape.ranks));
  return cell;
}

}  // namespace

bool PaperCell::agrees() const { return std::abs(ours - published) <= tolerance; }

std::vector<PaperCell> paper_cells(std::string_view json) {
  const std::string origin = "schedules.json";
  const nlohmann::ordered_json file = parse_object(json, origin);
  std::vector<std::string> findings;
  std::vector<Cell> cells;
  Fields fields(file, origin, findings);
  fields.text("citation");
  fields.text("symbols");
  if (!fields.has("cells") || !file["cells"].is_array() || file["cells"].empty())
    fields.report("\"cells\" must be a list of objects");
  else
    for (const auto& object : file["cells"]) {
      if (object.is_object())
        cells.push_back(read_cell(object, fmt::format("{}: cell {}", origin, cells.size() + 1), findings));
      else
        fields.report("\"cells\" must be a list of objects");
    }
  fields.finish();
  throw_findings(findings);
  std::vector<PaperCell> result;
  for (Cell& cell : cells) {
    cell.shown.ours = value_of(cell);
    cell.shown.schedule += fmt::format(", {}, {}", counted(cell.shape.ranks, "rank"),
                                       fmt::format("{} microbatches", cell.shape.microbatches));
    result.push_back(cell.shown);
  }
  return result;
}

}  // namespace shardproof::harness
