// SPDX-License-Identifier: Apache-2.0
#include "reference/activation.hpp"

#include "kernels/core/functions.hpp"

namespace shardproof::reference {

template <class S>
Array<S> activate(Arithmetic<S>& arithmetic, workload::Activation activation, const Array<S>& x) {
  Array<S> y(x.rows(), x.columns());
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t c = 0; c < x.columns(); ++c) {
      if (activation == workload::Activation::gelu) {
        y[r][c] = arithmetic.round(gelu_of(real(x[r][c])));
      } else {
        y[r][c] = x[r][c] > S{} ? x[r][c] : S{};
      }
    }
  }
  return y;
}

template <class S>
Array<S> activate_input(Arithmetic<S>& arithmetic, workload::Activation activation, const Array<S>& x,
                        const Array<S>& dy) {
  Array<S> dx(x.rows(), x.columns());
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t c = 0; c < x.columns(); ++c) {
      if (activation == workload::Activation::gelu) {
        dx[r][c] = arithmetic.round(real(dy[r][c]) * gelu_derivative_of(real(x[r][c])));
      } else {
        dx[r][c] = x[r][c] > S{} ? dy[r][c] : S{};
      }
    }
  }
  return dx;
}

#define INSTANTIATE(S)                                                                  \
  template Array<S> activate<S>(Arithmetic<S>&, workload::Activation, const Array<S>&); \
  template Array<S> activate_input<S>(Arithmetic<S>&, workload::Activation, const Array<S>&, const Array<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
