// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/monitor.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impl/comm/flight_record.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

constexpr int passed_on[] = {SIGTERM, SIGINT};

class Monitor {
 public:
  Monitor(pid_t worker, pid_t launcher, FlightRecorder& recorder, std::filesystem::path path, int hang, int lost)
      : worker_(worker),
        launcher_(launcher),
        recorder_(recorder),
        file_(recorder.file()),
        path_(std::move(path)),
        process_(file_.process),
        hang_(hang),
        lost_(lost) {}

  /// Until the worker has ended: the exit code.
  int watch(const sigset_t& signals) {
    while (true) {
      siginfo_t info{};
      constexpr timespec look = {.tv_sec = 0, .tv_nsec = 100'000'000};
      const int signal = sigtimedwait(&signals, &info, &look);
      if (signal > 0 && signal != SIGCHLD) pass_on(signal);
      int status = 0;
      while (waitpid(worker_, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        if (WIFSTOPPED(status)) file_.stopped_ns = flight_clock(), continued_ns_ = 0;
        if (WIFCONTINUED(status)) continued_ns_ = flight_clock();
        if (WIFEXITED(status) || WIFSIGNALED(status)) return ended(status, signals);
      }
      if (continued_ns_ != 0 && flight_clock() - continued_ns_ > end_of_a_job_ns) file_.stopped_ns = continued_ns_ = 0;
      if (getppid() != launcher_) {
        end_worker();
        return leave(lost_);
      }
      if (const std::string text = stuck(); !text.empty()) {
        say(text);
        end_worker();
        return leave(hang_);
      }
    }
  }

 private:
  void pass_on(int signal) {
    asked_to_end_ = true;
    if (file_.exit_code < 0) file_.asked = signal;
    sigqueue(worker_, signal, {});  // its group may have got the signal too: the worker tells the two apart
    if (file_.stopped_ns != 0) kill(worker_, SIGKILL);
    if (signal == SIGTERM) tidy_up(true);  // a launcher that ends a job kills what has not ended a moment later
  }

  void end_worker() {
    kill(worker_, SIGKILL);
    int status = 0;
    while (waitpid(worker_, &status, 0) < 0 && errno == EINTR) {
    }
  }

  int ended(int status, const sigset_t& signals) {
    file_.ended_ns = flight_clock();
    const int decided = file_.exit_code;
    if (WIFEXITED(status) && decided >= 0) return leave(WEXITSTATUS(status));
    if (asked_to_end_) return leave(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    if (WIFEXITED(status))
      file_.status = WEXITSTATUS(status);
    else
      file_.signal = WTERMSIG(status);  // from here on the others know
    const std::string text = told([](const FlownRecord& record) { return merge({&record, 1}).reasons.at(0); });
    if (process_ == 0 || grace_is_over(signals)) say(text);
    return leave(lost_);
  }

  /// False where the job is ended by others within the grace.
  bool grace_is_over(const sigset_t& signals) const {
    const std::int64_t end = flight_clock() + static_cast<std::int64_t>(grace_seconds * 1e9);
    constexpr timespec look = {.tv_sec = 0, .tv_nsec = 100'000'000};
    while (flight_clock() < end && getppid() == launcher_) {
      const int signal = sigtimedwait(&signals, nullptr, &look);
      if (signal == SIGTERM || signal == SIGINT) return false;
    }
    return true;
  }

  /// What it is stuck in for too long; "" if it is not. Who is to blame for a Blocked function is told before, by its
  /// own monitor.
  std::string stuck() const {
    const double deadline =
        file_.deadline_ns > 0 ? static_cast<double>(file_.deadline_ns) * 1e-9 : before_training_seconds;
    const double most_stopped = deadline + (process_ == 0 ? 2 : grace_seconds);
    const double most_blocked = deadline + grace_seconds + 10;
    const auto has_taken = [](std::int64_t since, double seconds) {
      return since != 0 && static_cast<double>(flight_clock() - since) * 1e-9 > seconds;
    };
    const bool is_stopped = continued_ns_ == 0 && has_taken(file_.stopped_ns, most_stopped);
    if (!is_stopped && !has_taken(file_.blocked_ns, most_blocked)) return "";
    return told([&](const FlownRecord& record) {
      return record.name() + (is_stopped ? " is stopped (SIGSTOP) " : " is stuck ") + where(record) +
             ", for longer than " +
             std::to_string(static_cast<std::int64_t>(is_stopped ? most_stopped : most_blocked)) + " s";
    });
  }

  /// The worker may have written anything over its record before it crashed.
  std::string told(const std::function<std::string(const FlownRecord&)>& sentence) const {
    try {
      return sentence(read_flight(recorder_.bytes(), "process " + std::to_string(process_)));
    } catch (const BadInput& error) {
      return "process " + std::to_string(process_) + " was lost: " + error.what();
    }
  }

  int leave(int code) {
    constexpr int least_kept = 8;
    const bool ended_well = code < least_kept && file_.phase == static_cast<std::uint32_t>(Phase::ending);
    tidy_up(!ended_well && code != interrupted);
    return code;
  }

  /// The record is removed, and before that kept; once.
  void tidy_up(bool is_kept) {
    if (is_tidy_) return;
    is_tidy_ = true;
    if (is_kept) keep();
    if (!path_.empty()) unlink(path_.c_str());
  }

  // Quickly: a file that is whole as far as other processes see, whether or not it has reached the disk.
  void keep() {
    const std::string folder(file_.folder, strnlen(file_.folder, sizeof file_.folder));
    if (folder.empty()) return;
    if (file_.ended_ns == 0) file_.ended_ns = flight_clock();
    mkdir(folder.c_str(), 0777);
    const std::string path = folder + "/rank-" + std::to_string(process_) + ".flight", partial = path + ".partial";
    std::ofstream to(partial, std::ios::binary);
    const auto bytes = recorder_.bytes();
    to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    to.close();
    if (!to.fail() && rename(partial.c_str(), path.c_str()) == 0) return;
    say("cannot write " + path + ": " + std::strerror(errno));
    unlink(partial.c_str());
  }

  static void say(const std::string& text) {
    std::fprintf(stderr, "shardproof: %s\n", text.c_str());
    std::fflush(stderr);
  }

  static constexpr double before_training_seconds = 120;  // MPI's start on many nodes
  static constexpr int interrupted = 130;
  // A launcher that ends a job wakes who is stopped, and asks to end right after: that is no end of the stop.
  static constexpr std::int64_t end_of_a_job_ns = 1'000'000'000;
  const pid_t worker_, launcher_;
  FlightRecorder& recorder_;
  FlightFile& file_;
  const std::filesystem::path path_;
  const std::int64_t process_;
  const int hang_, lost_;
  std::int64_t continued_ns_ = 0;
  bool asked_to_end_ = false, is_tidy_ = false;
};

std::filesystem::path flight_folder() {
  std::error_code error;
  if (access("/dev/shm", W_OK) == 0) return "/dev/shm";  // in memory: what is written there costs no disk
  return std::filesystem::temp_directory_path(error);
}

std::string own_prefix() { return "shardproof." + std::to_string(geteuid()) + "."; }

std::string host_name() {
  utsname name{};
  uname(&name);
  return name.nodename;
}

}  // namespace

std::string job_name(const Launched& launched) {
  std::string name(launched.launcher);
  for (const char* variable : {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    if (const char* value = std::getenv(variable)) name += std::string(".") + value;
  if (name == launched.launcher) name += "." + std::to_string(getppid());
  std::ranges::replace(name, '/', '_');
  return name;
}

std::filesystem::path flight_path(std::string_view job, std::int64_t process) {
  return flight_folder() / (own_prefix() + std::string(job) + "." + std::to_string(process) + ".flight");
}

void remove_stale_flights() {
  constexpr std::chrono::minutes least_age(1);  // a new one is not locked yet
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (std::filesystem::directory_iterator at(flight_folder(), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.starts_with(own_prefix()) || !name.ends_with(".flight")) continue;
    const auto written = at->last_write_time(error);
    const int file =
        error || now - written < least_age ? -1 : open(at->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    error.clear();
    if (file < 0) continue;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(at->path().c_str());
    close(file);
  }
}

std::unique_ptr<FlightRecorder> begin_monitored(const Launched& launched, int hang, int lost) {
  const std::string job = job_name(launched);
  remove_stale_flights();
  std::filesystem::path path = flight_path(job, launched.rank);
  std::unique_ptr<MappedFlight> mapped;
  try {
    mapped = MappedFlight::create(path);
  } catch (const WriteError&) {  // then only the monitor reads it
    path.clear();
    mapped = MappedFlight::anonymous();
  }
  auto recorder = std::make_unique<FlightRecorder>(std::move(mapped),
                                                   FlightIdentity{launched.rank, launched.size, job, host_name()});
  std::signal(SIGCHLD, SIG_DFL);  // a child's end is waited for, whatever the launcher does about its own
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : passed_on) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t launcher = getppid(), monitor = getpid();
  const pid_t worker = fork();
  if (worker < 0) throw CommError(std::string("cannot start this rank's process: ") + std::strerror(errno));
  if (worker == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != monitor) _exit(lost);  // it has ended before that
    recorder->file().pid = getpid();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return recorder;
  }
  _exit(Monitor(worker, launcher, *recorder, path, hang, lost).watch(signals));
}

}  // namespace shardproof::comm
