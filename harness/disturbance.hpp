// SPDX-License-Identifier: Apache-2.0
// What is done on purpose to the ranks' calls: it must change no bit (delays), or be found (injections); and how long
// they may wait.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "impl/comm/world.hpp"

namespace shardproof::harness {

struct Disturbance {
  /// Seed of random pauses; transfers then also go in pieces of 61 elements, and with an even seed sends are of the
  /// least depth that the schedule allows: 0, where every send waits for its receiver.
  std::optional<std::uint64_t> delays = {};
  std::vector<std::string> injections = {};  ///< as impl/comm/inject.hpp reads them, canonical
  double timeout_seconds = comm::ThreadsOptions{}.timeout_seconds;

  comm::ThreadsOptions threads() const;
  bool operator==(const Disturbance&) const = default;
};

/// --timeout.
class TimeoutOption {
 public:
  /// Declares it; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing. Throws BadInput.
  double seconds() const;

 private:
  std::optional<double> seconds_;
};

/// --delays, --inject and --timeout.
class DisturbanceOptions {
 public:
  /// `standard`: the delays without the option.
  explicit DisturbanceOptions(std::optional<std::uint64_t> standard) : standard_(standard) {}

  /// Declares them; this object must outlive options.parse().
  void declare(Options& options);
  /// After parsing. Throws BadInput.
  Disturbance disturbance() const;

 private:
  std::optional<std::uint64_t> standard_;
  std::string delays_;
  TimeoutOption timeout_;
  std::vector<std::string> injections_;
};

/// Whether the ranks that the injections name are among so many.
bool injections_fit(const std::vector<std::string>& injections, std::int64_t ranks);
/// Whether a run on so many ranks failed only because one of its injections met no call, or names no rank of them.
bool met_no_call(const std::exception& error, const std::vector<std::string>& injections, std::int64_t ranks);

/// The words that ask for it, given what there is without them.
std::vector<std::string> words_of(const Disturbance& disturbance, std::optional<std::uint64_t> standard);

}  // namespace shardproof::harness
