// SPDX-License-Identifier: Apache-2.0
#include "reference/embedding.hpp"

namespace shardproof::reference {

template <class S>
Array<S> embed(Arithmetic<S>& arithmetic, std::span<const std::int32_t> tokens, const Array<S>& token_embedding,
               const Array<S>& position_embedding) {
  Array<S> y(std::ssize(tokens), token_embedding.columns());
  for (std::int64_t i = 0; i < y.rows(); ++i) {
    for (std::int64_t c = 0; c < y.columns(); ++c) {
      y[i][c] = arithmetic.add(token_embedding[tokens[i]][c], position_embedding[i][c]);
    }
  }
  return y;
}

template <class S>
void embed_weight(std::span<const std::int32_t> tokens, const Array<S>& dy, Array<Sum<S>>& token_embedding,
                  Array<Sum<S>>& position_embedding) {
  for (std::int64_t i = 0; i < dy.rows(); ++i) {
    for (std::int64_t c = 0; c < dy.columns(); ++c) {
      token_embedding[tokens[i]][c] += term(dy[i][c]);
      position_embedding[i][c] += term(dy[i][c]);
    }
  }
}

#define INSTANTIATE(S)                                                                                         \
  template Array<S> embed<S>(Arithmetic<S>&, std::span<const std::int32_t>, const Array<S>&, const Array<S>&); \
  template void embed_weight<S>(std::span<const std::int32_t>, const Array<S>&, Array<Sum<S>>&, Array<Sum<S>>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
