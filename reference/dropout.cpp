// SPDX-License-Identifier: Apache-2.0
#include "reference/dropout.hpp"

namespace shardproof::reference {

template <class S>
Dropout<S> draw_dropout(Arithmetic<S>& arithmetic, const RandomStream& stream, std::uint32_t threshold, double p,
                        std::int64_t first, std::int64_t rows, std::int64_t columns) {
  Dropout<S> out{Array<std::uint8_t>(rows, columns), arithmetic.round(static_cast<Real<S>>(1.0 / (1.0 - p)))};
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out.kept[r][c] = stream.word(static_cast<std::uint64_t>(first + r * columns + c)) >= threshold;
    }
  }
  return out;
}

template <class S>
Array<S> dropped(Arithmetic<S>& arithmetic, const Dropout<S>& dropout, const Array<S>& x) {
  if (!dropout.on()) return x;
  Array<S> y(x.rows(), x.columns());
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    for (std::int64_t c = 0; c < x.columns(); ++c) {
      if (dropout.kept[r][c]) y[r][c] = arithmetic.mul(x[r][c], dropout.factor);
    }
  }
  return y;
}

#define INSTANTIATE(S)                                                                                          \
  template Dropout<S> draw_dropout<S>(Arithmetic<S>&, const RandomStream&, std::uint32_t, double, std::int64_t, \
                                      std::int64_t, std::int64_t);                                              \
  template Array<S> dropped<S>(Arithmetic<S>&, const Dropout<S>&, const Array<S>&);
INSTANTIATE(Fixed)
INSTANTIATE(double)
INSTANTIATE(float)
#undef INSTANTIATE

}  // namespace shardproof::reference
