// SPDX-License-Identifier: Apache-2.0
#include "harness/run_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/figures.hpp"
#include "harness/options.hpp"
#include "harness/text.hpp"

namespace shardproof::harness {
namespace {

using Row = std::vector<std::string>;

Row throughput(const Trained& trained) {
  const auto rate = tokens_per_second(trained);
  if (!rate) return {"throughput", "not measured: it takes a second step"};
  return {"throughput", fmt::format("{:.0f} tokens/s (quartiles {:.0f} to {:.0f}, {} steps after the first)",
                                    (*rate)[1], (*rate)[0], (*rate)[2], trained.steps.size() - 1)};
}

Row learning_row(const Learning& learned) {
  std::string text = fmt::format("loss {:.4f} to {:.4f}; mean of the last {} {:.4f}", learned.first_loss,
                                 learned.last_loss, learned.steps, learned.mean);
  if (learned.floor)
    text += fmt::format(", {:+.2f} % from the source's entropy {:.4f} (standard error {:.4f})",
                        100 * (learned.mean / *learned.floor - 1), *learned.floor, *learned.standard_error);
  return {"learning", text};
}

// "memory_parameter_peak_bytes" as "parameter peak"
std::string short_name(const std::string& name) {
  std::string text = name.substr(std::string_view("memory_").size());
  text.resize(text.size() - std::string_view("_bytes").size());
  if (text.ends_with("_peak")) text[text.size() - 5] = ' ';
  return text;
}

std::vector<Row> memory(const Record& record) {
  std::vector<Row> rows = {{"memory", "counted", "form"}};
  for (const auto& [name, bytes] : record.ledgers) {
    if (!name.starts_with("memory_")) continue;
    const auto form = std::ranges::find(record.forms, name, &Counts::value_type::first);
    std::string said = form == record.forms.end() ? "" : print_bytes(form->second);
    if (form != record.forms.end()) said += form->second == bytes ? ", equal" : ", DIFFERS";
    rows.push_back({"  " + short_name(name), print_bytes(bytes), said});
  }
  return rows;
}

}  // namespace

std::string report(const Record& record, const workload::Workload& workload, const Trained& trained) {
  std::vector<Row> rows;
  if (!trained.steps.empty()) {
    rows.push_back(throughput(trained));
    if (const auto learned = learning(workload, trained.steps)) rows.push_back(learning_row(*learned));
  }
  if (!record.digest.empty()) rows.push_back({"digest", record.digest});
  std::string verdict =
      fmt::format("{} (judged: {}; {} elements compared)", name_of(record.verdict), record.judged, record.compared);
  if (!record.reason.empty()) verdict += ": " + record.reason;
  rows.push_back({"verdict", verdict});
  return (trained.steps.empty() ? "" : table(memory(record))) + table(rows);
}

}  // namespace shardproof::harness
