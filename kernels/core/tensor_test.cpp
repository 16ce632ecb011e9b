// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/tensor.hpp"

#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

// The host reads elements through fetch() alone: nothing else that one might try compiles.
template <class T>
concept gives_elements = requires(T t) {
  t.data();
}
|| requires(T t) { t[0]; }
|| requires(T t) { *t; }
|| requires(T t) { t.begin(); }
|| requires(T t) { t.at(0); }
|| requires(T t) { t.storage_; }
|| requires(T t) { t.storage(); }
|| requires(T t) { t.offset_; };
static_assert(gives_elements<std::vector<double>>, "the concept must see elements where there are some");
static_assert(!gives_elements<Tensor>);
// ... and only a queue makes the scope through which kernels read.
static_assert(!std::is_constructible_v<KernelScope, Device&, std::string_view>);
static_assert(!std::is_copy_constructible_v<KernelScope>);
static_assert(!std::is_constructible_v<Tensor, Device&, TensorSpec>);
static_assert(std::is_constructible_v<Tensor, Queue&, TensorSpec>);

struct TensorTest : ::testing::Test {
  Device device{{.rank = Rank{2}}};
  ImmediateQueue queue{device};

  Tensor make(Dtype dtype, Dims dims, Space space = Space::device) {
    return {queue, {"activation", dtype, dims, Category::activation, space}};
  }
};

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

TEST_F(TensorTest, SaysWhatItIs) {
  const Tensor t = make(Dtype::f32, {3, 5, 2});
  EXPECT_EQ(t.name(), "activation");
  EXPECT_EQ(t.dtype(), Dtype::f32);
  EXPECT_EQ(t.dims(), (Dims{3, 5, 2}));
  EXPECT_EQ(t.elements(), 30);
  EXPECT_EQ(t.bytes(), 120);
  EXPECT_EQ(t.owner(), Rank{2});
  EXPECT_EQ(t.category(), Category::activation);
  EXPECT_EQ(t.space(), Space::device);
  EXPECT_FALSE(Tensor());
}

TEST_F(TensorTest, UploadsAndFetchesEveryDtype) {
  const std::vector<double> values{0, 1, 2, 3, 100, 255, 7};
  for (const auto dtype : {Dtype::fixed, Dtype::f64, Dtype::f32, Dtype::i64, Dtype::i32, Dtype::u8}) {
    const Tensor t = testing::make(queue, "t", {7}, values, dtype);
    EXPECT_EQ(testing::doubles(queue, t), values) << name_of(dtype);
    const Tensor other = make(dtype, {7, 1});
    copy(queue, t, other);
    EXPECT_EQ(testing::doubles(queue, other), values) << name_of(dtype);
    zero(queue, other);
    EXPECT_EQ(testing::doubles(queue, other), std::vector<double>(7)) << name_of(dtype);
  }
}

