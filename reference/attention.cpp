// SPDX-License-Identifier: Apache-2.0
#include "reference/attention.hpp"

#include <cmath>

#include "kernels/core/functions.hpp"

namespace shardproof::reference {
namespace {

/// R(1/sqrt(head_size))
template <class S>
S score_scale(Arithmetic<S>& arithmetic, std::int64_t head_size) {
  using C = Real<S>;
  return arithmetic.round(C(1) / std::sqrt(C(head_size)));
}

template <class S>
S dot(Arithmetic<S>& arithmetic, const S* a, const S* b, std::int64_t count) {
  Sum<S> sum{};
  for (std::int64_t u = 0; u < count; ++u) sum += product(a[u], b[u]);
  return arithmetic.finish(sum);
}

}  // namespace

template <class S>
void attend(Arithmetic<S>& arithmetic, const AttentionShape& shape, AttentionSaved<S>& saved) {
  const auto &query = saved.query, &key = saved.key, &value = saved.value;
  const auto& dropout = saved.dropout;
  const auto length = query.rows(), size = query.columns() / shape.heads;
  const S scale = score_scale(arithmetic, size);
  saved.probability = Array<S>(shape.heads * length, length);
  if (dropout.on()) saved.probability_dropped = Array<S>(shape.heads * length, length);
  saved.output = Array<S>(length, query.columns());
  std::vector<S> score(length), e(length);
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    const auto q0 = h * size, k0 = h / (shape.heads / shape.kv_heads) * size;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto row = h * length + i;
      for (std::int64_t j = 0; j <= i; ++j) {
        if (!shape.visible(i, j)) continue;
        score[j] = arithmetic.mul(dot(arithmetic, query[i] + q0, key[j] + k0, size), scale);
      }
      S max = score[i];
      for (std::int64_t j = 0; j <= i; ++j) {
        if (shape.visible(i, j) && score[j] > max) max = score[j];
      }
      Sum<S> total{};
      for (std::int64_t j = 0; j <= i; ++j) {
        if (!shape.visible(i, j)) continue;
        e[j] = arithmetic.round(exp_of(real(arithmetic.sub(score[j], max))));
        total += term(e[j]);
      }
      const S l = arithmetic.finish(total);
      std::vector<Sum<S>> weighted(size);
      for (std::int64_t j = 0; j <= i; ++j) {
        if (!shape.visible(i, j)) continue;
        const S p = arithmetic.round(real(e[j]) / real(l));
        saved.probability[row][j] = p;
        if (dropout.on()) {
          if (!dropout.kept[row][j]) continue;
          saved.probability_dropped[row][j] = arithmetic.mul(p, dropout.factor);
        }
        for (std::int64_t u = 0; u < size; ++u) weighted[u] += product(e[j], value[j][k0 + u]);
      }
      for (std::int64_t u = 0; u < size; ++u) {
        auto y = real(arithmetic.finish(weighted[u]));
        if (dropout.on()) y = y * real(dropout.factor);
        saved.output[i][q0 + u] = arithmetic.round(y / real(l));
      }
    }
  }
}

template <class S>
AttentionGradient<S> attend_input(Arithmetic<S>& arithmetic, const AttentionShape& shape,
                                  const AttentionSaved<S>& saved, const Array<S>& doutput) {
  const auto& dropout = saved.dropout;
  const auto length = saved.query.rows(), size = saved.query.columns() / shape.heads;
  const S scale = score_scale(arithmetic, size);
  Array<Sum<S>> dquery(length, saved.query.columns()), dkey(length, saved.key.columns());
  Array<Sum<S>> dvalue(length, saved.value.columns());
  for (std::int64_t h = 0; h < shape.heads; ++h) {
    const auto q0 = h * size, k0 = h / (shape.heads / shape.kv_heads) * size;
    for (std::int64_t i = 0; i < length; ++i) {
      const auto row = h * length + i;
      const S* dout = doutput[i] + q0;
      const S total = dot(arithmetic, dout, saved.output[i] + q0, size);
      for (std::int64_t j = 0; j <= i; ++j) {
        if (!shape.visible(i, j)) continue;
        const S used = dropout.on() ? saved.probability_dropped[row][j] : saved.probability[row][j];
        for (std::int64_t u = 0; u < size; ++u) dvalue[j][k0 + u] += product(used, dout[u]);
        S dp = dot(arithmetic, dout, saved.value[j] + k0, size);
        if (dropout.on()) dp = dropout.kept[row][j] ? arithmetic.mul(dropout.factor, dp) : S{};
        const S ds = arithmetic.mul(arithmetic.mul(saved.probability[row][j], arithmetic.sub(dp, total)), scale);
        for (std::int64_t u = 0; u < size; ++u) {
          dquery[i][q0 + u] += product(ds, saved.key[j][k0 + u]);
          dkey[j][k0 + u] += product(ds, saved.query[i][q0 + u]);
        }
      }
    }
  }
  return {arithmetic.finish(dquery), arithmetic.finish(dkey), arithmetic.finish(dvalue)};
}

#define INSTANTIATE(S)                                                                                           \
  template void attend<S>(Arithmetic<S>&, const AttentionShape&, AttentionSaved<S>&);                            \
  template AttentionGradient<S> attend_input<S>(Arithmetic<S>&, const AttentionShape&, const AttentionSaved<S>&, \
                                                const Array<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
