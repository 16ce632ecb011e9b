// SPDX-License-Identifier: Apache-2.0
// Overflow flags: raised by a kernel's Fixed outputs, carried from inputs to outputs (kernels/core/queue.hpp).
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/testing/testing.hpp"

namespace shardproof {
namespace {

struct Overflow : ::testing::Test {
  Device device;
  ImmediateQueue queue{device};

  Tensor zeros(std::string name, Dims dims, Dtype dtype = Dtype::fixed) {
    Tensor t(queue, {std::move(name), dtype, dims, Category::workspace});
    zero(queue, t);
    return t;
  }
  void write(const Tensor& t, std::int64_t raw) {
    queue.submit("write", [=](KernelScope& s) { std::fill_n(s.write<Fixed>(t), t.elements(), Fixed{raw}); });
  }
  bool flag(const Tensor& t) { return fetch_overflow(queue, t); }
};

TEST_F(Overflow, AnOutputOutOfRangeRaisesItsFlag) {
  const Tensor t = zeros("t", {3, 2});
  EXPECT_FALSE(flag(t));
  write(t, fixed_limit - 1);
  EXPECT_FALSE(flag(t));
  EXPECT_FALSE(device.overflow());
  write(t, fixed_limit);
  EXPECT_TRUE(flag(t));
  EXPECT_TRUE(device.overflow());
  // The flag explains the element, so it is no poison ...
  EXPECT_EQ(fetch<Fixed>(queue, t)[0].raw, fixed_limit);
  // ... and a tensor that is wholly written anew is good again; the device remembers until it is told.
  write(t, 1);
  EXPECT_FALSE(flag(t));
  EXPECT_TRUE(device.overflow());
  device.clear_overflow();
  EXPECT_FALSE(device.overflow());
}

TEST_F(Overflow, OneElementIsEnough) {
  const Tensor t = zeros("t", {2500});
  queue.submit("k", [&](KernelScope& s) { s.update<Fixed>(t)[2499].raw = fixed_invalid; });
  EXPECT_TRUE(flag(t));
}

TEST_F(Overflow, GoesFromInputsToOutputs) {
  const Tensor bad = zeros("bad", {2}), good = zeros("good", {2}), first = zeros("first", {2});
  const Tensor mask = zeros("mask", {2}, Dtype::u8), state = zeros("state", {2}, Dtype::f64);
  write(bad, fixed_invalid);
  device.clear_overflow();
  const auto combine = [&](const Tensor& input) {
    queue.submit("combine", [=](KernelScope& s) {
      s.write<Fixed>(first)[0] = Fixed{0};
      s.write<std::uint8_t>(mask)[0] = 0;
      s.update<double>(state)[0] = 0;
      s.read<Fixed>(input);
    });
  };
  combine(good);
  EXPECT_FALSE(flag(first) || flag(mask) || flag(state) || device.overflow());
  combine(bad);
  EXPECT_TRUE(flag(first) && flag(mask) && flag(state) && device.overflow());
  EXPECT_FALSE(flag(good));
  // `state` was updated: what it holds came from an overflow, so its flag stays. `first` is written anew.
  combine(good);
  EXPECT_TRUE(flag(state));
}

TEST_F(Overflow, ReadingAloneRaisesNothing) {
  const Tensor bad = zeros("bad", {2});
  write(bad, fixed_invalid);
  device.clear_overflow();
  fetch<Fixed>(queue, bad);
  fetch_overflow(queue, bad);
  EXPECT_FALSE(device.overflow());
}

TEST_F(Overflow, AKernelMayRaiseIt) {
  const Tensor t = zeros("t", {2}, Dtype::f64);
  queue.submit("k", [&](KernelScope& s) {
    s.write<double>(t)[0] = 0;
    s.raise_overflow();
  });
  EXPECT_TRUE(flag(t));
  EXPECT_TRUE(device.overflow());
  device.clear_overflow();
  queue.submit("k", [](KernelScope& s) { s.raise_overflow(); });
  EXPECT_TRUE(device.overflow());
}

TEST_F(Overflow, APartIsNotTheWhole) {
  const Tensor t = zeros("t", {4, 2});
  write(t.rows(1, 1), fixed_invalid);
  EXPECT_TRUE(flag(t));
  EXPECT_TRUE(flag(t.rows(3, 1)));  // one flag per allocation
  write(t.rows(0, 1), 1);
  write(t.rows(1, 3), 1);
  EXPECT_TRUE(flag(t)) << "writing parts never lowers the flag";
  write(t.reshaped({8}), 1);
  EXPECT_FALSE(flag(t));
  // A part is judged alone: the other rows are not scanned.
  queue.submit("k", [&](KernelScope& s) { s.accumulate<Fixed>(t)[7].raw = fixed_invalid; });
  EXPECT_FALSE(flag(t));
  write(t.rows(0, 1), 1);
  EXPECT_FALSE(flag(t));
}

TEST_F(Overflow, AnUnfinishedSumIsNoOverflow) {
  const Tensor t = zeros("t", {2});
  queue.submit("k", [&](KernelScope& s) { s.accumulate<Fixed>(t)[1].raw = fixed_limit + 5; });
  EXPECT_FALSE(flag(t));
  // Adding to a flagged sum keeps its flag, and a flagged input raises it.
  const Tensor bad = zeros("bad", {2});
  write(bad, fixed_invalid);
  queue.submit("k", [&](KernelScope& s) {
    s.read<Fixed>(bad);
    s.accumulate<Fixed>(t)[1].raw = 0;
  });
  EXPECT_TRUE(flag(t));
  queue.submit("k", [&](KernelScope& s) { s.accumulate<Fixed>(t)[0].raw = 0; });
  EXPECT_TRUE(flag(t));
  zero(queue, t);
  EXPECT_FALSE(flag(t));
}

TEST_F(Overflow, CopiesGoAlong) {
  const Tensor bad = zeros("bad", {2}), to = zeros("to", {4});
  write(bad, fixed_invalid);
  copy(queue, bad, to.reshaped({2, 2}).rows(1, 1));
  EXPECT_TRUE(flag(to));
  EXPECT_EQ(fetch<Fixed>(queue, to)[3].raw, fixed_invalid);
}

TEST_F(Overflow, AFailedKernelLeavesFlagsAlone) {
  const Tensor t = zeros("t", {2});
  const auto fail = [&](KernelScope& s) {
    s.write<Fixed>(t)[0].raw = 0;
    s.raise_overflow();
    throw NotSupported("no");
  };
  EXPECT_THROW(queue.submit("k", fail), NotSupported);
  EXPECT_FALSE(flag(t));
  EXPECT_FALSE(device.overflow());
}

}  // namespace
}  // namespace shardproof
