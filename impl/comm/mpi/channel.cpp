// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "impl/comm/board.hpp"
#include "impl/comm/element.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

constexpr int header_tag = 1, element_tag = 2, all_to_all_tag = 3;

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

/// Who has an overflow flag up: only numbers of the exact track can.
bool may_overflow(const Call& call) {
  if (call.kind == Kind::barrier) return false;
  const Dtype dtype = payload(call).dtype();
  return dtype == Dtype::fixed || dtype == Dtype::i64;
}

MpiHeader header_of(const Call& call, bool overflow) {
  MpiHeader header;
  call.purpose.copy(header.purpose, sizeof header.purpose - 1);
  header.dtype = static_cast<std::int64_t>(call.input.dtype());
  header.elements = call.input.elements();
  header.number = call.number;
  header.stage = call.tag.stage, header.microbatch = call.tag.microbatch;
  header.overflow = overflow ? 1 : 0;
  return header;
}

/// The signature that the sender's call had; the purpose is the header's memory.
Signature signature_of(const MpiHeader& header) {
  Signature signature{Call{.kind = Kind::send, .purpose = header.purpose}};
  signature.dtype = static_cast<Dtype>(header.dtype);
  signature.elements = header.elements;
  signature.number = header.number;
  signature.tag = {header.stage, header.microbatch};
  return signature;
}

}  // namespace

MpiChannel::MpiChannel(MpiState& state, MpiLink& link, Group group, const ThreadsOptions& options,
                       TrafficLedger& traffic)
    : state_(state),
      link_(link),
      group_(std::move(group)),
      options_(options),
      delays_(options.delays, group_.members[static_cast<std::size_t>(group_.place)], group_.axis, group_.channel),
      traffic_(traffic) {
  if (link.taken)
    throw InternalError("channel " + group_.channel + " of axis " + group_.axis + " is in use by this rank already");
  link.taken = true;
}

std::string MpiChannel::describe(const Call& call) const {
  return name_of(group_.members[static_cast<std::size_t>(group_.place)]) + ": " + std::string(name_of(call.kind)) +
         " " + std::to_string(call.number) + " of axis " + group_.axis + ", channel " + group_.channel + " (purpose " +
         std::string(call.purpose) + print(call.tag) + ")";
}

void MpiChannel::wait(const Call& call, MPI_Request& request) {
  state_.wait(request, options_.timeout_seconds, [&] { return describe(call); });
}

template <class F>
void MpiChannel::in_pieces(std::int64_t elements, F f) const {
  for (std::int64_t begin = 0; begin < elements; begin += options_.chunk_elements)
    f(begin, static_cast<int>(std::min(options_.chunk_elements, elements - begin)));
}

void MpiChannel::execute(KernelScope& scope, const Call& call) {
  delays_.pause(call.number, 0);
  const Buffers own = open(scope, call, group_.place);
  switch (call.kind) {
    case Kind::send: send(call, own); break;
    case Kind::receive: receive(scope, call, own); break;
    default: collective(scope, call, own);
  }
  const std::int64_t payload_bytes = call.kind == Kind::barrier ? 0 : payload(call).bytes(), wire = wire_bytes(call);
  const std::int64_t lanes = call.two_lanes ? 2 : 1;
  traffic_.add({group_.axis, call.kind, std::string(call.purpose)}, payload_bytes / lanes, wire / lanes);
  if (call.two_lanes) traffic_.add({group_.axis, call.kind, "second_lane"}, payload_bytes / 2, wire / 2);
}

// By the ring's convention: what a rank takes from others, each part once (thread_channel.hpp).
std::int64_t MpiChannel::wire_bytes(const Call& call) const {
  const auto place = static_cast<std::size_t>(group_.place);
  const auto element = call.kind == Kind::barrier ? 0 : static_cast<std::int64_t>(size_of(payload(call).dtype()));
  switch (call.kind) {
    case Kind::all_reduce: {
      const auto all = call.output.elements();
      const auto own = begin_of(all, n(), group_.place + 1) - begin_of(all, n(), group_.place);
      return ((n() - 1) * own + all - own) * element;
    }
    case Kind::reduce_scatter: return (n() - 1) * call.output.elements() * element;
    case Kind::all_gather: return (call.output.elements() - call.outputs[place]) * element;
    case Kind::all_to_all: return (call.output.elements() - call.outputs[place]) * element;
    case Kind::broadcast: return call.peer == group_.place ? 0 : call.output.bytes();
    case Kind::receive: return call.output.bytes();
    default: return 0;
  }
}

