// SPDX-License-Identifier: Apache-2.0
#include "harness/run_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/report_files.hpp"
#include "harness/saved_run.hpp"
#include "harness/text.hpp"
#include "harness/transport.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

constexpr const char *records_name = "records.jsonl", *summary_name = "summary.json", *junit_name = "junit.xml",
                     *lock_name = "run.lock";

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& cause) {
  throw WriteError(fmt::format("cannot write {}: {}", path.string(), cause));
}

// True when this call made it.
bool make_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) fail(path, error.message());
  if (mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail(path, std::strerror(errno));
  if (!std::filesystem::is_directory(path, error)) fail(path, "it is not a folder");
  return false;
}

std::filesystem::path make_new_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
  const std::filesystem::path first = std::filesystem::path("results/runs") / stamp;
  std::filesystem::path path = first;
  for (int i = 2; !make_folder(path); ++i) path = first.string() + "-" + std::to_string(i);
  return path;
}

void write_all(int file, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(path, std::strerror(written < 0 ? errno : ENOSPC));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool same_file(int file, const std::filesystem::path& path) {
  struct stat a {
  }, b{};
  return fstat(file, &a) == 0 && stat(path.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string owner_of(int lock) {
  char text[32];
  const ssize_t count = pread(lock, text, sizeof text, 0);
  return count > 0 ? fmt::format("process {}", std::string(text, static_cast<std::size_t>(count))) : "another process";
}

/// Of the k-th record's case, from 1.
std::string trace_name(std::size_t k) { return k == 1 ? "trace.json" : fmt::format("trace-{}.json", k); }

void remove_file(const std::filesystem::path& file) {
  if (unlink(file.c_str()) != 0 && errno != ENOENT) fail(file, std::strerror(errno));
}

void move_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) fail(to, std::strerror(errno));
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& path, Existing existing) : path_(path) {
  if (path_.empty()) {
    path_ = make_new_folder();
    made_ = true;
  } else {
    made_ = make_folder(path_);
  }
  try {
    lock();
    const bool resumed = existing == Existing::resume;
    const std::filesystem::path records = path_ / records_name;
    if (resumed && std::filesystem::exists(records)) earlier_ = read_whole_records(records);
    if (earlier_.empty()) {
      remove_old(resumed ? Existing::overwrite : existing);
      open_records();
    }
  } catch (...) {
    release();
    if (made_) rmdir(path_.c_str());
    throw;
  }
}

RunFolder::~RunFolder() { release(); }

void RunFolder::release() {
  if (records_ >= 0) close(records_);
  if (lock_ < 0) return;
  unlink((path_ / lock_name).c_str());
  close(lock_);
}

void RunFolder::lock() {
  const std::filesystem::path file = path_ / lock_name;
  for (;;) {
    const int lock = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (lock < 0) fail(file, std::strerror(errno));
    if (struct stat status{}; fstat(lock, &status) != 0 || !S_ISREG(status.st_mode)) {
      close(lock);
      fail(file, "it is no regular file");
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
      const std::string owner = owner_of(lock);
      close(lock);
      throw BadInput(fmt::format("{} is being written by {}: choose another --out", path_.string(), owner));
    }
    if (same_file(lock, file)) {  // else its last owner removed it between open and flock
      lock_ = lock;
      break;
    }
    close(lock);
  }
  if (ftruncate(lock_, 0) != 0) fail(file, std::strerror(errno));
  write_all(lock_, std::to_string(getpid()), file);
}

void RunFolder::remove_old(Existing existing) {
  std::vector<const char*> names = {records_name, summary_name, junit_name};
  names.insert(names.end(), report_names.begin(), report_names.end());
  for (const char* name : names) {
    if (!std::filesystem::exists(path_ / name)) continue;
    if (existing != Existing::overwrite)
      throw BadInput(fmt::format("{} holds a run already: choose another --out, or --overwrite it", path_.string()));
    remove_file(path_ / name);
  }
  std::vector<std::filesystem::path> traces;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("trace") && name.ends_with(".json")) traces.push_back(entry.path());
  }
  for (const auto& trace : traces) remove_file(trace);
}

void RunFolder::open_records() {
  const std::filesystem::path file = path_ / records_name;
  records_ = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (records_ < 0) fail(file, std::strerror(errno));
}

void RunFolder::keep(std::span<const std::size_t> indices) {
  std::string text;
  for (const std::size_t i : indices) text += to_json(earlier_[i]) + "\n";
  remove_file(path_ / summary_name);  // the run has not ended
  write_file(path_ / records_name, text);
  length_ = static_cast<std::int64_t>(text.size());
  for (std::size_t i = 0, kept = 0; i < earlier_.size(); ++i) {
    const std::filesystem::path trace = path_ / trace_name(i + 1);
    const bool stays = kept < indices.size() && indices[kept] == i;
    if (stays) count(earlier_[i]), ++kept;
    if (!stays)
      remove_file(trace);
    else if (kept != i + 1 && std::filesystem::exists(trace))
      move_file(trace, path_ / trace_name(kept));
  }
  for (std::size_t k = earlier_.size() + 1;; ++k) {  // of a record that was cut off
    const std::filesystem::path trace = path_ / trace_name(k);
    if (!std::filesystem::exists(trace)) break;
    remove_file(trace);
  }
  open_records();
}

void RunFolder::add(const Record& record) {
  const std::string line = to_json(record) + "\n";
  try {
    write_all(records_, line, path_ / records_name);
    if (fsync(records_) != 0) fail(path_ / records_name, std::strerror(errno));
  } catch (const WriteError&) {
    [[maybe_unused]] const int cut = ftruncate(records_, length_);  // shrinking needs no space
    throw;
  }
  length_ += static_cast<std::int64_t>(line.size());
  count(record);
}

void RunFolder::count(const Record& record) {
  const double seconds = figure_of(record, "seconds");
  reported_.add(record);
  ended_.push_back(
      {shown_name(record), record.reason, record.rerun, record.verdict, std::isnan(seconds) ? 0 : seconds});
}

void RunFolder::add_trace(std::string_view json) { write_file(path_ / trace_name(ended_.size()), json); }

ExitCode RunFolder::run(const std::string& command_line, const std::function<ExitCode()>& work) {
  ExitCode code = ExitCode::internal;
  try {
    code = work();
  } catch (const std::exception& error) {
    try {
      summarise(exit_code_of(error), command_line);
    } catch (const std::exception& also) {  // what ended the work counts
      say(stderr, printable(fmt::format("shardproof: {}\n", also.what())));
    }
    throw;
  }
  summarise(code, command_line);
  return code;
}

void RunFolder::summarise(ExitCode code, const std::string& command_line) {
  nlohmann::ordered_json verdicts = nlohmann::ordered_json::object();
  for (const std::string& name : verdict_names())
    verdicts[name] = std::ranges::count(ended_, verdict_named(name), &Ended::verdict);
  nlohmann::ordered_json summary = {
      {"schema", summary_schema}, {"command", command_line}, {"exit_code", static_cast<int>(code)},
      {"cases", ended_.size()},   {"verdicts", verdicts},
  };
  for (const Node& node : nodes()) summary["nodes"].push_back(nlohmann::ordered_json::parse(to_json(node)));
  reported_.runs = {{path_.string(), command_line, static_cast<int>(code)}};
  reported_.timelines = read_timelines(path_, reported_.cases());
  write_reports(path_, reported_);
  write_file(path_ / junit_name, junit(ended_));
  write_file(path_ / summary_name,
             summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace shardproof::harness
