// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/thread_channel.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "impl/comm/buffers.hpp"
#include "impl/comm/reduce.hpp"

namespace shardproof::comm {

namespace {

std::int64_t size_of(const Tensor& tensor) { return static_cast<std::int64_t>(shardproof::size_of(tensor.dtype())); }

}  // namespace

ThreadBoard& meet(ThreadState& state, const BoardKey& key) {
  const std::lock_guard lock(state.mutex);
  auto& board = state.boards[key];
  if (!board) board = std::make_unique<ThreadBoard>(state, key);
  return static_cast<ThreadBoard&>(*board);
}

ThreadChannel::ThreadChannel(ThreadBoard& board, std::int64_t place, TrafficLedger& traffic)
    : board_(board),
      group_{board.axis, board.channel, board.members, place},
      delays_(board.state.options.delays, board.members[static_cast<std::size_t>(place)], board.axis, board.channel),
      traffic_(traffic) {
  const std::lock_guard lock(board.state.mutex);
  if (board.taken[static_cast<std::size_t>(place)]) {
    throw InternalError("channel " + board.channel + " of axis " + board.axis + " is in use by this rank already");
  }
  board.mailbox.open(place);
  board.taken[static_cast<std::size_t>(place)] = true;
}

ThreadChannel::~ThreadChannel() {
  board_.mailbox.detach(group_.place);
  const std::lock_guard lock(board_.state.mutex);
  board_.taken[static_cast<std::size_t>(group_.place)] = false;
}

std::int64_t ThreadChannel::copy(std::byte* to, const std::byte* from, std::int64_t elements, std::int64_t size) const {
  if (to == from) return 0;
  for (std::int64_t begin = 0; begin < elements; begin += board_.state.options.chunk_elements) {
    const auto count = std::min(board_.state.options.chunk_elements, elements - begin);
    std::memcpy(to + begin * size, from + begin * size, static_cast<std::size_t>(count * size));
  }
  return elements * size;
}

void ThreadChannel::execute(KernelScope& scope, const Call& call) {
  delays_.pause(call.number, 0);
  std::int64_t wire_bytes = 0;
  switch (call.kind) {
    case Kind::send: send(scope, call); break;
    case Kind::receive: wire_bytes = receive(scope, call); break;
    default: wire_bytes = collective(scope, call);
  }
  const std::int64_t payload_bytes = call.kind == Kind::barrier ? 0 : payload(call).bytes();
  const std::int64_t lanes = call.two_lanes ? 2 : 1;
  traffic_.add({group_.axis, call.kind, std::string(call.purpose)}, payload_bytes / lanes, wire_bytes / lanes);
  if (call.two_lanes) traffic_.add({group_.axis, call.kind, "second_lane"}, payload_bytes / 2, wire_bytes / 2);
}

std::int64_t ThreadChannel::collective(KernelScope& scope, const Call& call) {
  const Buffers own = open(scope, call, group_.place);
  const bool reads = call.kind != Kind::barrier;
  Meeting meeting(board_.rendezvous, group_.place, {&call, own.input, own.output, own.overflow}, reads);
  if (call.kind == Kind::barrier) return 0;
  if (std::ranges::any_of(meeting.posts(), &Post::overflow)) scope.raise_overflow();
  delays_.pause(call.number, 1);
  std::int64_t wire_bytes = 0;
  switch (call.kind) {
    case Kind::all_reduce: wire_bytes = all_reduce(meeting, call, own); break;
    case Kind::reduce_scatter: {
      const auto begin = sum_of_first(call.inputs, group_.place);
      wire_bytes = reduce_part(meeting, call, begin, call.output.elements(), own.output);
      break;
    }
    case Kind::all_gather: wire_bytes = gather(meeting, call, own); break;
    case Kind::broadcast:
      if (own.output != nullptr) {
        const auto& root = meeting.posts()[static_cast<std::size_t>(call.peer)];
        wire_bytes = copy(own.output, root.input, call.output.elements(), own.element);
      }
      break;
    case Kind::all_to_all: wire_bytes = exchange(meeting, call, own); break;
    default: throw InternalError("no collective");
  }
  delays_.pause(call.number, 3);
  meeting.leave();
  return wire_bytes;
}

std::int64_t ThreadChannel::reduce_part(const Meeting& meeting, const Call& call, std::int64_t begin,
                                        std::int64_t count, std::byte* out) {
  const auto dtype = call.output.dtype();
  const auto element = size_of(call.output), chunk = board_.state.options.chunk_elements;
  std::vector<const std::byte*> inputs(meeting.posts().size());
  for (std::int64_t done = 0; done < count; done += chunk) {
    for (std::size_t k = 0; k < inputs.size(); ++k) inputs[k] = meeting.posts()[k].input + (begin + done) * element;
    reduce(dtype, call.op, inputs, out + done * element, std::min(chunk, count - done));
  }
  return (n() - 1) * count * element;
}

std::int64_t ThreadChannel::all_reduce(Meeting& meeting, const Call& call, const Buffers& own) {
  const auto elements = call.output.elements();
  const auto begin = begin_of(elements, n(), group_.place), end = begin_of(elements, n(), group_.place + 1);
  auto wire_bytes = reduce_part(meeting, call, begin, end - begin, own.output + begin * own.element);
  delays_.pause(call.number, 2);
  meeting.next();
  for (std::int64_t step = 1; step < n(); ++step) {  // not all from the same member at once
    const auto k = (group_.place + step) % n();
    const auto from = begin_of(elements, n(), k);
    wire_bytes +=
        copy(own.output + from * own.element, meeting.posts()[static_cast<std::size_t>(k)].input + from * own.element,
             begin_of(elements, n(), k + 1) - from, own.element);
  }
  return wire_bytes;
}

std::int64_t ThreadChannel::gather(const Meeting& meeting, const Call& call, const Buffers& own) {
  std::int64_t wire_bytes = 0;
  for (std::int64_t step = 0; step < n(); ++step) {
    const auto k = (group_.place + step) % n();
    const auto bytes = copy(own.output + sum_of_first(call.outputs, k) * own.element,
                            meeting.posts()[static_cast<std::size_t>(k)].input,
                            call.outputs[static_cast<std::size_t>(k)], own.element);
    if (step > 0) wire_bytes += bytes;
  }
  return wire_bytes;
}

std::int64_t ThreadChannel::exchange(const Meeting& meeting, const Call& call, const Buffers& own) {
  std::int64_t wire_bytes = 0;
  for (std::int64_t step = 0; step < n(); ++step) {
    const auto k = (group_.place + step) % n();
    const auto& post = meeting.posts()[static_cast<std::size_t>(k)];
    const auto bytes = copy(own.output + sum_of_first(call.outputs, k) * own.element,
                            post.input + sum_of_first(post.call->inputs, group_.place) * own.element,
                            call.outputs[static_cast<std::size_t>(k)], own.element);
    if (step > 0) wire_bytes += bytes;
  }
  return wire_bytes;
}

void ThreadChannel::send(KernelScope& scope, const Call& call) {
  const Buffers own = open(scope, call, group_.place);
  Message message{Signature(call), call.input, own.input, own.overflow};
  board_.mailbox.send(group_.place, call, std::move(message), board_.state.options.send_depth);
}

std::int64_t ThreadChannel::receive(KernelScope& scope, const Call& call) {
  const Buffers own = open(scope, call, group_.place);
  std::int64_t wire_bytes = 0;
  board_.mailbox.receive(group_.place, call, [&](const Message& message) {
    if (message.overflow) scope.raise_overflow();
    delays_.pause(call.number, 1);
    wire_bytes = copy(own.output, message.data, call.output.elements(), own.element);
  });
  return wire_bytes;
}

}  // namespace shardproof::comm
