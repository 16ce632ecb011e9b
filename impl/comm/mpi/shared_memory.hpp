// SPDX-License-Identifier: Apache-2.0
// Memory that the processes of a group have in common, where all of them are on one machine. What they reduce goes
// through it: each gives its elements once, all read them there, and nobody sends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "impl/comm/mpi/collectives.hpp"

namespace shardproof::comm {

class SharedMemory {
 public:
  /// By all processes of the communicator, which `mpi` speaks on; nullptr on each of them where they are on several
  /// machines, or where the system does not let them share.
  static std::unique_ptr<SharedMemory> among(const MpiCollectives& mpi, int own, int processes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// As MpiCollectives::reduce(); over the processes in the communicator's order, so that all get the same bits. At
  /// most `most` elements at a time. `mpi` waits. Throws MpiError on those that read where others reduce otherwise.
  void reduce(const MpiCollectives& mpi, int root, Dtype dtype, Operator op, std::byte* data, std::int64_t elements,
              std::int64_t most);

 private:
  /// What a process has come to: `taken` only grows, and by the same steps on all. In one line of the cache.
  struct alignas(64) Steps {
    std::atomic<std::uint64_t> taken;
    std::uint64_t calls[2];  ///< what its two slots are for, as one number
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share no lock");
  struct Piece {
    std::uint64_t call;
    Dtype dtype;
    Operator op;
    std::byte* data;
    std::int64_t elements, element_bytes;
  };

  SharedMemory(std::byte* memory, int own, int processes);
  static std::int64_t size_for(int processes);
  std::byte* slot(int process) const;
  Steps& steps_of(int process) const { return reinterpret_cast<Steps*>(memory_)[process]; }
  void take_step();
  /// Until all processes have taken so many steps.
  void wait(const MpiCollectives& mpi, std::uint64_t steps) const;
  void reduce(const MpiCollectives& mpi, int root, const Piece& piece);

  std::byte* const memory_;  // everyone's Steps, then everyone's slots
  const int own_, processes_;
  std::uint64_t steps_ = 0;   // taken by this process
  std::uint64_t begun_ = 0;   // its steps when the last piece was given
  std::uint64_t pieces_ = 0;  // so far: they take a process's two slots in turn
  std::vector<const std::byte*> inputs_;
};

}  // namespace shardproof::comm
