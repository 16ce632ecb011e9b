// SPDX-License-Identifier: Apache-2.0
// Sums over the keys of several tiles stay unfinished until the last: o and dq as 128-bit totals, dk and dv in their
// accumulators. So every number is that of the kernels that store.
#include "kernels/attention/passes.hpp"
#include "kernels/dropout/dropout_row.hpp"

namespace shardproof::attention {

namespace {

constexpr std::int64_t tile_keys = 128;

/// Some queries of one head, and some keys that they may see.
struct Tile {
  std::int64_t b, h, g;  // sample, head, key head
  Range queries, keys;
};

/// What both kernels compute of a tile: [queries, keys], rows of tile_keys.
class Tiles {
 public:
  Tiles(KernelScope& scope, const Layout& layout, const Fixed* q, const Fixed* k, const std::int32_t* documents,
        const dropout::Site* site)
      : scope_(scope),
        layout_(layout),
        q_(q),
        k_(k),
        documents_(documents),
        site_(site),
        scale_(score_scale<Fixed>(layout.head_size)),
        keep_(site != nullptr ? round_to<Fixed>(dropout::keep_factor(site->probability)) : Fixed{}),
        products_(scope),
        scores_(scope.scratch<Fixed>(block_rows * tile_keys)),
        mask_(site != nullptr ? scope.scratch<std::uint8_t>(tile_keys) : nullptr) {}

  /// Calls f(queries, g) for all blocks of a head.
  template <class F>
  void each_block(F f) const {
    for (std::int64_t b = 0; b < layout_.batch; ++b) {
      for (std::int64_t h = 0; h < layout_.heads; ++h) {
        for (std::int64_t i = 0; i < layout_.sequence; i += block_rows) {
          f(Tile{b, h, layout_.key_head(h), {i, std::min(layout_.sequence, i + block_rows)}, {}});
        }
      }
    }
  }
  /// Calls f for all tiles of a block that something sees.
  template <class F>
  void each_tile(Tile block, F f) const {
    const auto* const documents = documents_ + block.b * layout_.sequence;
    const auto own = DocumentSpan::of(documents, block.queries);
    const Range all = layout_.keys(block.queries.first, block.queries.end);
    for (auto j = all.first; j < all.end; j += tile_keys) {
      block.keys = {j, std::min(j + tile_keys, all.end)};
      if (own.meets(DocumentSpan::of(documents, block.keys))) f(block);
    }
  }
  /// Calls f(i, keys, hidden) for every row of a tile: of the keys, the query sees those that `hidden` leaves.
  template <class F>
  void each_row(const Tile& tile, F f) const {
    const auto* const documents = documents_ + tile.b * layout_.sequence;
    for (auto i = tile.queries.first; i < tile.queries.end; ++i) {
      const Range row = layout_.keys(i, i + 1);
      const Range keys{std::max(row.first, tile.keys.first), std::min(row.end, tile.keys.end)};
      if (keys.count() > 0) f(i, keys, Hidden(documents + keys.first, keys.count(), documents[i]));
    }
  }

