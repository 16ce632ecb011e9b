// SPDX-License-Identifier: Apache-2.0
// For libFuzzer: the first byte chooses the parser. Anything but a value or a refusal is a crash.
#include <cstdint>

#include "harness/fuzz/parsers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  shardproof::harness::fuzz::feed(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
