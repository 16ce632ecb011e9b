// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <thread>
#include <tuple>
#include <utility>

#include "impl/comm/board.hpp"
#include "impl/comm/inject.hpp"
#include "impl/comm/mpi/channel.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

namespace {

/// One rank's view of a world of processes, for one run.
class MpiWorld final : public World {
 public:
  MpiWorld(MpiState& state, MPI_Comm everybody, Rank rank, std::int64_t size, const ThreadsOptions& options,
           const std::vector<Injection>& injections)
      : state_(state),
        everybody_(everybody),
        rank_(rank),
        size_(size),
        options_(options),
        injector_(
            injections, rank, [this](double seconds) { pause(seconds); }, [] { return true; }) {}
  ~MpiWorld() override {
    for (auto& [key, link] : links_) MPI_Comm_free(&link->communicator);
  }

  Rank rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }
  TrafficLedger& traffic() override { return traffic_; }
  std::unique_ptr<Queue> queue(Device& device) override { return injector_.queue(device); }
  const Injector& injector() const { return injector_; }

  Communicator communicator(std::string axis, std::vector<Rank> members, std::string channel) override {
    Group group = group_of(std::move(axis), std::move(members), std::move(channel), rank_, size_);
    auto& link = meet(group);
    return Communicator(
        injector_.wrap(std::make_unique<MpiChannel>(state_, link, std::move(group), options_, traffic_)));
  }

  /// After the rank's last call. Throws CommError where a message was never received.
  void end() {
    wait_for_all("the end of the run");
    std::string first;
    for (const auto& [key, link] : links_) {
      const auto& [axis, members, channel] = key;
      const auto place = std::ranges::find(members, rank_) - members.begin();
      const auto text = undelivered(*link, {axis, channel, members, place});
      if (first.empty()) first = text;
    }
    if (!first.empty()) throw CommError(first);
  }

 private:
  void wait_for_all(const char* what) {
    MPI_Request request;
    require_mpi(MPI_Ibarrier(everybody_, &request), "MPI_Ibarrier");
    state_.wait(request, options_.timeout_seconds, [&] { return name_of(rank_) + ", in " + what; });
  }

