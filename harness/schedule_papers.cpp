// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_papers.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "harness/schedule_forms.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {
namespace {

constexpr std::int64_t most = 4096;  // of ranks, microbatches and chunks of a cell

// Of a formula, which is exact: whole costs add up without rounding, and the few operations that follow, on numbers
// below 2^15, round by less than 2^-37 each.
constexpr double rounding = 1e-9;

const std::vector<std::string>& quantities() {
  static const std::vector<std::string> names(schedule_quantities().begin(), schedule_quantities().end());
  return names;
}

struct Cell {
  PaperCell shown;
  ScheduleCase at;
};

double value_of(const Cell& cell) {
  const plan::Schedule schedule = generate(plan::schedule_generator(cell.shown.schedule), cell.at.shape);
  return measured(cell.shown.quantity, schedule, plan::timeline(schedule, cell.at.costs), cell.at);
}

/// The costs of a rank, of which each of its chunks takes its part.
void read_costs(Fields& fields, const nlohmann::ordered_json& object, std::int64_t chunks, plan::ActionCosts& costs) {
  if (!fields.has("costs")) return;
  const nlohmann::ordered_json& list = object["costs"];
  const auto legal = [](const nlohmann::ordered_json& v) { return v.is_number() && v.get<double>() >= 0; };
  if (!list.is_array() || list.size() != 4 || !std::all_of(list.begin(), list.end(), legal))
    return fields.report("\"costs\" must be four numbers from 0");
  const auto chunk = static_cast<double>(chunks);
  costs.forward = list[0].get<double>() / chunk, costs.backward_input = list[1].get<double>() / chunk;
  costs.backward_weight = list[2].get<double>() / chunk, costs.message = list[3];
}

/// The paper's number, or what its formula gives here.
void read_value(Fields& fields, Cell& cell) {
  PaperCell& shown = cell.shown;
  if (shown.kind == "published") {
    shown.where = fields.text("where");
    shown.value = fields.number("published");
    shown.tolerance = fields.number("tolerance", 0, 0.01);
    return;
  }
  const ScheduleForm* const form = schedule_form(shown.schedule, shown.quantity);
  if (!form)
    return fields.report(fmt::format("\"quantity\": no formula gives {} of {}", shown.quantity, shown.schedule));
  const auto value = form->value(cell.at);
  if (!value) return fields.report(fmt::format("{} of {} does not hold for this shape", form->text, form->source));
  shown.where = fmt::format("{}: {}", form->source, form->text);
  shown.value = *value;
  shown.tolerance = rounding;
}

Cell read_cell(const nlohmann::ordered_json& object, const std::string& origin, std::vector<std::string>& findings) {
  Fields fields(object, origin, findings);
  const std::size_t before = findings.size();
  Cell cell;
  PaperCell& shown = cell.shown;
  shown.kind = fields.choice("kind", std::vector<std::string>{"formula", "published"});
  std::vector<std::string> names;
  for (const auto* generator : plan::schedules()) names.emplace_back(generator->name);
  shown.schedule = fields.choice("schedule", names);
  const auto count = [&](const std::string& key, std::int64_t minimum) {
    const std::int64_t value = fields.integer(key, minimum);
    if (value > most) fields.report(fmt::format("\"{}\" is {}: at most {}", key, value, most));
    return value;
  };
  plan::ScheduleShape& shape = cell.at.shape;
  shape = {.ranks = count("ranks", 1), .microbatches = count("microbatches", 1)};
  if (fields.has("chunks")) shape.chunks = count("chunks", 1);
  if (fields.has("vertical_sync")) shape.vertical_sync = fields.boolean("vertical_sync");
  if (fields.has("rank")) cell.at.rank = static_cast<std::size_t>(count("rank", 0));
  if (fields.has("overlapped")) cell.at.costs.overlapped = fields.boolean("overlapped");
  if (fields.has("after_input")) cell.at.after_input = fields.number("after_input", 0, 1);
  read_costs(fields, object, std::max<std::int64_t>(shape.chunks, 1), cell.at.costs);
  shown.quantity = fields.choice("quantity", quantities());
  if (findings.size() == before) {
    if (static_cast<std::int64_t>(cell.at.rank) >= shape.ranks)
      fields.report(fmt::format("\"rank\" is {} of {}, counted from 0", cell.at.rank, shape.ranks));
    if (const std::string why = plan::schedule_generator(shown.schedule).refusal(shape); !why.empty())
      fields.report(fmt::format("{} cannot serve it: {}", shown.schedule, why));
  }
  if (findings.size() == before || shown.kind == "published") read_value(fields, cell);
  fields.finish();
  return cell;
}

}  // namespace

bool PaperCell::agrees() const { return std::abs(ours - value) <= tolerance; }

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
    cell.shown.schedule +=
        fmt::format(", {}, {} microbatches", counted(cell.at.shape.ranks, "rank"), cell.at.shape.microbatches);
    if (cell.at.shape.chunks > 1) cell.shown.schedule += fmt::format(", {} chunks", cell.at.shape.chunks);
    if (cell.at.shape.vertical_sync) cell.shown.schedule += ", vertical sync";
    if (cell.shown.quantity == "activations" || cell.shown.quantity == "weight_versions")
      cell.shown.quantity += fmt::format(" of rank {}", cell.at.rank);
    result.push_back(cell.shown);
  }
  return result;
}

PaperReport paper_report(std::span<const PaperCell> cells) {
  std::vector<std::vector<std::string>> rows = {
      {"kind", "paper", "ours", "within", "", "quantity", "schedule", "where"}};
  std::size_t apart = 0, published = 0;
  for (const PaperCell& cell : cells) {
    apart += cell.agrees() ? 0 : 1;
    published += cell.kind == "published" ? 1 : 0;
    rows.push_back({cell.kind, fmt::format("{:.6g}", cell.value), fmt::format("{:.6g}", cell.ours),
                    fmt::format("{:.2g}", cell.tolerance), cell.agrees() ? "" : "APART", cell.quantity, cell.schedule,
                    cell.where});
  }
  std::vector<std::vector<std::string>> meanings;
  for (const std::string_view quantity : schedule_quantities())
    if (std::ranges::any_of(cells, [&](const PaperCell& cell) { return cell.quantity.starts_with(quantity); }))
      meanings.push_back({std::string(quantity), std::string(meaning_of(quantity))});
  return {fmt::format(
              "{}\n{}\n{} cells, {} apart: {} of numbers that a paper prints, {} of a paper's formula evaluated here\n",
              table(rows), table(meanings), cells.size(), apart, published, cells.size() - published),
          !cells.empty() && apart == 0};
}

}  // namespace shardproof::harness
