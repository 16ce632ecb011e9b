// SPDX-License-Identifier: Apache-2.0
// Products of tiles of f64 and f32 that lie in the first-level cache: for these sizes a call of BLAS costs as much as
// the product.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/matmul/gemm.hpp"
#include "kernels/matmul/transpose.hpp"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

namespace shardproof::attention {

// Sums stay in registers: rows * vectors of them, beside `vectors` of b.
#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, register_rows = 8, register_vectors = 2;
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr int vector_bytes = 32, register_rows = 4, register_vectors = 2;
#else
inline constexpr int vector_bytes = 16, register_rows = 4, register_vectors = 2;
#endif

template <class S>
inline constexpr int tile_lanes = vector_bytes / static_cast<int>(sizeof(S));

template <class S>
struct Lanes {
  typedef S Vector __attribute__((vector_size(vector_bytes)));
};
template <class S>
using Vector = typename Lanes<S>::Vector;

/// a b + c, rounded once where the processor can.
inline Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return (Vector<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (Vector<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}
inline Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__)
  return (Vector<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (Vector<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return a * b + c;
#endif
}

namespace detail {

/// c [rows, vectors * lanes] = (or +=) a b over `depth`.
template <class S, int rows, int vectors>
void multiply_registers(std::int64_t depth, matmul::View<S> a, const S* b, std::int64_t b_stride, bool add, S* c,
                        std::int64_t c_stride) {
  constexpr int lanes = tile_lanes<S>;
  Vector<S> sum[rows][vectors] = {};
  if (add) {
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) std::memcpy(&sum[i][v], c + i * c_stride + v * lanes, sizeof sum[i][v]);
    }
  }
  const auto step = [&](const S* x, std::int64_t stride) {
    Vector<S> y[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) std::memcpy(&y[v], b + v * lanes, sizeof y[v]);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const Vector<S> factor = x[i * stride] - Vector<S>{};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] = fused(factor, y[v], sum[i][v]);
    }
    b += b_stride;
  };
  if (a.row_stride == 1) {
    for (std::int64_t k = 0; k < depth; ++k) step(a.data + k * a.column_stride, 1);
  } else {
    for (std::int64_t k = 0; k < depth; ++k) step(a.data + k, a.row_stride);
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) std::memcpy(c + i * c_stride + v * lanes, &sum[i][v], sizeof sum[i][v]);
  }
}

template <class S>
using Registers = void (*)(std::int64_t, matmul::View<S>, const S*, std::int64_t, bool, S*, std::int64_t);
template <class S, int... index>
constexpr auto make_registers(std::integer_sequence<int, index...>) {
  return std::array<Registers<S>, sizeof...(index)>{
      multiply_registers<S, index / register_vectors + 1, index % register_vectors + 1>...};
}

}  // namespace detail

/// What need not be computed of a product with a tile that the diagonal cuts: key j and query i with i < j + offset do
/// not see each other.
struct Diagonal {
  enum class Of : std::uint8_t {
    result,       ///< c is a tile, rows of keys: columns that their row does not see are unspecified, or computed
    keys_rows,    ///< rows are keys, the sum runs over queries: those that see none of a block of rows are left out
    queries_rows  ///< rows are queries, the sum runs over keys
  };
  Of of;
  std::int64_t offset;
};

/// c(i,j) = (or +=) sum_k a(i,k) b(k,j) for i < m, j < n, k < depth; rows of b and c are contiguous. Columns beyond the
/// last whole vector are slow.
template <class S>
void multiply_tile(std::int64_t m, std::int64_t n, std::int64_t depth, matmul::View<S> a, const S* b,
                   std::int64_t b_stride, bool add, S* c, std::int64_t c_stride, Diagonal diagonal) {
  static constexpr auto registers =
      detail::make_registers<S>(std::make_integer_sequence<int, register_rows * register_vectors>());
  constexpr std::int64_t lanes = tile_lanes<S>, width = lanes * register_vectors;
  const auto whole = n / lanes * lanes;
  for (std::int64_t j = 0; j < whole; j += width) {
    const auto vectors = std::min(width, whole - j) / lanes;
    for (std::int64_t i = 0; i < m; i += register_rows) {
      const auto rows = std::min<std::int64_t>(register_rows, m - i);
      std::int64_t first = 0, end = depth;
      switch (diagonal.of) {
        case Diagonal::Of::result:
          if (j + vectors * lanes <= i + diagonal.offset) continue;
          break;
        case Diagonal::Of::keys_rows: first = std::clamp<std::int64_t>(i + diagonal.offset, 0, depth); break;
        case Diagonal::Of::queries_rows: end = std::clamp<std::int64_t>(i + rows - diagonal.offset, 0, depth); break;
      }
      registers[static_cast<std::size_t>((rows - 1) * register_vectors + vectors - 1)](
          end - first, {a.data + i * a.row_stride + first * a.column_stride, a.row_stride, a.column_stride},
          b + first * b_stride + j, b_stride, add, c + i * c_stride + j, c_stride);
    }
  }
  for (std::int64_t i = 0; i < m; ++i) {
    for (auto j = whole; j < n; ++j) {
      S sum = add ? c[i * c_stride + j] : S{};
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a.data[i * a.row_stride + k * a.column_stride] * b[k * b_stride + j];
      c[i * c_stride + j] = sum;
    }
  }
}

}  // namespace shardproof::attention
