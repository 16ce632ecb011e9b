// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/delays.hpp"

#include <chrono>
#include <thread>

namespace shardproof::comm {

Delays::Delays(std::optional<std::uint64_t> seed, Rank rank, const std::string& axis, const std::string& channel) {
  if (!seed) return;
  random_.emplace(*seed, "delays/" + axis + "/" + channel + "/" + std::to_string(static_cast<std::int32_t>(rank)));
}

void Delays::pause(std::int64_t call, int phase) const {
  if (!random_) return;
  const auto word = random_->word(static_cast<std::uint64_t>(4 * call + phase));
  if (word % 2 == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(word / 2 % 201));
}

}  // namespace shardproof::comm
