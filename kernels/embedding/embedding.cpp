// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/fixed_row.hpp"
#include "kernels/core/require.hpp"

namespace shardproof::embedding {

namespace {

void require_tokens(const std::int32_t* tokens, std::int64_t n, std::int64_t vocab) {
  for (std::int64_t r = 0; r < n; ++r) {
    if (tokens[r] >= 0 && tokens[r] < vocab) continue;
    throw DeviceError("embedding: token " + std::to_string(tokens[r]) + " at row " + std::to_string(r) +
                      " is outside 0.." + std::to_string(vocab - 1));
  }
}

/// Rows first .. first+rows-1 of a table.
struct Slice {
  std::int64_t first, rows;
  /// The token's row here; negative: none.
  std::int64_t row_of(std::int32_t token) const {
    const auto row = token - first;
    return row < rows ? row : -1;
  }
};

void require_slice(const char* kernel, const Slice& slice, std::int64_t vocab) {
  if (slice.first >= 0 && slice.rows <= vocab - slice.first) return;
  throw InternalError(std::string(kernel) + ": no rows " + std::to_string(slice.first) + "+" +
                      std::to_string(slice.rows) + " in a table of " + std::to_string(vocab));
}

/// sum[row_of(r)] += dy[r] for all rows r that have one. A row of the sum takes at most `most` rows of dy.
template <class S, class RowOf>
void add_rows(KernelScope& scope, std::int64_t n, std::int64_t hidden, const S* dy, std::int64_t most,
              const Accumulator& sum, RowOf row_of) {
  const HostTeam<row_lanes<S>> team;
  double bound = 0;
  if constexpr (std::is_same_v<S, Fixed>) {
    const auto top = fold_magnitude(team, n * hidden, [=](std::int64_t i) { return dy[i]; });
    bound = static_cast<double>(most) * (static_cast<double>(top) * 0x1p-40);
  }
  AccumulatorView<S> view(scope, sum, bound);
  for (std::int64_t r = 0; r < n; ++r) {
    const std::int64_t row = row_of(r), first = row * hidden;
    if (row < 0) continue;
    const S* const from = dy + r * hidden;
    if (view.wide()) {
      for (std::int64_t c = 0; c < hidden; ++c) view.add(first + c, term(from[c]));
    } else {
      S* const to = view.data() + first;
      team.each(hidden, [=](std::int64_t c) {
        if constexpr (std::is_same_v<S, Fixed>) {
          to[c].raw += from[c].raw;
        } else {
          to[c] += from[c];
        }
      });
    }
  }
}

/// How often the most frequent token of the slice occurs.
std::int64_t highest_count(KernelScope& scope, const std::int32_t* tokens, std::int64_t n, const Slice& slice) {
  auto* const counts = scope.scratch<std::int64_t>(slice.rows);
  std::fill_n(counts, slice.rows, 0);
  std::int64_t most = 0;
  for (std::int64_t r = 0; r < n; ++r) {
    if (const auto row = slice.row_of(tokens[r]); row >= 0) most = std::max(most, ++counts[row]);
  }
  return most;
}

/// y = a + b of n elements; a nullptr adds nothing.
template <class S>
void add(const S* a, const S* b, S* y, std::int64_t n) {
  if (a != nullptr && b != nullptr) {
    HostTeam<row_lanes<S>>{}.each(n, [=](std::int64_t c) { y[c] = add_in_range(a[c], b[c]); });
  } else if (a != nullptr || b != nullptr) {
    std::copy_n(a != nullptr ? a : b, n, y);
  } else {
    std::fill_n(y, n, S{});
  }
}

}  // namespace

void forward(Queue& queue, const Tensor& tokens, const Tensor& token_weight, std::int64_t first_token,
             std::int64_t vocab, const Tensor& position_weight, const Tensor& y) {
  constexpr auto name = "embedding_forward";
  const Slice slice{first_token, token_weight.dim(0)};
  const auto hidden = token_weight.dim(1), sequence = position_weight ? position_weight.dim(0) : 0;
  require_slice(name, slice, vocab);
  if (position_weight) require_elements(name, position_weight, sequence * hidden);
  require_elements(name, y, tokens.elements() * hidden);
  dispatch(y.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const auto* const ids = scope.read<std::int32_t>(tokens);
      const S* const token_rows = scope.read<S>(token_weight);
      const S* const position_rows = position_weight ? scope.read<S>(position_weight) : nullptr;
      S* const out = scope.write<S>(y);
      require_tokens(ids, tokens.elements(), vocab);
      for (std::int64_t r = 0; r < tokens.elements(); ++r) {
        const auto row = slice.row_of(ids[r]);
        add(row >= 0 ? token_rows + row * hidden : nullptr,
            position_rows != nullptr ? position_rows + r % sequence * hidden : nullptr, out + r * hidden, hidden);
      }
    });
  });
}

void backward_weight(Queue& queue, const Tensor& tokens, const Tensor& dy, std::int64_t first_token, std::int64_t vocab,
                     std::int64_t sequence, const Accumulator& dtoken, const Accumulator& dposition) {
  constexpr auto name = "embedding_backward_weight";
  const auto n = tokens.elements();
  const auto hidden = dtoken ? dtoken.dims().at(1) : dposition ? dposition.dims().at(1) : 0;
  const Slice slice{first_token, dtoken ? dtoken.dims().at(0) : 0};
  require_slice(name, slice, vocab);
  if (dtoken || dposition) require_elements(name, dy, n * hidden);
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const auto* const ids = scope.read<std::int32_t>(tokens);
      const S* const gradient = scope.read<S>(dy);
      require_tokens(ids, n, vocab);
      if (dtoken) {
        const auto most = highest_count(scope, ids, n, slice);
        add_rows(scope, n, hidden, gradient, most, dtoken, [=](std::int64_t r) { return slice.row_of(ids[r]); });
      }
      if (dposition) {
        const auto most = (n + sequence - 1) / sequence;
        add_rows(scope, n, hidden, gradient, most, dposition, [=](std::int64_t r) { return r % sequence; });
      }
    });
  });
}

}  // namespace shardproof::embedding
