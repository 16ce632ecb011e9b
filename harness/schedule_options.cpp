// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_options.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/parse_file.hpp"
#include "harness/text.hpp"
#include "impl/plan/schedule_file.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

constexpr std::int64_t most_actions = std::int64_t{1} << 22;

}  // namespace

void ScheduleOptions::declare(Options& options) {
  const auto rules = plan::weight_rule_names();
  const std::vector<std::string> names(rules.begin(), rules.end());
  options.number("--ranks", ranks_, 1, most_actions, "Ranks of the pipeline")
      .number("--stages", stages_, 1, most_actions, "Stages instead: ranks times --chunks, or as many as --replicas")
      .number("--microbatches", microbatches_, 1, most_actions, "Parts of the batch; of pipedream: minibatches")
      .number("--chunks", chunks_, 1, most_actions, "Stages that a rank holds (default: the schedule's own)")
      .number("--slices", slices_, 1, most_actions, "Parts of a sequence in time (default: 1, it is whole)")
      .number("--updates-every", updates_, 1, most_actions,
              "Microbatches between updates, of pipedream_2bw (default: one a rank)")
      .text("--replicas", replicas_, "N,N,...", "Ranks of each stage of pipedream (default: one each)")
      .flag("--vertical-sync", vertical_sync_, "Of pipedream: a minibatch reads one version on all stages")
      .text("--costs", costs_, "F,I,W[,MESSAGE]",
            "What F, I and W take, and a message between ranks (default: 1,1,1,0)")
      .text("--stage-costs", stage_costs_, "N,N,...",
            "By what the costs of each stage are multiplied (default: 1 each)")
      .flag("--overlapped", overlapped_,
            "An F with the B of another microbatch just after it is one block, as in DualPipe")
      .number("--depth", depth_, 0, most_actions,
              "Messages that a sender may be ahead of its receiver (default: the schedule's own; of a file 0, it waits "
              "for each)")
      .choice("--weights", weights_, names,
              "Which version of its weights an action of a file reads (default: flushed, one for a whole step); the "
              "others are of pipedream, pipedream --vertical-sync and pipedream_2bw");
}

std::vector<ScheduleOptions::Given> ScheduleOptions::given() const {
  using enum OptionUse;
  const std::pair<Given, bool> all[] = {
      {{"--ranks", shape}, ranks_.has_value()},
      {{"--stages", shape}, stages_.has_value()},
      {{"--microbatches", shape}, microbatches_.has_value()},
      {{"--chunks", shape}, chunks_.has_value()},
      {{"--slices", shape}, slices_.has_value()},
      {{"--updates-every", shape}, updates_.has_value()},
      {{"--replicas", shape}, !replicas_.empty()},
      {{"--vertical-sync", shape}, vertical_sync_},
      {{"--depth", proof}, depth_.has_value()},
      {{"--weights", proof}, !weights_.empty()},
      {{"--costs", time}, !costs_.empty()},
      {{"--stage-costs", time}, !stage_costs_.empty()},
      {{"--overlapped", time}, overlapped_},
  };
  std::vector<Given> result;
  for (const auto& [option, is_given] : all)
    if (is_given) result.push_back(option);
  return result;
}

plan::ScheduleShape ScheduleOptions::shape(const plan::ScheduleGenerator& generator) const {
  if (ranks_.has_value() == stages_.has_value())
    throw BadInput(ranks_ ? "--ranks and --stages are both given: one says how many the schedule is for"
                          : "--ranks or --stages is missing: how many the schedule is for");
  if (!microbatches_) throw BadInput("--microbatches is missing: how many the schedule is for");
  plan::ScheduleShape result{.microbatches = *microbatches_,
                             .chunks = chunks_.value_or(generator.chunks),
                             .slices = slices_.value_or(1),
                             .microbatches_per_update = updates_.value_or(0),
                             .vertical_sync = vertical_sync_};
  if (!replicas_.empty()) result.replicas = parse_numbers<std::int64_t>("--replicas", replicas_, 1, most_actions);
  if (ranks_) {
    result.ranks = *ranks_;
  } else if (!result.replicas.empty()) {
    if (*stages_ != std::ssize(result.replicas))
      throw BadInput(fmt::format("--stages {}: --replicas {} is of {}", *stages_, replicas_,
                                 counted(result.replicas.size(), "stage")));
    result.ranks = std::accumulate(result.replicas.begin(), result.replicas.end(), std::int64_t{0});
  } else {
    if (*stages_ % result.chunks != 0)
      throw BadInput(fmt::format("--stages {}: a multiple of the chunks of a rank, {}", *stages_, result.chunks));
    result.ranks = *stages_ / result.chunks;
  }
  const auto units = static_cast<double>(result.ranks) * static_cast<double>(result.chunks) *
                     static_cast<double>(result.microbatches) * static_cast<double>(result.slices);
  if (units > static_cast<double>(most_actions))
    throw BadInput(fmt::format("ranks x chunks x microbatches x slices are {:.0f}: at most {}", units, most_actions));
  return result;
}

