// SPDX-License-Identifier: Apache-2.0
#include "reference/linear.hpp"

namespace shardproof::reference {

template <class S>
Array<S> linear(Arithmetic<S>& arithmetic, const Array<S>& x, const Array<S>& w, const Array<S>* b) {
  const auto in = w.columns(), out = w.rows();
  Array<S> transposed(in, out);
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t k = 0; k < in; ++k) transposed[k][o] = w[o][k];
  }
  Array<Sum<S>> y(x.rows(), out);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    if (b != nullptr) {
      for (std::int64_t o = 0; o < out; ++o) y[r][o] = term((*b)[0][o]);
    }
    for (std::int64_t k = 0; k < in; ++k) {
      for (std::int64_t o = 0; o < out; ++o) y[r][o] += product(x[r][k], transposed[k][o]);
    }
  }
  return arithmetic.finish(y);
}

template <class S>
void linear_input(const Array<S>& dy, const Array<S>& w, Array<Sum<S>>& dx) {
  for (std::int64_t r = 0; r < dy.rows(); ++r) {
    for (std::int64_t o = 0; o < w.rows(); ++o) {
      for (std::int64_t k = 0; k < w.columns(); ++k) dx[r][k] += product(dy[r][o], w[o][k]);
    }
  }
}

template <class S>
void linear_weight(const Array<S>& dy, const Array<S>& x, Array<Sum<S>>& dw) {
  for (std::int64_t o = 0; o < dy.columns(); ++o) {
    for (std::int64_t r = 0; r < dy.rows(); ++r) {
      for (std::int64_t k = 0; k < x.columns(); ++k) dw[o][k] += product(dy[r][o], x[r][k]);
    }
  }
}

template <class S>
void linear_bias(const Array<S>& dy, Array<Sum<S>>& db) {
  for (std::int64_t r = 0; r < dy.rows(); ++r) {
    for (std::int64_t o = 0; o < dy.columns(); ++o) db[0][o] += term(dy[r][o]);
  }
}

#define INSTANTIATE(S)                                                                            \
  template Array<S> linear<S>(Arithmetic<S>&, const Array<S>&, const Array<S>&, const Array<S>*); \
  template void linear_input<S>(const Array<S>&, const Array<S>&, Array<Sum<S>>&);                \
  template void linear_weight<S>(const Array<S>&, const Array<S>&, Array<Sum<S>>&);               \
  template void linear_bias<S>(const Array<S>&, Array<Sum<S>>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