  /// The scores of a tile, scaled; unspecified where they are not seen.
  void score(const Tile& t) {
    product(t, q_, k_, scores_);
    const Team<Fixed> team;
    each_row(t, [&](std::int64_t i, Range keys, const Hidden& hidden) {
      Fixed* const x = at(scores_, t, i, keys);
      const auto n = keys.count();
      hidden.set(x, Fixed{});
      const auto top = greatest(x, n);
      note(top);
      const Fixed scale = scale_;
      with_arithmetic<Fixed>(fma_fits(top, greatest(&scale, 1)), [=]<class A>(A) {
        team.each(n, [=](std::int64_t j) { x[j] = A::finish(A::product(x[j], scale)); });
      });
    });
  }
  /// m = max(m, scores) by row of the block.
  void maximum(const Tile& t, Fixed* m) {
    each_row(t, [&](std::int64_t i, Range keys, const Hidden& hidden) {
      Fixed* const x = at(scores_, t, i, keys);
      hidden.set(x, lowest);
      auto& top = m[i - t.queries.first];
      top.raw = Team<Fixed>{}.fold(
          keys.count(), top.raw, [=](std::int64_t j) { return x[j].raw; }, Greatest{});
    });
  }
  /// Scores to e = R(exp(s - m)); 0 where they are not seen.
  void exponentials(const Tile& t, const Fixed* m) {
    const Team<Fixed> team;
    each_row(t, [&](std::int64_t i, Range keys, const Hidden& hidden) {
      Fixed* const x = at(scores_, t, i, keys);
      const auto n = keys.count();
      const Fixed top = m[i - t.queries.first];
      hidden.set(x, top);
      note(fold_magnitude(team, n, [=](std::int64_t j) { return sub_in_range(x[j], top); }));
      team.each(n, [=](std::int64_t j) { x[j] = round_to<Fixed>(exp_of(real(sub_in_range(x[j], top)))); });
      hidden.set(x, Fixed{});
    });
    clear_unseen(t, scores_);
  }
  /// Zeroes what no query of the row's position sees, documents aside.
  void clear_unseen(const Tile& t, Fixed* tile) const {
    for (auto i = t.queries.first; i < t.queries.end; ++i) {
      const Range row = layout_.keys(i, i + 1);
      Fixed* const x = tile + (i - t.queries.first) * tile_keys;
      const auto first = std::clamp(row.first, t.keys.first, t.keys.end) - t.keys.first;
      const auto end = std::clamp(row.end, t.keys.first, t.keys.end) - t.keys.first;
      std::fill(x, x + first, Fixed{});
      std::fill(x + end, x + t.keys.count(), Fixed{});
    }
  }

  /// to = x y^T over the features of queries and keys.
  void product(const Tile& t, const Fixed* x, const Fixed* y, Fixed* to) {
    matmul::multiply<Fixed>(products_, t.queries.count(), t.keys.count(), layout_.head_size, queries(t, x),
                            {y + layout_.key_at(t.b, t.g, t.keys.first), 1, layout_.kv_hidden()}, nullptr, to,
                            tile_keys);
  }
  /// totals [queries, head_size] += tile y
  void add_over_keys(const Tile& t, const Fixed* tile, const Fixed* y, FixedSum* totals) {
    matmul::multiply_add(products_, t.queries.count(), layout_.head_size, t.keys.count(), {tile, tile_keys, 1},
                         {y + layout_.key_at(t.b, t.g, t.keys.first), layout_.kv_hidden(), 1}, totals,
                         layout_.head_size);
  }
  /// sums += tile^T x
  void add_over_queries(const Tile& t, const Fixed* tile, const Fixed* x, matmul::Sums<Fixed>& sums) {
    matmul::multiply_add<Fixed>(products_, t.keys.count(), layout_.head_size, t.queries.count(), {tile, 1, tile_keys},
                                queries(t, x), sums, layout_.key_at(t.b, t.g, t.keys.first), layout_.kv_hidden());
  }

  static Fixed* at(Fixed* tile, const Tile& t, std::int64_t i, Range keys) {
    return tile + (i - t.queries.first) * tile_keys + (keys.first - t.keys.first);
  }
  /// Of some keys of row i: 1 kept, 0 dropped. Valid until the next call.
  const std::uint8_t* mask(const Tile& t, std::int64_t i, Range keys) {
    dropout::fill_mask(*site_, static_cast<std::uint64_t>(layout_.logical_row_at(t.b, t.h, i) + keys.first),
                       keys.count(), mask_);
    return mask_;
  }
  bool has_dropout() const { return site_ != nullptr; }
  Fixed* scores() const { return scores_; }
  Fixed scale() const { return scale_; }
  Fixed keep() const { return keep_; }
  /// Raises overflow for a raw magnitude out of range.
  void note(std::uint64_t magnitude) {
    if (magnitude >= static_cast<std::uint64_t>(fixed_limit)) scope_.raise_overflow();
  }
  static constexpr Fixed lowest{-fixed_limit + 1};

 private:
  matmul::View<Fixed> queries(const Tile& t, const Fixed* x) const {
    return {x + layout_.query_at(t.b, t.h, t.queries.first), layout_.hidden(), 1};
  }

  KernelScope& scope_;
  const Layout& layout_;
  const Fixed *q_, *k_;
  const std::int32_t* documents_;
  const dropout::Site* site_;
  const Fixed scale_, keep_;
  matmul::Workspace products_;
  Fixed* scores_;
  std::uint8_t* mask_;  // of one row
};

class Forward {
 public:
  Forward(KernelScope& scope, const Layout& layout, const TiledForwardOperands<Fixed>& operands)
      : layout_(layout),
        x_(operands),
        tiles_(scope, layout, x_.q, x_.k, x_.documents, x_.site),
        weighted_(scope.scratch<FixedSum>(block_rows * layout.head_size)) {}

