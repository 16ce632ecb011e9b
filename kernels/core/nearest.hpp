// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shardproof {

/// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours) to word, the first of
/// several; "" when there are no candidates.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// `unknown WHAT "WORD": did you mean "NEAREST"?`; where less than half of the letters agree, `...: legal are A, B`, if
/// they are few.
std::string unknown(std::string_view what, std::string_view word, std::span<const std::string> candidates);

}  // namespace shardproof
