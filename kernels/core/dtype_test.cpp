// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/dtype.hpp"

#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof {
namespace {

TEST(Dtype, SizesAndNames) {
  EXPECT_EQ(size_of(dtype_of<Fixed>()), sizeof(Fixed));
  EXPECT_EQ(size_of(dtype_of<float>()), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<std::int32_t>()), sizeof(std::int32_t));
  EXPECT_EQ(size_of(Dtype::bf16), 2u);
  EXPECT_EQ(size_of(Dtype::u8), 1u);
  EXPECT_EQ(name_of(Dtype::fixed), "q23.40");
}

TEST(Dtype, ElementsOf) {
  EXPECT_EQ(elements_of({}), 1);
  EXPECT_EQ(elements_of({3, 0, 7}), 0);
  EXPECT_EQ(elements_of({3, 5}), 15);
  EXPECT_EQ(elements_of({std::int64_t{1} << 59}), std::int64_t{1} << 59);
  EXPECT_THROW(elements_of({(std::int64_t{1} << 59) + 1}), BadInput);
  EXPECT_THROW(elements_of({std::int64_t{1} << 62, std::int64_t{1} << 62}), BadInput);
  EXPECT_THROW(elements_of({-1}), BadInput);
  EXPECT_THROW(elements_of({0, -1}), BadInput);
}

TEST(Dims, HoldEight) {
  Dims dims{3, 5};
  EXPECT_EQ(dims.size(), 2u);
  EXPECT_EQ(dims.back(), 5);
  EXPECT_NE(dims, (Dims{3}));
  EXPECT_NE(dims, (Dims{3, 5, 1}));
  dims[0] = 4;
  EXPECT_EQ(dims, (Dims{4, 5}));
  EXPECT_THROW(dims.at(2), std::out_of_range);
  EXPECT_THROW(Dims().back(), std::out_of_range);
  for (std::size_t i = dims.size(); i < Dims::most; ++i) dims.push_back(7);
  EXPECT_EQ(elements_of(dims), 20 * 7 * 7 * 7 * 7 * 7 * 7);
  EXPECT_THROW(dims.push_back(1), std::length_error);
}

TEST(Dtype, DispatchesTheScalarsOfTracks) {
  const auto dtype = [](auto s) { return dtype_of<decltype(s)>(); };
  for (const auto scalar : {Dtype::fixed, Dtype::f64, Dtype::f32}) EXPECT_EQ(dispatch(scalar, dtype), scalar);
  try {
    dispatch(Dtype::i32, dtype);
    FAIL();
  } catch (const NotSupported& error) {
    EXPECT_EQ(std::string(error.what()), "i32 is not the scalar of a track (q23.40, f64, f32)");
  }
}

}  // namespace
}  // namespace shardproof
