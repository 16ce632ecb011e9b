// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace shardproof::plan {

/// Indices begin..end-1; empty where they are equal.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part k of n things cut into `parts` consecutive ranges whose sizes differ by at most one, the larger first.
inline Range part_of(std::int64_t n, std::int64_t parts, std::int64_t k) {
  const std::int64_t size = n / parts, larger = n % parts;
  const auto begin_of = [=](std::int64_t i) { return i * size + (i < larger ? i : larger); };
  return {begin_of(k), begin_of(k + 1)};
}

}  // namespace shardproof::plan
