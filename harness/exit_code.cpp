// SPDX-License-Identifier: Apache-2.0
#include "harness/exit_code.hpp"

#include <algorithm>
#include <new>

#include "harness/signals.hpp"
#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/non_finite.hpp"

namespace shardproof::harness {
namespace {

constexpr ExitCode worst_first[] = {ExitCode::interrupted,  ExitCode::internal,      ExitCode::rank_lost,
                                    ExitCode::hang,         ExitCode::out_of_memory, ExitCode::write_failed,
                                    ExitCode::environment,  ExitCode::usage,         ExitCode::non_finite,
                                    ExitCode::check_failed, ExitCode::inconclusive};

template <class... Kinds>
bool is_any_of(const std::exception& error) {
  return (... || (dynamic_cast<const Kinds*>(&error) != nullptr));
}

}  // namespace

ExitCode worst(std::initializer_list<ExitCode> codes) {
  for (ExitCode code : worst_first)
    if (std::ranges::find(codes, code) != codes.end()) return code;
  return ExitCode::pass;
}

std::string reason_of(const std::exception& error) {
  return is_any_of<std::bad_alloc>(error) ? "this machine's memory is exhausted" : error.what();
}

ExitCode exit_code_of(const std::exception& error) {
  if (const auto* const failed = dynamic_cast<const comm::JobFailed*>(&error))
    return static_cast<ExitCode>(failed->exit_code);
  if (is_any_of<Interrupted>(error)) return ExitCode::interrupted;
  if (is_any_of<NonFinite>(error)) return ExitCode::non_finite;
  if (is_any_of<BadInput, NotSupported>(error)) return ExitCode::usage;
  if (is_any_of<NotBuilt>(error)) return ExitCode::environment;
  if (is_any_of<OutOfMemory, std::bad_alloc>(error)) return ExitCode::out_of_memory;
  if (is_any_of<HangError>(error)) return ExitCode::hang;
  if (is_any_of<CommError>(error)) return ExitCode::rank_lost;
  if (is_any_of<WriteError>(error)) return ExitCode::write_failed;
  return ExitCode::internal;
}

}  // namespace shardproof::harness
