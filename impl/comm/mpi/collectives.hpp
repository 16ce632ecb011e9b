// SPDX-License-Identifier: Apache-2.0
// Collectives among processes, by MPI's own or through memory that they share: buffers of any length go in pieces, and
// waits are polite and end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "impl/comm/communicator.hpp"
#include "impl/comm/mpi/state.hpp"

namespace shardproof::comm {

/// As MPI moves it.
MPI_Datatype type_of(Dtype dtype);

/// Calls f(begin, count) for pieces of at most `most` elements, and of what an int can count.
template <class F>
void in_pieces(std::int64_t elements, std::int64_t most, F f) {
  most = std::min<std::int64_t>(most, std::numeric_limits<int>::max());
  for (std::int64_t begin = 0; begin < elements; begin += most)
    f(begin, static_cast<int>(std::min(most, elements - begin)));
}

class SharedMemory;

/// One call's, on the communicator of its group. All processes of it make the same in the same order.
class MpiCollectives {
 public:
  static constexpr int everybody = -1;

  /// `shared`: that of the communicator's processes, if any, which reductions go through. `describe`: the call, for
  /// what is said when a wait ends without it.
  MpiCollectives(MpiState& state, MPI_Comm communicator, SharedMemory* shared, const ThreadsOptions& options,
                 std::function<std::string()> describe)
      : state_(state),
        communicator_(communicator),
        shared_(shared),
        options_(options),
        describe_(std::move(describe)) {}

  /// In place at the root, or everywhere; elsewhere the data are only read. Sums of integers are modulo 2^bits.
  void reduce(int root, Dtype dtype, Operator op, std::byte* data, std::int64_t elements) const;
  void all_reduce(Dtype dtype, Operator op, std::byte* data, std::int64_t elements) const {
    reduce(everybody, dtype, op, data, elements);
  }
  void broadcast(int root, Dtype dtype, std::byte* data, std::int64_t elements) const;
  void barrier() const;
  void wait(MPI_Request& request) const { state_.wait(request, options_.timeout_seconds, describe_); }
  void wait(const std::function<bool()>& done) const { state_.wait(done, options_.timeout_seconds, describe_); }
  /// Of this process's messages and whatever else is under way.
  void make_progress() const;

 private:
  /// In words of 32 bits: Open MPI 4.1's operations on vectors of bytes saturate.
  void sum_bytes(int root, std::byte* data, std::int64_t elements) const;

  MpiState& state_;
  const MPI_Comm communicator_;
  SharedMemory* const shared_;
  const ThreadsOptions& options_;
  const std::function<std::string()> describe_;
};

}  // namespace shardproof::comm
