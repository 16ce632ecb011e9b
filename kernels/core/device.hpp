// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/core/memory_ledger.hpp"
#include "kernels/core/span_log.hpp"

namespace shardproof {

/// Multiply-adds counted by the matmul kernels, as FLOPs (two each). Work done again for recomputation counts as
/// hardware FLOPs only.
class FlopLedger {
 public:
  void add(std::int64_t flops) {
    hardware_ += flops;
    if (!recomputing_) model_ += flops;
  }
  /// A kernel that computes again what another could have kept.
  void add_recomputed(std::int64_t flops) { hardware_ += flops; }
  void set_recomputing(bool on) { recomputing_ = on; }
  std::int64_t model() const { return model_; }
  std::int64_t hardware() const { return hardware_; }

 private:
  std::atomic<std::int64_t> model_ = 0, hardware_ = 0;
  std::atomic<bool> recomputing_ = false;
};

struct DeviceOptions {
  Rank rank{0};
  std::int64_t memory_limit_bytes = MemoryLedger::unlimited;
  /// Fill fresh and freed memory with poison, and scan every kernel's inputs for it.
  bool poison = true;
};

/// One rank's device: its identity, its ledgers, its switches. Outlives every queue and tensor made on it.
class Device {
 public:
  explicit Device(DeviceOptions options = {}) : options_(options), memory_(options.rank, options.memory_limit_bytes) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Rank rank() const { return options_.rank; }
  bool poison() const { return options_.poison; }
  MemoryLedger& memory() { return memory_; }
  FlopLedger& flops() { return flops_; }
  SpanLog& spans() { return spans_; }

  /// Whether any kernel since the last clear_overflow() raised overflow: line 5 of the step's end asks it. Neither this
  /// nor FlopLedger::set_recomputing is ordered with queues: the host calls them while the device's queues are idle, a
  /// kernel through KernelScope::device().
  bool overflow() const { return overflow_; }
  void raise_overflow() { overflow_ = true; }
  void clear_overflow() { overflow_ = false; }

 private:
  DeviceOptions options_;
  MemoryLedger memory_;
  FlopLedger flops_;
  SpanLog spans_;
  std::atomic<bool> overflow_ = false;
};

/// Throws DeviceError unless this thread rounds to nearest even and keeps subnormal numbers. A library may have changed
/// that under our feet (one linked with -ffast-math does), so every kernel's start asks; it takes nanoseconds.
void require_arithmetic();

/// Called once by a program that trains: makes the C library keep freed memory for the next step instead of returning
/// it to the system page by page, and grow its heap by steps that hold huge pages. Throws DeviceError when the
/// processor lacks an instruction set that this binary was compiled for, or as require_arithmetic().
void prepare_process();

}  // namespace shardproof
