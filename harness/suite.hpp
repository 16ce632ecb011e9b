// SPDX-License-Identifier: Apache-2.0
// A suite: a list of entries, each of which stands for one case or many (suites/cases/README.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case.hpp"
#include "harness/judge.hpp"

namespace shardproof::harness {

struct Space;

struct Entry {
  std::string name, why;
  std::vector<Case> cases;
  std::vector<Shown> shows = {Shown::gradient};  ///< what every one of them must show
  std::int64_t pass = 0, unsupported = 0;        ///< verdicts expected when all of them run
  std::vector<std::string> needs = {};           ///< techniques that the rest of the workload's purpose waits for
  bool pairs = false;                            ///< the cases cover pairs of factors' levels:
  std::int64_t covered = 0, legal = 0;           ///< so many of so many legal ones,
  std::shared_ptr<const Space> space = {};       ///< of these factors
};

struct Suite {
  std::string name, why;
  std::vector<Entry> entries;
};

/// The suite's text with everything expanded. `seed` replaces that of its random entries. Throws BadInput with every
/// finding, one a line: not JSON, unknown, doubled or missing keys, wrong types, a name or a case that is there twice,
/// expected counts that are not the number of cases. Findings about an entry have the line and column where it begins.
/// Workloads that are files are found from `folder`, which is made part of the case. Workloads and strategies are read
/// when a case runs, but for entries with strategy_factors, of which only the legal combinations are cases.
Suite parse_suite(std::string_view text, std::string_view origin, std::optional<std::uint64_t> seed = {},
                  const std::filesystem::path& folder = {});
/// Of the file. Throws BadInput as above.
Suite read_suite(const std::filesystem::path& path, std::optional<std::uint64_t> seed = {});

/// A file of suites/cases by its name, or any other by its path. A built-in suite's counts must be those of its
/// manifest in results/manifests, so that no entry is lost unnoticed (BadInput).
Suite load_suite(std::string_view name_or_path, std::optional<std::uint64_t> seed = {});

std::vector<std::string> suite_names();

}  // namespace shardproof::harness