void MpiChannel::collective(KernelScope& scope, const Call& call, const Buffers& own) {
  if (call.kind == Kind::barrier) {
    MPI_Request request;
    require_mpi(MPI_Ibarrier(link_.communicator, &request), "MPI_Ibarrier");
    return wait(call, request);
  }
  if (may_overflow(call)) {
    const int mine = own.overflow ? 1 : 0;
    int all = 0;
    MPI_Request request;
    require_mpi(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_BOR, link_.communicator, &request), "MPI_Iallreduce");
    wait(call, request);
    if (all != 0) scope.raise_overflow();
  }
  delays_.pause(call.number, 1);
  switch (call.kind) {
    case Kind::all_reduce: return all_reduce(call, own);
    case Kind::reduce_scatter: return reduce_scatter(call, own);
    case Kind::all_gather: return all_gather(call, own);
    case Kind::broadcast: {
      auto* const data = own.output != nullptr ? own.output : const_cast<std::byte*>(own.input);
      return broadcast(call, data, call.output.elements(), own.element, call.peer);
    }
    case Kind::all_to_all: return all_to_all(call, own);
    default: throw InternalError("no collective");
  }
}

constexpr std::int64_t everybody = -1;

void MpiChannel::reduce(const Call& call, Dtype dtype, const std::byte* input, std::byte* output, std::int64_t elements,
                        std::int64_t root) {
  const MPI_Datatype type = type_of(dtype, call.op);
  const MPI_Op operation = operation_of(call.op);
  const auto element = static_cast<std::int64_t>(shardproof::size_of(dtype));
  in_pieces(elements, [&](std::int64_t begin, int count) {
    const std::byte* const from = input + begin * element;
    std::byte* const to = output == nullptr ? nullptr : output + begin * element;
    const bool in_place = from == to;
    MPI_Request request;
    if (root == everybody)
      require_mpi(
          MPI_Iallreduce(in_place ? MPI_IN_PLACE : from, to, count, type, operation, link_.communicator, &request),
          "MPI_Iallreduce");
    else
      require_mpi(MPI_Ireduce(in_place ? MPI_IN_PLACE : from, to, count, type, operation, static_cast<int>(root),
                              link_.communicator, &request),
                  "MPI_Ireduce");
    wait(call, request);
  });
}

void MpiChannel::reduce_fixed(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                              std::int64_t root) {
  const auto* const values = reinterpret_cast<const std::int64_t*>(input);
  auto* const result = reinterpret_cast<std::int64_t*>(output);
  std::vector<std::int64_t> high(static_cast<std::size_t>(elements)), high_sum(output == nullptr ? 0 : high.size());
  std::ranges::transform(values, values + elements, high.begin(), [](std::int64_t v) { return v >> 8; });
  reduce(call, Dtype::i64, reinterpret_cast<const std::byte*>(high.data()),
         output == nullptr ? nullptr : reinterpret_cast<std::byte*>(high_sum.data()), elements, root);
  reduce(call, Dtype::i64, input, output, elements, root);
  constexpr std::int64_t limit = std::int64_t{1} << 55;
  for (std::size_t i = 0; i < high_sum.size(); ++i)
    if (high_sum[i] < -limit || high_sum[i] >= limit) result[i] = fixed_invalid;
}

void MpiChannel::reduce_bytes(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                              std::int64_t root) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(elements));
  std::ranges::transform(input, input + elements, words.begin(), [](std::byte b) { return std::uint32_t(b); });
  auto* const data = reinterpret_cast<std::byte*>(words.data());
  const bool gets = output != nullptr;
  std::vector<std::uint32_t> sums(gets ? words.size() : 0);
  reduce(call, Dtype::i32, data, gets ? reinterpret_cast<std::byte*>(sums.data()) : nullptr, elements, root);
  std::ranges::transform(sums, output, [](std::uint32_t word) { return static_cast<std::byte>(word & 0xff); });
}

void MpiChannel::reduce_any(const Call& call, const std::byte* input, std::byte* output, std::int64_t elements,
                            std::int64_t root) {
  const Dtype dtype = call.output.dtype();
  if (call.op == Operator::sum && dtype == Dtype::fixed && n() > 2)
    return reduce_fixed(call, input, output, elements, root);
  if (call.op == Operator::sum && dtype == Dtype::u8) return reduce_bytes(call, input, output, elements, root);
  reduce(call, dtype, input, output, elements, root);
}

void MpiChannel::all_reduce(const Call& call, const Buffers& own) {
  reduce_any(call, own.input, own.output, call.output.elements(), everybody);
}

void MpiChannel::reduce_scatter(const Call& call, const Buffers& own) {
  for (std::int64_t k = 0; k < n(); ++k)
    reduce_any(call, own.input + sum_of_first(call.inputs, k) * own.element, k == group_.place ? own.output : nullptr,
               call.inputs[static_cast<std::size_t>(k)], k);
}

void MpiChannel::broadcast(const Call& call, std::byte* data, std::int64_t elements, std::int64_t element,
                           std::int64_t root) {
  in_pieces(elements, [&](std::int64_t begin, int count) {
    MPI_Request request;
    require_mpi(MPI_Ibcast(data + begin * element, count, type_of(call.output.dtype(), Operator::max),
                           static_cast<int>(root), link_.communicator, &request),
                "MPI_Ibcast");
    wait(call, request);
  });
}

