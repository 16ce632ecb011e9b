// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "impl/comm/inject.hpp"
#include "impl/comm/monitor.hpp"
#include "impl/comm/mpi/world.hpp"
#include "impl/comm/rank_threads.hpp"
#include "kernels/core/errors.hpp"
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI's
#endif

namespace shardproof::comm {

namespace {

class OpenMpiJob final : public MpiJob {
 public:
  explicit OpenMpiJob(FlightRecorder* recorder) : recorder_(recorder) {
    const Blocked starting(recorder_, "MPI_Init_thread");
    int provided = MPI_THREAD_SINGLE;
    require_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_MULTIPLE) throw DeviceError("this MPI library takes no calls from several threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "MPI_Comm_dup");
    require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &words_), "MPI_Comm_dup");
    require_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &meeting_), "MPI_Comm_dup");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    state_ = std::make_unique<MpiState>(control_);
    if (recorder_ == nullptr) return;
    const std::string job = recorder_->file().job;
    const auto path_of = [&](std::int64_t process) { return flight_path(job, process); };
    state_->watch = std::make_unique<Watch>(*recorder_, path_of);
    require_mpi(MPI_Barrier(control_), "MPI_Barrier");
    std::error_code error;  // all have mapped it: from here on nothing leaves the file behind
    std::filesystem::remove(path_of(rank_), error);
    recorder_->end_training();  // idle
  }
  ~OpenMpiJob() override {
    const Blocked ending(recorder_, "MPI_Finalize");
    if (recorder_ != nullptr) recorder_->file().phase = static_cast<std::uint32_t>(Phase::ending);
    for (auto& [processes, communicator] : first_)
      if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
    MPI_Comm_free(&meeting_);
    MPI_Comm_free(&words_);
    MPI_Comm_free(&control_);
    MPI_Finalize();
  }

  std::int64_t process() const override { return rank_; }
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

  std::vector<std::string> gather(std::int64_t processes, const std::string& text) override {
    constexpr int tag = 1;
    MPI_Request request;
    if (rank_ > 0) {
      require_mpi(MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, tag, words_, &request),
                  "MPI_Isend");
      idle(request);
      return {};
    }
    std::vector<std::string> all = {text};
    for (int r = 1; r < processes; ++r) {
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

  void wait_for_first(std::int64_t processes) override {
    MPI_Request request;
    require_mpi(MPI_Ibarrier(first(processes), &request), "MPI_Ibarrier");
    idle(request);
  }

  std::vector<std::int64_t> clock_offsets(std::int64_t processes, const std::function<std::int64_t()>& clock) override {
    constexpr int tag = 2, trips = 20;
    const auto pass = [&](std::int64_t& time, int other, bool sends) {
      MPI_Request request;
      require_mpi(sends ? MPI_Isend(&time, 1, MPI_INT64_T, other, tag, words_, &request)
                        : MPI_Irecv(&time, 1, MPI_INT64_T, other, tag, words_, &request),
                  sends ? "MPI_Isend" : "MPI_Irecv");
      idle(request);
    };
    std::int64_t time = 0;
    for (int k = 0; rank_ > 0 && k < trips; ++k) {
      pass(time, 0, false);
      time = clock();
      pass(time, 0, true);
    }
    std::vector<std::int64_t> offsets(rank_ == 0 ? 1 : 0);
    for (int other = 1; rank_ == 0 && other < processes; ++other) {
      std::int64_t quickest = std::numeric_limits<std::int64_t>::max();
      offsets.push_back(0);
      for (int k = 0; k < trips; ++k) {
        const std::int64_t start = clock();
        pass(time, other, true);
        pass(time, other, false);
        const std::int64_t took = clock() - start;
        if (took >= quickest) continue;
        quickest = took;
        offsets.back() = start + took / 2 - time;
      }
    }
    return offsets;
  }

  void run(const Deal& deal, const ThreadsOptions& options, const std::function<void(World&)>& rank) override {
    require_legal(deal.count(0), options);
    if (deal.used() > size_)
      throw BadInput("ranks " + std::to_string(deal.ranks) + ": " + std::to_string(size_) + " processes of at most " +
                     std::to_string(deal.count(0)) + " ranks were started");
    const auto injections = parse_injections(options.injections, deal.ranks);
    const MPI_Comm everybody = first(deal.used());
    if (state_->watch) state_->watch->begin_training(options.timeout_seconds, deal.first(rank_), deal.count(rank_));
    MpiRun run(*state_, everybody, meeting_, rank_, deal, options);
    std::vector<std::int64_t> hits(injections.size()), all(injections.size());
    run_ranks(run.threads(), static_cast<Rank>(deal.first(rank_)), deal.count(rank_), [&](Rank self) {
      MpiWorld world(run, self, injections);
      rank(world);
      const std::lock_guard lock(run.threads().mutex);
      for (std::size_t i = 0; i < hits.size(); ++i) hits[i] += world.injector().hits(i);
    });
    run.end();
    MPI_Request request;
    require_mpi(MPI_Iallreduce(hits.data(), all.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_SUM, everybody,
                               &request),
                "MPI_Iallreduce");
    idle(request);
    if (recorder_ != nullptr) recorder_->end_training();
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
    if (recorder_ != nullptr) recorder_->decide(exit_code);
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
  MPI_Comm first(std::int64_t processes) {
    auto& communicator = first_.try_emplace(processes, MPI_COMM_NULL).first->second;
    if (communicator != MPI_COMM_NULL) return communicator;
    MPI_Group all, some;
    int range[1][3] = {{0, static_cast<int>(processes) - 1, 1}};
    require_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
    require_mpi(MPI_Group_range_incl(all, 1, range, &some), "MPI_Group_range_incl");
    const Blocked meeting(recorder_, "MPI_Comm_create_group");
    require_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, some, 0, &communicator), "MPI_Comm_create_group");
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return communicator;
  }

  FlightRecorder* const recorder_;
  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL, words_ = MPI_COMM_NULL, meeting_ = MPI_COMM_NULL;
  std::map<std::int64_t, MPI_Comm> first_;  // by their number
  std::unique_ptr<MpiState> state_;
  std::string said_;  // of fail(), on its way
  std::vector<MPI_Request> requests_;
};

/// Whether the library says that it takes buffers of GPUs.
bool is_cuda_aware() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() != 0;
#else
  return false;
#endif
}

}  // namespace

std::string MpiJob::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n")) + (is_cuda_aware() ? ", CUDA-aware" : ", host memory alone");
}

std::unique_ptr<MpiJob> MpiJob::begin(FlightRecorder* recorder) {
  const auto found = launched();
  if (!found || found->size == 1) return nullptr;
  return std::make_unique<OpenMpiJob>(recorder);
}

}  // namespace shardproof::comm
