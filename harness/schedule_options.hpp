// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/options.hpp"
#include "impl/plan/schedule_index.hpp"
#include "impl/plan/timeline.hpp"

namespace shardproof::harness {

/// A schedule that was named on the command line.
struct NamedSchedule {
  std::string title;  ///< "zb_h1 (Qi et al. 2024, section 3.1)", or the file's name
  plan::Schedule schedule;
  plan::ScheduleExtent extent;
  plan::Columns columns = {};                          ///< of a file
  const plan::ScheduleGenerator* generator = nullptr;  ///< of a name, with its shape
  plan::ScheduleShape shape = {};
};

/// What an option acts on: the schedule's shape, its proof, or the time that it takes.
enum class OptionUse { shape, proof, time };

/// The options that say which schedule, of what shape, at what costs.
class ScheduleOptions {
 public:
  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing: of a generator's name, "file:PATH", or the path of a file. Throws BadInput; NotSupported where the
  /// generator cannot serve the shape.
  NamedSchedule load(const std::string& name) const;
  /// Throws BadInput, for --stage-costs of another number of stages and for --overlapped where nothing overlaps too.
  plan::ActionCosts costs(const NamedSchedule& named) const;

  struct Given {
    std::string_view option;
    OptionUse use;
  };
  /// Those that were given.
  std::vector<Given> given() const;

 private:
  NamedSchedule of_file(const std::string& path) const;
  plan::ScheduleShape shape(const plan::ScheduleGenerator& generator) const;

  std::optional<std::int64_t> ranks_, stages_, microbatches_, chunks_, slices_, updates_, depth_;
  std::string replicas_, costs_, stage_costs_, weights_;
  bool vertical_sync_ = false, overlapped_ = false;
};

/// "F 1, I 1, W 1, message 0", with the factors of stages and whether blocks overlap, where it is so.
std::string text_of(const plan::ActionCosts& costs);

}  // namespace shardproof::harness
