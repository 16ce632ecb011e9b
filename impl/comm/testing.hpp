// SPDX-License-Identifier: Apache-2.0
// For tests of what communicates: ranks with a device and a queue, and numbers that are wrong anywhere but in their
// place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "impl/comm/mpi.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof::comm::testing {

using shardproof::testing::put;

/// One rank of a test's world.
struct Node {
  explicit Node(World& ranks)
      : world(ranks), device({.rank = ranks.rank()}), queue(device), rank(static_cast<std::int64_t>(ranks.rank())) {}

  World& world;
  Device device;
  ImmediateQueue queue;
  const std::int64_t rank;
};

/// Of a test executable whose ranks are processes: all of them run all tests.
inline MpiJob* job = nullptr;

/// Runs f(node) on each rank; no wait is longer than 20 s unless the options say so. In processes: on this one's ranks,
/// of which there are several where there are too few processes; once with shared memory and once without.
template <class F>
void on_ranks(std::int64_t ranks, ThreadsOptions options, F f) {
  if (options.timeout_seconds == ThreadsOptions{}.timeout_seconds) options.timeout_seconds = 20;
  const auto rank = [&f](World& world) {
    Node node(world);
    f(node);
  };
  if (job == nullptr) return run_threads(ranks, options, rank);
  const Deal deal{ranks, job->size()};
  for (const bool shared : {true, false}) {
    options.shared_memory = shared;
    if (job->process() < deal.used()) job->run(deal, options, rank);
  }
}

/// The text of the E that f() throws; "no error" if none.
template <class E, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

/// Element i of rank's tensor: integers of all bits; Fixed so that sums of six stay in range; whole floats whose sums
/// are exact.
template <class T>
T value(std::int64_t rank, std::int64_t i, std::string_view salt = "") {
  // SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014).
  std::uint64_t word = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank + 1);
  for (const char c : salt) word = word * 1099511628211u + static_cast<std::uint64_t>(c);
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
  word = (word ^ word >> 27) * 0x94d049bb133111ebu;
  const auto bits = static_cast<std::int64_t>(word ^ word >> 31);
  if constexpr (std::is_same_v<T, Fixed>) {
    return Fixed{bits >> 4};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(bits % 1000);
  } else {
    const auto v = static_cast<T>(bits);
    return v == std::numeric_limits<T>::min() ? T{7} : v;  // not poison
  }
}
template <class T>
std::vector<T> values(std::int64_t rank, std::int64_t n, std::string_view salt = "") {
  std::vector<T> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(value<T>(rank, i, salt));
  return all;
}

/// op over the ranks' element, one after the other, in 64-bit integers. Unsigned arithmetic wraps as it should.
template <class T>
T expected(const std::vector<std::int64_t>& ranks, std::int64_t i, Operator op, std::string_view salt = "") {
  const auto whole = [&](std::int64_t rank) {
    const T v = value<T>(rank, i, salt);
    if constexpr (std::is_same_v<T, Fixed>) {
      return v.raw;
    } else {
      return static_cast<std::int64_t>(v);
    }
  };
  std::int64_t total = whole(ranks[0]);
  for (std::size_t k = 1; k < ranks.size(); ++k) {
    const auto next = whole(ranks[k]);
    switch (op) {
      case Operator::sum:
        total = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) + static_cast<std::uint64_t>(next));
        break;
      case Operator::max: total = next > total ? next : total; break;
      case Operator::min: total = next < total ? next : total; break;
      case Operator::bit_or: total |= next; break;
    }
  }
  if constexpr (std::is_same_v<T, Fixed>) {
    return Fixed{total};
  } else {
    return static_cast<T>(total);
  }
}

/// Equality of bits.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// f(T{}) for every element type that ranks exchange.
template <class F>
void for_each_type(F f) {
  f(Fixed{}), f(double{}), f(float{}), f(std::int64_t{}), f(std::int32_t{}), f(std::uint8_t{});
}

}  // namespace shardproof::comm::testing
