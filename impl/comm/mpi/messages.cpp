// SPDX-License-Identifier: Apache-2.0
// What goes straight from member to member: messages, and the parts of an all_to_all.
#include <algorithm>
#include <cstring>
#include <utility>

#include "impl/comm/mpi/channel.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

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

}  // namespace

Call MpiChannel::among_members_here(const Call& call) const {
  Call part = call;
  const auto of_members_here = [&](const std::vector<std::int64_t>& counts) {
    std::vector<std::int64_t> those;
    for (const auto place : board_.here) those.push_back(counts[static_cast<std::size_t>(place)]);
    return those;
  };
  if (call.kind == Kind::all_to_all) {
    part.inputs = of_members_here(call.inputs);
    part.outputs = of_members_here(call.outputs);
  } else {
    part.peer = board_.index[static_cast<std::size_t>(call.peer)];
  }
  return part;
}

void MpiChannel::all_to_all(KernelScope& scope, const Call& call, const Buffers& own) {
  board_.calls[static_cast<std::size_t>(index_)] = &call;
  if (alone()) {
    delays_.pause(call.number, 1);
    exchange(call, own, {}, own.overflow);
    if (board_.said.overflow) scope.raise_overflow();
    return;
  }
  const Call part = among_members_here(call);
  Meeting meeting(board_.rendezvous, index_, {&part, own.input, own.output, own.overflow}, true);
  delays_.pause(call.number, 1);
  exchange(call, own, meeting.posts(), std::ranges::any_of(meeting.posts(), &Post::overflow));
  delays_.pause(call.number, 2);
  meeting.next();
  if (board_.said.overflow) scope.raise_overflow();
  meeting.leave();
}

void MpiChannel::exchange(const Call& call, const Buffers& own, std::span<const Post> posts, bool overflow) {
  const MPI_Datatype type = type_of(call.output.dtype());
  const MpiCollectives mpi = collectives(call);
  std::vector<MPI_Request> requests;
  for (std::int64_t k = 0; k < n(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    std::byte* const to = own.output + sum_of_first(call.outputs, k) * own.element;
    if (board_.is_here(k)) {
      const auto member = static_cast<std::size_t>(board_.index[at]);
      const std::byte* const input = posts.empty() ? own.input : posts[member].input;
      const std::byte* const from = input + sum_of_first(board_.calls[member]->inputs, group_.place) * own.element;
      if (call.outputs[at] > 0) std::memcpy(to, from, static_cast<std::size_t>(call.outputs[at] * own.element));
      continue;
    }
    const std::byte* const from = own.input + sum_of_first(call.inputs, k) * own.element;
    const int process = board_.process[at];
    in_pieces(call.outputs[at], board_.state.options.chunk_elements, [&](std::int64_t begin, int count) {
      require_mpi(
          MPI_Irecv(to + begin * own.element, count, type, process, board_.tag(MpiTraffic::part, k, group_.place),
                    board_.communicator, &requests.emplace_back()),
          "MPI_Irecv");
    });
    in_pieces(call.inputs[at], board_.state.options.chunk_elements, [&](std::int64_t begin, int count) {
      require_mpi(
          MPI_Isend(from + begin * own.element, count, type, process, board_.tag(MpiTraffic::part, group_.place, k),
                    board_.communicator, &requests.emplace_back()),
          "MPI_Isend");
    });
  }
  if (index_ == 0) agree(mpi, call, {}, overflow);
  for (MPI_Request& request : requests) mpi.wait(request);
}

// The elements are copied: the tensor may be dropped, and the channel with it, before they are received.
void MpiChannel::send(const Call& call, const Buffers& own) {
  if (board_.is_here(call.peer)) {
    const Call part = among_members_here(call);
    return board_.mailbox.send(index_, part, {Signature(part), call.input, own.input, own.overflow},
                               board_.state.options.send_depth);
  }
  auto message = std::make_unique<MpiOutbox::Sent>();
  message->header = header_of(call, own.overflow);
  message->elements.assign(own.input, own.input + call.input.bytes());
  const int to = board_.process[static_cast<std::size_t>(call.peer)];
  const auto tag = [&](MpiTraffic what) { return board_.tag(what, group_.place, call.peer); };
  MpiOutbox& outbox = board_.outboxes[static_cast<std::size_t>(index_)];
  const std::lock_guard lock(outbox.mutex);
  require_mpi(MPI_Issend(&message->header, sizeof(MpiHeader), MPI_BYTE, to, tag(MpiTraffic::header),
                         board_.communicator, &message->requests.emplace_back()),
              "MPI_Issend");
  in_pieces(call.input.elements(), board_.state.options.chunk_elements, [&](std::int64_t begin, int count) {
    require_mpi(MPI_Isend(message->elements.data() + begin * own.element, count, type_of(call.input.dtype()), to,
                          tag(MpiTraffic::elements), board_.communicator, &message->requests.emplace_back()),
                "MPI_Isend");
  });
  auto& sent = outbox.sent[call.peer];
  sent.push_back(std::move(message));
  collectives(call).wait([&] {
    while (!sent.empty()) {
      auto& requests = sent.front()->requests;
      std::erase_if(requests, [&](MPI_Request& request) { return state_.is_complete(request); });
      if (!requests.empty()) break;
      sent.pop_front();
    }
    return std::ssize(sent) <= board_.state.options.send_depth;
  });
}

void MpiChannel::receive(KernelScope& scope, const Call& call, const Buffers& own) {
  if (board_.is_here(call.peer)) {
    const Call part = among_members_here(call);
    return board_.mailbox.receive(index_, part, [&](const Message& message) {
      if (message.overflow) scope.raise_overflow();
      delays_.pause(call.number, 1);
      if (call.output.bytes() > 0) std::memcpy(own.output, message.data, static_cast<std::size_t>(call.output.bytes()));
    });
  }
  const MpiCollectives mpi = collectives(call);
  const int from = board_.process[static_cast<std::size_t>(call.peer)];
  const auto tag = [&](MpiTraffic what) { return board_.tag(what, call.peer, group_.place); };
  MpiHeader header;
  MPI_Request request;
  require_mpi(MPI_Irecv(&header, sizeof header, MPI_BYTE, from, tag(MpiTraffic::header), board_.communicator, &request),
              "MPI_Irecv");
  mpi.wait(request);
  const auto rank_at = [&](std::int64_t place) { return group_.members[static_cast<std::size_t>(place)]; };
  if (const auto text = mismatch(rank_at(call.peer), signature_of(header), rank_at(group_.place), Signature(call));
      !text.empty())
    throw CommError(describe(call) + ": " + text);
  if (header.overflow != 0) scope.raise_overflow();
  delays_.pause(call.number, 1);
  in_pieces(call.output.elements(), board_.state.options.chunk_elements, [&](std::int64_t begin, int count) {
    require_mpi(MPI_Irecv(own.output + begin * own.element, count, type_of(call.output.dtype()), from,
                          tag(MpiTraffic::elements), board_.communicator, &request),
                "MPI_Irecv");
    mpi.wait(request);
  });
}

}  // namespace shardproof::comm
