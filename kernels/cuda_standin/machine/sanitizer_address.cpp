// SPDX-License-Identifier: Apache-2.0
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin::sanitizer {

Kind kind() { return Kind::address; }
void open(Stack&) {}
void close(Stack& stack) { clear(stack); }
// They have marked parts of it as out of bounds.
void clear(Stack& stack) { ASAN_UNPOISON_MEMORY_REGION(stack.bottom, stack.bytes); }
Stack running() { return {}; }

void leave(void** kept, const Stack& to) { __sanitizer_start_switch_fiber(kept, to.bottom, to.bytes); }

void arrive(void* kept, Stack* from) {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(kept, &bottom, &bytes);
  if (from == nullptr) return;
  from->bottom = const_cast<void*>(bottom);
  from->bytes = bytes;
}

void release(void*) {}
void acquire(void*) {}
Unseen::Unseen() = default;
Unseen::~Unseen() = default;

}  // namespace shardproof::cuda_standin::sanitizer
