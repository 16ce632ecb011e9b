// SPDX-License-Identifier: Apache-2.0
// What the processes of a run are: where each runs, and whether all of them compute with the same code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof::harness {

/// A machine of a run, and its processes.
struct Node {
  std::string host, system, processor;
  std::int64_t cores = 0, memory_bytes = 0;
  std::vector<std::int64_t> processes;

  bool operator==(const Node&) const = default;
};

/// What this process is, for process 0. The names of what must not differ, and values: the SHA-256 of the code and
/// constants that this binary runs, the commit, the versions and build ids of libraries, variables that change how a
/// run computes.
struct ProcessIdentity {
  Node node;  ///< without processes
  std::vector<std::pair<std::string, std::string>> alike;
};
ProcessIdentity identity();
std::string to_json(const ProcessIdentity& identity);
/// Of another process of this program.
ProcessIdentity parse_identity(std::string_view json_text);

/// With its processes, in one line.
std::string to_json(const Node& node);
/// Equal machines in the order of their first processes.
std::vector<Node> nodes_of(const std::vector<ProcessIdentity>& processes);
/// Where a process differs from process 0 in what must not differ: one sentence a line; "" where none does.
std::string differences(const std::vector<ProcessIdentity>& processes);

}  // namespace shardproof::harness