  void run() {
    tiles_.each_block([this](const Tile& block) { this->block(block); });
  }

 private:
  void block(const Tile& block) {
    const auto statistics = (block.b * layout_.heads + block.h) * layout_.sequence + block.queries.first;
    Fixed *const m = x_.max + statistics, *const l = x_.sum + statistics;
    const auto rows = block.queries.count();
    std::fill_n(m, rows, Tiles::lowest);
    tiles_.each_tile(block, [&](const Tile& t) {
      tiles_.score(t);
      tiles_.maximum(t, m);
    });
    FixedSum sums[block_rows];
    std::fill_n(weighted_, rows * layout_.head_size, FixedSum{});
    tiles_.each_tile(block, [&](const Tile& t) {
      tiles_.score(t);
      tiles_.exponentials(t, m);
      tiles_.each_row(t, [&](std::int64_t i, Range keys, const Hidden&) {
        Fixed* const e = Tiles::at(tiles_.scores(), t, i, keys);
        // Each e is at most 1: a tile's sum is far from wrapping.
        sums[i - t.queries.first].raw += Team<Fixed>{}.fold(
            keys.count(), std::int64_t{0}, [=](std::int64_t j) { return e[j].raw; }, Plus{});
        if (!tiles_.has_dropout()) return;
        const auto* const kept = tiles_.mask(t, i, keys);
        for (std::int64_t j = 0; j < keys.count(); ++j) e[j].raw &= -std::int64_t{kept[j]};
      });
      tiles_.add_over_keys(t, tiles_.scores(), x_.v, weighted_);
    });
    for (std::int64_t r = 0; r < rows; ++r) {
      l[r] = finish<Fixed>(sums[r]);
      divide(weighted_ + r * layout_.head_size, l[r],
             x_.o + layout_.query_at(block.b, block.h, block.queries.first + r));
    }
  }

  /// o = R(D(fin(sum))/D(l)), times the factor of kept elements before the division.
  void divide(const FixedSum* sum, Fixed l, Fixed* o) {
    const double factor = tiles_.has_dropout() ? real(tiles_.keep()) : 1.0;  // times 1 is exact
    for (std::int64_t u = 0; u < layout_.head_size; ++u) {
      const Fixed total = finish<Fixed>(sum[u]);
      tiles_.note(magnitude(total));
      o[u] = round_to<Fixed>((real(total) * factor) / real(l));
    }
  }

  const Layout& layout_;
  const TiledForwardOperands<Fixed>& x_;
  Tiles tiles_;
  FixedSum* weighted_;  // of one block: sum e v
};

class Backward {
 public:
  Backward(KernelScope& scope, const Layout& layout, const TiledBackwardOperands<Fixed>& operands)
      : layout_(layout),
        x_(operands),
        blocks_((layout.sequence + block_rows - 1) / block_rows),
        tiles_(scope, layout, x_.q, x_.k, x_.documents, x_.site),
        dk_(scope, x_.dk, levels()),
        dv_(scope, x_.dv, levels()),
        ds_(scope.scratch<Fixed>(block_rows * tile_keys)),
        dq_(scope.scratch<FixedSum>(block_rows * layout.head_size)),
        fast_dot_(fma_sum_fits(greatest(x_.d_o, queries_size()), greatest(x_.o, queries_size()), layout.head_size)) {}

  void run() {
    tiles_.each_block([this](const Tile& block) { this->block(block); });
  }

 private:
  /// Blocks of queries of the heads that share a key head add to the same elements of dk and dv; no others do.
  std::int64_t levels() const { return std::max<std::int64_t>(1, std::min(layout_.group, layout_.heads) * blocks_); }
  std::int64_t queries_size() const { return layout_.batch * layout_.sequence * layout_.hidden(); }

