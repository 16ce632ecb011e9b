// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "impl/comm/reduce.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

constexpr int everybody = MpiCollectives::everybody;

/// Who has an overflow flag up: only numbers of the exact track can.
bool may_overflow(const Call& call) {
  if (call.kind == Kind::barrier) return false;
  const Dtype dtype = payload(call).dtype();
  return dtype == Dtype::fixed || dtype == Dtype::i64;
}

bool sums_fixed(const Call& call) {
  return (call.kind == Kind::all_reduce || call.kind == Kind::reduce_scatter) && call.op == Operator::sum &&
         call.output.dtype() == Dtype::fixed;
}

std::vector<const std::byte*> shifted(std::span<const std::byte* const> inputs, std::int64_t bytes) {
  std::vector<const std::byte*> at(inputs.begin(), inputs.end());
  for (auto& input : at) input += bytes;
  return at;
}

/// Over the members here, then over the processes, to `out`: everywhere, or at the root, where it is this process.
/// `wide`: Fixed in two lanes (sum_lanes).
struct Reduction {
  const MpiCollectives& mpi;
  const Call& call;
  int own;
  bool wide;

  void operator()(std::span<const std::byte* const> inputs, std::byte* out, std::int64_t elements, int root) const {
    const bool gets = root == everybody || root == own;
    if (wide) return in_lanes(inputs, gets ? out : nullptr, elements, root);
    const Dtype dtype = call.output.dtype() == Dtype::fixed ? Dtype::i64 : call.output.dtype();
    if (inputs.size() == 1 && !gets) {  // MPI only reads it
      out = const_cast<std::byte*>(inputs[0]);
    } else {
      reduce(dtype, call.op, inputs, out, elements);
    }
    mpi.reduce(root, dtype, call.op, out, elements);
  }

 private:
  void in_lanes(std::span<const std::byte* const> inputs, std::byte* out, std::int64_t elements, int root) const {
    std::vector<const std::int64_t*> values;
    for (const auto* input : inputs) values.push_back(reinterpret_cast<const std::int64_t*>(input));
    std::vector<std::int64_t> lanes(static_cast<std::size_t>(2 * elements));
    std::int64_t *const low = lanes.data(), *const high = low + elements;
    sum_lanes(values, low, high, elements);
    mpi.reduce(root, Dtype::i64, Operator::sum, reinterpret_cast<std::byte*>(low), 2 * elements);
    if (out != nullptr) join_lanes(low, high, reinterpret_cast<std::int64_t*>(out), elements);
  }
};

}  // namespace

MpiChannel::MpiChannel(MpiState& state, MpiBoard& board, Group group, TrafficLedger& traffic)
    : state_(state),
      board_(board),
      group_(std::move(group)),
      index_(board.index[static_cast<std::size_t>(group_.place)]),
      row_(state.watch ? state.watch->row(group_.members[static_cast<std::size_t>(group_.place)], group_)
                       : std::uint16_t{0}),
      delays_(board.state.options.delays, group_.members[static_cast<std::size_t>(group_.place)], group_.axis,
              group_.channel),
      traffic_(traffic) {
  const std::lock_guard lock(board.state.mutex);
  if (board.taken[static_cast<std::size_t>(index_)])
    throw InternalError("channel " + group_.channel + " of axis " + group_.axis + " is in use by this rank already");
  board.mailbox.open(index_);
  board.taken[static_cast<std::size_t>(index_)] = true;
}

MpiChannel::~MpiChannel() {
  board_.mailbox.detach(index_);
  const std::lock_guard lock(board_.state.mutex);
  board_.taken[static_cast<std::size_t>(index_)] = false;
}

std::string MpiChannel::describe(const Call& call) const {
  return name_of(group_.members[static_cast<std::size_t>(group_.place)]) + ": " + std::string(name_of(call.kind)) +
         " " + std::to_string(call.number) + " of axis " + group_.axis + ", channel " + group_.channel + " (purpose " +
         std::string(call.purpose) + print(call.tag) + ")";
}

MpiCollectives MpiChannel::collectives(const Call& call) const {
  return {state_, board_.communicator, board_.shared.get(), board_.state.options,
          [this, &call] { return describe(call); }};
}

void MpiChannel::execute(KernelScope& scope, const Call& call) {
  const auto note_progress = [&] {
    const std::lock_guard lock(board_.state.mutex);
    board_.state.note_progress();
  };
  delays_.pause(call.number, 0);
  note_progress();
  const Buffers own = open(scope, call, group_.place);
  recorded(scope, call, own);
  note_progress();
  const std::int64_t payload_bytes = call.kind == Kind::barrier ? 0 : payload(call).bytes(), wire = wire_bytes(call);
  const std::int64_t lanes = call.two_lanes ? 2 : 1;
  traffic_.add({group_.axis, call.kind, std::string(call.purpose)}, payload_bytes / lanes, wire / lanes);
  if (call.two_lanes) traffic_.add({group_.axis, call.kind, "second_lane"}, payload_bytes / 2, wire / 2);
}

