// SPDX-License-Identifier: Apache-2.0
#include "kernels/layer_norm/layer_norm.hpp"

#include "kernels/core/require.hpp"
#include "kernels/layer_norm/layer_norm_row.hpp"

namespace shardproof::layer_norm {

namespace {

void require_shapes(std::string_view kernel, const Tensor& x, const Tensor& same, const Tensor& mean,
                    const Tensor& rstd) {
  require_elements(kernel, same, x.elements());
  require_elements(kernel, mean, x.dim(0));
  require_elements(kernel, rstd, x.dim(0));
}

/// The rows whose products and sums are a weight gradient.
template <class S>
struct Rows {
  const S *dy, *x, *mean, *rstd;
  std::int64_t n, hidden;

  const S* gradient(std::int64_t row) const { return dy + row * hidden; }
  auto centred(std::int64_t row) const {
    return [in = x + row * hidden, m = mean[row]](std::int64_t i) { return sub_in_range(in[i], m); };
  }
};

/// What a row of Fixed can reach: |x-m|, |xh| and |dy|, raw.
struct Tops {
  std::uint64_t centred, normalised, dy;
};

Tops tops_of(const Rows<Fixed>& rows, std::int64_t row) {
  const HostTeam<row_lanes<Fixed>> team;
  const auto* const dy = rows.gradient(row);
  const auto centred = fold_magnitude(team, rows.hidden, rows.centred(row));
  return {centred, magnitude(top_normalised(centred, rows.rstd[row])),
          fold_magnitude(team, rows.hidden, [=](std::int64_t i) { return dy[i]; })};
}

/// to[i] += what f(i) makes, in one lane.
template <class S, class F>
void add_row(std::int64_t n, S* to, F f) {
  HostTeam<row_lanes<S>>{}.each(n, [=](std::int64_t i) {
    if constexpr (std::is_same_v<S, Fixed>) {
      to[i].raw += f(i);
    } else {
      to[i] += f(i);
    }
  });
}

/// dw += product(dy,xh)
void add_products(const Rows<Fixed>& rows, const Tops* tops, AccumulatorView<Fixed>& dw) {
  for (std::int64_t r = 0; r < rows.n; ++r) {
    const auto* const dy = rows.gradient(r);
    const auto centred = rows.centred(r);
    const Fixed s = rows.rstd[r];
    if (!dw.wide() && fma_fits(tops[r].centred, magnitude(s)) && fma_fits(tops[r].dy, tops[r].normalised)) {
      add_row(rows.hidden, dw.data(),
              [=](std::int64_t i) { return fma_product(dy[i], ByFma::finish(fma_product(centred(i), s))); });
    } else {
      for (std::int64_t i = 0; i < rows.hidden; ++i) dw.add(i, product(dy[i], mul(centred(i), s)));
    }
  }
}

/// db += dy
void add_gradients(const Rows<Fixed>& rows, AccumulatorView<Fixed>& db) {
  for (std::int64_t r = 0; r < rows.n; ++r) {
    const auto* const dy = rows.gradient(r);
    if (db.wide()) {
      for (std::int64_t i = 0; i < rows.hidden; ++i) db.add(i, term(dy[i]));
    } else {
      add_row(rows.hidden, db.data(), [=](std::int64_t i) { return dy[i].raw; });
    }
  }
}

void accumulate(KernelScope& scope, const Rows<Fixed>& rows, const Accumulator& dweight, const Accumulator& dbias) {
  auto* const tops = scope.scratch<Tops>(rows.n);
  double weight_bound = 0, bias_bound = 0;
  for (std::int64_t r = 0; r < rows.n; ++r) {
    tops[r] = tops_of(rows, r);
    const double dy = static_cast<double>(tops[r].dy) * 0x1p-40;
    weight_bound += dy * (static_cast<double>(tops[r].normalised) * 0x1p-40) + 0x1p-40;
    bias_bound += dy;
    if (dweight && tops[r].normalised >= fixed_limit) scope.raise_overflow();
  }
  if (dweight) {
    AccumulatorView<Fixed> view(scope, dweight, weight_bound);
    add_products(rows, tops, view);
  }
  if (dbias) {
    AccumulatorView<Fixed> view(scope, dbias, bias_bound);
    add_gradients(rows, view);
  }
}

template <class S>
void accumulate(KernelScope& scope, const Rows<S>& rows, const Accumulator& dweight, const Accumulator& dbias) {
  if (dweight) {
    AccumulatorView<S> view(scope, dweight, 0);
    for (std::int64_t r = 0; r < rows.n; ++r) {
      add_row(rows.hidden, view.data(),
              [dy = rows.gradient(r), centred = rows.centred(r), s = rows.rstd[r]](std::int64_t i) {
                return dy[i] * (centred(i) * s);
              });
    }
  }
  if (dbias) {
    AccumulatorView<S> view(scope, dbias, 0);
    for (std::int64_t r = 0; r < rows.n; ++r) {
      add_row(rows.hidden, view.data(), [dy = rows.gradient(r)](std::int64_t i) { return dy[i]; });
    }
  }
}

}  // namespace

void forward(Queue& queue, const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon, const Tensor& y,
             const Tensor& mean, const Tensor& rstd) {
  const auto n = x.dim(0), hidden = x.dim(1);
  require_shapes("layer_norm_forward", x, y, mean, rstd);
  require_elements("layer_norm_forward", weight, hidden);
  require_elements("layer_norm_forward", bias, hidden);
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("layer_norm_forward", [=](KernelScope& scope) {
      const ForwardRow<S> row{scope.read<S>(x),
                              scope.read<S>(weight),
                              scope.read<S>(bias),
                              scope.write<S>(y),
                              scope.write<S>(mean),
                              scope.write<S>(rstd),
                              hidden,
                              static_cast<Real<S>>(epsilon)};
      for (std::int64_t r = 0; r < n; ++r) {
        if (row(HostTeam<row_lanes<S>>{}, r)) scope.raise_overflow();
      }
    });
  });
}

void backward_input(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight, const Tensor& dx) {
  const auto n = x.dim(0), hidden = x.dim(1);
  require_shapes("layer_norm_backward_input", x, dy, mean, rstd);
  require_elements("layer_norm_backward_input", weight, hidden);
  require_elements("layer_norm_backward_input", dx, x.elements());
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("layer_norm_backward_input", [=](KernelScope& scope) {
      const BackwardRow<S> row{scope.read<S>(dy),
                               scope.read<S>(x),
                               scope.read<S>(mean),
                               scope.read<S>(rstd),
                               scope.read<S>(weight),
                               scope.write<S>(dx),
                               hidden};
      for (std::int64_t r = 0; r < n; ++r) {
        if (row(HostTeam<row_lanes<S>>{}, r)) scope.raise_overflow();
      }
    });
  });
}

void backward_weight(Queue& queue, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                     const Accumulator& dweight, const Accumulator& dbias) {
  const auto n = x.dim(0), hidden = x.dim(1);
  require_shapes("layer_norm_backward_weight", x, dy, mean, rstd);
  if (dweight) require_elements("layer_norm_backward_weight", "dweight", dweight.elements(), hidden);
  if (dbias) require_elements("layer_norm_backward_weight", "dbias", dbias.elements(), hidden);
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("layer_norm_backward_weight", [=](KernelScope& scope) {
      const Rows<S> rows{scope.read<S>(dy), scope.read<S>(x), scope.read<S>(mean), scope.read<S>(rstd), n, hidden};
      accumulate(scope, rows, dweight, dbias);
    });
  });
}

}  // namespace shardproof::layer_norm
