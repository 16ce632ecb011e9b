// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {

/// What `parse` makes of the text of a file. Throws BadInput: each of its findings with the file's name in front.
template <class Parse>
auto parse_file(const std::string& path, const Parse& parse, std::uintmax_t most_bytes = std::uintmax_t{1} << 28) {
  const std::string text = read_file(path, most_bytes);
  try {
    return parse(std::string_view(text));
  } catch (const BadInput& error) {
    std::string named = path + ": ";
    for (const char c : std::string_view(error.what())) {
      named += c;
      if (c == '\n') named += path + ": ";
    }
    throw BadInput(named);
  }
}

}  // namespace shardproof::harness
