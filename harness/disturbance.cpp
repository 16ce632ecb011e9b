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
  comm::ThreadsOptions options{.delays = delays, .injections = injections};
  if (delays) {
    options.chunk_elements = 61;
    if (*delays % 2 == 0) options.send_depth = 0;
  }
  return options;
}

void DisturbanceOptions::declare(Options& options) {
  options
      .text("--delays", delays_, "SEED|off",
            fmt::format("Random pauses of ranks in their calls, which must change nothing (default: {})",
                        text_of(standard_)))
      .list("--inject", injections_, "FAULT",
            "What the communicator does wrong, as 'scale:axis=dp,kind=all_reduce,rank=1,call=2'; may be repeated");
}

Disturbance DisturbanceOptions::disturbance() const {
  Disturbance result{standard_, injections_};
  if (delays_ == "off") {
    result.delays.reset();
  } else if (!delays_.empty()) {
    result.delays = parse_number<std::uint64_t>(delays_);
    if (!result.delays.value_or(0))
      throw BadInput(fmt::format("--delays: \"{}\" is not off or a seed from 1", delays_));
  }
  comm::parse_injections(injections_, comm::most_thread_ranks);
  return result;
}

std::vector<std::string> words_of(const Disturbance& disturbance, std::optional<std::uint64_t> standard) {
  std::vector<std::string> words;
  if (disturbance.delays != standard) words = {"--delays", text_of(disturbance.delays)};
  for (const auto& injection : disturbance.injections) words.insert(words.end(), {"--inject", injection});
  return words;
}

}  // namespace shardproof::harness
