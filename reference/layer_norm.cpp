// SPDX-License-Identifier: Apache-2.0
#include "reference/layer_norm.hpp"

#include <cmath>

namespace shardproof::reference {

template <class S>
Array<S> layer_norm(Arithmetic<S>& arithmetic, const Array<S>& x, const Array<S>& w, const Array<S>& b, double epsilon,
                    NormSaved<S>& saved) {
  using C = Real<S>;
  const auto columns = x.columns();
  saved = {x, std::vector<S>(x.rows()), std::vector<S>(x.rows())};
  Array<S> y(x.rows(), columns);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    Sum<S> sum{}, squares{};
    for (std::int64_t c = 0; c < columns; ++c) sum += term(x[r][c]);
    const S mean = arithmetic.round(real(arithmetic.finish(sum)) / C(columns));
    for (std::int64_t c = 0; c < columns; ++c) {
      const S d = arithmetic.sub(x[r][c], mean);
      squares += product(d, d);
    }
    const S variance = arithmetic.round(real(arithmetic.finish(squares)) / C(columns));
    const S rstd = arithmetic.round(C(1) / std::sqrt(real(variance) + C(epsilon)));
    for (std::int64_t c = 0; c < columns; ++c) {
      const S normal = arithmetic.mul(arithmetic.sub(x[r][c], mean), rstd);
      y[r][c] = arithmetic.finish(product(normal, w[0][c]) + term(b[0][c]));
    }
    saved.mean[r] = mean;
    saved.rstd[r] = rstd;
  }
  return y;
}

template <class S>
Array<S> layer_norm_input(Arithmetic<S>& arithmetic, const NormSaved<S>& saved, const Array<S>& w, const Array<S>& dy) {
  using C = Real<S>;
  const auto columns = dy.columns();
  Array<S> dx(dy.rows(), columns);
  std::vector<S> normal(columns), g(columns);
  for (std::int64_t r = 0; r < dy.rows(); ++r) {
    Sum<S> sum{}, projection{};
    for (std::int64_t c = 0; c < columns; ++c) {
      normal[c] = arithmetic.mul(arithmetic.sub(saved.input[r][c], saved.mean[r]), saved.rstd[r]);
      g[c] = arithmetic.mul(dy[r][c], w[0][c]);
      sum += term(g[c]);
      projection += product(g[c], normal[c]);
    }
    const S m1 = arithmetic.round(real(arithmetic.finish(sum)) / C(columns));
    const S m2 = arithmetic.round(real(arithmetic.finish(projection)) / C(columns));
    for (std::int64_t c = 0; c < columns; ++c) {
      const S rest = arithmetic.finish(term(g[c]) - term(m1) - product(normal[c], m2));
      dx[r][c] = arithmetic.mul(saved.rstd[r], rest);
    }
  }
  return dx;
}

template <class S>
void layer_norm_weight(Arithmetic<S>& arithmetic, const NormSaved<S>& saved, const Array<S>& dy, Array<Sum<S>>& dw,
                       Array<Sum<S>>& db) {
  for (std::int64_t r = 0; r < dy.rows(); ++r) {
    for (std::int64_t c = 0; c < dy.columns(); ++c) {
      const S normal = arithmetic.mul(arithmetic.sub(saved.input[r][c], saved.mean[r]), saved.rstd[r]);
      dw[0][c] += product(dy[r][c], normal);
      db[0][c] += term(dy[r][c]);
    }
  }
}

#define INSTANTIATE(S)                                                                                          \
  template Array<S> layer_norm<S>(Arithmetic<S>&, const Array<S>&, const Array<S>&, const Array<S>&, double,    \
                                  NormSaved<S>&);                                                               \
  template Array<S> layer_norm_input<S>(Arithmetic<S>&, const NormSaved<S>&, const Array<S>&, const Array<S>&); \
  template void layer_norm_weight<S>(Arithmetic<S>&, const NormSaved<S>&, const Array<S>&, Array<Sum<S>>&,      \
                                     Array<Sum<S>>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
