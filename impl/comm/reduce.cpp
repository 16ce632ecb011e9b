// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/reduce.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "impl/comm/element.hpp"

namespace shardproof::comm {

namespace {

using Inputs = std::span<const std::byte* const>;

/// Partial results of a block stay in the first-level cache, whatever the number of inputs.
constexpr std::int64_t block_bytes = 8192;

template <class T>
const T* at(Inputs inputs, std::size_t k, std::int64_t begin) {
  return reinterpret_cast<const T*>(inputs[k]) + begin;
}

template <class T, class Op>
void combine(const T* a, const T* b, T* to, std::int64_t n, Op op) {
  // `to` may be `a` or `b`: element i depends on elements i alone.
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) to[i] = op(a[i], b[i]);
}

template <class T, class Op>
void fold(Inputs inputs, T* out, std::int64_t elements, Op op) {
  constexpr std::int64_t block = block_bytes / static_cast<std::int64_t>(sizeof(T));
  alignas(64) T partial[block];
  // Two inputs need no partial results and so no blocks.
  const std::int64_t step = inputs.size() == 2 ? elements : block;
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    const std::int64_t n = std::min(step, elements - begin);
    const T* sum = at<T>(inputs, 0, begin);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
      T* to = k + 1 == inputs.size() ? out + begin : partial;
      combine(sum, at<T>(inputs, k, begin), to, n, op);
      sum = to;
    }
  }
}

/// Of three ranks or more.
void fold_fixed(Inputs inputs, std::int64_t* out, std::int64_t elements) {
  constexpr std::int64_t block = block_bytes / 8;
  alignas(64) std::int64_t low[block], high[block];
  std::vector<const std::int64_t*> from(inputs.size());
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    const std::int64_t n = std::min(block, elements - begin);
    for (std::size_t k = 0; k < from.size(); ++k) from[k] = at<std::int64_t>(inputs, k, begin);
    sum_lanes(from, low, high, n);
    join_lanes(low, high, out + begin, n);
  }
}

template <class T>
void sum(Inputs inputs, std::byte* out, std::int64_t elements) {
  if constexpr (std::is_same_v<T, Fixed>) {
    if (inputs.size() > 2) return fold_fixed(inputs, reinterpret_cast<std::int64_t*>(out), elements);
    return sum<std::int64_t>(inputs, out, elements);
  } else if constexpr (std::is_integral_v<T>) {
    using Word = std::make_unsigned_t<T>;
    const auto op = [](Word a, Word b) { return static_cast<Word>(a + b); };
    fold(inputs, reinterpret_cast<Word*>(out), elements, op);
  } else {
    fold(inputs, reinterpret_cast<T*>(out), elements, [](T a, T b) { return a + b; });
  }
}

template <class T>
void reduce_as(Operator op, Inputs inputs, std::byte* out, std::int64_t elements) {
  auto* to = reinterpret_cast<T*>(out);
  switch (op) {
    case Operator::sum: return sum<T>(inputs, out, elements);
    case Operator::max: return fold(inputs, to, elements, [](T a, T b) { return a > b ? a : b; });
    case Operator::min: return fold(inputs, to, elements, [](T a, T b) { return a < b ? a : b; });
    case Operator::bit_or:
      if constexpr (std::is_integral_v<T>) {
        return fold(inputs, to, elements, [](T a, T b) { return static_cast<T>(a | b); });
      }
  }
  throw InternalError("reduce: bit_or is for integers only");
}

}  // namespace

void reduce(Dtype dtype, Operator op, Inputs inputs, std::byte* out, std::int64_t elements) {
  if (elements == 0) return;
  with_element(dtype, [&]<class T>(T) {
    if (inputs.size() == 1) {
      if (out != inputs[0]) std::memmove(out, inputs[0], static_cast<std::size_t>(elements) * sizeof(T));
    } else {
      reduce_as<T>(op, inputs, out, elements);
    }
  });
}

void sum_lanes(std::span<const std::int64_t* const> inputs, std::int64_t* low, std::int64_t* high,
               std::int64_t elements) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < elements; ++i) {
    low[i] = inputs[0][i];
    high[i] = inputs[0][i] >> 8;
  }
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    const std::int64_t* const next = inputs[k];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < elements; ++i) {
      low[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low[i]) + static_cast<std::uint64_t>(next[i]));
      high[i] += next[i] >> 8;
    }
  }
}

void join_lanes(const std::int64_t* low, const std::int64_t* high, std::int64_t* out, std::int64_t elements) {
  constexpr std::int64_t limit = std::int64_t{1} << 55;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < elements; ++i) {
    const bool fits = high[i] >= -limit && high[i] < limit;
    out[i] = fits ? low[i] : fixed_invalid;
  }
}

double largest(const std::int64_t* values, std::int64_t elements) {
  std::int64_t least = 0, most = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  return std::max(-static_cast<double>(least), static_cast<double>(most));
}

}  // namespace shardproof::comm
