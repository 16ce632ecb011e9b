// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/options.hpp"
#include "impl/plan/schedule_index.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::harness {

/// A schedule that was named on the command line.
struct NamedSchedule {
  std::string title;  ///< "zb_h1 (Qi et al. 2024, section 3.1)", or the file's name
  plan::Schedule schedule;
  plan::ScheduleExtent extent;
  plan::Columns columns = {};  ///< of a file
};

/// The options that say which schedule, of what shape, at what costs.
class ScheduleOptions {
 public:
  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing: of a generator's name, "file:PATH", or the path of a file. Throws BadInput; NotSupported where the
  /// generator cannot serve the shape.
  NamedSchedule load(const std::string& name) const;
  plan::ActionCosts costs() const;

 private:
  NamedSchedule of_file(const std::string& path) const;
  std::int64_t ranks(std::int64_t chunks) const;

  std::optional<std::int64_t> ranks_, stages_, microbatches_, chunks_, slices_, updates_, depth_;
  std::string replicas_, costs_, weights_;
  bool vertical_sync_ = false;
};

}  // namespace shardproof::harness
