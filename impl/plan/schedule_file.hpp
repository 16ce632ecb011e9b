// SPDX-License-Identifier: Apache-2.0
// A schedule of one's own in place of a generator's: `schedule=file:PATH`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "impl/plan/schedule.hpp"

namespace shardproof::plan {

/// Bytes: longer files are refused.
inline constexpr std::uintmax_t largest_schedule_file = std::uintmax_t{1} << 26;

/// What a file holds. Unless something is wrong it is proven, with a flush, of whole sequences, and its depth of sends
/// is the least with which no rank waits for ever.
struct ScheduleFile {
  Schedule schedule = {};
  std::int64_t stages = 0, microbatches = 0;  ///< 0 where something is wrong
  std::string wrong = {};                     ///< why no strategy can run it: one sentence; "" where one can
};
/// What cannot be read is `wrong` too.
ScheduleFile read_schedule_file(const std::string& path);

/// Of a shape with a file: refuses what the file is not for.
extern const ScheduleGenerator schedule_of_file;

/// The value of a strategy's key `schedule`: the name of a generator, or file:PATH.
class ScheduleSource {
 public:
  static constexpr std::string_view prefix = "file:";

  ScheduleSource(std::string_view text);  // NOLINT(google-explicit-constructor): a value is written as its text
  ScheduleSource(const std::string& text) : ScheduleSource(std::string_view(text)) {}  // NOLINT
  ScheduleSource(const char* text) : ScheduleSource(std::string_view(text)) {}         // NOLINT
  operator std::string_view() const { return text_; }                                  // NOLINT

  const std::string& text() const { return text_; }
  bool is_file() const { return text_.starts_with(prefix); }
  /// Why this text, of a file, cannot stand in a strategy, which is part of a case's text; "" where it can.
  std::string wrong_path() const;
  /// nullptr of a name. The file is read when it is first asked for, once for all copies of this value.
  std::shared_ptr<const ScheduleFile> file() const;
  friend bool operator==(const ScheduleSource& a, const ScheduleSource& b) { return a.text_ == b.text_; }

 private:
  struct Reading;
  std::string text_;
  std::shared_ptr<Reading> reading_;
};

}  // namespace shardproof::plan
