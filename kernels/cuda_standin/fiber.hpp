// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {

/// A function on a stack of its own; it and its owner, on one thread of the host, take turns.
class Fiber {
 public:
  Fiber();
  /// A function that is suspended is dropped; its locals are not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// What the next resume() starts; must outlive its run. The last one has ended.
  void start(const std::function<void()>& f);
  /// Runs the function until it calls suspend() or ends; throws what it ended by.
  void resume();
  /// Called by the function: back to the owner.
  void suspend();
  bool ended() const { return ended_; }

 private:
  static void entry();
  void leave(void** kept);

  sanitizer::Stack stack_, owner_stack_;
  void *context_ = nullptr, *owner_ = nullptr;
  const std::function<void()>* function_ = nullptr;
  std::exception_ptr error_;
  bool ended_ = true;
};

}  // namespace shardproof::cuda_standin
