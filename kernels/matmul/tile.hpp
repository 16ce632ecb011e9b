// SPDX-License-Identifier: Apache-2.0
// The register tile of the exact product: one FMA and one integer add per product (fma_product of kernels/core, its
// constant taken off once).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/core/fixed_row.hpp"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#endif

namespace shardproof::matmul {

// Sums stay in registers: rows * vectors of them, beside `vectors` of b, one of a and the magic number.
#if defined(__AVX512F__)
inline constexpr int lanes = 8, tile_rows = 8, tile_vectors = 3;
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr int lanes = 4, tile_rows = 4, tile_vectors = 2;
#else
inline constexpr int lanes = 1, tile_rows = 4, tile_vectors = 4;
#endif
inline constexpr int tile_columns = lanes * tile_vectors;

/// So many products that fma_fits allows sum to less than 2^63: each is at most 2^51.
inline constexpr std::int64_t tile_depth = 4095;

using Reals = double __attribute__((vector_size(8 * lanes)));
using Integers = std::int64_t __attribute__((vector_size(8 * lanes)));
using Words = std::uint64_t __attribute__((vector_size(8 * lanes)));  // wrap by definition

inline Reals fused(Reals a, Reals b, Reals c) {
#if defined(__AVX512F__)
  return (Reals)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__AVX2__) && defined(__FMA__)
  return (Reals)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  return Reals{std::fma(a[0], b[0], c[0])};
#endif
}

inline constexpr double rounding_magic = 0x1.8p52;

/// out[i][j] = sum_k product(a[k][i], b[k][j]) for k < depth <= tile_depth; a holds raw values [depth][rows], b raw
/// values * 2^-40 [depth][vectors * lanes].
template <int rows, int vectors>
void multiply_tile(std::int64_t depth, const double* a, const double* b, std::int64_t* out) {
  const Reals magic = rounding_magic - Reals{};
  const auto start = -static_cast<std::uint64_t>(depth) * std::bit_cast<std::uint64_t>(rounding_magic);
  Words sum[rows][vectors];
  for (auto& row : sum) {
    for (auto& s : row) s = start - Words{};
  }
  for (std::int64_t k = 0; k < depth; ++k, a += rows, b += vectors * lanes) {
    Reals y[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) std::memcpy(&y[v], b + v * lanes, sizeof y[v]);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Reals x = a[i] - Reals{};
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] += (Words)fused(x, y[v], magic);
    }
  }
  std::memcpy(out, sum, sizeof sum);
}

}  // namespace shardproof::matmul
