// SPDX-License-Identifier: Apache-2.0
// What the run-time library keeps for the whole process.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda_standin/memory.hpp"
#include "kernels/cuda_standin/stream.hpp"
#include "kernels/cuda_standin/types.hpp"

namespace shardproof::cuda_standin {

/// CUDA_STANDIN in the environment, words with commas between: forward, reverse or shuffled=SEED (default forward), and
/// late (see CUstream_st).
struct Options {
  ThreadOrder order;
  bool late = false;
};
/// Throws BadInput.
Options parse_options(const std::string& text);

class Runtime {
 public:
  static Runtime& get();

  const Options& options() const { return options_; }
  void set_options(const Options& options) { options_ = options; }
  Memory& memory() { return memory_; }

  CUstream_st* make_stream();
  /// Runs what is left of it. False: there is no such stream.
  bool end_stream(CUstream_st* stream);
  bool has(CUstream_st* stream) const;
  /// As the stream's demand(), where there still is one.
  void demand(CUstream_st* stream, std::uint64_t work);
  void drain_streams();

  /// What a kernel did wrong: from then on nothing runs and every call fails, as with a device's own "sticky" errors.
  /// The first counts.
  void fail(const std::string& what, bool address);
  bool failed() const;
  /// Of the failure, valid until forget_failure().
  const std::string& failure() const { return failure_; }
  bool failed_by_address() const { return by_address_; }
  /// For tests: as a new process. All streams are idle.
  void forget_failure();

  /// Pushes work that is skipped after a failure; kernels' faults become one. Returns its number.
  std::uint64_t push(CUstream_st& stream, std::function<void()> work);

 private:
  Runtime();

  Options options_;
  Memory memory_;
  mutable std::mutex mutex_;
  std::vector<CUstream_st*> streams_;
  bool failed_ = false, by_address_ = false;
  std::string failure_;
};

}  // namespace shardproof::cuda_standin
