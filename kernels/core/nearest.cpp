// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shardproof {
namespace {

constexpr std::size_t longest = 256;  // of a word's letters, so many are looked at

// As papers write names, "ZB-H1" for zb_h1.
char folded(char letter) {
  if (letter == '-') return '_';
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Optimal string alignment distance of folded letters.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) old[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, old[j - 1] + (folded(a[i - 1]) != folded(b[j - 1]))});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], older[j - 2] + 1);
    }
    std::swap(older, old);
    std::swap(old, row);
  }
  return old[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  word = word.substr(0, longest);
  const auto best = std::ranges::min_element(candidates, {}, [&](const std::string& c) { return distance(word, c); });
  return best == candidates.end() ? std::string() : *best;
}

std::string unknown(std::string_view what, std::string_view word, std::span<const std::string> candidates) {
  std::string text = "unknown " + std::string(what) + " \"" + std::string(word) + "\"";
  if (candidates.empty()) return text;
  const std::string best = nearest(word, candidates);
  if (2 * distance(word.substr(0, longest), best) <= std::max(word.size(), best.size()))
    return text + ": did you mean \"" + best + "\"?";
  constexpr std::size_t few = 16;
  if (candidates.size() > few) return text;
  text += ": legal are ";
  for (const auto& candidate : candidates) text += (&candidate == &candidates.front() ? "" : ", ") + candidate;
  return text;
}

}  // namespace shardproof
