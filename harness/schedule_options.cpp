// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_options.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "harness/parse_file.hpp"
#include "harness/text.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

constexpr std::int64_t most_actions = std::int64_t{1} << 22;
constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 26;
constexpr std::array<std::string_view, 4> rules = {"flushed", "stashed", "vertical_sync", "double_buffered"};

/// "2,1" as numbers. Throws BadInput.
template <class T>
std::vector<T> numbers(const std::string& option, const std::string& text, const std::string& what) {
  std::vector<T> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto value = parse_number<T>(std::string_view(text).substr(begin, end - begin));
    if (!value) throw BadInput(fmt::format("{}: \"{}\" is not {}", option, text, what));
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}

}  // namespace

void ScheduleOptions::declare(Options& options) {
  std::vector<std::string> names(rules.begin(), rules.end());
  options.number("--ranks", ranks_, 1, most_actions, "Ranks of the pipeline")
      .number("--stages", stages_, 1, most_actions, "Stages instead: ranks times --chunks")
      .number("--microbatches", microbatches_, 1, most_actions, "Parts of the batch; of pipedream: minibatches")
      .number("--chunks", chunks_, 1, most_actions, "Stages that a rank holds (default: the schedule's own)")
      .number("--slices", slices_, 1, most_actions, "Parts of a sequence in time (default: 1, it is whole)")
      .number("--updates-every", updates_, 1, most_actions,
              "Microbatches between updates, of pipedream_2bw (default: one a rank)")
      .text("--replicas", replicas_, "N,N,...", "Ranks of each stage of pipedream (default: one each)")
      .flag("--vertical-sync", vertical_sync_, "Of pipedream: a minibatch reads one version on all stages")
      .text("--costs", costs_, "F,I,W[,MESSAGE]",
            "What F, I and W take, and a message between ranks (default: 1,1,1,0)")
      .number("--depth", depth_, 0, most_actions,
              "Messages that a sender may be ahead of its receiver (default: the schedule's own; of a file 0, it waits "
              "for each)")
      .choice("--weights", weights_, names,
              "Which version of its weights an action of a file reads (default: flushed)");
}

std::int64_t ScheduleOptions::ranks(std::int64_t chunks) const {
  if (ranks_.has_value() == stages_.has_value())
    throw BadInput("one of --ranks and --stages says what the schedule is for");
  if (ranks_) return *ranks_;
  if (*stages_ % chunks != 0)
    throw BadInput(fmt::format("--stages {}: a multiple of the chunks of a rank, {}", *stages_, chunks));
  return *stages_ / chunks;
}

NamedSchedule ScheduleOptions::load(const std::string& name) const {
  const std::string prefix = "file:";
  if (name.starts_with(prefix)) return of_file(name.substr(prefix.size()));
  std::error_code error;
  const bool known = std::ranges::any_of(plan::schedules(), [&](const plan::ScheduleGenerator* generator) {
    return generator->name == name || generator->alias == name;
  });
  if (!known && std::filesystem::exists(name, error)) return of_file(name);
  const plan::ScheduleGenerator& generator = plan::schedule_generator(name);
  if (!weights_.empty()) throw BadInput(fmt::format("--weights is of a file: {} has its own rule", name));
  plan::ScheduleShape shape{.chunks = chunks_.value_or(generator.chunks), .slices = slices_.value_or(1)};
  shape.ranks = ranks(shape.chunks);
  if (!microbatches_) throw BadInput("--microbatches is missing: how many the schedule is for");
  shape.microbatches = *microbatches_;
  shape.microbatches_per_update = updates_.value_or(0);
  shape.vertical_sync = vertical_sync_;
  if (!replicas_.empty())
    shape.replicas = numbers<std::int64_t>("--replicas", replicas_, "a list of numbers from 1, as 2,1,1");
  const auto units = static_cast<double>(shape.ranks) * static_cast<double>(shape.chunks) *
                     static_cast<double>(shape.microbatches) * static_cast<double>(shape.slices);
  if (units > static_cast<double>(most_actions))
    throw BadInput(fmt::format("ranks x chunks x microbatches x slices are {:.0f}: at most {}", units, most_actions));
  NamedSchedule result{.title = fmt::format("{} ({})", generator.name, generator.paper),
                       .schedule = plan::generate(generator, shape),
                       .extent = {shape.stages(), shape.microbatches, shape.slices == 1 ? 0 : shape.slices}};
  if (depth_) result.schedule.send_depth = *depth_;
  return result;
}

NamedSchedule ScheduleOptions::of_file(const std::string& path) const {
  if (chunks_ || slices_ || updates_ || !replicas_.empty() || vertical_sync_)
    throw BadInput(
        "--chunks, --slices, --updates-every, --replicas and --vertical-sync shape a schedule of a name; a "
        "file has its shape");
  NamedSchedule result{.title = path, .schedule = {}, .extent = {}};
  result.schedule = parse_file(
      path, [&](std::string_view text) { return plan::parse_schedule(text, result.columns); }, most_bytes);
  result.schedule.send_depth = depth_.value_or(0);
  for (std::size_t k = 0; k < rules.size(); ++k)
    if (weights_ == rules[k]) result.schedule.weights = static_cast<plan::WeightRule>(k);
  result.extent = plan::extent_of(result.schedule);
  const auto least = [&](const char* option, const std::optional<std::int64_t>& given, std::int64_t& value) {
    if (given && *given < value)
      throw BadInput(fmt::format("{} {}: {} has actions of {}", option, *given, path, value));
    value = given.value_or(value);
  };
  least("--stages", stages_, result.extent.stages);
  least("--microbatches", microbatches_, result.extent.microbatches);
  if (ranks_ && *ranks_ != std::ssize(result.schedule.ranks))
    throw BadInput(
        fmt::format("--ranks {}: {} is for {}", *ranks_, path, counted(result.schedule.ranks.size(), "rank")));
  return result;
}

plan::ActionCosts ScheduleOptions::costs() const {
  if (costs_.empty()) return {};
  const auto values = numbers<double>("--costs", costs_, "three or four numbers from 0, as 1,1,1 or 18.5,18,9.3,0.6");
  const bool legal = values.size() >= 3 && values.size() <= 4 &&
                     std::ranges::all_of(values, [](double v) { return v >= 0 && v <= 1e12; });
  if (!legal) throw BadInput(fmt::format("--costs: \"{}\" is not three or four numbers from 0 to 1e12", costs_));
  return {.forward = values[0],
          .backward_input = values[1],
          .backward_weight = values[2],
          .message = values.size() == 4 ? values[3] : 0};
}

}  // namespace shardproof::harness
