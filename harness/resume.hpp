// SPDX-License-Identifier: Apache-2.0
// Going on with a run that was stopped.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "harness/record.hpp"
#include "harness/run_folder.hpp"

namespace shardproof::harness {

/// --out and --overwrite, and --resume where a run has cases to go on with.
class FolderOptions {
 public:
  explicit FolderOptions(bool resumable) : resumable_(resumable) {}

  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing. Throws BadInput.
  void require_legal() const;
  bool resumes() const { return resume_; }
  /// Whether one of them was given.
  bool named() const { return resume_ || overwrite_ || !out_.empty(); }
  /// Throws as RunFolder does.
  RunFolder open() const;
  /// The line of this program that goes on with a run in `folder`, which `args` began.
  std::string resuming_line(std::span<const std::string> args, const RunFolder& folder) const;

 private:
  const bool resumable_;
  std::string out_;
  bool overwrite_ = false, resume_ = false;
};

/// What the record of a case says of it; a case may come up several times.
struct CaseKey {
  std::string case_text, rerun;
  /// What the files named there hold now. The hash is asked for only where there is a record to compare it with, and
  /// may throw.
  std::function<std::string()> workload_hash = {};
  std::optional<Fabric> fabric = {};
};

/// The record that each of so many cases has in the folder already. Only what need not run again stays there: what
/// passed, was refused, or was not to be judged. `key_of` is asked only where the folder holds a record. Throws
/// BadInput, and the folder is as it was, where it holds records of other cases, of files that have changed since, or
/// of another environment; WriteError.
std::vector<std::optional<Record>> resume(RunFolder& folder, std::size_t cases,
                                          const std::function<CaseKey(std::size_t)>& key_of,
                                          const Environment& environment);

}  // namespace shardproof::harness
