// SPDX-License-Identifier: Apache-2.0
// What one rank spent its time on: every kernel, every exchange with other ranks, every action of the pipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace shardproof {

/// In nanoseconds of the host's monotonic clock, which all threads of a machine share, and of the time that the thread
/// itself has run.
struct TimeSpan {
  std::int64_t start = 0, end = 0;
  std::int64_t cpu_start = 0, cpu_end = 0;
  std::thread::id thread = {};
};

struct KernelSpan : TimeSpan {
  std::string_view name;  ///< a literal
};

/// One rank's part in a collective or message. It lies inside of a kernel's span.
struct ExchangeSpan : TimeSpan {
  std::string_view kind, purpose;            ///< literals
  std::shared_ptr<const std::string> group;  ///< names the channel and its members
  std::int64_t members = 0, place = 0;
  std::int64_t peer = 0;    ///< place of root, destination or source
  std::int64_t number = 0;  ///< from 1: of the group's collectives, or of the messages between the two
  std::int64_t payload_bytes = 0;
};

/// An action of the schedule with the exchanges inside of it, without the messages between stages.
struct ActionSpan : TimeSpan {
  char kind = 'F';  ///< or I, W, B, as schedules write them
  std::int64_t stage = 0, microbatch = 0;
};

/// A step of training.
struct StepSpan : TimeSpan {
  std::int64_t step = 0;
};

/// Of one rank, each kind in order of its end.
struct Spans {
  std::vector<KernelSpan> kernels;
  std::vector<ExchangeSpan> exchanges;
  std::vector<ActionSpan> actions;
  std::vector<StepSpan> steps;
};

/// Thread-safe, but for turn() and take(), which are called while no queue of the device runs.
class SpanLog {
 public:
  /// While off, which it is at first, nothing is kept.
  void turn(bool on) { on_ = on; }
  bool on() const { return on_; }
  Spans take() { return std::exchange(spans_, {}); }

  void add(const KernelSpan& span) { keep(spans_.kernels, span); }
  void add(const ExchangeSpan& span) { keep(spans_.exchanges, span); }
  void add(const ActionSpan& span) { keep(spans_.actions, span); }
  void add(const StepSpan& span) { keep(spans_.steps, span); }

 private:
  template <class Span>
  void keep(std::vector<Span>& spans, const Span& span) {
    const std::lock_guard lock(mutex_);
    spans.push_back(span);
  }

  bool on_ = false;
  std::mutex mutex_;
  Spans spans_;
};

/// Adds `span`, from construction to destruction, to a log that is on; also where an error ends it.
template <class Span>
class Recorded {
 public:
  Recorded(SpanLog& log, Span span) : log_(log.on() ? &log : nullptr) {
    if (log_ == nullptr) return;
    span_ = std::move(span);
    take_start(span_);
  }
  ~Recorded() {
    if (log_ == nullptr) return;
    take_end(span_);
    log_->add(span_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  SpanLog* log_;
  Span span_;
};

/// Takes the clocks.
void take_start(TimeSpan& span);
void take_end(TimeSpan& span);

}  // namespace shardproof