  /// Members meet in the order in which they make their groups, which is the same for all.
  MpiLink& meet(const Group& group) {
    auto& link = links_[{group.axis, group.members, group.channel}];
    if (link) return *link;
    link = std::make_unique<MpiLink>();
    std::vector<int> ranks;
    for (const auto member : group.members) ranks.push_back(static_cast<int>(member));
    MPI_Group all, some;
    require_mpi(MPI_Comm_group(everybody_, &all), "MPI_Comm_group");
    require_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
    require_mpi(MPI_Comm_create_group(everybody_, some, 0, &link->communicator), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return *link;
  }

  void pause(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    state_.wait([end] { return std::chrono::steady_clock::now() >= end; }, 0, [] { return std::string(); });
  }

  MpiState& state_;
  const MPI_Comm everybody_;
  const Rank rank_;
  const std::int64_t size_;
  const ThreadsOptions& options_;
  TrafficLedger traffic_;
  Injector injector_;
  std::map<std::tuple<std::string, std::vector<Rank>, std::string>, std::unique_ptr<MpiLink>> links_;
};

class OpenMpiJob final : public MpiJob {
 public:
  OpenMpiJob() {
    int provided = MPI_THREAD_SINGLE;
    require_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_MULTIPLE) throw DeviceError("this MPI library takes no calls from several threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "MPI_Comm_dup");
    require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &words_), "MPI_Comm_dup");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    state_ = std::make_unique<MpiState>(control_);
  }
  ~OpenMpiJob() override {
    for (auto& [ranks, communicator] : first_)
      if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
    MPI_Comm_free(&words_);
    MPI_Comm_free(&control_);
    MPI_Finalize();
  }

  Rank rank() const override { return static_cast<Rank>(rank_); }
  std::int64_t size() const override { return size_; }

  std::string broadcast(const std::string& text) override {
    std::int64_t length = std::ssize(text);
    MPI_Request request;
    require_mpi(MPI_Ibcast(&length, 1, MPI_INT64_T, 0, words_, &request), "MPI_Ibcast");
    idle(request);
    std::string said = text;
    said.resize(static_cast<std::size_t>(length));
    require_mpi(MPI_Ibcast(said.data(), static_cast<int>(length), MPI_CHAR, 0, words_, &request), "MPI_Ibcast");
    idle(request);
    return said;
  }

  std::vector<std::string> gather(std::int64_t ranks, const std::string& text) override {
    constexpr int tag = 1;
    MPI_Request request;
    if (rank_ > 0) {
      require_mpi(MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, tag, words_, &request),
                  "MPI_Isend");
      idle(request);
      return {};
    }
    std::vector<std::string> all = {text};
    for (int r = 1; r < ranks; ++r) {
      MPI_Status status;
      int there = 0;
      idle([&] {
        require_mpi(MPI_Iprobe(r, tag, words_, &there, &status), "MPI_Iprobe");
        return there != 0;
      });
      int length = 0;
      MPI_Get_count(&status, MPI_CHAR, &length);
      all.emplace_back(static_cast<std::size_t>(length), '\0');
      require_mpi(MPI_Recv(all.back().data(), length, MPI_CHAR, r, tag, words_, MPI_STATUS_IGNORE), "MPI_Recv");
    }
    return all;
  }

  void wait_for_first(std::int64_t ranks) override {
    MPI_Request request;
    require_mpi(MPI_Ibarrier(first(ranks), &request), "MPI_Ibarrier");
    idle(request);
  }

  void run(std::int64_t ranks, const ThreadsOptions& options, const std::function<void(World&)>& rank) override {
    if (ranks < 1 || ranks > size_)
      throw BadInput("ranks " + std::to_string(ranks) + ": from 1 to the " + std::to_string(size_) +
                     " processes that were started");
    const auto injections = parse_injections(options.injections, ranks);
    state_->poll = options.poll;
    MpiWorld world(*state_, first(ranks), this->rank(), ranks, options, injections);
    rank(world);
    world.end();
    std::vector<std::int64_t> hits, all(injections.size());
    for (std::size_t i = 0; i < injections.size(); ++i) hits.push_back(world.injector().hits(i));
    MPI_Request request;
    require_mpi(MPI_Iallreduce(hits.data(), all.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_SUM,
                               first(ranks), &request),
                "MPI_Iallreduce");
    idle(request);
    state_->poll = {};
    for (std::size_t i = 0; i < injections.size(); ++i)
      if (all[i] == 0) throw NoCallMatched(injections[i]);
  }

  void fail(std::string_view reason, int exit_code) override {
    said_ = reason;
    for (int r = 0; r < size_; ++r)
      if (r != rank_)
        MPI_Isend(said_.data(), static_cast<int>(said_.size()), MPI_CHAR, r, exit_code, control_,
                  &requests_.emplace_back());
  }

  [[noreturn]] void await_end(int exit_code) override {
    constexpr std::chrono::seconds patience(20);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      int done = 0;
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    part(exit_code);
  }

  [[noreturn]] void part(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::abort();
  }

 private:
  void idle(MPI_Request& request) {
    state_->wait(request, 0, [] { return std::string(); });
  }
  void idle(const std::function<bool()>& done) {
    state_->wait(done, 0, [] { return std::string(); });
  }

  /// The first processes, by themselves: the others do nothing for it.
  MPI_Comm first(std::int64_t ranks) {
    auto& communicator = first_.try_emplace(ranks, MPI_COMM_NULL).first->second;
    if (communicator != MPI_COMM_NULL) return communicator;
    MPI_Group all, some;
    int range[1][3] = {{0, static_cast<int>(ranks) - 1, 1}};
    require_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    require_mpi(MPI_Group_range_incl(all, 1, range, &some), "MPI_Group_range_incl");
    require_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &communicator), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return communicator;
  }

  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL, words_ = MPI_COMM_NULL;
  std::map<std::int64_t, MPI_Comm> first_;  // by their number
  std::unique_ptr<MpiState> state_;
  std::string said_;  // of fail(), on its way
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::string MpiJob::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

std::unique_ptr<MpiJob> MpiJob::begin() {
  const auto found = launched();
  if (!found || found->size == 1) return nullptr;
  return std::make_unique<OpenMpiJob>();
}

}  // namespace shardproof::comm
