// SPDX-License-Identifier: Apache-2.0
#include "harness/csv.hpp"

namespace shardproof::harness {

std::string csv_field(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != '\0') out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out.find_first_of("\",\r\n") == out.npos ? out : "\"" + out + "\"";
}

}  // namespace shardproof::harness
