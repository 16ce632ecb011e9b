// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/fiber.hpp"

#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/core/errors.hpp"
#include "kernels/cuda_standin/context.hpp"

namespace shardproof::cuda_standin {

namespace {

/// Room for the frames of sanitizers; what is not touched takes no memory.
constexpr std::size_t stack_bytes = std::size_t{256} << 10;

thread_local Fiber* entering = nullptr;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Fiber::Fiber() {
  // The lowest page stays closed: a stack that grows into it ends the program instead of another stack's contents.
  const auto bytes = stack_bytes + page_bytes();
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory("the system has no memory for a CUDA thread's stack");
  stack_.bottom = static_cast<std::byte*>(memory) + page_bytes();
  stack_.bytes = stack_bytes;
  if (mprotect(stack_.bottom, stack_.bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, bytes);
    throw OutOfMemory("the system has no memory for a CUDA thread's stack");
  }
  sanitizer::open(stack_);
}

Fiber::~Fiber() {
  sanitizer::close(stack_);
  munmap(static_cast<std::byte*>(stack_.bottom) - page_bytes(), stack_.bytes + page_bytes());
}

void Fiber::start(const std::function<void()>& f) {
  function_ = &f;
  ended_ = false;
  sanitizer::clear(stack_);
  context_ = make_context(static_cast<std::byte*>(stack_.bottom), stack_.bytes, &Fiber::entry);
}

void Fiber::resume() {
  entering = this;
  owner_stack_ = sanitizer::running();
  void* kept = nullptr;
  sanitizer::leave(&kept, stack_);
  switch_context(&owner_, context_);
  sanitizer::arrive(kept, nullptr);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::suspend() {
  void* kept = nullptr;
  leave(&kept);
  sanitizer::arrive(kept, &owner_stack_);
}

void Fiber::leave(void** kept) {
  sanitizer::leave(kept, owner_stack_);
  switch_context(&context_, owner_);
}

void Fiber::entry() {
  Fiber& fiber = *entering;
  sanitizer::arrive(nullptr, &fiber.owner_stack_);
  try {
    (*fiber.function_)();
  } catch (...) {
    fiber.error_ = std::current_exception();
  }
  fiber.ended_ = true;
  fiber.leave(nullptr);
  std::terminate();
}

}  // namespace shardproof::cuda_standin
