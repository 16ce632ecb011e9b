// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/core/dtype.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

/// Calls f(T{}) with the dtype's element type; throws NotSupported for a dtype that ranks do not exchange.
template <class F>
decltype(auto) with_element(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::fixed: return f(Fixed{});
    case Dtype::f64: return f(double{});
    case Dtype::f32: return f(float{});
    case Dtype::i64: return f(std::int64_t{});
    case Dtype::i32: return f(std::int32_t{});
    case Dtype::u8: return f(std::uint8_t{});
    default: throw NotSupported("ranks exchange no " + std::string(name_of(dtype)));
  }
}

}  // namespace shardproof::comm
