// SPDX-License-Identifier: Apache-2.0
// What a build's sanitizer must be told of stacks and of order. One of machine/sanitizer_*.cpp is
// compiled.
#pragma once

#include <cstddef>
#include <mutex>

namespace shardproof::cuda_standin::sanitizer {

enum class Kind { none, address, thread };
Kind kind();

/// A stack that fibers run on.
struct Stack {
  void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fiber = nullptr;  ///< the thread sanitizer's name for it
};
/// Before its first use and after its last.
void open(Stack& stack);
void close(Stack& stack);
/// Frames that were never left are forgotten: another function starts on it.
void clear(Stack& stack);
/// The stack that calls, as far as it is known.
Stack running();
/// Just before a switch. `kept` takes what belongs to the stack that is left; nullptr: it has ended.
void leave(void** kept, const Stack& to);
/// Just after a switch: `kept` is what leave() put there, nullptr on a new stack. Completes `from`, if asked, with what
/// was not known of the stack that was left.
void arrive(void* kept, Stack* from);

/// The order that CUDA promises, and nothing else: what came before release(p) came before what follows acquire(p).
void release(void* p);
void acquire(void* p);

/// While it lives, what this thread locks, reads and writes is not seen: the locks of the stand-in itself would hide
/// that the program has none.
class Unseen {
 public:
  Unseen();
  ~Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

class UnseenLock {
 public:
  explicit UnseenLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  const Unseen unseen_;
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace shardproof::cuda_standin::sanitizer
