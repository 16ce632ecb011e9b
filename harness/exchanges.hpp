// SPDX-License-Identifier: Apache-2.0
// What recorded spans are: copies, and exchanges of several ranks that are one collective or the ends of one message.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/core/span_log.hpp"

namespace shardproof::harness {

/// Between host and device.
bool is_copy(const KernelSpan& kernel);
bool is_message(const ExchangeSpan& exchange);
bool is_send(const ExchangeSpan& exchange);

/// Group, sender and receiver (-1: a collective), number.
using MeetingKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
MeetingKey meeting_of(const ExchangeSpan& exchange);

/// Where a rank's exchange stands: ranks[rank].exchanges[index].
struct ExchangePlace {
  std::size_t rank = 0, index = 0;
};
std::map<MeetingKey, std::vector<ExchangePlace>> meetings(std::span<const Spans> ranks);

}  // namespace shardproof::harness
