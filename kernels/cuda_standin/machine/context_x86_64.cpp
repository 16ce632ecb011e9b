// SPDX-License-Identifier: Apache-2.0
// The System V ABI's callee-saved registers, on the stack that is left. Control words of the floating-point unit are
// one thread's, and no kernel changes them.
#include <cstdint>

#include "kernels/cuda_standin/context.hpp"

asm(R"(
.text
.type shardproof_switch_context,@function
shardproof_switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size shardproof_switch_context,.-shardproof_switch_context
)");
extern "C" void shardproof_switch_context(void** from, void* to);

namespace shardproof::cuda_standin {

void* make_context(std::byte* bottom, std::size_t bytes, void (*entry)()) {
  constexpr int saved_registers = 6;
  auto** top = reinterpret_cast<void**>((reinterpret_cast<std::uintptr_t>(bottom) + bytes) & ~std::uintptr_t{15});
  *--top = nullptr;  // where entry() would return to: it starts, as after a call, 8 bytes below a multiple of 16
  *--top = reinterpret_cast<void*>(entry);
  for (int k = 0; k < saved_registers; ++k) *--top = nullptr;
  return top;
}

void switch_context(void** from, void* to) { shardproof_switch_context(from, to); }

}  // namespace shardproof::cuda_standin
