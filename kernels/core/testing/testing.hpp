// SPDX-License-Identifier: Apache-2.0
// For tests of every folder: tensors from numbers and back, and numbers to put in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/queue.hpp"

namespace shardproof::testing {

/// A device tensor of the dtype (fixed, f64, f32: rounded by R; i64, i32, u8: must be whole numbers in range).
Tensor make(Queue& queue, std::string name, Dims dims, std::span<const double> values, Dtype dtype,
            Category category = Category::workspace);
/// The elements as doubles: D(x) of Fixed.
std::vector<double> doubles(Queue& queue, const Tensor& tensor);

/// R(values) as doubles: what make() stores.
std::vector<double> rounded(std::span<const double> values, Dtype dtype);

/// n numbers uniform in [low, high), the same on every machine: element i depends on (seed, name, i) alone.
std::vector<double> uniform(std::uint64_t seed, std::string_view name, std::int64_t n, double low = -1,
                            double high = 1);

/// As uniform in [-1, 1) times 2^k, k uniform in [-spread, spread]: for operands whose products differ much in size.
std::vector<double> scattered(std::uint64_t seed, std::string_view name, std::int64_t n, int spread = 10);

}  // namespace shardproof::testing
