// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>

namespace shardproof::harness {

/// What a command returns to its caller.
enum class ExitCode : std::int32_t {
  pass = 0,
  check_failed = 1,
  usage = 2,
  inconclusive = 3,
  environment = 4,
  write_failed = 5,
  out_of_memory = 6,
  non_finite = 7,
  hang = 8,
  rank_lost = 9,
  internal = 10,
  interrupted = 130,
};

/// Of several that apply, the one that counts: 130, 10, 9, 8, 6, 5, 4, 2, 7, 1, 3, 0.
ExitCode worst(std::initializer_list<ExitCode> codes);

/// What an exception says, in words for a user.
std::string reason_of(const std::exception& error);

/// The code that belongs to an exception (kernels/core/errors.hpp, Interrupted, std::bad_alloc); internal for any
/// other.
ExitCode exit_code_of(const std::exception& error);

}  // namespace shardproof::harness
