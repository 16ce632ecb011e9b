// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.hpp"

#include <optional>

#include "kernels/attention/passes.hpp"
#include "kernels/attention/require_shape.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/require.hpp"

namespace shardproof::attention {

void require_shape(const char* kernel, const Shape& s) {
  const auto whole_groups = [&] { return s.heads == 0 || (s.kv_heads > 0 && s.heads % s.kv_heads == 0); };
  const auto needed = [&](const Layout& l) { return l.heads == 0 ? 0 : l.key_head(l.heads - 1) + 1; };
  const bool sound = s.heads >= 0 && s.first_head >= 0 && s.group >= 0 && s.window >= 0 &&
                     s.first_head + s.heads <= (s.total_heads == 0 ? s.heads : s.total_heads);
  if (sound && (s.group > 0 || whole_groups()) && s.kv_heads == needed(Layout(s))) return;
  throw InternalError(std::string(kernel) + ": heads " + std::to_string(s.first_head) + "+" + std::to_string(s.heads) +
                      " of " + std::to_string(s.total_heads) + " in groups of " + std::to_string(s.group) + " for " +
                      std::to_string(s.kv_heads) + " key heads, window " + std::to_string(s.window));
}

namespace {

void count(KernelScope& scope, const Layout& layout, std::int64_t products) {
  scope.device().flops().add(2 * products * layout.batch * layout.sequence * layout.sequence * layout.hidden());
}

}  // namespace

void forward(Queue& queue, const Shape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& documents, const dropout::Site* site, const Saved& saved, const Tensor& o) {
  constexpr auto name = "attention_forward";
  require_shape(name, shape);
  const Layout layout(shape);
  const auto positions = layout.batch * layout.sequence, scores = positions * layout.heads * layout.sequence;
  for (const auto* t : {&q, &o}) require_elements(name, *t, positions * layout.hidden());
  for (const auto* t : {&k, &v}) require_elements(name, *t, positions * layout.kv_hidden());
  require_elements(name, documents, positions);
  require_elements(name, saved.probability, scores);
  if (site != nullptr) {
    require_elements(name, saved.mask, scores);
    require_elements(name, saved.dropped, scores);
  }
  dispatch(q.dtype(), [&]<class S>(S) {
    queue.submit(name, [=, owned_site = site != nullptr ? std::optional(*site) : std::nullopt](KernelScope& scope) {
      ForwardOperands<S> x{};
      x.q = scope.read<S>(q);
      x.k = scope.read<S>(k);
      x.v = scope.read<S>(v);
      x.documents = scope.read<std::int32_t>(documents);
      x.probability = scope.write<S>(saved.probability);
      if (owned_site) {
        x.site = &*owned_site;
        x.mask = scope.write<std::uint8_t>(saved.mask);
        x.dropped = scope.write<S>(saved.dropped);
      }
      x.o = scope.write<S>(o);
      run_forward(scope, layout, x);
      count(scope, layout, 2);
    });
  });
}

void backward(Queue& queue, const Shape& shape, const Tensor& d_o, const Tensor& q, const Tensor& k, const Tensor& v,
              const Tensor& documents, const Tensor& o, const Saved& saved, double dropout_probability,
              const Tensor& dq, const Accumulator& dk, const Accumulator& dv) {
  constexpr auto name = "attention_backward";
  require_shape(name, shape);
  const Layout layout(shape);
  const auto positions = layout.batch * layout.sequence, scores = positions * layout.heads * layout.sequence;
  for (const auto* t : {&d_o, &q, &o, &dq}) require_elements(name, *t, positions * layout.hidden());
  for (const auto* t : {&k, &v}) require_elements(name, *t, positions * layout.kv_hidden());
  require_elements(name, "dk", dk.elements(), positions * layout.kv_hidden());
  require_elements(name, "dv", dv.elements(), positions * layout.kv_hidden());
  require_elements(name, documents, positions);
  require_elements(name, saved.probability, scores);
  const bool dropout = dropout_probability > 0;
  if (dropout) {
    require_elements(name, saved.mask, scores);
    require_elements(name, saved.dropped, scores);
  }
  dispatch(q.dtype(), [&]<class S>(S) {
    queue.submit(name, [=](KernelScope& scope) {
      BackwardOperands<S> x{};
      x.d_o = scope.read<S>(d_o);
      x.q = scope.read<S>(q);
      x.k = scope.read<S>(k);
      x.v = scope.read<S>(v);
      x.documents = scope.read<std::int32_t>(documents);
      x.o = scope.read<S>(o);
      x.probability = scope.read<S>(saved.probability);
      x.dropped = x.probability;
      if (dropout) {
        x.mask = scope.read<std::uint8_t>(saved.mask);
        x.dropped = scope.read<S>(saved.dropped);
        x.keep_factor = round_to<S>(static_cast<Real<S>>(dropout::keep_factor(dropout_probability)));
      }
      x.dq = scope.write<S>(dq);
      x.dk = dk;
      x.dv = dv;
      run_backward(scope, layout, x);
      count(scope, layout, 4);
    });
  });
}

}  // namespace shardproof::attention
