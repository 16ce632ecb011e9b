// SPDX-License-Identifier: Apache-2.0
// Tiles lie with keys as rows and queries as columns: what a row of the attention matrix folds is then folded down a
// column, in as many queries at once as a vector holds, and the queries alone are transposed, once a block.
#include "kernels/attention/passes.hpp"
#include "kernels/attention/tile_product.hpp"

namespace shardproof::attention {

namespace {

constexpr std::int64_t tile_keys = 64;

/// to[u * block_rows + i] = x(i, u) * factor for i < rows; 0 up to the width.
template <class S>
void transpose(const S* x, std::int64_t stride, std::int64_t rows, std::int64_t columns, S factor, std::int64_t width,
               S* to) {
  constexpr int lanes = tile_lanes<S>;
  const auto whole = columns / lanes * lanes;
  for (std::int64_t i = 0; i < width; i += lanes) {
    for (std::int64_t u = 0; u < whole; u += lanes) {
      Vector<S> row[lanes] = {};
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) {
        if (i + l < rows) std::memcpy(&row[l], x + (i + l) * stride + u, sizeof row[l]);
      }
      matmul::transpose(row);
#pragma GCC unroll 16
      for (int l = 0; l < lanes; ++l) {
        row[l] *= factor;
        std::memcpy(to + (u + l) * block_rows + i, &row[l], sizeof row[l]);
      }
    }
    for (auto u = whole; u < columns; ++u) {
      for (int l = 0; l < lanes; ++l)
        to[u * block_rows + i + l] = i + l < rows ? x[(i + l) * stride + u] * factor : S{};
    }
  }
}

/// Some queries of one head.
struct Block {
  std::int64_t b, h, g;  // sample, head, key head
  Range queries;
};

/// What both kernels do to a tile of scores [keys, block_rows], of which the block's queries fill the first columns, up
/// to a whole vector.
template <class S>
class Scores {
 public:
  Scores(KernelScope& scope, const Layout& layout, const S* q, const S* k, const std::int32_t* documents,
         const dropout::Site* site)
      : layout_(layout),
        q_(q),
        k_(k),
        documents_(documents),
        site_(site),
        scale_(score_scale<S>(layout.head_size)),
        queries_(scope.scratch<S>(block_rows * layout.head_size)),
        tile_(scope.scratch<S>(block_rows * tile_keys)),
        mask_(site != nullptr ? scope.scratch<std::uint8_t>(2 * block_rows * tile_keys) : nullptr) {}

  /// Calls f(block) for all blocks.
  template <class F>
  void each_block(F f) {
    for (std::int64_t b = 0; b < layout_.batch; ++b) {
      for (std::int64_t h = 0; h < layout_.heads; ++h) {
        for (std::int64_t i = 0; i < layout_.sequence; i += block_rows) {
          block_ = {b, h, layout_.key_head(h), {i, std::min(layout_.sequence, i + block_rows)}};
          begin();
          f(block_);
        }
      }
    }
  }
  /// Calls f(keys) for all tiles of the block that something sees; the scores are scaled, and `lowest` where not seen.
  template <class F>
  void each_tile(F f) {
    const auto* const documents = documents_ + block_.b * layout_.sequence;
    const Range all = layout_.keys(block_.queries.first, block_.queries.end);
    for (auto j = all.first; j < all.end; j += tile_keys) {
      const Range keys{j, std::min(j + tile_keys, all.end)};
      const auto span = DocumentSpan::of(documents, keys);
      if (!span_.meets(span)) continue;
      product(keys, k_, queries_, tile_);
      hide(keys, span);
      f(keys);
    }
  }