void MpiChannel::recorded(KernelScope& scope, const Call& call, const Buffers& own) {
  {
    const InFlight noted(state_.recorder(), row_, group_, call);
    try {
      switch (call.kind) {
        case Kind::send: return send(call, own);
        case Kind::receive: return receive(scope, call, own);
        case Kind::all_to_all: all_to_all(scope, call, own); break;
        default: collective(scope, call, own);
      }
    } catch (const MpiError&) {  // as calls of unequal sizes end
      require_match();
      throw;
    }
  }
  require_match();
}

void MpiChannel::require_match() const {
  if (state_.watch) state_.watch->check_call(row_);
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
    case Kind::all_gather:
    case Kind::all_to_all: return (call.output.elements() - call.outputs[place]) * element;
    case Kind::broadcast: return call.peer == group_.place ? 0 : call.output.bytes();
    case Kind::receive: return call.output.bytes();
    default: return 0;
  }
}

std::int64_t MpiChannel::speaker(const Call& call) const {
  const bool has_root = call.kind == Kind::broadcast && board_.is_here(call.peer);
  return has_root ? board_.index[static_cast<std::size_t>(call.peer)] : 0;
}

void MpiChannel::collective(KernelScope& scope, const Call& call, const Buffers& own) {
  if (alone()) {
    delays_.pause(call.number, 1);
    speak(call, own, {&own.input, 1}, own.overflow);
    if (board_.said.overflow) scope.raise_overflow();
    return;
  }
  const bool speaks = speaker(call) == index_;
  Meeting meeting(board_.rendezvous, index_, {&call, own.input, own.output, own.overflow}, true);
  delays_.pause(call.number, 1);
  if (speaks) {
    std::vector<const std::byte*> inputs;
    for (const Post& post : meeting.posts()) inputs.push_back(post.input);
    speak(call, own, inputs, std::ranges::any_of(meeting.posts(), &Post::overflow));
  }
  delays_.pause(call.number, 2);
  meeting.next();
  if (board_.said.overflow) scope.raise_overflow();
  take(call, own);
  delays_.pause(call.number, 3);
  meeting.leave();
}

bool MpiChannel::agree(const MpiCollectives& mpi, const Call& call, Inputs inputs, bool overflow) {
  double all[2] = {overflow ? 1.0 : 0.0, 0};
  if (may_overflow(call)) {
    const bool bounds = sums_fixed(call) && n() > 2;
    const auto& whole = call.kind == Kind::reduce_scatter ? call.input : call.output;
    for (std::size_t k = 0; bounds && k < inputs.size(); ++k)
      all[1] += largest(reinterpret_cast<const std::int64_t*>(inputs[k]), whole.elements());
    mpi.all_reduce(Dtype::f64, Operator::sum, reinterpret_cast<std::byte*>(all), 2);
  }
  board_.said.overflow = all[0] > 0;
  constexpr double nearly_all_of_int64 = 0x1.ffffp62;  // bounds are rounded
  return all[1] > nearly_all_of_int64;
}

void MpiChannel::speak(const Call& call, const Buffers& own, Inputs inputs, bool overflow) {
  const MpiCollectives mpi = collectives(call);
  const bool wide = agree(mpi, call, inputs, overflow);
  const Reduction over_all{mpi, call, own_process(), wide};
  std::byte* data = own.output;
  switch (call.kind) {
    case Kind::all_reduce: over_all(inputs, data, call.output.elements(), everybody); break;
    case Kind::reduce_scatter:
      if (!alone()) {
        board_.said.memory.resize(static_cast<std::size_t>(call.input.bytes()));
        data = board_.said.memory.data();
      }
      for (std::int64_t k = 0; k < n(); ++k) {
        const auto begin = sum_of_first(call.inputs, k) * own.element;
        over_all(shifted(inputs, begin), alone() ? own.output : data + begin, call.inputs[static_cast<std::size_t>(k)],
                 board_.process[static_cast<std::size_t>(k)]);
      }
      break;
    case Kind::all_gather:
      for (std::int64_t k = 0; k < n(); ++k) {
        const auto at = static_cast<std::size_t>(k);
        std::byte* const part = data + sum_of_first(call.outputs, k) * own.element;
        if (const auto* from = board_.is_here(k) ? inputs[static_cast<std::size_t>(board_.index[at])] : part;
            from != part && call.outputs[at] > 0)
          std::memcpy(part, from, static_cast<std::size_t>(call.outputs[at] * own.element));
        mpi.broadcast(board_.process[at], call.output.dtype(), part, call.outputs[at]);
      }
      break;
    case Kind::broadcast:
      if (data == nullptr) data = const_cast<std::byte*>(own.input);  // the root's, which MPI only reads
      mpi.broadcast(board_.process[static_cast<std::size_t>(call.peer)], call.output.dtype(), data,
                    call.output.elements());
      break;
    case Kind::barrier: mpi.barrier(); break;
    default: throw InternalError("no collective");
  }
  board_.said.result = data;
}

void MpiChannel::take(const Call& call, const Buffers& own) const {
  if (own.output == nullptr || call.output.elements() == 0) return;  // a barrier; who has what a broadcast spreads
  const auto begin =
      call.kind == Kind::reduce_scatter ? sum_of_first(call.inputs, group_.place) * own.element : std::int64_t{0};
  const std::byte* const from = board_.said.result + begin;
  if (from != own.output) std::memcpy(own.output, from, static_cast<std::size_t>(call.output.bytes()));
}

}  // namespace shardproof::comm