  void block(const Tile& block) {
    const auto statistics = (block.b * layout_.heads + block.h) * layout_.sequence + block.queries.first;
    const Fixed *const m = x_.max + statistics, *const l = x_.sum + statistics;
    const auto rows = block.queries.count();
    const auto level = (block.h - layout_.members(block.g).first) * blocks_ + block.queries.first / block_rows;
    dk_.enter(level);
    dv_.enter(level);
    Fixed dots[block_rows];
    for (std::int64_t r = 0; r < rows; ++r) {
      dots[r] = dot(layout_.query_at(block.b, block.h, block.queries.first + r));
      tiles_.note(magnitude(dots[r]));
    }
    std::fill_n(dq_, rows * layout_.head_size, FixedSum{});
    tiles_.each_tile(block, [&](const Tile& t) {
      tiles_.score(t);
      tiles_.exponentials(t, m);
      tiles_.product(t, x_.d_o, x_.v, ds_);
      tiles_.each_row(t, [&](std::int64_t i, Range keys, const Hidden& hidden) {
        const auto r = i - t.queries.first;
        row(t, i, keys, hidden, l[r], dots[r]);
      });
      tiles_.clear_unseen(t, ds_);
      tiles_.add_over_keys(t, ds_, x_.k, dq_);
      tiles_.add_over_queries(t, ds_, x_.q, dk_);
      tiles_.add_over_queries(t, tiles_.scores(), x_.d_o, dv_);
    });
    for (std::int64_t r = 0; r < rows; ++r) {
      Fixed* const dq = x_.dq + layout_.query_at(block.b, block.h, block.queries.first + r);
      for (std::int64_t u = 0; u < layout_.head_size; ++u) dq[u] = finish<Fixed>(dq_[r * layout_.head_size + u]);
    }
  }

  /// fin(sum_u product(do_u, o_u)) at a query's first element.
  Fixed dot(std::int64_t query) const {
    const Fixed *const d_o = x_.d_o + query, *const o = x_.o + query;
    Fixed sum{};
    with_arithmetic<Fixed>(fast_dot_, [&]<class A>(A) {
      sum =
          fold_products<A>(Team<Fixed>{}, layout_.head_size, [=](std::int64_t u) { return A::product(d_o[u], o[u]); });
    });
    return sum;
  }

  /// Turns e into pd, and t into ds.
  void row(const Tile& tile, std::int64_t i, Range keys, const Hidden& hidden, Fixed l, Fixed total) {
    const Team<Fixed> team;
    const auto n = keys.count();
    Fixed *const p = Tiles::at(tiles_.scores(), tile, i, keys), *const t = Tiles::at(ds_, tile, i, keys);
    const double divisor = real(l);
    team.each(n, [=](std::int64_t j) { p[j] = round_to<Fixed>(real(p[j]) / divisor); });
    hidden.set(t, Fixed{});
    tiles_.note(greatest(t, n));
    const auto* const kept = tiles_.has_dropout() ? tiles_.mask(tile, i, keys) : nullptr;
    if (kept != nullptr) dropout::KeepRow<Fixed>{t, kept, t, tiles_.keep()}(team, n);
    const Fixed scale = tiles_.scale();
    // t - total is at most twice the larger; p and scale are at most 1.
    const bool fits = fma_fits(std::max(greatest(t, n), greatest(&total, 1)), std::uint64_t{1} << 41);
    if (!fits) tiles_.note(fold_magnitude(team, n, [=](std::int64_t j) { return sub_in_range(t[j], total); }));
    with_arithmetic<Fixed>(fits, [=]<class A>(A) {
      team.each(n, [=](std::int64_t j) {
        const Fixed scaled = A::finish(A::product(p[j], sub_in_range(t[j], total)));
        t[j] = A::finish(A::product(scaled, scale));
      });
    });
    if (kept != nullptr) dropout::KeepRow<Fixed>{p, kept, p, tiles_.keep()}(team, n);
  }

  const Layout& layout_;
  const TiledBackwardOperands<Fixed>& x_;
  const std::int64_t blocks_;
  Tiles tiles_;
  matmul::Sums<Fixed> dk_, dv_;
  Fixed* ds_;     // of one tile
  FixedSum* dq_;  // of one block
  const bool fast_dot_;
};

}  // namespace

template <>
void run_tiled_forward(KernelScope& scope, const Layout& layout, const TiledForwardOperands<Fixed>& operands) {
  Forward(scope, layout, operands).run();
}
template <>
void run_tiled_backward(KernelScope& scope, const Layout& layout, const TiledBackwardOperands<Fixed>& operands) {
  Backward(scope, layout, operands).run();
}

}  // namespace shardproof::attention
