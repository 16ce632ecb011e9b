// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule_file.hpp"

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "impl/plan/checker.hpp"
#include "impl/plan/schedule_messages.hpp"
#include "impl/plan/schedule_rules.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::plan {
namespace {

/// The first of several findings, without the bytes of a file that may hold anything.
std::string first_of(std::string_view findings) {
  constexpr std::string_view what = "schedule: ";
  const std::size_t end = std::min(findings.find('\n'), findings.size());
  std::string text(findings.substr(0, end));
  if (text.starts_with(what)) text.erase(0, what.size());
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return end == findings.size() ? text : text + "; schedule check lists every finding";
}

std::string place_of(const Columns& columns, std::size_t rank, std::size_t at) {
  return fmt::format("line {}, column {}", rank + 1, columns[rank][at]);
}

/// Why it has no end that all stages share, or cannot be carried out.
std::string unserved(const Schedule& schedule, const Columns& columns) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (std::size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
      const Action& action = schedule.ranks[rank][at];
      if (action.kind == ActionKind::update)
        return fmt::format(
            "{}: {} is an update: a file's steps end with one flush, without U; schedule=pipedream and "
            "schedule=pipedream_2bw have updates inside",
            place_of(columns, rank, at), print(action));
      if (action.slice != Action::whole)
        return fmt::format("{}: {} is of a slice: only whole sequences are carried out, as {}",
                           place_of(columns, rank, at), print(action),
                           print({action.stage, action.kind, action.microbatch}));
    }
  return "";
}

std::string unproven(const Schedule& schedule, const Columns& columns, const ScheduleExtent& extent) {
  const auto findings = prove(schedule, extent);
  if (findings.empty()) return "";
  const ScheduleFinding& first = findings.front();
  const auto rank = static_cast<std::size_t>(first.rank), at = static_cast<std::size_t>(first.at);
  std::string place;
  if (first.rank >= 0) place = first.at >= 0 ? place_of(columns, rank, at) + ": " : fmt::format("line {}: ", rank + 1);
  return first_of(place + first.text + (findings.size() > 1 ? "\n" : ""));
}

/// Of a schedule that some depth of sends frees of deadlocks. More room stops no rank that could go on without.
std::int64_t least_depth(Schedule schedule, const ScheduleExtent& extent) {
  const ScheduleIndex index(schedule, extent);
  const auto is_stuck = [&](std::int64_t depth) {
    schedule.send_depth = depth;
    return deadlock(schedule, index).has_value();
  };
  std::int64_t enough = 0;
  while (is_stuck(enough)) enough = 2 * enough + 1;
  std::int64_t stuck = enough / 2 - 1;  // or -1, which is none
  while (enough - stuck > 1) {
    const std::int64_t middle = (stuck + enough) / 2;
    (is_stuck(middle) ? stuck : enough) = middle;
  }
  return enough;
}

const ScheduleFile& file_of(const ScheduleShape& shape) {
  if (!shape.file) throw InternalError("schedule: a shape without its file");
  return *shape.file;
}

std::string refusal(const ScheduleShape& shape) {
  const ScheduleFile& file = file_of(shape);
  if (!file.wrong.empty()) return file.wrong;
  const std::int64_t ranks = std::ssize(file.schedule.ranks), microbatches = file.microbatches;
  if (shape.ranks == ranks && shape.microbatches == microbatches) return "";
  return fmt::format("it is for {} rank{} and {} microbatch{}, pp{} microbatches={}", ranks, plural(ranks),
                     microbatches, microbatches == 1 ? "" : "es", ranks, microbatches);
}

}  // namespace

ScheduleFile read_schedule_file(const std::string& path) {
  ScheduleFile file;
  Columns columns;
  try {
    file.schedule = parse_schedule(read_file(path, largest_schedule_file), columns);
  } catch (const BadInput& error) {
    file.wrong = first_of(error.what());
    return file;
  }
  file.wrong = unserved(file.schedule, columns);
  if (!file.wrong.empty()) return file;
  const ScheduleExtent extent = extent_of(file.schedule);
  file.schedule.send_depth = extent.units();  // more messages than ever wait on one link
  file.wrong = unproven(file.schedule, columns, extent);
  if (!file.wrong.empty()) return file;
  file.schedule.send_depth = least_depth(file.schedule, extent);
  file.stages = extent.stages, file.microbatches = extent.microbatches;
  return file;
}

const ScheduleGenerator schedule_of_file = {
    .name = "file",
    .paper = "a file of one's own",
    .refusal = refusal,
    .generate = [](const ScheduleShape& shape) { return file_of(shape).schedule; },
    .chunks = 0};

struct ScheduleSource::Reading {
  std::once_flag once;
  std::shared_ptr<const ScheduleFile> file;
};

ScheduleSource::ScheduleSource(std::string_view text)
    : text_(text), reading_(is_file() ? std::make_shared<Reading>() : nullptr) {}

std::string ScheduleSource::wrong_path() const {
  const std::string_view path = std::string_view(text_).substr(prefix.size());
  if (path.empty()) return "file: is followed by a path, as file:schedule.csv";
  const bool written =
      std::ranges::none_of(path, [](unsigned char c) { return c <= ' ' || c == 127 || c == '|' || c == '#'; });
  return written ? "" : "a path in a strategy is without blanks, control characters, '|' and '#'";
}

std::shared_ptr<const ScheduleFile> ScheduleSource::file() const {
  if (!reading_) return nullptr;
  std::call_once(reading_->once, [&] {
    reading_->file = std::make_shared<ScheduleFile>(read_schedule_file(text_.substr(prefix.size())));
  });
  return reading_->file;
}

}  // namespace shardproof::plan
