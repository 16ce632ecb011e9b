// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/matmul.hpp"

#include <algorithm>

#include "kernels/core/errors.hpp"
#include "kernels/core/fixed_row.hpp"
#include "kernels/matmul/gemm.hpp"

namespace shardproof::matmul {

namespace {

std::string shape(const Dims& dims) {
  std::string text;
  for (const auto d : dims) {
    if (!text.empty()) text += 'x';
    text += std::to_string(d);
  }
  return text;
}

void expect(const char* kernel, const std::string& name, const Dims& dims, const Dims& expected) {
  if (dims == expected) return;
  throw InternalError(std::string(kernel) + ": '" + name + "' is " + shape(dims) + ", not " + shape(expected));
}

void expect_matrix(const char* kernel, const Tensor& tensor) {
  if (tensor.dims().size() == 2) return;
  throw InternalError(std::string(kernel) + ": '" + tensor.name() + "' is " + shape(tensor.dims()) + ", not a matrix");
}

void count(KernelScope& scope, std::int64_t n, std::int64_t in, std::int64_t out) {
  scope.device().flops().add(2 * n * in * out);
}

/// The largest of n magnitudes, as a value; 0 but for Fixed.
template <class S>
double greatest(const S* x, std::int64_t n) {
  if constexpr (std::is_same_v<S, Fixed>) {
    const auto top = fold_magnitude(HostTeam<row_lanes<S>>{}, n, [=](std::int64_t i) { return x[i]; });
    return static_cast<double>(top) * 0x1p-40;
  } else {
    return 0;
  }
}

/// c += a b, all of it.
template <class S>
void add_product(KernelScope& scope, std::int64_t m, std::int64_t n, std::int64_t k, View<S> a, View<S> b,
                 const Accumulator& c) {
  Workspace workspace(scope);
  Sums<S> sums(scope, c);
  multiply_add<S>(workspace, m, n, k, a, b, sums, 0, n);
}

void expect_forward(const char* kernel, const Tensor& x, const Tensor& w, const Tensor& bias, const std::string& y_name,
                    const Dims& y) {
  expect_matrix(kernel, x);
  expect_matrix(kernel, w);
  expect(kernel, w.name(), w.dims(), {w.dim(0), x.dim(1)});
  expect(kernel, y_name, y, {x.dim(0), w.dim(0)});
  if (bias) expect(kernel, bias.name(), bias.dims(), {w.dim(0)});
}

void expect_backward_input(const char* kernel, const Tensor& dy, const Tensor& w, const Dims& dx) {
  expect_matrix(kernel, dy);
  expect_matrix(kernel, w);
  expect(kernel, w.name(), w.dims(), {dy.dim(1), w.dim(1)});
  expect(kernel, "dx", dx, {dy.dim(0), w.dim(1)});
}

}  // namespace

void forward(Queue& queue, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  constexpr auto name = "matmul_forward";
  expect_forward(name, x, w, bias, y.name(), y.dims());
  const auto rows = x.dim(0), in = x.dim(1), out = w.dim(0);
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      Workspace workspace(scope);
      multiply<S>(workspace, rows, out, in, {scope.read<S>(x), in, 1}, {scope.read<S>(w), 1, in},
                  bias ? scope.read<S>(bias) : nullptr, scope.write<S>(y), out);
      count(scope, rows, in, out);
    });
  });
}

void forward(Queue& queue, const Tensor& x, const Tensor& w, const Tensor& bias, const Accumulator& y) {
  constexpr auto name = "matmul_forward_add";
  expect_forward(name, x, w, bias, "y", y.dims());
  const auto rows = x.dim(0), in = x.dim(1), out = w.dim(0);
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      add_product<S>(scope, rows, out, in, {scope.read<S>(x), in, 1}, {scope.read<S>(w), 1, in}, y);
      if (bias) {
        const S* from = scope.read<S>(bias);
        AccumulatorView<S> view(scope, y, greatest(from, out));
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < out; ++j) view.add(i * out + j, term(from[j]));
        }
      }
      count(scope, rows, in, out);
    });
  });
}

void backward_input(Queue& queue, const Tensor& dy, const Tensor& w, const Tensor& dx) {
  constexpr auto name = "matmul_backward_input";
  expect_backward_input(name, dy, w, dx.dims());
  const auto rows = dy.dim(0), out = dy.dim(1), in = w.dim(1);
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      Workspace workspace(scope);
      multiply<S>(workspace, rows, in, out, {scope.read<S>(dy), out, 1}, {scope.read<S>(w), in, 1}, nullptr,
                  scope.write<S>(dx), in);
      count(scope, rows, in, out);
    });
  });
}

void backward_input(Queue& queue, const Tensor& dy, const Tensor& w, const Accumulator& dx) {
  constexpr auto name = "matmul_backward_input_add";
  expect_backward_input(name, dy, w, dx.dims());
  const auto rows = dy.dim(0), out = dy.dim(1), in = w.dim(1);
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      add_product<S>(scope, rows, in, out, {scope.read<S>(dy), out, 1}, {scope.read<S>(w), in, 1}, dx);
      count(scope, rows, in, out);
    });
  });
}

void backward_weight(Queue& queue, const Tensor& dy, const Tensor& x, const Accumulator& dw) {
  constexpr auto name = "matmul_backward_weight";
  expect_matrix(name, dy);
  expect_matrix(name, x);
  const auto rows = dy.dim(0), out = dy.dim(1), in = x.dim(1);
  expect(name, x.name(), x.dims(), {rows, in});
  expect(name, "dw", dw.dims(), {out, in});
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      add_product<S>(scope, out, in, rows, {scope.read<S>(dy), 1, out}, {scope.read<S>(x), in, 1}, dw);
      count(scope, rows, in, out);
    });
  });
}

void backward_bias(Queue& queue, const Tensor& dy, const Accumulator& db) {
  constexpr auto name = "matmul_backward_bias";
  expect_matrix(name, dy);
  const auto rows = dy.dim(0), out = dy.dim(1);
  expect(name, "db", db.dims(), {out});
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      const S* from = scope.read<S>(dy);
      AccumulatorView<S> view(scope, db, static_cast<double>(rows) * greatest(from, rows * out));
      constexpr std::int64_t block = 512;  // long enough runs of a row for the prefetcher
      Sum<S> sum[block];
      for (std::int64_t j0 = 0; j0 < out; j0 += block) {
        const auto columns = std::min(block, out - j0);
        std::fill_n(sum, columns, Sum<S>{});
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) sum[j] += term(from[i * out + j0 + j]);
        }
        for (std::int64_t j = 0; j < columns; ++j) view.add(j0 + j, sum[j]);
      }
    });
  });
}

}  // namespace shardproof::matmul
