// SPDX-License-Identifier: Apache-2.0
// The exact product: operands are packed as doubles into panels that register tiles read in order, blocked as in Goto
// and van de Geijn 2008. A tile's sums are int64 and go to a sink: the output where a bound shows that no total leaves
// the range, 128-bit totals where not.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/matmul/gemm.hpp"
#include "kernels/matmul/pack.hpp"

namespace shardproof::matmul {

namespace {

// Packed b: depth x columns, read once per row block. Packed a: rows x depth, stays in the second-level cache.
constexpr std::int64_t block_depth = 512, block_rows = 64, block_columns = 768;
static_assert(block_depth <= tile_depth && block_rows % tile_rows == 0 && block_columns % tile_columns == 0);
// Blocks of 128-bit totals.
constexpr std::int64_t total_rows = 64, total_columns = 192;

struct Product {
  std::int64_t m, n, k;
  View<Fixed> a, b;
};

View<Fixed> from(View<Fixed> view, std::int64_t row, std::int64_t column) {
  return {view.data + row * view.row_stride + column * view.column_stride, view.row_stride, view.column_stride};
}

/// The largest raw magnitude. Lanes hide the latency of a vector maximum; they are folded once, not once a row.
std::uint64_t greatest(View<Fixed> v, std::int64_t rows, std::int64_t columns) {
  if (v.column_stride != 1) return greatest({v.data, v.column_stride, v.row_stride}, columns, rows);
  constexpr std::int64_t width = 32;
  std::uint64_t lane[width] = {};
  for (std::int64_t i = 0; i < rows; ++i) {
    const Fixed* const row = v.data + i * v.row_stride;
    std::int64_t j = 0;
    for (; j + width <= columns; j += width) {
      for (std::int64_t l = 0; l < width; ++l) lane[l] = std::max(lane[l], magnitude(row[j + l]));
    }
    for (; j < columns; ++j) lane[0] = std::max(lane[0], magnitude(row[j]));
  }
  return *std::max_element(lane, lane + width);
}

/// What the magnitudes of both operands say.
struct Bounds {
  bool fast;   // fma_fits
  double sum;  // on every element's magnitude, in raw units, but for this expression's own rounding
};
Bounds bounds_of(const Product& p) {
  const auto a = greatest(p.a, p.m, p.k), b = greatest(p.b, p.k, p.n);
  const double largest = static_cast<double>(a) * static_cast<double>(b) * 0x1p-40 + 1.0;
  return {fma_fits(a, b), static_cast<double>(p.k) * largest};
}

using Tile = void (*)(std::int64_t, const double*, const double*, std::int64_t*);
template <int... index>
constexpr auto make_tiles(std::integer_sequence<int, index...>) {
  return std::array<Tile, sizeof...(index)>{multiply_tile<index / tile_vectors + 1, index % tile_vectors + 1>...};
}
constexpr auto tiles = make_tiles(std::make_integer_sequence<int, tile_rows * tile_vectors>());

/// sink.begin(i, j, m, n) announces the elements of a block, sink.add(i, j, ...) receives their sums in parts.
template <class Sink>
void add_packed(Workspace& workspace, const Product& p, Sink& sink) {
  const auto padded = [](std::int64_t columns) { return (columns + lanes - 1) / lanes * lanes; };
  const std::int64_t depth_limit = std::min(p.k, block_depth);
  double* const packed_a =
      workspace.panels((std::min(p.m, block_rows) + padded(std::min(p.n, block_columns))) * depth_limit);
  double* const packed_b = packed_a + std::min(p.m, block_rows) * depth_limit;
  alignas(64) std::int64_t out[tile_rows * tile_columns];

  for (std::int64_t j0 = 0; j0 < p.n; j0 += block_columns) {
    const std::int64_t columns = std::min(block_columns, p.n - j0);
    for (std::int64_t k0 = 0; k0 < p.k; k0 += block_depth) {
      const std::int64_t depth = std::min(block_depth, p.k - k0);
      const auto b = from(p.b, k0, j0);
      pack<tile_columns, lanes>({b.data, b.column_stride, b.row_stride}, columns, depth, 0x1p-40, packed_b);
      for (std::int64_t i0 = 0; i0 < p.m; i0 += block_rows) {
        const std::int64_t rows = std::min(block_rows, p.m - i0);
        pack<tile_rows, 1>(from(p.a, i0, k0), rows, depth, 1.0, packed_a);
        if (k0 == 0) sink.begin(i0, j0, rows, columns);
        for (std::int64_t j = 0; j < columns; j += tile_columns) {
          const std::int64_t used = std::min<std::int64_t>(tile_columns, columns - j), width = padded(used);
          for (std::int64_t i = 0; i < rows; i += tile_rows) {
            const std::int64_t height = std::min<std::int64_t>(tile_rows, rows - i);
            const auto tile = tiles[static_cast<std::size_t>((height - 1) * tile_vectors + width / lanes - 1)];
            for (std::int64_t r = 0; r < height; ++r) sink.expect(i0 + i + r, j0 + j, used);
            tile(depth, packed_a + i * depth, packed_b + j * depth, out);
            for (std::int64_t r = 0; r < height; ++r) {
              for (std::int64_t c = 0; c < used; ++c) sink.add(i0 + i + r, j0 + j + c, FixedSum{out[r * width + c]});
            }
          }
        }
      }
    }
  }
}

/// Any magnitudes, and no products at all; in 128 bits.
template <class Sink>
void add_plain(const Product& p, Sink& sink) {
  constexpr std::int64_t block = 64;
  FixedSum sum[block];
  sink.begin(0, 0, p.m, p.n);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j0 = 0; j0 < p.n; j0 += block) {
      const std::int64_t columns = std::min(block, p.n - j0);
      std::fill_n(sum, columns, FixedSum{});
      for (std::int64_t k = 0; k < p.k; ++k) {
        const Fixed x = *from(p.a, i, k).data;
        const Fixed* y = from(p.b, k, j0).data;
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += product(x, y[j * p.b.column_stride]);
      }
      for (std::int64_t j = 0; j < columns; ++j) sink.add(i, j0 + j, sum[j]);
    }
  }
}

