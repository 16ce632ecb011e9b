// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/passes.hpp"
#include "kernels/dropout/dropout_row.hpp"

namespace shardproof::attention {

namespace {

template <class S>
class Backward {
 public:
  Backward(KernelScope& scope, const Layout& layout, const BackwardOperands<S>& operands)
      : scope_(scope),
        layout_(layout),
        x_(operands),
        scale_(score_scale<S>(layout.head_size)),
        products_(scope),
        dk_(scope, operands.dk),
        dv_(scope, operands.dv),
        ds_(scope.scratch<S>(most() * layout.sequence * layout.sequence)),
        q_(most() > 1 ? scope.scratch<S>(most() * layout.sequence * layout.head_size) : nullptr),
        d_o_(most() > 1 ? scope.scratch<S>(most() * layout.sequence * layout.head_size) : nullptr),
        fast_dot_(fma_sum_fits(greatest(x_.d_o, queries_size()), greatest(x_.o, queries_size()), layout.head_size)) {}

  void run() {
    for (std::int64_t b = 0; b < layout_.batch; ++b) {
      for (std::int64_t g = 0; g < layout_.kv_heads; ++g) {
        const Range heads = layout_.members(g);
        for (std::int64_t h = heads.first; h < heads.end; ++h) {
          for (std::int64_t i = 0; i < layout_.sequence; i += block_rows) {
            queries(b, g, h, h - heads.first, i, std::min(layout_.sequence, i + block_rows));
          }
        }
        keys_and_values(b, g, heads);
      }
    }
  }

 private:
  /// No key head has more members.
  std::int64_t most() const { return std::min(layout_.group, layout_.heads); }
  std::int64_t queries_size() const { return layout_.batch * layout_.sequence * layout_.hidden(); }
  S* ds_at(std::int64_t member, std::int64_t i) const {
    return ds_ + (member * layout_.sequence + i) * layout_.sequence;
  }

  /// ds and dq of queries begin..end-1 of head h.
  void queries(std::int64_t b, std::int64_t g, std::int64_t h, std::int64_t member, std::int64_t begin,
               std::int64_t end) {
    const auto size = layout_.head_size, rows = end - begin, length = layout_.sequence;
    const Range keys = layout_.keys(begin, end);
    const auto q = layout_.query_at(b, h, begin), kv = layout_.key_at(b, g, keys.first);
    S* const t = ds_at(member, begin) + keys.first;
    matmul::multiply<S>(products_, rows, keys.count(), size, {x_.d_o + q, layout_.hidden(), 1},
                        {x_.v + kv, 1, layout_.kv_hidden()}, nullptr, t, length);
    for (std::int64_t i = begin; i < end; ++i) row(b, h, i, ds_at(member, i));
    matmul::multiply<S>(products_, rows, size, keys.count(), {t, length, 1}, {x_.k + kv, layout_.kv_hidden(), 1},
                        nullptr, x_.dq + q, layout_.hidden());
  }

  /// fin(sum_u product(do_u, o_u)) at a query's first element.
  S dot(std::int64_t query) {
    const S *const d_o = x_.d_o + query, *const o = x_.o + query;
    S sum{};
    with_arithmetic<S>(fast_dot_, [&]<class A>(A) {
      sum = fold_products<A>(Team<S>{}, layout_.head_size, [=](std::int64_t u) { return A::product(d_o[u], o[u]); });
    });
    return sum;
  }

