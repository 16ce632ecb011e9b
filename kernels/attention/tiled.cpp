// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/tiled.hpp"

#include <optional>

#include "kernels/attention/passes.hpp"
#include "kernels/attention/require_shape.hpp"
#include "kernels/core/require.hpp"

namespace shardproof::attention {

namespace {

std::optional<dropout::Site> owned(const dropout::Site* site) {
  return site != nullptr ? std::optional(*site) : std::nullopt;
}

void require_operands(const char* name, const Layout& layout, const Tensor& k, const Tensor& v, const Tensor& documents,
                      const RowStatistics& statistics) {
  const auto positions = layout.batch * layout.sequence;
  for (const auto* t : {&k, &v}) require_elements(name, *t, positions * layout.kv_hidden());
  require_elements(name, documents, positions);
  for (const auto* t : {&statistics.max, &statistics.sum}) require_elements(name, *t, positions * layout.heads);
}

void count(KernelScope& scope, const Layout& layout, std::int64_t products, std::int64_t again) {
  const auto one = 2 * layout.batch * layout.sequence * layout.sequence * layout.hidden();
  scope.device().flops().add(products * one);
  scope.device().flops().add_recomputed(again * one);
}

}  // namespace

void tiled_forward(Queue& queue, const Shape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                   const Tensor& documents, const dropout::Site* site, const RowStatistics& statistics,
                   const Tensor& o) {
  constexpr auto name = "tiled_attention_forward";
  require_shape(name, shape);
  const Layout layout(shape);
  require_operands(name, layout, k, v, documents, statistics);
  for (const auto* t : {&q, &o}) require_elements(name, *t, layout.batch * layout.sequence * layout.hidden());
  dispatch(q.dtype(), [&]<class S>(S) {
    queue.submit(name, [=, site = owned(site)](KernelScope& scope) {
      run_tiled_forward<S>(scope, layout,
                           {.q = scope.read<S>(q),
                            .k = scope.read<S>(k),
                            .v = scope.read<S>(v),
                            .documents = scope.read<std::int32_t>(documents),
                            .site = site ? &*site : nullptr,
                            .max = scope.write<S>(statistics.max),
                            .sum = scope.write<S>(statistics.sum),
                            .o = scope.write<S>(o)});
      count(scope, layout, 2, std::is_same_v<S, Fixed> ? 1 : 0);
    });
  });
}

void tiled_backward(Queue& queue, const Shape& shape, const Tensor& d_o, const Tensor& q, const Tensor& k,
                    const Tensor& v, const Tensor& documents, const dropout::Site* site, const Tensor& o,
                    const RowStatistics& statistics, const Tensor& dq, const Accumulator& dk, const Accumulator& dv) {
  constexpr auto name = "tiled_attention_backward";
  require_shape(name, shape);
  const Layout layout(shape);
  const auto positions = layout.batch * layout.sequence;
  require_operands(name, layout, k, v, documents, statistics);
  for (const auto* t : {&d_o, &q, &o, &dq}) require_elements(name, *t, positions * layout.hidden());
  require_elements(name, "dk", dk.elements(), positions * layout.kv_hidden());
  require_elements(name, "dv", dv.elements(), positions * layout.kv_hidden());
  dispatch(q.dtype(), [&]<class S>(S) {
    queue.submit(name, [=, site = owned(site)](KernelScope& scope) {
      run_tiled_backward<S>(scope, layout,
                            {.d_o = scope.read<S>(d_o),
                             .q = scope.read<S>(q),
                             .k = scope.read<S>(k),
                             .v = scope.read<S>(v),
                             .documents = scope.read<std::int32_t>(documents),
                             .site = site ? &*site : nullptr,
                             .o = scope.read<S>(o),
                             .max = scope.read<S>(statistics.max),
                             .sum = scope.read<S>(statistics.sum),
                             .dq = scope.write<S>(dq),
                             .dk = dk,
                             .dv = dv});
      count(scope, layout, 4, 1);
    });
  });
}

}  // namespace shardproof::attention
