// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/shared_memory.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "impl/comm/buffers.hpp"
#include "impl/comm/reduce.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::comm {

namespace {

/// A piece of each process, what it becomes and what comes in meanwhile fit a core's second-level cache.
constexpr std::int64_t slot_bytes = 256 << 10;
/// Up to here every process reads all of the others' elements; above, a part of them, and then the others' results.
constexpr std::int64_t few_bytes = 16 << 10;

/// Where the first process of a group keeps the memory.
struct Offer {
  char machine[40] = {};  ///< an identifier of its running system; "": unknown
  std::int64_t process = 0, file = -1;
  std::uint64_t seal = 0;  ///< at the memory's beginning until all have said that they see it
};

void name_machine(char (&machine)[40]) try {
  read_file("/proc/sys/kernel/random/boot_id", 36 + 1).copy(machine, 36);
} catch (const BadInput&) {  // nobody shares with a machine without a name
}

/// Another process's file, if this is it; -1 where it cannot be had.
int open_offered(const Offer& offer, std::int64_t bytes) {
  char machine[40] = {};
  name_machine(machine);
  if (machine[0] == '\0' || std::memcmp(machine, offer.machine, sizeof machine) != 0) return -1;
  const std::string path = "/proc/" + std::to_string(offer.process) + "/fd/" + std::to_string(offer.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat found {};
  if (file < 0 || (::fstat(file, &found) == 0 && found.st_size == bytes)) return file;
  ::close(file);  // in a container processes have numbers of its own: this is something else
  return -1;
}

}  // namespace

std::int64_t SharedMemory::size_for(int processes) {
  return processes * (static_cast<std::int64_t>(sizeof(Steps)) + 2 * slot_bytes);
}

std::unique_ptr<SharedMemory> SharedMemory::among(const MpiCollectives& mpi, int own, int processes) {
  const std::int64_t bytes = size_for(processes);
  Offer offer;
  int file = -1;
  if (own == 0) {
    name_machine(offer.machine);
    offer.process = ::getpid();
    offer.seal = std::random_device()() | std::uint64_t{1} << 32;
    file = ::memfd_create("shardproof", MFD_CLOEXEC);
    if (file >= 0 && ::ftruncate(file, bytes) == 0) offer.file = file;  // not so beyond the limit for files
  }
  const auto map = [&] {
    void* const at = file < 0 || offer.file < 0 ? MAP_FAILED
                                                : ::mmap(nullptr, static_cast<std::size_t>(bytes),
                                                         PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  };
  std::byte* memory = nullptr;
  if (own == 0 && (memory = map()) != nullptr) std::memcpy(memory, &offer.seal, sizeof offer.seal);
  mpi.broadcast(0, Dtype::u8, reinterpret_cast<std::byte*>(&offer), sizeof offer);
  if (own != 0 && offer.file >= 0) {
    file = open_offered(offer, bytes);
    memory = map();
  }
  std::int32_t all_share = memory != nullptr && std::memcmp(memory, &offer.seal, sizeof offer.seal) == 0 ? 1 : 0;
  mpi.all_reduce(Dtype::i32, Operator::min, reinterpret_cast<std::byte*>(&all_share), 1);
  if (file >= 0) ::close(file);
  if (all_share == 0) {
    if (memory != nullptr) ::munmap(memory, static_cast<std::size_t>(bytes));
    return nullptr;
  }
  std::unique_ptr<SharedMemory> shared(new SharedMemory(memory, own, processes));
  mpi.barrier();  // everyone's steps are at zero
  return shared;
}

SharedMemory::SharedMemory(std::byte* memory, int own, int processes)
    : memory_(memory), own_(own), processes_(processes), inputs_(static_cast<std::size_t>(processes)) {
  new (&steps_of(own)) Steps{};
}

SharedMemory::~SharedMemory() { ::munmap(memory_, static_cast<std::size_t>(size_for(processes_))); }

std::byte* SharedMemory::slot(int process) const {
  const auto number = 2 * process + static_cast<int>(pieces_ % 2);
  return memory_ + processes_ * static_cast<std::int64_t>(sizeof(Steps)) + number * slot_bytes;
}

void SharedMemory::take_step() { steps_of(own_).taken.store(++steps_, std::memory_order_release); }

void SharedMemory::wait(const MpiCollectives& mpi, std::uint64_t steps) const {
  int first = 0, looks = 0;
  const auto done = [&] {
    while (first < processes_ && steps_of(first).taken.load(std::memory_order_acquire) >= steps) ++first;
    if (first == processes_) return true;
    constexpr int looks_before_it_takes_long = 1000;
    if (++looks > looks_before_it_takes_long) mpi.make_progress();  // messages of this process are on their way
    return false;
  };
  if (!done()) mpi.wait(std::ref(done));
}

void SharedMemory::reduce(const MpiCollectives& mpi, int root, Dtype dtype, Operator op, std::byte* data,
                          std::int64_t elements, std::int64_t most) {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  // All that must be the same on all processes.
  const auto call = ((static_cast<std::uint64_t>(elements) << 12 | static_cast<std::uint64_t>(root + 1)) << 8 |
                     static_cast<std::uint64_t>(dtype) << 4 | static_cast<std::uint64_t>(op));
  in_pieces(elements, std::min(most, slot_bytes / element), [&](std::int64_t begin, int count) {
    reduce(mpi, root, {call, dtype, op, data + begin * element, count, element});
  });
}

void SharedMemory::reduce(const MpiCollectives& mpi, int root, const Piece& piece) {
  const std::int64_t bytes = piece.elements * piece.element_bytes;
  // Who has given the last piece has read the one before it, which lay in the slots that this one takes.
  wait(mpi, begun_);
  ++pieces_;
  std::memcpy(slot(own_), piece.data, static_cast<std::size_t>(bytes));
  steps_of(own_).calls[pieces_ % 2] = piece.call;
  take_step();
  begun_ = steps_;
  if (root != MpiCollectives::everybody && root != own_) return;
  wait(mpi, begun_);
  for (int process = 0; process < processes_; ++process) {
    if (steps_of(process).calls[pieces_ % 2] != piece.call)
      throw MpiError("the group's process " + std::to_string(process) + " reduces other elements, or otherwise");
    inputs_[static_cast<std::size_t>(process)] = slot(process);
  }
  if (root == own_ || processes_ == 2 || bytes <= few_bytes)
    return comm::reduce(piece.dtype, piece.op, inputs_, piece.data, piece.elements);
  const auto begin = [&](int process) { return begin_of(piece.elements, processes_, process) * piece.element_bytes; };
  for (auto& input : inputs_) input += begin(own_);
  const std::int64_t own_elements = (begin(own_ + 1) - begin(own_)) / piece.element_bytes;
  comm::reduce(piece.dtype, piece.op, inputs_, slot(own_) + begin(own_), own_elements);
  take_step();
  wait(mpi, steps_);
  for (int process = 0; process < processes_; ++process)
    std::memcpy(piece.data + begin(process), slot(process) + begin(process),
                static_cast<std::size_t>(begin(process + 1) - begin(process)));
}

}  // namespace shardproof::comm
