// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardproof::workload {

/// The parts with the separator between them.
template <class Parts>
std::string joined(const Parts& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != &*parts.begin()) text += separator;
    text += part;
  }
  return text;
}

/// At most 60 bytes of UTF-8, for a message: what is longer ends in "...", between characters.
std::string shortened(std::string text);

/// Whether `*` (any run of characters, also none) in the pattern can be filled so that it is the name.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace shardproof::workload
