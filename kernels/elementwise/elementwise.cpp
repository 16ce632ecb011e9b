// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

#include "kernels/core/require.hpp"
#include "kernels/elementwise/add_row.hpp"

namespace shardproof::elementwise {

void add(Queue& queue, const Tensor& x, const Tensor& y, const Tensor& z) {
  require_elements("add", y, x.elements());
  require_elements("add", z, x.elements());
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("add", [=](KernelScope& scope) {
      const AddRow<S> row{scope.read<S>(x), scope.read<S>(y), scope.write<S>(z)};
      row(HostTeam<row_lanes<S>>{}, x.elements());
    });
  });
}

}  // namespace shardproof::elementwise
