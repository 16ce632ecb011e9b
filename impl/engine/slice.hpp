// SPDX-License-Identifier: Apache-2.0
// Between a logical row-major array and the part of it that lies in a range of one dim.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "impl/plan/range.hpp"
#include "kernels/core/dtype.hpp"

namespace shardproof::engine {

/// Calls f(place in the logical array, place in the slice, elements) for each run of elements that lie together in
/// both.
template <class F>
void for_each_run(const Dims& dims, std::int64_t dim, plan::Range range, F f) {
  const auto product = [&](std::size_t from, std::size_t to) {
    return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(from),
                           dims.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{1}, std::multiplies<>());
  };
  const auto d = static_cast<std::size_t>(dim);
  const std::int64_t outer = product(0, d), inner = product(d + 1, dims.size());
  const std::int64_t run = range.size() * inner;
  for (std::int64_t o = 0; o < outer; ++o) f((o * dims[d] + range.begin) * inner, o * run, run);
}

template <class T>
std::vector<T> slice_of(const std::vector<T>& logical, const Dims& dims, std::int64_t dim, plan::Range range) {
  std::vector<T> slice;
  for_each_run(dims, dim, range, [&](std::int64_t at, std::int64_t, std::int64_t n) {
    slice.insert(slice.end(), logical.begin() + at, logical.begin() + at + n);
  });
  return slice;
}

}  // namespace shardproof::engine