  /// to = y x^T for keys of y and the block's transposed x.
  void product(Range keys, const S* y, const S* transposed, S* to) const {
    multiply_tile<S>(keys.count(), width(), layout_.head_size,
                     {y + layout_.key_at(block_.b, block_.g, keys.first), layout_.kv_hidden(), 1}, transposed,
                     block_rows, false, to, block_rows, diagonal(Diagonal::Of::result, keys));
  }
  Diagonal diagonal(Diagonal::Of of, Range keys) const { return {of, keys.first - block_.queries.first}; }
  /// For the keys of a tile [keys, block_rows], in `mask()`: whether they are kept.
  void draw_mask(Range keys) {
    std::uint8_t* const drawn = mask_ + block_rows * tile_keys;
    for (std::int64_t i = 0; i < rows(); ++i) {
      const auto at = layout_.logical_row_at(block_.b, block_.h, block_.queries.first + i) + keys.first;
      dropout::fill_mask(*site_, static_cast<std::uint64_t>(at), keys.count(), drawn + i * tile_keys);
    }
    for (std::int64_t j = 0; j < keys.count(); ++j) {
      for (std::int64_t i = 0; i < rows(); ++i) mask_[j * block_rows + i] = drawn[i * tile_keys + j];
      std::fill(mask_ + j * block_rows + rows(), mask_ + j * block_rows + width(), std::uint8_t{0});
    }
  }

  std::int64_t rows() const { return block_.queries.count(); }
  /// Columns of a tile in use: the block's queries, and up to a whole vector of nothing.
  std::int64_t width() const { return (rows() + tile_lanes<S> - 1) / tile_lanes<S> * tile_lanes<S>; }
  bool has_dropout() const { return site_ != nullptr; }
  /// The factor of what is kept, 1 without dropout.
  S keep() const { return site_ != nullptr ? static_cast<S>(dropout::keep_factor(site_->probability)) : S{1}; }
  S scale() const { return scale_; }
  S* tile() const { return tile_; }
  const std::uint8_t* mask() const { return mask_; }
  static constexpr S lowest = std::numeric_limits<S>::lowest();

 private:
  void begin() {
    const auto* const documents = documents_ + block_.b * layout_.sequence + block_.queries.first;
    span_ = DocumentSpan::of(documents, {0, rows()});
    for (std::int64_t i = 0; i < width(); ++i) own_[i] = documents[std::min(i, rows() - 1)];
    transpose(q_ + layout_.query_at(block_.b, block_.h, block_.queries.first), layout_.hidden(), rows(),
              layout_.head_size, scale_, width(), queries_);
  }

  void hide(Range keys, DocumentSpan span) {
    const auto first = block_.queries.first;
    const bool below_diagonal = keys.end - 1 <= first;
    const bool inside_window = layout_.window == 0 || block_.queries.end - keys.first <= layout_.window;
    if (below_diagonal && inside_window && span_.is_one_with(span)) return;
    const auto columns = static_cast<std::int32_t>(width());
    const auto window =
        static_cast<std::int32_t>(layout_.window == 0 ? layout_.sequence : std::min(layout_.window, layout_.sequence));
    const auto* const documents = documents_ + block_.b * layout_.sequence;
    for (auto j = keys.first; j < keys.end; ++j) {
      S* const row = tile_ + (j - keys.first) * block_rows;
      const auto diagonal = static_cast<std::int32_t>(j - first);  // the column that is this key's own query
      const auto document = documents[j];
#pragma GCC ivdep
      for (std::int32_t i = 0; i < columns; ++i) {
        const bool seen = (i >= diagonal) & (i - diagonal < window) & (own_[i] == document);
        row[i] = seen ? row[i] : lowest;
      }
    }
  }

  const Layout& layout_;
  const S *q_, *k_;
  const std::int32_t* documents_;
  const dropout::Site* site_;
  const S scale_;
  S *queries_, *tile_;  // of the block, scaled: [head_size, block_rows]; [tile_keys, block_rows]
  std::uint8_t* mask_;  // [tile_keys, block_rows], and as drawn [block_rows, tile_keys]
  Block block_{};
  DocumentSpan span_{};
  std::int32_t own_[block_rows];  // documents of the queries
};

template <class S>
class Forward {
 public:
  Forward(KernelScope& scope, const Layout& layout, const TiledForwardOperands<S>& operands)
      : layout_(layout), x_(operands), scores_(scope, layout, x_.q, x_.k, x_.documents, x_.site) {}

  void run() {
    scores_.each_block([this](const Block& block) { this->block(block); });
  }

