// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/mpi/state.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "kernels/core/errors.hpp"

namespace shardproof::comm {

void require_mpi(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw MpiError(std::string(function) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

MpiState::MpiState(MPI_Comm control) : control_(control) { MPI_Comm_rank(control, &rank_); }

bool MpiState::is_complete(MPI_Request& request) const {
  int done = 0;
  require_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

void MpiState::wait(MPI_Request& request, double deadline_seconds, const std::function<std::string()>& describe) {
  wait([&] { return is_complete(request); }, deadline_seconds, describe);
}

void MpiState::wait(const std::function<bool()>& done, double deadline_seconds,
                    const std::function<std::string()>& describe) {
  using Clock = std::chrono::steady_clock;
  constexpr int spins = 1000;  // a message between two cores is there within these
  for (int k = 0; k < spins; ++k)
    if (done()) return;
  const auto start = Clock::now();
  auto next_look = start;
  while (!done()) {
    const auto now = Clock::now();
    const std::chrono::duration<double> waited = now - start;
    if (now >= next_look) {
      check_others();
      if (look) look();
      if (deadline_seconds > 0) require_in_time(waited.count(), deadline_seconds, describe);
      next_look = now + std::chrono::milliseconds(5);
    }
    if (waited.count() < 1e-3)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(waited.count() < 0.1 ? 50 : 1000));
  }
}

void MpiState::require_in_time(double waited_seconds, double deadline_seconds,
                               const std::function<std::string()>& describe) const {
  const double deadline = watch ? watch->deadline_seconds() : deadline_seconds;
  if (waited_seconds <= deadline || (watch && watch->goes_on())) return;
  std::string text = describe();
  if (watch) text += ", in step " + std::to_string(watch->recorder().file().step);
  text += ": has waited for " + std::to_string(static_cast<std::int64_t>(waited_seconds)) + " s";
  const std::string reason = watch ? watch->reason() : "";
  throw HangError(reason.empty() ? text : text + ": " + reason);
}

void MpiState::check_others() {
  if (watch) watch->check();
  int there = 0;
  MPI_Message message;
  MPI_Status status;
  require_mpi(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_, &there, &message, &status), "MPI_Improbe");
  if (there == 0) return;
  int length = 0;
  MPI_Get_count(&status, MPI_CHAR, &length);
  std::string text(static_cast<std::size_t>(length), '\0');
  require_mpi(MPI_Mrecv(text.data(), length, MPI_CHAR, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  throw JobFailed(text, status.MPI_TAG);
}

}  // namespace shardproof::comm
