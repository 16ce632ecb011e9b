// SPDX-License-Identifier: Apache-2.0
#include "harness/node.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

ProcessIdentity process(const std::string& host, std::int64_t cores,
                        std::vector<std::pair<std::string, std::string>> alike) {
  return {{host, "Linux", "P", cores, 1 << 30, {}}, std::move(alike)};
}

TEST(Node, AProcessIsLikeItself) {
  const ProcessIdentity own = identity();
  const ProcessIdentity read = parse_identity(to_json(own));
  EXPECT_EQ(read.node, own.node);
  EXPECT_EQ(read.alike, own.alike);
  EXPECT_EQ(differences({own, read, own}), "");
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(own.alike, [&](const auto& one) { return one.first == name && !one.second.empty(); });
  };
  for (const std::string_view name : {"binary", "version", "commit", "MPI", "libc.so.6"})
    EXPECT_TRUE(has(name)) << name;
}

TEST(Node, DifferencesAreNamedOnceForEachMachine) {
  const std::vector<ProcessIdentity> all = {process("a", 2, {{"binary", "x"}, {"MPI", "4"}}),
                                            process("a", 2, {{"binary", "x"}, {"MPI", "4"}}),
                                            process("b", 2, {{"binary", "y"}, {"MPI", "4"}, {"variable V", "1"}}),
                                            process("b", 2, {{"binary", "y"}, {"MPI", "4"}})};
  EXPECT_EQ(differences(all),
            "binary: rank 0 on host a: x; ranks 2-3 on host b: y\n"
            "variable V: rank 0 on host a: none; rank 2 on host b: 1");
}

// Machines may differ in what they are.
TEST(Node, EqualMachinesAreOne) {
  const std::vector<ProcessIdentity> all = {process("a", 2, {}), process("b", 4, {}), process("a", 2, {})};
  EXPECT_EQ(differences(all), "");
  const auto nodes = nodes_of(all);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].processes, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(nodes[1].cores, 4);
}

}  // namespace
}  // namespace shardproof::harness
