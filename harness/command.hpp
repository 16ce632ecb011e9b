// SPDX-License-Identifier: Apache-2.0
// A command is a file harness/commands/NAME.cpp that defines `const Command NAME_command` in shardproof::harness, and
// one word in harness/CMakeLists.txt; main, help and completion are made from that list.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/exit_code.hpp"

namespace shardproof::harness {

struct Command {
  const char* name;
  const char* summary;  ///< one line for `shardproof --help`
  const char* example;  ///< a command line that works
  /// args are what follows the command's name. Results go to stdout, progress and errors to stderr. May throw any of
  /// kernels/core/errors.hpp: main prints the message and returns the code that belongs to it.
  ExitCode (*run)(std::span<const std::string> args);
};

/// All commands, in the order of harness/CMakeLists.txt (generated).
std::span<const Command* const> commands();

}  // namespace shardproof::harness
