// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace shardproof::cuda_standin {

/// Device memory: NaN in every type until it is written. Under the address sanitizer each allocation has its exact
/// size; elsewhere guards around it show what was written past its ends.
class Memory {
 public:
  enum class Where { inside, outside, across };  ///< of one allocation; across: partly inside

  /// 256-byte aligned, as cudaMalloc's; nullptr where the system has no more.
  void* allocate(std::size_t bytes);
  /// Whether `p` is what allocate() gave.
  bool release(void* p);
  Where where(const void* p, std::size_t bytes) const;
  /// One sentence where a guard was written, else empty.
  std::string overrun() const;

 private:
  struct Allocation {
    std::size_t bytes;
    std::byte* memory;  // with its guards
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, Allocation> allocations_;
};

}  // namespace shardproof::cuda_standin
