// SPDX-License-Identifier: Apache-2.0
#include "impl/step/saved_tensors.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof::step {
namespace {

struct SavedTensorsTest : testing::Test {
  Device device;
  ImmediateQueue queue{device};
  std::int64_t bytes() { return device.memory().current(Category::activation); }
  Tensor make(const char* name) { return {queue, {name, Dtype::f32, {4}, Category::activation}}; }
};

TEST_F(SavedTensorsTest, MemoryGoesWithTheLastDeclaredReader) {
  SavedTensors saved;
  saved.keep("i", make("i"), Readers::input);
  saved.keep("w", make("w"), Readers::weight);
  saved.keep("both", make("both"), Readers::both);
  EXPECT_EQ(bytes(), 48);
  saved.release_after(Readers::input);
  EXPECT_EQ(bytes(), 32);
  EXPECT_THROW(saved["i"], InternalError);
  EXPECT_EQ(saved["both"].name(), "both");
  saved.release_after(Readers::weight);
  EXPECT_EQ(bytes(), 0);
  EXPECT_TRUE(saved.empty());
}

TEST_F(SavedTensorsTest, AReaderThatDidNotRunIsSaid) {
  SavedTensors saved;
  saved.require_released();
  saved.keep("x", make("x"), Readers::input);
  saved.keep("y", make("y"), Readers::weight);
  saved.release_after(Readers::input);
  try {
    saved.require_released();
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "saved tensor 'y' has a reader that did not run");
  }
  saved.release_after(Readers::weight);
  saved.require_released();
}

TEST_F(SavedTensorsTest, ANameIsKeptOnceAndMustBeThere) {
  SavedTensors saved;
  saved.keep("x", make("x"), Readers::both);
  EXPECT_THROW(saved.keep("x", make("x"), Readers::both), InternalError);
  EXPECT_THROW(saved["y"], InternalError);
  EXPECT_FALSE(saved.find("y"));
}

}  // namespace
}  // namespace shardproof::step