 private:
  void block(const Block& block) {
    const auto rows = scores_.rows(), width = scores_.width(), size = layout_.head_size;
    std::fill_n(max_, width, scores_.lowest);
    std::fill_n(sum_, width, S{});
    S* const o = x_.o + layout_.query_at(block.b, block.h, block.queries.first);
    bool is_first = true;
    scores_.each_tile([&](Range keys) {
      const bool grown = exponentials(keys.count(), width);
      if (grown && !is_first) {
        for (std::int64_t i = 0; i < rows; ++i) scale_row(o + i * layout_.hidden(), size, shrink_[i]);
      }
      if (scores_.has_dropout()) drop(keys, width);
      multiply_tile<S>(rows, size, keys.count(), {scores_.tile(), 1, block_rows},
                       x_.v + layout_.key_at(block.b, block.g, keys.first), layout_.kv_hidden(), !is_first, o,
                       layout_.hidden(), scores_.diagonal(Diagonal::Of::queries_rows, keys));
      is_first = false;
    });
    const auto statistics = (block.b * layout_.heads + block.h) * layout_.sequence + block.queries.first;
    for (std::int64_t i = 0; i < rows; ++i) {
      x_.max[statistics + i] = max_[i];
      x_.sum[statistics + i] = sum_[i];
      scale_row(o + i * layout_.hidden(), size, scores_.keep() / sum_[i]);
    }
  }

  /// Takes a tile into maxima and sums, and turns its scores into e of the maxima so far; whether a maximum has grown,
  /// and then by what factor earlier tiles shrink.
  bool exponentials(std::int64_t keys, std::int64_t width) {
    const Team<S> team;
    S *const tile = scores_.tile(), *const max = max_, *const sum = sum_, *const shrink = shrink_;
    S top[block_rows];
    std::copy_n(max, width, top);
    for (std::int64_t j = 0; j < keys; ++j) {
      const S* const s = tile + j * block_rows;
      team.each(width, [&top, s](std::int64_t i) { top[i] = top[i] > s[i] ? top[i] : s[i]; });
    }
    bool grown = false;
    for (std::int64_t i = 0; i < width; ++i) grown |= top[i] != max[i];
    if (grown) {
      team.each(width, [&top, max, sum, shrink](std::int64_t i) {
        shrink[i] = exp_of(max[i] - top[i]);
        sum[i] *= shrink[i];
        max[i] = top[i];
      });
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      S* const s = tile + j * block_rows;
      team.each(width, [=](std::int64_t i) {
        const S e = exp_of(s[i] - max[i]);
        s[i] = s[i] != Scores<S>::lowest ? e : S{};
        sum[i] += s[i];
      });
    }
    return grown;
  }

  void drop(Range keys, std::int64_t width) {
    scores_.draw_mask(keys);
    for (std::int64_t j = 0; j < keys.count(); ++j) {
      S* const e = scores_.tile() + j * block_rows;
      const auto* const kept = scores_.mask() + j * block_rows;
      Team<S>{}.each(width, [=](std::int64_t i) { e[i] = kept[i] != 0 ? e[i] : S{}; });
    }
  }

  static void scale_row(S* x, std::int64_t n, S factor) {
    Team<S>{}.each(n, [=](std::int64_t u) { x[u] *= factor; });
  }

  const Layout& layout_;
  const TiledForwardOperands<S>& x_;
  Scores<S> scores_;
  alignas(64) S max_[block_rows], sum_[block_rows], shrink_[block_rows];  // of the block's queries
};

template <class S>
class Backward {
 public:
  Backward(KernelScope& scope, const Layout& layout, const TiledBackwardOperands<S>& operands)
      : layout_(layout),
        x_(operands),
        scores_(scope, layout, x_.q, x_.k, x_.documents, x_.site),
        dk_(AccumulatorView<S>(scope, x_.dk, 0).data()),
        dv_(AccumulatorView<S>(scope, x_.dv, 0).data()),
        d_o_(scope.scratch<S>(block_rows * layout.head_size)),
        ds_(scope.scratch<S>(block_rows * tile_keys)) {}

  void run() {
    scores_.each_block([this](const Block& block) { this->block(block); });
  }

