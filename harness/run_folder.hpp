// SPDX-License-Identifier: Apache-2.0
// The folder that a run writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "harness/exit_code.hpp"
#include "harness/junit.hpp"
#include "harness/record.hpp"
#include "harness/report_data.hpp"

namespace shardproof::harness {

/// What becomes of the run that the folder holds.
enum class Existing { refuse, overwrite, resume };

/// Locked while it lives. At every moment records.jsonl holds whole records only; the files of report_files.hpp,
/// junit.xml and then summary.json appear whole when the run ends.
class RunFolder {
 public:
  /// Makes the folder ("" : results/runs/<UTC time>, a new one) and an empty records.jsonl, or with `resume` leaves one
  /// that is there as it is until keep(). Throws BadInput: it holds a run that is to be refused, or whose records
  /// cannot be read; or another process (named) is writing it. Throws WriteError: it cannot be written.
  RunFolder(const std::filesystem::path& path, Existing existing);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// With `resume`: the records that it holds. One that was cut off at the end is none.
  const std::vector<Record>& earlier() const { return earlier_; }
  /// Before any record is added: of the earlier ones these (ascending) stay, with their traces. Throws WriteError; then
  /// no record that was to stay is lost.
  void keep(std::span<const std::size_t> indices);

  /// Appends the record and flushes it to the disk. Throws WriteError; then the file is as it was before.
  void add(const Record& record);

  /// trace.json of the last record's case, trace-2.json and so on of later ones. Throws WriteError.
  void add_trace(std::string_view json);

  /// Does the work, then writes the reports, junit.xml and summary.json about the records made, also when the work
  /// throws. Returns what the work returns. Throws what it throws; else, where they cannot be written, WriteError.
  ExitCode run(const std::string& command_line, const std::function<ExitCode()>& work);

 private:
  void lock();
  void remove_old(Existing existing);
  void open_records();
  void release();
  void count(const Record& record);

  void summarise(ExitCode code, const std::string& command_line);

  std::filesystem::path path_;
  bool made_ = false;  // the folder is new
  int lock_ = -1, records_ = -1;
  std::int64_t length_ = 0;  // of records.jsonl
  std::vector<Record> earlier_;
  std::vector<Ended> ended_;
  ReportData reported_;
};

}  // namespace shardproof::harness
