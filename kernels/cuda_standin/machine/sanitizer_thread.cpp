// SPDX-License-Identifier: Apache-2.0
// Every CUDA thread is a fiber of the thread sanitizer. Switches order nothing: barriers alone do, so that a missing
// one is reported even where the values are right.
#include <sanitizer/tsan_interface.h>

#include "kernels/cuda_standin/sanitizer.hpp"

// Exported by the run-time library, and declared in no header of it.
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace shardproof::cuda_standin::sanitizer {

Kind kind() { return Kind::thread; }
void open(Stack& stack) { stack.fiber = __tsan_create_fiber(0); }
void close(Stack& stack) {
  // What ran on it, and may not have ended, comes before what follows: a switch of flags 0 orders.
  void* const own = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(stack.fiber, __tsan_switch_to_fiber_no_sync);
  __tsan_switch_to_fiber(own, 0);
  __tsan_destroy_fiber(stack.fiber);
}
void clear(Stack&) {}
Stack running() { return {nullptr, 0, __tsan_get_current_fiber()}; }
void leave(void**, const Stack& to) { __tsan_switch_to_fiber(to.fiber, __tsan_switch_to_fiber_no_sync); }
void arrive(void*, Stack*) {}
void release(void* p) { __tsan_release(p); }
void acquire(void* p) { __tsan_acquire(p); }

Unseen::Unseen() {
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
Unseen::~Unseen() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

}  // namespace shardproof::cuda_standin::sanitizer
