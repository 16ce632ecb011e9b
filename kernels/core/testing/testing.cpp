// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/testing/testing.hpp"

#include <cmath>
#include <utility>

#include "kernels/core/errors.hpp"
#include "kernels/core/philox.hpp"

namespace shardproof::testing {

namespace {

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Fixed> || std::is_floating_point_v<T>) {
    return round_to<T>(static_cast<Real<T>>(value));
  } else {
    const auto whole = static_cast<T>(value);
    if (static_cast<double>(whole) != value) throw InternalError("no integer: " + std::to_string(value));
    return whole;
  }
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, Fixed>)
    return real(value);
  else
    return static_cast<double>(value);
}

/// Calls f(T{}) with the dtype's element type.
template <class F>
auto with_type(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::i64: return f(std::int64_t{});
    case Dtype::i32: return f(std::int32_t{});
    case Dtype::u8: return f(std::uint8_t{});
    default: return dispatch(dtype, f);
  }
}

}  // namespace

Tensor make(Queue& queue, std::string name, Dims dims, std::span<const double> values, Dtype dtype, Category category) {
  Tensor tensor(queue, {std::move(name), dtype, dims, category});
  with_type(dtype, [&]<class T>(T) {
    std::vector<T> elements;
    for (const auto v : values) elements.push_back(from_double<T>(v));
    upload<T>(queue, tensor, elements);
  });
  return tensor;
}

std::vector<double> doubles(Queue& queue, const Tensor& tensor) {
  return with_type(tensor.dtype(), [&]<class T>(T) {
    std::vector<double> values;
    for (const T v : fetch<T>(queue, tensor)) values.push_back(to_double(v));
    return values;
  });
}

std::vector<double> rounded(std::span<const double> values, Dtype dtype) {
  return with_type(dtype, [&]<class T>(T) {
    std::vector<double> result;
    for (const auto v : values) result.push_back(to_double(from_double<T>(v)));
    return result;
  });
}

std::vector<double> uniform(std::uint64_t seed, std::string_view name, std::int64_t n, double low, double high) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(n));
  RandomStream(seed, name).words(0, words);
  std::vector<double> values;
  for (const auto w : words) values.push_back(low + (high - low) * (w * 0x1p-32));
  return values;
}

std::vector<double> scattered(std::uint64_t seed, std::string_view name, std::int64_t n, int spread) {
  auto values = uniform(seed, name, n);
  const auto exponents = uniform(seed, std::string(name) + ".exponent", n, -spread, spread + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(std::floor(exponents[i])));
  }
  return values;
}

}  // namespace shardproof::testing