  /// Turns t of row i into ds; 0 where nothing is visible.
  void row(std::int64_t b, std::int64_t h, std::int64_t i, S* ds) {
    const Team<S> team;
    const auto first = layout_.keys(i, i + 1).first, n = i + 1 - first;
    const auto at = layout_.row_at(b, h, i) + first;
    const S* const p = x_.probability + at;
    S* const t = ds + first;
    const auto* const documents = x_.documents + b * layout_.sequence;
    Hidden(documents + first, n, documents[i]).set(t, S{});
    note(greatest(t, n));
    if (x_.mask != nullptr) dropout::KeepRow<S>{t, x_.mask + at, t, x_.keep_factor}(team, n);
    const S total = dot(layout_.query_at(b, h, i)), scale = scale_;
    // t - total is at most twice the larger; p and scale are at most 1.
    const bool fits = fma_fits(std::max(greatest(t, n), greatest(&total, 1)), std::uint64_t{1} << 41);
    if constexpr (std::is_same_v<S, Fixed>) {
      // Of an invalid t or total the difference is invalid too.
      if (!fits) note(fold_magnitude(team, n, [=](std::int64_t j) { return sub_in_range(t[j], total); }));
    }
    with_arithmetic<S>(fits, [=]<class A>(A) {
      team.each(n, [=](std::int64_t j) {
        const S scaled = A::finish(A::product(p[j], sub_in_range(t[j], total)));
        t[j] = A::finish(A::product(scaled, scale));
      });
    });
    std::fill(ds, t, S{});
    std::fill(t + n, ds + layout_.sequence, S{});
  }

  /// Raises overflow for a raw magnitude out of range.
  void note(std::uint64_t magnitude) {
    if (magnitude >= static_cast<std::uint64_t>(fixed_limit)) scope_.raise_overflow();
  }

  /// dk and dv of one key head: sums over the queries of its heads.
  void keys_and_values(std::int64_t b, std::int64_t g, Range heads) {
    const auto size = layout_.head_size, length = layout_.sequence;
    const auto q = gathered(x_.q, q_, b, heads), d_o = gathered(x_.d_o, d_o_, b, heads);
    const S* const pd = x_.dropped + layout_.row_at(b, heads.first, 0);
    for (std::int64_t j = 0; j < length; j += block_rows) {
      const auto columns = std::min(block_rows, length - j);
      // Of one head, only queries from j on see these keys; of several, rows of different heads follow each other.
      std::int64_t first = 0, rows = heads.count() * length;
      if (heads.count() == 1) {
        first = j;
        rows = (layout_.window > 0 ? std::min(length, j + columns - 1 + layout_.window) : length) - first;
      }
      const auto to = layout_.key_at(b, g, j);
      const auto from = [&](matmul::View<S> v) {
        return matmul::View<S>{v.data + first * v.row_stride, v.row_stride, 1};
      };
      matmul::multiply_add<S>(products_, columns, size, rows, {ds_ + first * length + j, 1, length}, from(q), dk_, to,
                              layout_.kv_hidden());
      matmul::multiply_add<S>(products_, columns, size, rows, {pd + first * length + j, 1, length}, from(d_o), dv_, to,
                              layout_.kv_hidden());
    }
  }

  /// Rows (head, position) of the heads of a group, copied to `to` where there are several.
  matmul::View<S> gathered(const S* x, S* to, std::int64_t b, Range heads) const {
    if (heads.count() == 1) return {x + layout_.query_at(b, heads.first, 0), layout_.hidden(), 1};
    const S* const rows = to;
    for (std::int64_t h = heads.first; h < heads.end; ++h) {
      for (std::int64_t i = 0; i < layout_.sequence; ++i) {
        to = std::copy_n(x + layout_.query_at(b, h, i), layout_.head_size, to);
      }
    }
    return {rows, layout_.head_size, 1};
  }

  KernelScope& scope_;
  const Layout& layout_;
  const BackwardOperands<S>& x_;
  const S scale_;
  matmul::Workspace products_;
  matmul::Sums<S> dk_, dv_;
  S *ds_, *q_, *d_o_;  // of one key head: [members, T, T], [members, T, head_size] twice
  const bool fast_dot_;
};

}  // namespace

template <class S>
void run_backward(KernelScope& scope, const Layout& layout, const BackwardOperands<S>& operands) {
  Backward<S>(scope, layout, operands).run();
}
template void run_backward(KernelScope&, const Layout&, const BackwardOperands<Fixed>&);
template void run_backward(KernelScope&, const Layout&, const BackwardOperands<double>&);
template void run_backward(KernelScope&, const Layout&, const BackwardOperands<float>&);

}  // namespace shardproof::attention
