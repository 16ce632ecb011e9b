// SPDX-License-Identifier: Apache-2.0
// The few exceptions that cross seams. Each message is one clear sentence that names the place and the operands.
#pragma once

#include <stdexcept>
#include <string>

namespace shardproof {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the user gave is wrong: field, value, and what would be legal. Several findings: one a line.
struct BadInput : Error {
  using Error::Error;
};
/// Legal, but this combination is refused, with the reason.
struct NotSupported : Error {
  using Error::Error;
};
/// An optional part (CUDA, MPI, NCCL) that this binary was built without.
struct NotBuilt : Error {
  using Error::Error;
};
/// A kernel or a device did what it must not: a foreign owner, a host read, poison.
struct DeviceError : Error {
  using Error::Error;
};
/// The memory limit of a device (`--device-memory`) would be exceeded.
struct OutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};
/// A collective or message failed: a call that does not match, or one of the two below.
struct CommError : Error {
  using Error::Error;
};
/// A wait went on without progress for longer than is allowed.
struct HangError : CommError {
  using CommError::CommError;
};
/// A peer ended, or went away, before its part was done.
struct RankLost : CommError {
  using CommError::CommError;
};
/// Results could not be written.
struct WriteError : Error {
  using Error::Error;
};
/// A broken invariant of our own.
struct InternalError : Error {
  using Error::Error;
};

}  // namespace shardproof
