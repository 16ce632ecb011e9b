// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <new>

#include <ucontext.h>

#include "kernels/core/errors.hpp"
#include "kernels/cuda_standin/context.hpp"

namespace shardproof::cuda_standin {

void* make_context(std::byte* bottom, std::size_t bytes, void (*entry)()) {
  // The context lies at the top of its own stack.
  const auto top = (reinterpret_cast<std::uintptr_t>(bottom) + bytes - sizeof(ucontext_t)) & ~std::uintptr_t{63};
  auto* const context = new (reinterpret_cast<void*>(top)) ucontext_t;
  if (getcontext(context) != 0) throw InternalError("getcontext failed");
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = top - reinterpret_cast<std::uintptr_t>(bottom);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

void switch_context(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

}  // namespace shardproof::cuda_standin
