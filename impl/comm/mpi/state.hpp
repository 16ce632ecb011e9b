// SPDX-License-Identifier: Apache-2.0
// What a process's ends of all groups share: how it waits, and what ends its waits.
#pragma once

#define OMPI_SKIP_MPICXX
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <mpi.h>

#include "impl/comm/mpi.hpp"
#include "impl/comm/watch.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

/// What a function of MPI returned, or what shows in the memory that stands for it.
struct MpiError : CommError {
  using CommError::CommError;
};

/// Throws MpiError naming the function.
void require_mpi(int code, const char* function);

/// Threads of the process wait beside each other.
class MpiState {
 public:
  /// `control`: a communicator of all processes for what they say when they fail.
  explicit MpiState(MPI_Comm control);

  /// Waits until the request has completed. Processors may be fewer than processes: a wait soon yields, then sleeps.
  /// Throws JobFailed where another process has failed, what `look` throws, and HangError with `describe` and the
  /// seconds after the deadline; 0: there is none. With a watch the deadline may be longer (FlightRecorder), starts
  /// anew whenever a process of this machine begins or ends a call, and the error says who is to blame.
  void wait(MPI_Request& request, double deadline_seconds, const std::function<std::string()>& describe);
  /// The same, for any condition.
  void wait(const std::function<bool()>& done, double deadline_seconds, const std::function<std::string()>& describe);
  bool is_complete(MPI_Request& request) const;

  /// Throws JobFailed where a process has said that it failed, and what Watch::check() throws.
  void check_others();

  MPI_Comm control() const { return control_; }
  std::function<void()> look = {};    ///< called now and then by who waits; set while nobody does
  std::unique_ptr<Watch> watch = {};  ///< where this process is monitored

  FlightRecorder* recorder() const { return watch ? &watch->recorder() : nullptr; }

 private:
  void require_in_time(double waited_seconds, double deadline_seconds,
                       const std::function<std::string()>& describe) const;

  MPI_Comm control_;
  int rank_ = 0;
};

}  // namespace shardproof::comm
