// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/world.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "impl/comm/flight.hpp"
#include "impl/comm/mpi/channel.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

/// A group by what its members call it: they know nothing else of each other before they have met. Another number for
/// another salt.
std::uint64_t hash_of(const MpiBoard& board, std::int32_t salt) {
  return group_key(Rank{salt}, board.axis, board.channel, board.all);
}

std::string beginning_of(const MpiBoard& board, Rank rank) {
  return name_of(rank) + ", where axis " + board.axis + ", channel " + board.channel + " begins";
}

/// Of messages about the making of this group.
int tag_of(const MpiBoard& board) {
  int there = 0;
  const void* most = nullptr;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&most), &there);
  const auto tags = static_cast<std::uint64_t>(there != 0 ? *static_cast<const int*>(most) : 32767);
  return static_cast<int>(hash_of(board, 0) % tags);
}

/// A channel between the threads of this process, whose calls are written down as those to other processes are.
class RecordedChannel final : public Channel {
 public:
  RecordedChannel(std::unique_ptr<Channel> channel, FlightRecorder& recorder)
      : channel_(std::move(channel)),
        recorder_(recorder),
        row_(recorder.row(group().members[static_cast<std::size_t>(group().place)], group())) {}

  void execute(KernelScope& scope, const Call& call) override {
    const InFlight noted(&recorder_, row_, group(), call);
    channel_->execute(scope, call);
  }
  const Group& group() const override { return channel_->group(); }

 private:
  const std::unique_ptr<Channel> channel_;
  FlightRecorder& recorder_;
  const std::uint16_t row_;
};

}  // namespace

MpiRun::MpiRun(MpiState& state, MPI_Comm everybody, MPI_Comm meeting, std::int64_t own, const Deal& deal,
               const ThreadsOptions& options)
    : state_(state), everybody_(everybody), meeting_(meeting), own_(own), deal_(deal), threads_(deal.ranks, options) {
  state_.look = [this] {
    const std::lock_guard lock(threads_.mutex);
    if (threads_.options.poll) threads_.options.poll();
    if (threads_.failed) throw Abandoned(threads_.describe(*threads_.failed));
    threads_.note_progress();  // the wait's own deadline counts, not that of threads that wait for this one
  };
}

std::unique_ptr<Channel> MpiRun::channel(Group group, TrafficLedger& traffic) {
  std::vector<std::int64_t> process_of;
  for (const Rank member : group.members) process_of.push_back(deal_.process_of(static_cast<std::int64_t>(member)));
  if (std::ranges::all_of(process_of, [this](std::int64_t process) { return process == own_; })) {
    auto& board = comm::meet(threads_, {group.axis, group.members, group.channel});
    auto made = std::make_unique<ThreadChannel>(board, group.place, traffic);
    if (state_.recorder() == nullptr) return made;
    return std::make_unique<RecordedChannel>(std::move(made), *state_.recorder());
  }
  MpiBoard& board = meet(group, process_of);
  return std::make_unique<MpiChannel>(state_, board, std::move(group), traffic);
}

/// Members meet in the order in which they make their groups, which is the same for all. The first one here makes the
/// communicator.
MpiBoard& MpiRun::meet(const Group& group, const std::vector<std::int64_t>& process_of) {
  const Rank self = group.members[static_cast<std::size_t>(group.place)];
  std::unique_lock lock(threads_.mutex);
  auto& found = threads_.boards[{group.axis, group.members, group.channel}];
  const bool is_first = !found;
  if (is_first) found = std::make_unique<MpiBoard>(threads_, group, process_of, own_);
  auto& board = static_cast<MpiBoard&>(*found);
  if (is_first) {
    lock.unlock();
    const MPI_Comm made = make_communicator(board, self);
    if (threads_.options.shared_memory) {
      const MpiCollectives mpi(state_, made, nullptr, threads_.options, [&] { return beginning_of(board, self); });
      const int own = board.process[static_cast<std::size_t>(group.place)];
      board.shared = SharedMemory::among(mpi, own, static_cast<int>(board.processes.size()));
    }
    lock.lock();
    board.communicator = made;
    board.changed.notify_all();
  }
  while (board.communicator == MPI_COMM_NULL) {
    if (threads_.failed) throw Abandoned(name_of(self) + ": " + threads_.describe(*threads_.failed));
    threads_.wait(lock, board.changed, ThreadState::Clock::now() + std::chrono::seconds(1));
  }
  return board;
}