TEST_F(TensorTest, RefusesWrongSizes) {
  const Tensor t = make(Dtype::f64, {2, 3});
  EXPECT_THROW(upload<double>(queue, t, std::vector<double>(5)), InternalError);
  EXPECT_THROW(copy(queue, t, make(Dtype::f64, {7})), InternalError);
  EXPECT_THROW(make(Dtype::f64, {2, -1}), BadInput);
  EXPECT_THROW(make(Dtype::f64, {std::int64_t{1} << 31, std::int64_t{1} << 31}), BadInput);
  EXPECT_EQ(device.memory().current_total(), t.bytes());
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their allocators abort instead
TEST_F(TensorTest, ReportsWhenTheSystemHasNoMemory) {
  EXPECT_EQ(message_of([&] { make(Dtype::u8, {std::int64_t{1} << 59}); }),
            "rank 2: the system has no 576460752303423488 bytes for activation 'activation'");
  EXPECT_EQ(device.memory().current_total(), 0);
  EXPECT_NE(message_of([&] { queue.submit("k", [](KernelScope& s) { s.scratch<double>(std::int64_t{1} << 56); }); }),
            "no DeviceError");
  EXPECT_EQ(device.memory().current_total(), 0);
}
#endif

TEST_F(TensorTest, ViewsShareElements) {
  std::vector<double> values(12);
  std::iota(values.begin(), values.end(), 0);
  const Tensor t = testing::make(queue, "t", {4, 3}, values, Dtype::f64);
  const Tensor rows = t.rows(1, 2);
  EXPECT_EQ(rows.dims(), (Dims{2, 3}));
  EXPECT_EQ(testing::doubles(queue, rows), (std::vector<double>{3, 4, 5, 6, 7, 8}));
  const Tensor row = rows.rows(1, 1).reshaped({3});
  EXPECT_EQ(testing::doubles(queue, row), (std::vector<double>{6, 7, 8}));
  zero(queue, row);
  EXPECT_EQ(testing::doubles(queue, t), (std::vector<double>{0, 1, 2, 3, 4, 5, 0, 0, 0, 9, 10, 11}));
  EXPECT_EQ(t.rows(4, 0).elements(), 0);
  EXPECT_EQ(testing::doubles(queue, t.rows(4, 0)), std::vector<double>());

  EXPECT_THROW(t.rows(3, 2), InternalError);
  EXPECT_THROW(t.rows(-1, 2), InternalError);
  EXPECT_THROW(t.rows(1, -1), InternalError);
  EXPECT_THROW(t.rows(1, std::numeric_limits<std::int64_t>::max()), InternalError);
  EXPECT_THROW(t.reshaped({5}), InternalError);
  EXPECT_THROW(t.reshaped({}).rows(0, 1), InternalError);
}

TEST_F(TensorTest, EmptyTensorsWork) {
  const Tensor t = make(Dtype::fixed, {0, 5});
  EXPECT_EQ(testing::doubles(queue, t), std::vector<double>());  // no element, no poison
  EXPECT_EQ(t.rows(0, 0).elements(), 0);
  zero(queue, t);
  copy(queue, t, make(Dtype::fixed, {0}));
  EXPECT_FALSE(fetch_overflow(queue, t));
}

TEST_F(TensorTest, AKernelTouchesItsOwnRanksTensorsOnly) {
  Device other{{.rank = Rank{5}}};
  ImmediateQueue other_queue(other);
  const Tensor t = testing::make(queue, "t", {2}, std::vector<double>{1, 2}, Dtype::f64);
  EXPECT_EQ(message_of([&] { fetch<double>(other_queue, t); }),
            "rank 5: kernel fetch: tensor 't' belongs to rank 2; a kernel may touch its own rank's only");
  EXPECT_NE(message_of([&] { zero(other_queue, t); }), "no DeviceError");
  EXPECT_NE(message_of([&] { other_queue.submit("k", [&](KernelScope& s) { s.update<double>(t); }); }),
            "no DeviceError");
  EXPECT_NE(message_of([&] { other_queue.submit("k", [&](KernelScope& s) { s.accumulate<double>(t); }); }),
            "no DeviceError");
  // Another device of the same rank is another device all the same.
  Device twin{{.rank = Rank{2}}};
  ImmediateQueue twin_queue(twin);
  EXPECT_NE(message_of([&] { fetch<double>(twin_queue, t); }), "no DeviceError");
  EXPECT_EQ(fetch<double>(queue, t), (std::vector<double>{1, 2}));
}

TEST_F(TensorTest, KernelsRefuseHostSpace) {
  const Tensor t = make(Dtype::f64, {2}, Space::host);
  EXPECT_EQ(message_of([&] { fetch<double>(queue, t); }),
            "rank 2: kernel fetch: tensor 'activation' is in host space; copy it to the device first");
  EXPECT_NE(message_of([&] { zero(queue, t); }), "no DeviceError");
}

TEST_F(TensorTest, KernelsRefuseAnotherDtype) {
  const Tensor t = make(Dtype::f32, {2});
  EXPECT_EQ(message_of([&] { queue.submit("gelu", [&](KernelScope& s) { s.write<double>(t); }); }),
            "rank 2: kernel gelu: tensor 'activation' is f32, not f64");
  EXPECT_NE(message_of([&] { fetch<std::int32_t>(queue, t); }), "no DeviceError");
  EXPECT_NE(message_of([&] { queue.submit("gelu", [](KernelScope& s) { s.read<float>(Tensor()); }); }),
            "no DeviceError");
  // The bits of Fixed and i64 are of one kind, but no kernel may take one for the other.
  EXPECT_NE(message_of([&] { fetch<std::int64_t>(queue, make(Dtype::fixed, {0})); }), "no DeviceError");
}

TEST_F(TensorTest, ScratchIsAligned) {
  queue.submit("k", [](KernelScope& scope) {
    for (const std::int64_t n : {0, 1, 7, 1000}) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scope.scratch<std::uint8_t>(n)) % 64, 0u);
    }
  });
}

}  // namespace
}  // namespace shardproof