NamedSchedule ScheduleOptions::load(const std::string& name) const {
  constexpr std::string_view prefix = plan::ScheduleSource::prefix;
  if (name.starts_with(prefix)) return of_file(name.substr(prefix.size()));
  std::error_code error;
  const bool known = std::ranges::any_of(plan::schedules(), [&](const plan::ScheduleGenerator* generator) {
    return generator->name == name || generator->alias == name;
  });
  const bool path = name.find_first_of("./") != std::string::npos;  // as no schedule's name
  if (!known && (path || std::filesystem::exists(name, error))) return of_file(name);
  const plan::ScheduleGenerator& generator = plan::schedule_generator(name);
  if (!weights_.empty())
    throw BadInput(fmt::format("--weights has no effect with {}, which has its own rule: it goes with a file", name));
  const plan::ScheduleShape made = shape(generator);
  NamedSchedule result{.title = fmt::format("{} ({})", generator.name, generator.paper),
                       .schedule = plan::generate(generator, made),
                       .extent = plan::extent_of(made),
                       .generator = &generator,
                       .shape = made};
  if (depth_) result.schedule.send_depth = *depth_;
  return result;
}

NamedSchedule ScheduleOptions::of_file(const std::string& path) const {
  std::vector<std::string_view> unused;
  for (const auto& [option, use] : given())
    if (use == OptionUse::shape && option != "--ranks" && option != "--stages" && option != "--microbatches")
      unused.push_back(option);
  if (!unused.empty())
    throw BadInput(fmt::format("{} {} no effect with the file {}: its actions are its shape", fmt::join(unused, ", "),
                               unused.size() == 1 ? "has" : "have", path));
  NamedSchedule result{.title = path, .schedule = {}, .extent = {}};
  result.schedule = parse_file(
      path, [&](std::string_view text) { return plan::parse_schedule(text, result.columns); },
      plan::largest_schedule_file);
  result.schedule.send_depth = depth_.value_or(0);
  if (!weights_.empty()) result.schedule.weights = plan::weight_rule(weights_);
  result.extent = plan::extent_of(result.schedule);
  const auto least = [&](const char* option, const char* what, const std::optional<std::int64_t>& given,
                         std::int64_t& value) {
    if (given && *given < value)
      throw BadInput(fmt::format("{} {}: {} has an action of {} {}, so at least {}", option, *given, path, what,
                                 value - 1, value));
    value = given.value_or(value);
  };
  least("--stages", "stage", stages_, result.extent.stages);
  least("--microbatches", "microbatch", microbatches_, result.extent.microbatches);
  if (ranks_ && *ranks_ != std::ssize(result.schedule.ranks))
    throw BadInput(
        fmt::format("--ranks {}: {} is for {}", *ranks_, path, counted(result.schedule.ranks.size(), "rank")));
  return result;
}

plan::ActionCosts ScheduleOptions::costs(const NamedSchedule& named) const {
  // So that no sum or quotient of them leaves the range of double, nor a picture its pixels.
  constexpr double least = 1e-12, most = 1e12;
  const auto read = [&](const char* option, const std::string& text) {
    auto values = parse_numbers<double>(option, text, 0, most);
    for (const double value : values)
      if (value > 0 && value < least)
        throw BadInput(fmt::format("{} {}: {} is neither 0 nor from {} to {}", option, text, value, least, most));
    return values;
  };
  plan::ActionCosts costs{.overlapped = overlapped_};
  if (!costs_.empty()) {
    const auto values = read("--costs", costs_);
    if (values.size() != 3 && values.size() != 4)
      throw BadInput(fmt::format("--costs {}: {}, where three or four are due: F, I, W and a message", costs_,
                                 counted(values.size(), "number")));
    costs.forward = values[0], costs.backward_input = values[1], costs.backward_weight = values[2];
    if (values.size() == 4) costs.message = values[3];
  }
  if (!stage_costs_.empty()) {
    costs.stages = read("--stage-costs", stage_costs_);
    if (std::ssize(costs.stages) != named.extent.stages)
      throw BadInput(fmt::format("--stage-costs {}: {}, where the schedule has {}", stage_costs_,
                                 counted(costs.stages.size(), "number"), counted(named.extent.stages, "stage")));
  }
  const auto has_block = [](const std::vector<plan::Action>& actions) {
    for (std::size_t at = 0; at < actions.size(); ++at)
      if (plan::begins_block(actions, at)) return true;
    return false;
  };
  if (overlapped_ && std::ranges::none_of(named.schedule.ranks, has_block))
    throw BadInput(fmt::format("--overlapped has no effect with {}: no F has the B of another microbatch just after it",
                               named.title));
  return costs;
}

std::string text_of(const plan::ActionCosts& costs) {
  std::string text = fmt::format("F {:.6g}, I {:.6g}, W {:.6g}, message {:.6g}", costs.forward, costs.backward_input,
                                 costs.backward_weight, costs.message);
  if (!costs.stages.empty()) text += fmt::format(", of each stage times {:.6g}", fmt::join(costs.stages, ","));
  return costs.overlapped ? text + ", an F and the B after it as one block" : text;
}

}  // namespace shardproof::harness
