// SPDX-License-Identifier: Apache-2.0
// Where heads, rows and visible keys lie.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.hpp"
#include "kernels/core/fixed_row.hpp"
#include "kernels/matmul/gemm.hpp"

namespace shardproof::attention {

/// Queries are taken in blocks of so many: what a block computes above the diagonal is wasted, what it packs is shared.
inline constexpr std::int64_t block_rows = 64;

/// first..end-1
struct Range {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
};

/// A shape whose defaults are filled in.
struct Layout : Shape {
  explicit Layout(const Shape& shape) : Shape(shape) {
    if (total_heads == 0) total_heads = heads;
    if (group == 0) group = kv_heads > 0 ? heads / kv_heads : 1;
  }

  /// The key head that head h reads.
  std::int64_t key_head(std::int64_t h) const { return (first_head + h) / group - first_head / group; }
  /// The heads that read key head g: first..end-1.
  Range members(std::int64_t g) const {
    const auto first = (first_head / group + g) * group - first_head;
    return {std::max<std::int64_t>(0, first), std::min(heads, first + group)};
  }
  std::int64_t hidden() const { return heads * head_size; }
  std::int64_t kv_hidden() const { return kv_heads * head_size; }
  /// Of the first element that head h has at position i of sample b, in [B*T, heads*head_size] and the kv form.
  std::int64_t query_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return (b * sequence + i) * hidden() + h * head_size;
  }
  std::int64_t key_at(std::int64_t b, std::int64_t g, std::int64_t j) const {
    return (b * sequence + j) * kv_hidden() + g * head_size;
  }
  /// Of row i in [B, heads, T, T], and of the same row in [B, total_heads, T, T].
  std::int64_t row_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return ((b * heads + h) * sequence + i) * sequence;
  }
  std::int64_t logical_row_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return ((b * total_heads + first_head + h) * sequence + i) * sequence;
  }
  /// What queries begin..end-1 may see, documents aside.
  Range keys(std::int64_t begin, std::int64_t end) const {
    return {window > 0 ? std::max<std::int64_t>(0, begin - window + 1) : 0, end};
  }
};

/// R(1/sqrt(head_size))
template <class S>
S score_scale(std::int64_t head_size) {
  return round_to<S>(Real<S>(1) / std::sqrt(static_cast<Real<S>>(head_size)));
}

template <class S>
using Team = HostTeam<row_lanes<S>>;

/// Calls f(A{}) with the way in which a row multiplies by FMA if `fits`, by the definition if not (always but for
/// Fixed).
template <class S, class F>
void with_arithmetic(bool fits, F f) {
  if constexpr (std::is_same_v<S, Fixed>) {
    if (fits) return f(ByFma{});
  }
  f(Defined<S>{});
}

/// The largest raw magnitude of n numbers; 0 but for Fixed.
template <class S>
std::uint64_t greatest([[maybe_unused]] const S* x, [[maybe_unused]] std::int64_t n) {
  if constexpr (std::is_same_v<S, Fixed>) {
    return fold_magnitude(Team<S>{}, n, [=](std::int64_t i) { return x[i]; });
  } else {
    return 0;
  }
}

/// Those of n keys that a query of document `own` does not see because they are of other documents.
class Hidden {
 public:
  Hidden(const std::int32_t* document, std::int64_t n, std::int32_t own) : document_(document), n_(n), own_(own) {
    std::int32_t difference = 0;
    for (std::int64_t j = 0; j < n; ++j) difference |= document[j] ^ own;
    any_ = difference != 0;
  }
  template <class T>
  void set(T* row, T value) const {
    if (!any_) return;
    for (std::int64_t j = 0; j < n_; ++j) row[j] = document_[j] == own_ ? row[j] : value;
  }

 private:
  const std::int32_t* document_;
  std::int64_t n_;
  std::int32_t own_;
  bool any_;
};

/// The least and the greatest document of a range of positions.
struct DocumentSpan {
  std::int32_t least, greatest;

  static DocumentSpan of(const std::int32_t* document, Range range) {
    DocumentSpan span{document[range.first], document[range.first]};
    for (auto i = range.first + 1; i < range.end; ++i) {
      span.least = std::min(span.least, document[i]);
      span.greatest = std::max(span.greatest, document[i]);
    }
    return span;
  }
  /// Where they do not, no position of one sees any of the other.
  bool meets(DocumentSpan other) const { return least <= other.greatest && other.least <= greatest; }
  bool is_one_with(DocumentSpan other) const {
    return least == greatest && other.least == least && other.greatest == least;
  }
};

}  // namespace shardproof::attention
