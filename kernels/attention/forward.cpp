// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/passes.hpp"
#include "kernels/dropout/dropout_row.hpp"

namespace shardproof::attention {

namespace {

template <class S>
class Forward {
 public:
  Forward(KernelScope& scope, const Layout& layout, const ForwardOperands<S>& operands)
      : scope_(scope),
        layout_(layout),
        x_(operands),
        scale_(score_scale<S>(layout.head_size)),
        keep_(x_.site != nullptr ? round_to<S>(static_cast<Real<S>>(dropout::keep_factor(x_.site->probability))) : S{}),
        products_(scope),
        scores_(scope.scratch<S>(block_rows * layout.sequence)),
        weighted_(scope.scratch<S>(block_rows * layout.head_size)),
        total_(scope.scratch<S>(block_rows)) {}

  void run() {
    for (std::int64_t b = 0; b < layout_.batch; ++b) {
      for (std::int64_t h = 0; h < layout_.heads; ++h) {
        for (std::int64_t i = 0; i < layout_.sequence; i += block_rows) {
          block(b, h, i, std::min(layout_.sequence, i + block_rows));
        }
      }
    }
  }

 private:
  void block(std::int64_t b, std::int64_t h, std::int64_t begin, std::int64_t end) {
    const auto size = layout_.head_size, rows = end - begin, g = layout_.key_head(h);
    const Range keys = layout_.keys(begin, end);
    const auto kv = layout_.key_at(b, g, keys.first);
    matmul::multiply<S>(products_, rows, keys.count(), size,
                        {x_.q + layout_.query_at(b, h, begin), layout_.hidden(), 1},
                        {x_.k + kv, 1, layout_.kv_hidden()}, nullptr, scores_, keys.count());
    for (std::int64_t i = begin; i < end; ++i) {
      total_[i - begin] = row(b, h, i, keys, scores_ + (i - begin) * keys.count());
    }
    if (matmul::multiply<S>(products_, rows, size, keys.count(), {scores_, keys.count(), 1},
                            {x_.v + kv, layout_.kv_hidden(), 1}, nullptr, weighted_, size)) {
      scope_.raise_overflow();
    }
    const Team<S> team;
    for (std::int64_t i = begin; i < end; ++i) {
      const S* const sum = weighted_ + (i - begin) * size;
      S* const o = x_.o + layout_.query_at(b, h, i);
      const auto l = real(total_[i - begin]), factor = real(keep_);
      if (x_.site != nullptr) {
        team.each(size, [=](std::int64_t u) { o[u] = round_to<S>((real(sum[u]) * factor) / l); });
      } else {
        team.each(size, [=](std::int64_t u) { o[u] = round_to<S>(real(sum[u]) / l); });
      }
    }
  }

  /// Turns row i of the scores into e of its kept keys, 0 elsewhere; writes p, and mask and pd with dropout. Returns l.
  S row(std::int64_t b, std::int64_t h, std::int64_t i, Range keys, S* scores) {
    const Team<S> team;
    const auto first = layout_.keys(i, i + 1).first, n = i + 1 - first;
    const auto* const documents = x_.documents + b * layout_.sequence;
    const Hidden hidden(documents + first, n, documents[i]);
    S* const e = scores + (first - keys.first);
    hidden.set(e, e[n - 1]);  // a query sees itself, so this changes neither maximum nor overflow
    exponentials(e, n);
    hidden.set(e, S{});
    const S l = fold_finished<S>(team, n, [=](std::int64_t j) { return e[j]; });

    const auto at = layout_.row_at(b, h, i) + first;
    S* const p = x_.probability + at;
    const auto divisor = real(l);
    team.each(n, [=](std::int64_t j) { p[j] = round_to<S>(real(e[j]) / divisor); });
    clear_around(p, first, n);
    if (x_.site != nullptr) {
      std::uint8_t* const mask = x_.mask + at;
      dropout::fill_mask(*x_.site, static_cast<std::uint64_t>(layout_.logical_row_at(b, h, i) + first), n, mask);
      hidden.set(mask, std::uint8_t{0});
      dropout::KeepRow<S>{p, mask, x_.dropped + at, keep_}(team, n);
      for (std::int64_t j = 0; j < n; ++j) e[j] = mask[j] != 0 ? e[j] : S{};
      clear_around(mask, first, n);
      clear_around(x_.dropped + at, first, n);
    }
    std::fill(scores, e, S{});
    std::fill(e + n, scores + keys.count(), S{});
    return l;
  }

  /// x_j = R(exp(s_j - max s)) of the unscaled scores x.
  void exponentials(S* x, std::int64_t n) {
    const Team<S> team;
    const S scale = scale_;
    const auto top = greatest(x, n);
    note(top);
    with_arithmetic<S>(fma_fits(top, greatest(&scale, 1)), [=]<class A>(A) {
      team.each(n, [=](std::int64_t j) { x[j] = A::finish(A::product(x[j], scale)); });
    });
    const S m = maximum(x, n);
    if constexpr (std::is_same_v<S, Fixed>) {
      note(fold_magnitude(team, n, [=](std::int64_t j) { return sub_in_range(x[j], m); }));
    }
    team.each(n, [=](std::int64_t j) { x[j] = round_to<S>(exp_of(real(sub_in_range(x[j], m)))); });
  }

  static S maximum(const S* x, std::int64_t n) {
    if constexpr (std::is_same_v<S, Fixed>) {
      return Fixed{Team<S>{}.fold(
          n, x[0].raw, [=](std::int64_t j) { return x[j].raw; }, Greatest{})};
    } else {
      return Team<S>{}.fold(
          n, x[0], [=](std::int64_t j) { return x[j]; }, Greatest{});
    }
  }

  /// Raises overflow for a raw magnitude out of range.
  void note(std::uint64_t magnitude) {
    if (magnitude >= static_cast<std::uint64_t>(fixed_limit)) scope_.raise_overflow();
  }

  /// Zeroes what is left of a row of T elements whose elements first..first+n-1 start at `data`.
  template <class T>
  void clear_around(T* data, std::int64_t first, std::int64_t n) const {
    std::fill(data - first, data, T{});
    std::fill(data + n, data - first + layout_.sequence, T{});
  }

  KernelScope& scope_;
  const Layout& layout_;
  const ForwardOperands<S>& x_;
  const S scale_, keep_;
  matmul::Workspace products_;
  S *scores_, *weighted_, *total_;  // of one block: [rows, keys], [rows, head_size], [rows]
};

}  // namespace

template <class S>
void run_forward(KernelScope& scope, const Layout& layout, const ForwardOperands<S>& operands) {
  Forward<S>(scope, layout, operands).run();
}
template void run_forward(KernelScope&, const Layout&, const ForwardOperands<Fixed>&);
template void run_forward(KernelScope&, const Layout&, const ForwardOperands<double>&);
template void run_forward(KernelScope&, const Layout&, const ForwardOperands<float>&);

}  // namespace shardproof::attention
