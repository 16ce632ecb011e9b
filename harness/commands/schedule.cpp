// SPDX-License-Identifier: Apache-2.0
#include "impl/plan/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/parse_file.hpp"
#include "harness/text.hpp"
#include "impl/plan/checker.hpp"
#include "impl/plan/timeline.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

extern const Command schedule_command;

namespace {

constexpr std::int64_t most_actions = std::int64_t{1} << 22;

struct Shape {
  std::int64_t stages = 1, microbatches = 1;
};

/// What a schedule must have for its largest stage and microbatch to be right.
Shape shape_of(const plan::Schedule& schedule) {
  Shape shape;
  for (const auto& actions : schedule.ranks)
    for (const plan::Action& action : actions) {
      shape.stages = std::max(shape.stages, action.stage + 1);
      shape.microbatches = std::max(shape.microbatches, action.microbatch + 1);
    }
  return shape;
}

void print_figures(const plan::Schedule& schedule, const Shape& shape) {
  const plan::Timeline line = plan::timeline(schedule);
  fmt::print("{}, {}, {}\n", counted(schedule.ranks.size(), "rank"), counted(shape.stages, "stage"),
             shape.microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", shape.microbatches));
  fmt::print("peak in flight by rank: {}\n", fmt::join(plan::peak_in_flight(schedule), " "));
  fmt::print("with F, I and W of one unit: makespan {}, bubble {:.4g} (idle time of all ranks over their busy time)\n",
             line.makespan, line.bubble_overhead());
}

std::string picture_of(const plan::Schedule& schedule) {
  constexpr std::size_t most = 10000;
  std::size_t actions = 0;
  for (const auto& rank : schedule.ranks) actions += rank.size();
  if (actions > most)
    throw BadInput(fmt::format("--picture: {} actions are too many to draw, more than {}", actions, most));
  return plan::picture(schedule);
}

ExitCode check(const std::string& path, std::optional<std::int64_t> ranks, std::optional<std::int64_t> microbatches,
               std::int64_t depth, bool picture) {
  plan::Schedule schedule = parse_file(path, plan::parse_schedule);
  schedule.send_depth = depth;
  Shape shape = shape_of(schedule);
  if (microbatches) shape.microbatches = *microbatches;
  auto findings = plan::findings(schedule, shape.stages, shape.microbatches);
  if (ranks && *ranks != std::ssize(schedule.ranks))
    findings.insert(findings.begin(),
                    fmt::format("it is for {}, not {}", counted(schedule.ranks.size(), "rank"), *ranks));
  for (const std::string& finding : findings) fmt::print("{}: {}\n", path, finding);
  if (!findings.empty()) return ExitCode::check_failed;
  if (picture) fmt::print("{}", picture_of(schedule));
  print_figures(schedule, shape);
  return ExitCode::pass;
}

ExitCode run(std::span<const std::string> args) {
  std::string name;
  std::optional<std::int64_t> ranks, microbatches, depth;
  std::string file;
  bool picture = false;
  Options options(schedule_command);
  options
      .word(name, "NAME",
            "A schedule of list --strategies for --ranks and --microbatches, printed as one line of actions per rank")
      .number("--ranks", ranks, 1, most_actions, "Ranks of the pipeline, one stage each")
      .number("--microbatches", microbatches, 1, most_actions, "Parts of the batch")
      .flag("--picture", picture, "Draw it on a clock, and print its bubble")
      .notes(
          "An action is its stage, its kind and its microbatch, as 0F1: F is a forward, I the gradient of the input, W "
          "those\nof the weights, B is I then W. On the clock F, I and W take one unit each.")
      .text("--check", file, "FILE", "Prove this schedule instead: complete, in order, free of deadlock")
      .number("--depth", depth, 0, most_actions,
              "Of --check: messages that a sender may be ahead of its receiver (default: 0, it waits for each)");
  if (!options.parse(args)) return ExitCode::pass;
  if (name.empty() == file.empty()) throw BadInput("name one schedule, as gpipe, or a file to --check");
  if (!file.empty()) return check(file, ranks, microbatches, depth.value_or(0), picture);
  if (depth) throw BadInput("--depth has no effect without --check");

  const plan::ScheduleGenerator& generator = plan::schedule_generator(name);
  if (!ranks || !microbatches) throw BadInput("--ranks and --microbatches say what the schedule is for");
  if (*ranks > most_actions / *microbatches)
    throw BadInput(fmt::format("--ranks {} --microbatches {}: their product may be at most {}", *ranks, *microbatches,
                               most_actions));
  const plan::Schedule schedule =
      plan::generate(generator, {.ranks = *ranks, .microbatches = *microbatches, .chunks = generator.chunks});
  if (!picture) {
    fmt::print("{}", plan::print(schedule));
    return ExitCode::pass;
  }
  fmt::print("{} ({})\n{}", generator.name, generator.paper, picture_of(schedule));
  print_figures(schedule, shape_of(schedule));
  return ExitCode::pass;
}

}  // namespace

const Command schedule_command = {"schedule", "Prints a pipeline schedule, or proves one from a file",
                                  "shardproof schedule gpipe --ranks 4 --microbatches 8", run};

}  // namespace shardproof::harness
