// SPDX-License-Identifier: Apache-2.0
// One thread block on one thread of the host: every CUDA thread is a fiber that runs until it must wait for others.
//
// Rules (CUDA C++ Programming Guide, "Synchronization Functions" and "Warp Shuffle Functions"; a breach is a
// KernelFault). Where the guide lets threads that have left the kernel be missing, this does not, as
// compute-sanitizer's synccheck does not:
//   - all threads of a block meet in the same call of __syncthreads;
//   - the lanes of a mask meet in the same call with the same mask, each naming itself; lanes that a block's last warp
//     does not have count as named by nobody;
//   - a shuffle reads a lane of its mask.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda_standin/fiber.hpp"
#include "kernels/cuda_standin/types.hpp"

namespace shardproof::cuda_standin {

inline constexpr unsigned warp_lanes = 32;

class Block {
 public:
  Block(const dim3& dim, const ThreadOrder& order);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  /// kernel() once by every thread. After a KernelFault, or what the kernel threw, the block is of no further use.
  void run(const std::function<void()>& kernel);

  /// The rest is for threads of a running kernel. The block that runs on this thread of the host; throws InternalError
  /// where none does.
  static Block& running();
  void sync_threads(const Site& site);
  void sync_warp(const Site& site, unsigned mask);
  /// The value of lane `from`.
  std::uint64_t shuffle(const Site& site, unsigned mask, std::uint64_t value, unsigned from);
  /// Bit l: lane l of the mask has said so.
  unsigned ballot(const Site& site, unsigned mask, bool predicate);
  /// Of the running thread.
  unsigned lane() const;

 private:
  struct Thread;
  /// Lanes of one warp that wait for the rest of their mask.
  struct Meeting {
    Site site;
    unsigned mask = 0, arrived = 0;
    std::array<std::uint64_t, warp_lanes> value{};
    std::array<unsigned, warp_lanes> from{};
    // What the meeting orders, by parity of those that were here before: a lane that is fast may be in the next one
    // before another has left this.
    std::array<char, 2> order{};
    unsigned passed = 0;
  };
  /// A meeting has at least one lane waiting: there are as many places as lanes. None is allocated while the kernel
  /// runs, where the thread sanitizer would see CUDA threads share the allocator's memory.
  struct Warp {
    unsigned lanes = 0, left = 0;
    unsigned open = 0;  // bit i: meetings[i] is under way
    std::array<Meeting, warp_lanes> meetings{};
  };
  using Deliver = std::uint64_t (*)(const Meeting&, unsigned lane);

  std::uint64_t meet(const Site& site, unsigned mask, std::uint64_t value, unsigned from, Deliver deliver,
                     bool orders = false);
  Meeting& join(Warp& warp, const Site& site, unsigned mask);
  void complete(const Thread& last, Warp& warp, Meeting& meeting, Deliver deliver);
  void wait(const Site& site);
  void resume(Thread& thread);
  void leave(Thread& thread);
  [[noreturn]] void fault(const Thread& thread, const std::string& what) const;
  [[noreturn]] void fault_deadlock() const;
  std::string name(const Thread& thread) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> turns_;  // in the order in which they take theirs
  std::vector<Warp> warps_;
  Thread* self_ = nullptr;
  Site site_;  // of the __syncthreads that arrived_ threads wait at
  unsigned arrived_ = 0, passed_ = 0, left_ = 0;
  std::array<char, 2> order_{};  // what __syncthreads orders, by parity of passed_
  char start_ = 0, end_ = 0;     // what the kernel's start and its threads' ends order
};

}  // namespace shardproof::cuda_standin
