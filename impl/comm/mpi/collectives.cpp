// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/collectives.hpp"

#include <vector>

#include "impl/comm/mpi/shared_memory.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

/// Of each process. Open MPI 4.1's MPI_Iallreduce keeps the others' elements apart before it adds them, in memory of
/// the whole call: of 64 MiB at once it takes twice the time of pieces that stay in a cache.
constexpr std::int64_t piece_bytes = 512 << 10;

/// Integers are unsigned where they are added: sums are modulo 2^bits.
MPI_Datatype type_of(Dtype dtype, Operator op) {
  const bool adds = op == Operator::sum;
  switch (dtype) {
    case Dtype::fixed:
    case Dtype::i64: return adds ? MPI_UINT64_T : MPI_INT64_T;
    case Dtype::f64: return MPI_DOUBLE;
    case Dtype::f32: return MPI_FLOAT;
    case Dtype::i32: return adds ? MPI_UINT32_T : MPI_INT32_T;
    case Dtype::u8: return MPI_UINT8_T;
    default: throw NotSupported("ranks exchange no " + std::string(name_of(dtype)));
  }
}

MPI_Op operation_of(Operator op) {
  switch (op) {
    case Operator::sum: return MPI_SUM;
    case Operator::max: return MPI_MAX;
    case Operator::min: return MPI_MIN;
    case Operator::bit_or: return MPI_BOR;
  }
  throw InternalError("no operator");
}

}  // namespace

MPI_Datatype type_of(Dtype dtype) { return type_of(dtype, Operator::max); }

void MpiCollectives::reduce(int root, Dtype dtype, Operator op, std::byte* data, std::int64_t elements) const {
  if (shared_ != nullptr) return shared_->reduce(*this, root, dtype, op, data, elements, options_.chunk_elements);
  if (dtype == Dtype::u8 && op == Operator::sum) return sum_bytes(root, data, elements);
  const MPI_Datatype type = type_of(dtype, op);
  const MPI_Op operation = operation_of(op);
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  int own = 0, processes = 1;
  MPI_Comm_rank(communicator_, &own);
  MPI_Comm_size(communicator_, &processes);
  const std::int64_t most = std::min(options_.chunk_elements, piece_bytes * processes / element);
  in_pieces(elements, most, [&](std::int64_t begin, int count) {
    std::byte* const at = data + begin * element;
    MPI_Request request;
    if (root == everybody)
      require_mpi(MPI_Iallreduce(MPI_IN_PLACE, at, count, type, operation, communicator_, &request), "MPI_Iallreduce");
    else if (root == own)
      require_mpi(MPI_Ireduce(MPI_IN_PLACE, at, count, type, operation, root, communicator_, &request), "MPI_Ireduce");
    else
      require_mpi(MPI_Ireduce(at, nullptr, count, type, operation, root, communicator_, &request), "MPI_Ireduce");
    wait(request);
  });
}

void MpiCollectives::sum_bytes(int root, std::byte* data, std::int64_t elements) const {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(elements));
  std::transform(data, data + elements, words.begin(), [](std::byte b) { return std::uint32_t(b); });
  reduce(root, Dtype::i32, Operator::sum, reinterpret_cast<std::byte*>(words.data()), elements);
  int own = 0;
  MPI_Comm_rank(communicator_, &own);
  if (root != everybody && root != own) return;
  std::transform(words.begin(), words.end(), data, [](std::uint32_t w) { return static_cast<std::byte>(w & 0xff); });
}

void MpiCollectives::broadcast(int root, Dtype dtype, std::byte* data, std::int64_t elements) const {
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  in_pieces(elements, options_.chunk_elements, [&](std::int64_t begin, int count) {
    MPI_Request request;
    require_mpi(
        MPI_Ibcast(data + begin * element, count, shardproof::comm::type_of(dtype), root, communicator_, &request),
        "MPI_Ibcast");
    wait(request);
  });
}

void MpiCollectives::make_progress() const {
  int there = 0;
  require_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, state_.control(), &there, MPI_STATUS_IGNORE), "MPI_Iprobe");
}

void MpiCollectives::barrier() const {
  MPI_Request request;
  require_mpi(MPI_Ibarrier(communicator_, &request), "MPI_Ibarrier");
  wait(request);
}

}  // namespace shardproof::comm
