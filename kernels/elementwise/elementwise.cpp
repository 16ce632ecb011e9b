// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/errors.hpp"
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

void columns(Queue& queue, const Tensor& from, std::int64_t first, const Tensor& to) {
  const auto rows = from.dim(0), width = from.dim(1), count = to.dim(1);
  require_elements("columns", to, rows * count);
  if (first < 0 || first + count > width)
    throw InternalError("columns: '" + from.name() + "' has no columns " + std::to_string(first) + "+" +
                        std::to_string(count));
  dispatch(from.dtype(), [&]<class S>(S) {
    queue.submit("columns", [=](KernelScope& scope) {
      const S* const source = scope.read<S>(from);
      S* const target = scope.write<S>(to);
      for (std::int64_t r = 0; r < rows; ++r) std::copy_n(source + r * width + first, count, target + r * count);
    });
  });
}

}  // namespace shardproof::elementwise