template <class Sink>
void add_product(Workspace& workspace, const Product& p, bool fast, Sink& sink) {
  fast&& p.k > 0 ? add_packed(workspace, p, sink) : add_plain(p, sink);
}

/// Fetches n elements that a tile will be added to.
void prefetch(const Fixed* c, std::int64_t n) {
  for (std::int64_t k = 0; k < n; k += 8) __builtin_prefetch(c + k, 1);
}

/// Straight to the output: no partial sum leaves an int64.
struct Narrow {
  Fixed* c;
  std::int64_t stride;
  const Fixed* bias;
  void begin(std::int64_t i, std::int64_t j, std::int64_t m, std::int64_t n) {
    for (Fixed* to = c + i * stride + j; m > 0; --m, to += stride) {
      bias != nullptr ? std::copy_n(bias + j, n, to) : std::fill_n(to, n, Fixed{});
    }
  }
  void expect(std::int64_t i, std::int64_t j, std::int64_t n) { prefetch(c + i * stride + j, n); }
  void add(std::int64_t i, std::int64_t j, FixedSum sum) {
    c[i * stride + j].raw += static_cast<std::int64_t>(sum.raw);
  }
};
/// To totals that hold what they begin with.
struct Totals {
  FixedSum* total;
  std::int64_t stride;
  void begin(std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  void expect(std::int64_t, std::int64_t, std::int64_t) {}
  void add(std::int64_t i, std::int64_t j, FixedSum sum) { total[i * stride + j] += sum; }
};
struct Lanes {
  AccumulatorView<Fixed>& view;
  std::int64_t first, stride;
  void begin(std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  void expect(std::int64_t i, std::int64_t j, std::int64_t n) { prefetch(view.data() + first + i * stride + j, n); }
  void add(std::int64_t i, std::int64_t j, FixedSum sum) { view.add(first + i * stride + j, sum); }
};

/// One block by 128-bit totals; whether one of them is out of range.
bool multiply_block(Workspace& workspace, const Product& p, bool fast, const Fixed* bias, Fixed* c,
                    std::int64_t c_stride) {
  Totals sink{workspace.totals(p.m * p.n), p.n};
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      sink.total[i * p.n + j] = bias != nullptr ? term(bias[j]) : FixedSum{};
    }
  }
  add_product(workspace, p, fast, sink);
  bool out_of_range = false;
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      const Fixed value = finish<Fixed>(sink.total[i * p.n + j]);
      c[i * c_stride + j] = value;
      out_of_range |= !in_range(value);
    }
  }
  return out_of_range;
}

}  // namespace

template <>
bool multiply(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<Fixed> a, View<Fixed> b,
              const Fixed* bias, Fixed* c, std::int64_t c_stride) {
  const Product all{m, n, k, a, b};
  const Bounds bounds = bounds_of(all);
  const double bias_bound = bias != nullptr ? static_cast<double>(greatest({bias, n, 1}, 1, n)) : 0.0;
  // Half of the range leaves room for the rounding of the bound itself.
  if (bounds.sum + bias_bound < 0x1p61) {
    Narrow sink{c, c_stride, bias};
    add_product(workspace, all, bounds.fast, sink);
    return false;
  }
  bool out_of_range = false;
  for (std::int64_t i = 0; i < m; i += total_rows) {
    for (std::int64_t j = 0; j < n; j += total_columns) {
      const Product block{std::min(total_rows, m - i), std::min(total_columns, n - j), k, from(a, i, 0), from(b, 0, j)};
      out_of_range |= multiply_block(workspace, block, bounds.fast, bias != nullptr ? bias + j : nullptr,
                                     c + i * c_stride + j, c_stride);
    }
  }
  return out_of_range;
}

template <>
void multiply_add(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<Fixed> a, View<Fixed> b,
                  Sums<Fixed>& sums, std::int64_t first, std::int64_t stride) {
  const Product all{m, n, k, a, b};
  const Bounds bounds = bounds_of(all);
  Lanes sink{sums.view(bounds.sum * 0x1p-40), first, stride};
  add_product(workspace, all, bounds.fast, sink);
}

void multiply_add(Workspace& workspace, std::int64_t m, std::int64_t n, std::int64_t k, View<Fixed> a, View<Fixed> b,
                  FixedSum* totals, std::int64_t stride) {
  const Product all{m, n, k, a, b};
  Totals sink{totals, stride};
  add_product(workspace, all, bounds_of(all).fast, sink);
}

}  // namespace shardproof::matmul
