// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/dtype.hpp"

#include <string>

#include "kernels/core/errors.hpp"

namespace shardproof {

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fixed:
    case Dtype::f64:
    case Dtype::i64: return 8;
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::bf16:
    case Dtype::f16: return 2;
    case Dtype::u8: return 1;
  }
  throw InternalError("size_of: no such dtype");
}

std::string_view name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fixed: return "q23.40";
    case Dtype::f64: return "f64";
    case Dtype::f32: return "f32";
    case Dtype::bf16: return "bf16";
    case Dtype::f16: return "f16";
    case Dtype::i64: return "i64";
    case Dtype::i32: return "i32";
    case Dtype::u8: return "u8";
  }
  throw InternalError("name_of: no such dtype");
}

std::int64_t elements_of(const Dims& dims) {
  int128 product = 1;
  for (const auto d : dims) {
    if (d < 0) throw BadInput("a dimension is " + std::to_string(d) + "; it must be 0 or more");
    product *= d;
    if (product > int128{1} << 59) throw BadInput("a tensor of more than 2^59 elements");
  }
  return static_cast<std::int64_t>(product);
}

void refuse_scalar(Dtype dtype) {
  throw NotSupported(std::string(name_of(dtype)) + " is not the scalar of a track (q23.40, f64, f32)");
}

}  // namespace shardproof
