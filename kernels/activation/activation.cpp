// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation.hpp"

#include "kernels/activation/activation_row.hpp"
#include "kernels/core/require.hpp"

namespace shardproof::activation {

namespace {

/// Calls f with the function's type.
template <class S, class F>
void with_function(Kind kind, F&& f) {
  switch (kind) {
    case Kind::gelu: return f(Gelu<S>{});
    case Kind::relu: return f(Relu<S>{});
  }
}

}  // namespace

void forward(Queue& queue, Kind kind, const Tensor& x, const Tensor& y) {
  require_elements("activation_forward", y, x.elements());
  dispatch(x.dtype(), [&]<class S>(S) {
    with_function<S>(kind, [&]<class F>(F) {
      queue.submit("activation_forward", [=](KernelScope& scope) {
        const ForwardRow<F, S> row{scope.read<S>(x), scope.write<S>(y)};
        row(HostTeam<row_lanes<S>>{}, x.elements());
      });
    });
  });
}

void backward(Queue& queue, Kind kind, const Tensor& x, const Tensor& dy, const Tensor& dx) {
  require_elements("activation_backward", dy, x.elements());
  require_elements("activation_backward", dx, x.elements());
  dispatch(x.dtype(), [&]<class S>(S) {
    with_function<S>(kind, [&]<class F>(F) {
      queue.submit("activation_backward", [=](KernelScope& scope) {
        const BackwardRow<F, S> row{scope.read<S>(x), scope.read<S>(dy), scope.write<S>(dx)};
        row(HostTeam<row_lanes<S>>{}, x.elements());
      });
    });
  });
}

}  // namespace shardproof::activation
