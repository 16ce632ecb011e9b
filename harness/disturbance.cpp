// SPDX-License-Identifier: Apache-2.0
#include "harness/disturbance.hpp"

#include <fmt/format.h>

#include "harness/text.hpp"
#include "impl/comm/inject.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {

namespace {

std::string text_of(std::optional<std::uint64_t> delays) { return delays ? std::to_string(*delays) : "off"; }

}  // namespace

comm::ThreadsOptions Disturbance::threads() const {
  comm::ThreadsOptions options{.timeout_seconds = timeout_seconds, .delays = delays, .injections = injections};
  if (delays) {
    options.chunk_elements = 61;
    if (*delays % 2 == 0) options.send_depth = 0;
  }
  return options;
}

void TimeoutOption::declare(Options& options) {
  options.duration("--timeout", seconds_,
                   fmt::format("A rank that waits gives up when none has made a call for so long (default: {}s)",
                               comm::ThreadsOptions{}.timeout_seconds));
}

double TimeoutOption::seconds() const {
  const double seconds = seconds_.value_or(comm::ThreadsOptions{}.timeout_seconds);
  if (seconds > comm::most_timeout_seconds)
    throw BadInput(fmt::format("--timeout: {} seconds is more than {}", seconds, comm::most_timeout_seconds));
  return seconds;
}

void DisturbanceOptions::declare(Options& options) {
  options
      .text("--delays", delays_, "SEED|off",
            fmt::format("Random pauses of ranks in their calls, which must change nothing (default: {})",
                        text_of(standard_)))
      .list("--inject", injections_, "FAULT",
            "What goes wrong, as 'scale:axis=dp,kind=all_reduce,rank=1,call=2' or 'slow:rank=1,factor=3' (list "
            "--faults); "
            "may be repeated");
  timeout_.declare(options);
}

Disturbance DisturbanceOptions::disturbance() const {
  Disturbance result{standard_, {}, timeout_.seconds()};
  if (delays_ == "off") {
    result.delays.reset();
  } else if (!delays_.empty()) {
    result.delays = parse_number<std::uint64_t>(delays_);
    if (!result.delays.value_or(0))
      throw BadInput(fmt::format("--delays: \"{}\" is not off or a seed from 1", delays_));
  }
  for (const auto& injection : comm::parse_injections(injections_, comm::most_thread_ranks))
    result.injections.push_back(comm::to_text(injection));
  return result;
}

bool injections_fit(const std::vector<std::string>& injections, std::int64_t ranks) {
  try {
    comm::parse_injections(injections, ranks);
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

bool met_no_call(const std::exception& error, const std::vector<std::string>& injections, std::int64_t ranks) {
  return dynamic_cast<const comm::NoCallMatched*>(&error) != nullptr ||
         (dynamic_cast<const BadInput*>(&error) != nullptr && !injections_fit(injections, ranks));
}

std::vector<std::string> words_of(const Disturbance& disturbance, std::optional<std::uint64_t> standard) {
  std::vector<std::string> words;
  if (disturbance.delays != standard) words = {"--delays", text_of(disturbance.delays)};
  for (const auto& injection : disturbance.injections) words.insert(words.end(), {"--inject", injection});
  if (disturbance.timeout_seconds != Disturbance{}.timeout_seconds)
    words.insert(words.end(), {"--timeout", fmt::format("{}", disturbance.timeout_seconds)});
  return words;
}

}  // namespace shardproof::harness
