// SPDX-License-Identifier: Apache-2.0
// Machine contexts: machine/context_x86_64.cpp, and elsewhere context_posix.cpp, whose switches cost two system calls
// each.
#pragma once

#include <cstddef>

namespace shardproof::cuda_standin {

/// A context on the memory [bottom, bottom + bytes), its stack, that starts with entry(), which must not return.
void* make_context(std::byte* bottom, std::size_t bytes, void (*entry)());
/// Keeps the running context in *from and goes on with `to`, which is then spent.
void switch_context(void** from, void* to);

}  // namespace shardproof::cuda_standin