 private:
  void block(const Block& block) {
    const auto rows = scores_.rows(), width = scores_.width(), size = layout_.head_size;
    const auto at = layout_.query_at(block.b, block.h, block.queries.first);
    const auto statistics = (block.b * layout_.heads + block.h) * layout_.sequence + block.queries.first;
    const auto stride = layout_.hidden(), kv_stride = layout_.kv_hidden();
    for (std::int64_t i = 0; i < width; ++i) {
      max_[i] = i < rows ? x_.max[statistics + i] : S{};
      inverse_[i] = i < rows ? S{1} / x_.sum[statistics + i] : S{};
      dot_[i] = i < rows ? dot(at + i * stride) : S{};
    }
    transpose(x_.d_o + at, stride, rows, size, S{1}, width, d_o_);
    bool is_first = true;
    scores_.each_tile([&](Range keys) {
      scores_.product(keys, x_.v, d_o_, ds_);
      scores_.has_dropout() ? gradients<true>(keys, width) : gradients<false>(keys, width);
      const auto kv = layout_.key_at(block.b, block.g, keys.first);
      const auto keys_rows = scores_.diagonal(Diagonal::Of::keys_rows, keys);
      multiply_tile<S>(keys.count(), size, rows, {scores_.tile(), block_rows, 1}, x_.d_o + at, stride, true, dv_ + kv,
                       kv_stride, keys_rows);
      multiply_tile<S>(keys.count(), size, rows, {ds_, block_rows, 1}, x_.q + at, stride, true, dk_ + kv, kv_stride,
                       keys_rows);
      multiply_tile<S>(rows, size, keys.count(), {ds_, 1, block_rows}, x_.k + kv, kv_stride, !is_first, x_.dq + at,
                       stride, scores_.diagonal(Diagonal::Of::queries_rows, keys));
      is_first = false;
    });
  }

  /// sum_u do_u o_u at a query's first element.
  S dot(std::int64_t query) const {
    const S *const d_o = x_.d_o + query, *const o = x_.o + query;
    return Team<S>{}.fold(
        layout_.head_size, S{}, [=](std::int64_t u) { return d_o[u] * o[u]; }, Plus{});
  }

  /// Turns scores into pd, and t into ds.
  template <bool dropout>
  void gradients(Range keys, std::int64_t width) {
    if constexpr (dropout) scores_.draw_mask(keys);
    const S *const max = max_, *const inverse = inverse_, *const dot = dot_;
    const S keep = scores_.keep(), scale = scores_.scale();
    for (std::int64_t j = 0; j < keys.count(); ++j) {
      S *const s = scores_.tile() + j * block_rows, *const t = ds_ + j * block_rows;
      [[maybe_unused]] const auto* const kept = scores_.mask() + j * block_rows;
      Team<S>{}.each(width, [=](std::int64_t i) {
        const bool seen = s[i] != Scores<S>::lowest;
        // Zero before the product: the least exponential times 1/l would be subnormal, which costs a hundred cycles.
        const S p = (seen ? exp_of(s[i] - max[i]) : S{}) * inverse[i];
        S dp = t[i], pd = p;
        if constexpr (dropout) {
          dp = kept[i] != 0 ? keep * t[i] : S{};
          pd = kept[i] != 0 ? p * keep : S{};
        }
        const S ds = (p * (dp - dot[i])) * scale;
        s[i] = seen ? pd : S{};
        t[i] = seen ? ds : S{};
      });
    }
  }

  const Layout& layout_;
  const TiledBackwardOperands<S>& x_;
  Scores<S> scores_;
  S *dk_, *dv_;
  S *d_o_, *ds_;  // of the block, transposed: [head_size, block_rows]; of one tile: [tile_keys, block_rows]
  alignas(64) S max_[block_rows], inverse_[block_rows], dot_[block_rows];  // m, 1/l and sum do o of the block's queries
};

}  // namespace

template <class S>
void run_tiled_forward(KernelScope& scope, const Layout& layout, const TiledForwardOperands<S>& operands) {
  Forward<S>(scope, layout, operands).run();
}
template void run_tiled_forward(KernelScope&, const Layout&, const TiledForwardOperands<double>&);
template void run_tiled_forward(KernelScope&, const Layout&, const TiledForwardOperands<float>&);

template <class S>
void run_tiled_backward(KernelScope& scope, const Layout& layout, const TiledBackwardOperands<S>& operands) {
  Backward<S>(scope, layout, operands).run();
}
template void run_tiled_backward(KernelScope&, const Layout&, const TiledBackwardOperands<double>&);
template void run_tiled_backward(KernelScope&, const Layout&, const TiledBackwardOperands<float>&);

}  // namespace shardproof::attention