void MpiChannel::all_gather(const Call& call, const Buffers& own) {
  auto* const mine = own.output + sum_of_first(call.outputs, group_.place) * own.element;
  if (mine != own.input && call.input.elements() > 0)
    std::memcpy(mine, own.input, static_cast<std::size_t>(call.input.bytes()));
  for (std::int64_t k = 0; k < n(); ++k)
    broadcast(call, own.output + sum_of_first(call.outputs, k) * own.element, call.outputs[static_cast<std::size_t>(k)],
              own.element, k);
}

void MpiChannel::all_to_all(const Call& call, const Buffers& own) {
  const MPI_Datatype type = type_of(call.output.dtype(), Operator::max);
  std::vector<MPI_Request> requests;
  for (std::int64_t k = 0; k < n(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    const std::byte* const from = own.input + sum_of_first(call.inputs, k) * own.element;
    std::byte* const to = own.output + sum_of_first(call.outputs, k) * own.element;
    if (k == group_.place) {
      if (call.outputs[at] > 0) std::memcpy(to, from, static_cast<std::size_t>(call.outputs[at] * own.element));
      continue;
    }
    in_pieces(call.outputs[at], [&](std::int64_t begin, int count) {
      require_mpi(MPI_Irecv(to + begin * own.element, count, type, static_cast<int>(k), all_to_all_tag,
                            link_.communicator, &requests.emplace_back()),
                  "MPI_Irecv");
    });
    in_pieces(call.inputs[at], [&](std::int64_t begin, int count) {
      require_mpi(MPI_Isend(from + begin * own.element, count, type, static_cast<int>(k), all_to_all_tag,
                            link_.communicator, &requests.emplace_back()),
                  "MPI_Isend");
    });
  }
  for (MPI_Request& request : requests) wait(call, request);
}

// The elements are copied: the tensor may be dropped, and the channel with it, before they are received.
void MpiChannel::send(const Call& call, const Buffers& own) {
  auto message = std::make_unique<MpiLink::Sent>();
  message->header = header_of(call, own.overflow);
  message->elements.assign(own.input, own.input + call.input.bytes());
  const int to = static_cast<int>(call.peer);
  const MPI_Datatype type = type_of(call.input.dtype(), Operator::max);
  const std::lock_guard lock(link_.mutex);
  require_mpi(MPI_Issend(&message->header, sizeof(MpiHeader), MPI_BYTE, to, header_tag, link_.communicator,
                         &message->requests.emplace_back()),
              "MPI_Issend");
  in_pieces(call.input.elements(), [&](std::int64_t begin, int count) {
    require_mpi(MPI_Isend(message->elements.data() + begin * own.element, count, type, to, element_tag,
                          link_.communicator, &message->requests.emplace_back()),
                "MPI_Isend");
  });
  auto& sent = link_.sent[call.peer];
  sent.push_back(std::move(message));
  const auto drop_received = [&] {
    while (!sent.empty()) {
      auto& requests = sent.front()->requests;
      std::erase_if(requests, [&](MPI_Request& request) { return state_.is_complete(request); });
      if (!requests.empty()) break;
      sent.pop_front();
    }
    return std::ssize(sent) <= options_.send_depth;
  };
  state_.wait(drop_received, options_.timeout_seconds, [&] { return describe(call); });
}

void MpiChannel::receive(KernelScope& scope, const Call& call, const Buffers& own) {
  const int from = static_cast<int>(call.peer);
  MpiHeader header;
  MPI_Request request;
  require_mpi(MPI_Irecv(&header, sizeof header, MPI_BYTE, from, header_tag, link_.communicator, &request), "MPI_Irecv");
  wait(call, request);
  const auto rank_at = [&](std::int64_t place) { return group_.members[static_cast<std::size_t>(place)]; };
  if (const auto text = mismatch(rank_at(call.peer), signature_of(header), rank_at(group_.place), Signature(call));
      !text.empty())
    throw CommError(describe(call) + ": " + text);
  if (header.overflow != 0) scope.raise_overflow();
  delays_.pause(call.number, 1);
  in_pieces(call.output.elements(), [&](std::int64_t begin, int count) {
    require_mpi(MPI_Irecv(own.output + begin * own.element, count, type_of(call.output.dtype(), Operator::max), from,
                          element_tag, link_.communicator, &request),
                "MPI_Irecv");
    wait(call, request);
  });
}

std::string undelivered(const MpiLink& link, const Group& group) {
  std::string first;
  while (true) {
    int there = 0;
    MPI_Status status;
    require_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, link.communicator, &there, &status), "MPI_Iprobe");
    if (there == 0) return first;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<std::byte> message(static_cast<std::size_t>(std::max(bytes, 0)));
    require_mpi(MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, link.communicator,
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
    if (status.MPI_TAG != header_tag || !first.empty()) continue;
    MpiHeader header;
    std::memcpy(&header, message.data(), std::min(message.size(), sizeof header));
    first = "message of axis " + group.axis + ", channel " + group.channel +
            " was never received: " + name_of(group.members[static_cast<std::size_t>(status.MPI_SOURCE)]) + " calls " +
            print(signature_of(header)) + " to " + name_of(group.members[static_cast<std::size_t>(group.place)]);
  }
}

}  // namespace shardproof::comm
