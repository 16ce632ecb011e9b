// SPDX-License-Identifier: Apache-2.0
#include "harness/exchanges.hpp"

namespace shardproof::harness {

bool is_copy(const KernelSpan& kernel) { return kernel.name == "upload" || kernel.name == "fetch"; }
bool is_send(const ExchangeSpan& exchange) { return exchange.kind == "send"; }
bool is_message(const ExchangeSpan& exchange) { return is_send(exchange) || exchange.kind == "receive"; }

MeetingKey meeting_of(const ExchangeSpan& e) {
  const std::int64_t from = !is_message(e) ? -1 : is_send(e) ? e.place : e.peer;
  const std::int64_t to = !is_message(e) ? -1 : is_send(e) ? e.peer : e.place;
  return {*e.group, from, to, e.number};
}

std::map<MeetingKey, std::vector<ExchangePlace>> meetings(std::span<const Spans> ranks) {
  std::map<MeetingKey, std::vector<ExchangePlace>> found;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (std::size_t k = 0; k < ranks[r].exchanges.size(); ++k)
      found[meeting_of(ranks[r].exchanges[k])].push_back({r, k});
  return found;
}

}  // namespace shardproof::harness
