// SPDX-License-Identifier: Apache-2.0
// Streams are threads: what one does is ordered with another, or with the host, only where the program says so.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace shardproof::cuda_standin {

/// How far a stream has come, for others to wait on.
class Progress {
 public:
  /// Work number n has run (from 1, ascending).
  void reach(std::uint64_t n);
  void wait(std::uint64_t n);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reached_ = 0;
  char order_ = 0;  // what reach() and wait() order
};

}  // namespace shardproof::cuda_standin

struct CUstream_st {
  /// `late`: work runs only once someone waits for it, so that nothing comes in time by chance.
  explicit CUstream_st(bool late);
  /// Runs what is left.
  ~CUstream_st();
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Its number, from 1.
  std::uint64_t push(std::function<void()> work);
  /// Someone will wait for work number n.
  void demand(std::uint64_t n);
  /// Blocks until all that was pushed has run.
  void drain();

 private:
  struct Work {
    std::function<void()> run;
    char order = 0;  // what push() and its run order
  };
  void loop();
  std::unique_ptr<Work> next();

  const bool late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Work>> waiting_;
  std::uint64_t pushed_ = 0, taken_ = 0, demanded_ = 0;
  bool stopping_ = false;
  shardproof::cuda_standin::Progress progress_;
  std::thread thread_;
};

struct CUevent_st {
  /// A record of the event: work number `number` of the event, and of its stream.
  struct Record {
    CUstream_st* stream = nullptr;
    std::uint64_t work = 0, number = 0;
  };
  Record last;  ///< number 0: never recorded
  /// Outlives the event while work refers to it.
  std::shared_ptr<shardproof::cuda_standin::Progress> progress = std::make_shared<shardproof::cuda_standin::Progress>();
};
