// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/communicator.hpp"

#include <numeric>
#include <utility>

#include "kernels/core/errors.hpp"

namespace shardproof::comm {

std::string_view name_of(Operator op) {
  constexpr std::string_view names[] = {"sum", "max", "min", "bit_or"};
  return names[static_cast<std::size_t>(op)];
}

const Tensor& payload(const Call& call) {
  const bool gives = call.kind == Kind::reduce_scatter || call.kind == Kind::all_to_all || call.kind == Kind::send;
  return gives ? call.input : call.output;
}

std::string print(const Tag& tag) {
  std::string text;
  if (tag.stage >= 0) text += ", stage " + std::to_string(tag.stage);
  if (tag.microbatch >= 0) text += ", microbatch " + std::to_string(tag.microbatch);
  return text;
}

namespace {

/// Names the channel and its members in recorded spans.
std::string label_of(const Group& group, std::string_view channel) {
  std::string label = group.axis + " " + std::string(channel) + " of ranks";
  for (const auto member : group.members) label += " " + std::to_string(static_cast<int>(member));
  return label;
}

void execute(Channel& channel, KernelScope& scope, const Call& call, const std::shared_ptr<const std::string>& label) {
  auto& log = scope.device().spans();
  if (!log.on()) return channel.execute(scope, call);
  const auto& group = channel.group();
  const Recorded recorded(log, ExchangeSpan{{},
                                            name_of(call.kind),
                                            call.purpose,
                                            label,
                                            group.size(),
                                            group.place,
                                            call.peer,
                                            call.number,
                                            call.kind == Kind::barrier ? 0 : payload(call).bytes()});
  channel.execute(scope, call);
}

bool is_integer(Dtype dtype) { return dtype == Dtype::i64 || dtype == Dtype::i32 || dtype == Dtype::u8; }

}  // namespace

Communicator::Communicator(std::unique_ptr<Channel> channel)
    : channel_(std::move(channel)),
      label_(std::make_shared<const std::string>(label_of(group(), group().channel))),
      sent_(group().members.size()),
      received_(group().members.size()) {}

void Communicator::require(bool ok, const Call& call, std::string_view what) const {
  if (ok) return;
  throw InternalError(std::string(name_of(call.kind)) + " on axis " + group().axis + " (purpose " +
                      std::string(call.purpose) + "): " + std::string(what));
}

void Communicator::require_counts(const Call& call, const std::vector<std::int64_t>& counts,
                                  const Tensor& tensor) const {
  require(std::ssize(counts) == size(), call, "one count per member is needed");
  for (const auto count : counts) require(count >= 0, call, "a count is negative");
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  require(sum == tensor.elements(), call,
          "'" + tensor.name() + "' has " + std::to_string(tensor.elements()) + " elements, the counts " +
              std::to_string(sum));
}

Work Communicator::submit(Queue& queue, Call call) {
  require(call.op != Operator::bit_or || is_integer(call.output.dtype()), call, "bit_or is for integers only");
  require(!call.input || !call.output || call.input.dtype() == call.output.dtype(), call, "two dtypes");
  const auto peer = static_cast<std::size_t>(call.peer);
  call.number = ++(call.kind == Kind::send ? sent_[peer] : call.kind == Kind::receive ? received_[peer] : collectives_);
  const auto name = name_of(call.kind);
  queue.submit(name, [channel = channel_, call = std::move(call), label = label_](KernelScope& scope) {
    execute(*channel, scope, call, label);
  });
  return Work(queue.record());
}

Work Communicator::all_reduce(Queue& queue, const Tensor& tensor, Operator op, std::string_view purpose) {
  if (size() == 1) return Work(queue.record());
  return submit(queue, {.kind = Kind::all_reduce, .op = op, .output = tensor, .purpose = purpose});
}

Work Communicator::all_reduce(Queue& queue, const Accumulator& sum, std::string_view purpose) {
  if (size() == 1) return Work(queue.record());
  Call call{.kind = Kind::all_reduce, .purpose = purpose, .number = collectives_ + 1};
  const bool exact = sum.dtype() == Dtype::fixed;
  collectives_ += exact ? 2 : 1;
  queue.submit(name_of(call.kind), [channel = channel_, call, sum, exact, label = label_](KernelScope& scope) mutable {
    AccumulatorExchange exchange(scope, sum);
    double total_bound = exchange.bound();
    if (exact) {
      Call bounds = call;
      bounds.output = scope.allocate({"bounds", Dtype::f64, {1}, Category::communication});
      bounds.internal = true;
      *scope.write<double>(bounds.output) = total_bound;
      execute(*channel, scope, bounds, label);
      total_bound = *scope.read<double>(bounds.output);
      ++call.number;
    }
    call.output = exchange.begin(total_bound);
    call.two_lanes = call.output.dtype() != sum.dtype();
    call.overflow = exchange.overflow();
    execute(*channel, scope, call, label);
    exchange.end();
  });
  return Work(queue.record());
}

Work Communicator::all_reduce(Queue& queue, const WideTotal& total, std::string_view purpose) {
  return all_reduce(queue, total.tensor(), Operator::sum, purpose);
}

Work Communicator::reduce_scatter(Queue& queue, const Tensor& input, const Tensor& output,
                                  const std::vector<std::int64_t>& counts, Operator op, std::string_view purpose) {
  Call call{
      .kind = Kind::reduce_scatter, .op = op, .input = input, .output = output, .inputs = counts, .purpose = purpose};
  require_counts(call, counts, input);
  require(output.elements() == counts[static_cast<std::size_t>(place())], call, "the output is not of its count");
  return submit(queue, std::move(call));
}

Work Communicator::all_gather(Queue& queue, const Tensor& input, const Tensor& output,
                              const std::vector<std::int64_t>& counts, std::string_view purpose) {
  Call call{.kind = Kind::all_gather, .input = input, .output = output, .outputs = counts, .purpose = purpose};
  require_counts(call, counts, output);
  require(input.elements() == counts[static_cast<std::size_t>(place())], call, "the input is not of its count");
  return submit(queue, std::move(call));
}

Work Communicator::broadcast(Queue& queue, const Tensor& tensor, std::int64_t root, std::string_view purpose) {
  Call call{.kind = Kind::broadcast, .output = tensor, .peer = root, .purpose = purpose};
  require(root >= 0 && root < size(), call, "the root is no place in the group");
  return submit(queue, std::move(call));
}

Work Communicator::all_to_all(Queue& queue, const Tensor& input, const Tensor& output,
                              const std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from,
                              std::string_view purpose) {
  Call call{
      .kind = Kind::all_to_all, .input = input, .output = output, .inputs = to, .outputs = from, .purpose = purpose};
  require_counts(call, to, input);
  require_counts(call, from, output);
  return submit(queue, std::move(call));
}

Work Communicator::send(Queue& queue, const Tensor& tensor, std::int64_t to, std::string_view purpose, Tag tag) {
  Call call{.kind = Kind::send, .input = tensor, .peer = to, .purpose = purpose, .tag = tag};
  require(to >= 0 && to < size() && to != place(), call, "the destination is no other place in the group");
  return submit(queue, std::move(call));
}

Work Communicator::receive(Queue& queue, const Tensor& tensor, std::int64_t from, std::string_view purpose, Tag tag) {
  Call call{.kind = Kind::receive, .output = tensor, .peer = from, .purpose = purpose, .tag = tag};
  require(from >= 0 && from < size() && from != place(), call, "the source is no other place in the group");
  return submit(queue, std::move(call));
}

Work Communicator::barrier(Queue& queue, std::string_view purpose) {
  return submit(queue, {.kind = Kind::barrier, .purpose = purpose});
}

}  // namespace shardproof::comm
