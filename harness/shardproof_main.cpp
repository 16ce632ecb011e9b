// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "harness/build_info.hpp"
#include "harness/command.hpp"
#include "harness/options.hpp"
#include "harness/processes.hpp"
#include "harness/signals.hpp"
#include "harness/text.hpp"
#include "kernels/core/device.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

std::string help() {
  std::vector<std::vector<std::string>> summaries, examples;
  for (const Command* command : commands()) {
    summaries.push_back({std::string("  ") + command->name, command->summary});
    examples.push_back({std::string("  ") + command->example});
  }
  return fmt::format(
      "Checks that distributed training computes what one device computes, and measures what it costs.\n\n"
      "Usage: shardproof COMMAND [OPTIONS]\n\nCommands (each with --help):\n{}\nExamples:\n{}\n"
      "Exit codes: 0 pass, 1 a check failed, 2 usage, 3 inconclusive, 4 environment, 5 could not write results,\n"
      "6 out of memory, 7 non-finite, 8 hang, 9 a rank was lost, 10 internal, 130 interrupted;\n"
      "of several, the first of 130 10 9 8 6 5 4 2 7 1 3\n",
      table(summaries), table(examples));
}

const Command& command_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Command* command : commands()) {
    if (command->name == name) return *command;
    names.push_back(command->name);
  }
  throw BadInput(unknown("command", name, names));
}

ExitCode dispatch_command(std::span<const std::string> args) {
  if (args.empty()) throw BadInput("a command is missing: see shardproof --help");
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    fmt::print("{}", help());
    return ExitCode::pass;
  }
  if (args[0] == "--version") {
    fmt::print("shardproof {} ({}{})\n", build_info.version, build_info.commit, build_info.dirty ? ", changed" : "");
    return ExitCode::pass;
  }
  return command_named(args[0]).run(args.subspan(1));
}

/// Files opened later must not become standard input, output or error where those are closed. What is written to them
/// then fails, as on closed ones.
void hold_standard_files() {
  for (int file = 0; file < 3; ++file)
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", O_RDONLY);  // takes the lowest number that is free: this one
}

/// Says what went wrong.
ExitCode told(const std::exception& error) {
  if (std::ferror(stdout)) {
    say(stderr, "shardproof: cannot write to standard output\n");
    return ExitCode::write_failed;
  }
  std::fflush(stdout);
  say(stderr, "shardproof: " + printable(reason_of(error)) + "\n");
  return exit_code_of(error);
}

ExitCode obeyed(std::span<const std::string> args) {
  try {
    const ExitCode code = dispatch_command(args);
    // Output that nobody could read is no success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw WriteError("cannot write to standard output");
    return code;
  } catch (const std::exception& error) {
    return told(error);
  }
}

/// What a process does alone, or beside others of its job.
ExitCode worked(std::span<const std::string> args, comm::FlightRecorder* recorder) {
  try {
    prepare_process();
  } catch (const DeviceError& error) {
    say(stderr, fmt::format("shardproof: {}\n", error.what()));
    return ExitCode::environment;
  }
  Processes all(recorder);
  if (all.serves()) return all.serve();
  ExitCode code = ExitCode::environment;
  if (const std::string differences = all.differences(); differences.empty())
    code = obeyed(args);
  else
    say(stderr, printable(fmt::format("shardproof: processes differ in what must not differ\n{}\n", differences)));
  all.dismiss(code);
  return code;
}

ExitCode guarded(std::span<const std::string> args) {
  std::unique_ptr<comm::FlightRecorder> recorder;
  ExitCode code = ExitCode::internal;
  try {
    catch_signals();
    recorder = monitored();
    code = worked(args, recorder.get());
  } catch (const std::exception& error) {
    code = told(error);
  }
  if (recorder) recorder->decide(static_cast<int>(code));
  return code;
}

}  // namespace
}  // namespace shardproof::harness

int main(int argc, char** argv) {
  shardproof::harness::hold_standard_files();
  const std::vector<std::string> args(argv + 1, argv + argc);
  return static_cast<int>(shardproof::harness::guarded(args));
}
