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

/// sum[row_of(r)] += dy[r] for all rows r. A row of the sum takes at most `most` rows of dy.
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
    const std::int64_t first = row_of(r) * hidden;
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

/// How often the most frequent token occurs.
std::int64_t highest_count(KernelScope& scope, const std::int32_t* tokens, std::int64_t n, std::int64_t vocab) {
  auto* const counts = scope.scratch<std::int64_t>(vocab);
  std::fill_n(counts, vocab, 0);
  std::int64_t most = 0;
  for (std::int64_t r = 0; r < n; ++r) most = std::max(most, ++counts[tokens[r]]);
  return most;
}

}  // namespace

void forward(Queue& queue, const Tensor& tokens, const Tensor& token_weight, const Tensor& position_weight,
             const Tensor& y) {
  const auto vocab = token_weight.dim(0), hidden = token_weight.dim(1), sequence = position_weight.dim(0);
  require_elements("embedding_forward", position_weight, sequence * hidden);
  require_elements("embedding_forward", y, tokens.elements() * hidden);
  dispatch(y.dtype(), [&]<class S>(S) {
    queue.submit("embedding_forward", [=](KernelScope& scope) {
      const auto* const ids = scope.read<std::int32_t>(tokens);
      const S* const token_rows = scope.read<S>(token_weight);
      const S* const position_rows = scope.read<S>(position_weight);
      S* const out = scope.write<S>(y);
      require_tokens(ids, tokens.elements(), vocab);
      for (std::int64_t r = 0; r < tokens.elements(); ++r) {
        const S *const a = token_rows + ids[r] * hidden, *const b = position_rows + r % sequence * hidden;
        S* const to = out + r * hidden;
        HostTeam<row_lanes<S>>{}.each(hidden, [=](std::int64_t c) { to[c] = add_in_range(a[c], b[c]); });
      }
    });
  });
}

void backward_weight(Queue& queue, const Tensor& tokens, const Tensor& dy, std::int64_t sequence,
                     const Accumulator& dtoken, const Accumulator& dposition) {
  const auto n = tokens.elements();
  const auto hidden = dtoken ? dtoken.dims().at(1) : dposition ? dposition.dims().at(1) : 0;
  if (dtoken || dposition) require_elements("embedding_backward_weight", dy, n * hidden);
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit("embedding_backward_weight", [=](KernelScope& scope) {
      const auto* const ids = scope.read<std::int32_t>(tokens);
      const S* const gradient = scope.read<S>(dy);
      if (dtoken) {
        const auto vocab = dtoken.dims().at(0);
        require_tokens(ids, n, vocab);
        const auto most = highest_count(scope, ids, n, vocab);
        add_rows(scope, n, hidden, gradient, most, dtoken, [=](std::int64_t r) { return std::int64_t{ids[r]}; });
      }
      if (dposition) {
        const auto most = (n + sequence - 1) / sequence;
        add_rows(scope, n, hidden, gradient, most, dposition, [=](std::int64_t r) { return r % sequence; });
      }
    });
  });
}

}  // namespace shardproof::embedding