/// All processes of the group have come before any makes it: MPI takes its time for no one who is not there, and making
/// a group does not wait for another whose members make it later.
MPI_Comm MpiRun::make_communicator(const MpiBoard& board, Rank rank) {
  const auto wait = [&](MPI_Request& request) {
    state_.wait(request, threads_.options.timeout_seconds, [&] { return beginning_of(board, rank); });
  };
  const int tag = tag_of(board), first = static_cast<int>(board.processes.front());
  const std::uint64_t own = hash_of(board, 1);
  std::vector<MPI_Request> requests;
  std::vector<std::uint64_t> others(board.processes.size(), own);
  if (own_ == first) {
    for (std::size_t k = 1; k < others.size(); ++k)
      require_mpi(MPI_Irecv(&others[k], 1, MPI_UINT64_T, static_cast<int>(board.processes[k]), tag, meeting_,
                            &requests.emplace_back()),
                  "MPI_Irecv");
    for (MPI_Request& request : requests) wait(request);
    requests.clear();
    for (std::size_t k = 1; k < others.size(); ++k)
      require_mpi(MPI_Isend(&own, 1, MPI_UINT64_T, static_cast<int>(board.processes[k]), tag, meeting_,
                            &requests.emplace_back()),
                  "MPI_Isend");
  } else {
    require_mpi(MPI_Isend(&own, 1, MPI_UINT64_T, first, tag, meeting_, &requests.emplace_back()), "MPI_Isend");
    require_mpi(MPI_Irecv(others.data(), 1, MPI_UINT64_T, first, tag, meeting_, &requests.emplace_back()), "MPI_Irecv");
  }
  for (MPI_Request& request : requests) wait(request);
  if (std::ranges::any_of(others, [own](std::uint64_t hash) { return hash != own; }))
    throw InternalError("axis " + board.axis + ", channel " + board.channel + ": two groups have one tag");
  std::vector<int> ranks(board.processes.begin(), board.processes.end());
  MPI_Group all, some;
  MPI_Comm made;
  require_mpi(MPI_Comm_group(everybody_, &all), "MPI_Comm_group");
  require_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  const Blocked making(state_.recorder(), "MPI_Comm_create_group");
  require_mpi(MPI_Comm_create_group(everybody_, some, tag, &made), "MPI_Comm_create_group");
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  return made;
}

void MpiRun::pause(double seconds) {
  const auto end = ThreadState::Clock::now() + ThreadState::duration(seconds);
  constexpr std::chrono::duration<double> between_looks(0.05);
  while (threads_.goes_on() && ThreadState::Clock::now() < end) {
    const std::chrono::duration<double> left = end - ThreadState::Clock::now();
    threads_.pause(std::min(left, between_looks).count());
    state_.check_others();
  }
}

void MpiRun::end() {
  MPI_Request request;
  require_mpi(MPI_Ibarrier(everybody_, &request), "MPI_Ibarrier");
  state_.wait(request, threads_.options.timeout_seconds,
              [&] { return "process " + std::to_string(own_) + ", in the end of the run"; });
  std::string first;
  for (const auto& [key, board] : threads_.boards) {
    const auto* const across = dynamic_cast<const MpiBoard*>(board.get());
    const std::string text =
        across != nullptr ? across->undelivered() : static_cast<const ThreadBoard&>(*board).mailbox.undelivered();
    if (first.empty()) first = text;
  }
  if (!first.empty()) throw CommError(first);
  for (const auto& [key, board] : threads_.boards)
    if (auto* const across = dynamic_cast<MpiBoard*>(board.get())) end_messages(*across);
}

/// All have been received: their senders' requests end, which MPI keeps for ever otherwise.
void MpiRun::end_messages(MpiBoard& board) {
  for (MpiOutbox& outbox : board.outboxes)
    for (auto& [to, messages] : outbox.sent)
      for (auto& message : messages)
        for (MPI_Request& request : message->requests)
          state_.wait(request, threads_.options.timeout_seconds,
                      [&] { return "process " + std::to_string(own_) + ", in the end of the run"; });
}

MpiWorld::MpiWorld(MpiRun& run, Rank rank, const std::vector<Injection>& injections)
    : run_(run),
      rank_(rank),
      injector_(
          injections, rank, [&run](double seconds) { run.pause(seconds); },
          [&run] { return run.threads().goes_on(); }) {}

Communicator MpiWorld::communicator(std::string axis, std::vector<Rank> members, std::string channel) {
  Group group = group_of(std::move(axis), std::move(members), std::move(channel), rank_, size());
  return Communicator(injector_.wrap(run_.channel(std::move(group), traffic_)));
}

}  // namespace shardproof::comm
