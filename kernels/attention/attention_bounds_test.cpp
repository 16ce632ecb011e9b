// SPDX-License-Identifier: Apache-2.0
// f64 and f32 against the oracle in double, within first-order forward error bounds (Higham 2002, sections 3.1 and 3.3;
// gamma_n = n u / (1 - n u), D = head size, n = keys of a row, G = rows of a group of heads).
//
// Score, A = scale sum |q||k|:    |ds| <= sigma = gamma_(D+3) max A          a dot, the scale's two roundings, a
// product e, d = max |s - m|:             relative eps = 2 sigma + u d + 8 u         both scores, their difference, exp
// p = e/l:                        relative 2 eps + gamma_n + 4 u;            pd: 2 u more
// o:                              2 eps + gamma_2n + 8 u of sum pd |v|
// ds, B = scale p (k sum |do||v| + sum |do||o|):   gamma_(D+8) B              two dots, k, a difference, p, scale
// dq: gamma_(D+8+n) sum B |k|;    dk: gamma_(D+8+G) sum B |q|;    dv: gamma_G sum pd |do|
// Tiled, K tiles of the row, at each of which what was summed may shrink by an exp and a product (the distances to the
// maxima so far add up to d): eps + 9 K u. Its backward makes p again, hence the error of p on top of those of ds, dq,
// dk and dv; q is scaled before the dot, 1/l and k/l are factors, all within the roundings counted above. expm1 covers
// what is above first order. The oracle is as far from the truth in f64, hence twice the bound there.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/attention/testing.hpp"
#include "reference/attention.hpp"

namespace shardproof::attention {
namespace {

using testing::Candidate, testing::Case, testing::Form;
using Matrix = reference::Array<double>;

/// A tensor's part for one sample.
Matrix part(Queue& queue, const Tensor& tensor, std::int64_t samples, std::int64_t b, std::int64_t columns) {
  const auto all = shardproof::testing::doubles(queue, tensor);
  const auto size = std::ssize(all) / samples;
  return {size / columns, columns, {all.begin() + b * size, all.begin() + (b + 1) * size}};
}

template <class S>
class AttentionBounds : public ::testing::Test {
 protected:
  static constexpr double u = static_cast<double>(std::numeric_limits<S>::epsilon()) / 2;
  static constexpr double allowed = sizeof(S) == 8 ? 2.0 : 1.001;
  static double gamma(std::int64_t n) { return static_cast<double>(n) * u / (1 - static_cast<double>(n) * u); }

  static void expect(double got, double expected, double bound, const char* what) {
    ASSERT_LE(std::fabs(got - expected), allowed * bound + static_cast<double>(std::numeric_limits<S>::min())) << what;
  }

  void check(const Case& c, Form form) {
    const auto x = testing::inputs(c, 1.5);
    const Candidate<S> candidate(queue_, c, x, form);
    for (std::int64_t b = 0; b < c.shape.batch; ++b) sample(c, form, candidate, b);
    // The sums over slices round no more often than one sum over all of a group.
    for (const auto& cuts : testing::slicings(c.shape.heads)) {
      const testing::Joined<S> joined(queue_, c, x, cuts, form);
      upload<S>(queue_, candidate.o, joined.o);
      upload<S>(queue_, candidate.dq, joined.dq);
      upload<S>(queue_, candidate.dk, joined.dk);
      upload<S>(queue_, candidate.dv, joined.dv);
      if (form == Form::stored) {
        upload<S>(queue_, candidate.saved.probability, joined.probability);
        if (c.dropout > 0) upload<S>(queue_, candidate.saved.dropped, joined.dropped);
      }
      for (std::int64_t b = 0; b < c.shape.batch; ++b) sample(c, form, candidate, b);
    }
  }

  /// What dropout keeps of a sample's probabilities, whoever sees them.
  static Matrix kept(const Case& c, std::int64_t b) {
    const auto rows = c.shape.heads * c.shape.sequence;
    std::vector<std::uint8_t> mask(static_cast<std::size_t>(rows * c.shape.sequence));
    dropout::fill_mask(c.site(), static_cast<std::uint64_t>(b * std::ssize(mask)), std::ssize(mask), mask.data());
    return {rows, c.shape.sequence, {mask.begin(), mask.end()}};
  }

  void sample(const Case& c, Form form, const Candidate<S>& candidate, std::int64_t b) {
    const bool is_tiled = form == Form::tiled;
    const auto batch = c.shape.batch, length = c.shape.sequence, heads = c.shape.heads, kv_heads = c.shape.kv_heads,
               size = c.shape.head_size, window = c.shape.window;
    const auto documents = c.all_documents();
    const reference::AttentionShape shape{heads, kv_heads, window,
                                          std::span(documents).subspan(static_cast<std::size_t>(b * length))};
    const auto get = [&](const Tensor& t, std::int64_t columns) { return part(queue_, t, batch, b, columns); };
    reference::Arithmetic<double> arithmetic;
    reference::AttentionSaved<double> saved;
    saved.query = get(candidate.q, c.hidden());
    saved.key = get(candidate.k, c.kv_hidden());
    saved.value = get(candidate.v, c.kv_hidden());
    const double factor = c.dropout > 0 ? dropout::keep_factor(c.dropout) : 1.0;
    if (c.dropout > 0) {
      const auto mask = kept(c, b);
      saved.dropout = {{mask.rows(), length, {mask.values().begin(), mask.values().end()}}, factor};
    }
    reference::attend(arithmetic, shape, saved);

    const auto o = get(candidate.o, c.hidden());
    const auto p = is_tiled ? saved.probability : get(candidate.saved.probability, length);
    const auto pd = c.dropout == 0 ? p : is_tiled ? saved.probability_dropped : get(candidate.saved.dropped, length);
    const auto group = heads / kv_heads * length;
    const auto d_o = get(candidate.d_o, c.hidden());
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    Matrix dq_bound(length, c.hidden()), dk_bound(length, c.kv_hidden()), dv_bound(length, c.kv_hidden());
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto q0 = h * size, k0 = h / (heads / kv_heads) * size;
      const auto dot = [size](const double* x, const double* y) {
        std::pair<double, double> sum{};  // of the products and of their magnitudes
        for (std::int64_t l = 0; l < size; ++l) sum = {sum.first + x[l] * y[l], sum.second + std::fabs(x[l] * y[l])};
        return sum;
      };
      for (std::int64_t i = 0; i < length; ++i) {
        const auto row = h * length + i;
        double magnitude = 0, low = HUGE_VAL, high = -HUGE_VAL;
        for (std::int64_t j = 0; j < length; ++j) {
          if (!shape.visible(i, j)) continue;
          const auto [s, a] = dot(saved.query[i] + q0, saved.key[j] + k0);
          magnitude = std::max(magnitude, scale * a);
          low = std::min(low, scale * s);
          high = std::max(high, scale * s);
        }
        const auto tiles = is_tiled ? i / 64 + 2 : 0;
        const double eps =
            2 * gamma(size + 3) * magnitude + u * (high - low) + (8 + 9 * static_cast<double>(tiles)) * u;
        const double again = is_tiled ? std::expm1(2 * eps + gamma(i + 1) + 6 * u) : 0.0;
        const auto [unused, d_o_o] = dot(d_o[i] + q0, o[i] + q0);
        std::vector<double> weighted(static_cast<std::size_t>(size));
        for (std::int64_t j = 0; j < length; ++j) {
          const double expected = saved.probability[row][j];
          expect(p[row][j], expected, std::expm1(2 * eps + gamma(i + 1) + 4 * u) * expected, "probability");
          if (!shape.visible(i, j)) {
            ASSERT_EQ(p[row][j], 0);
            continue;
          }
          const bool is_kept = !saved.dropout.on() || saved.dropout.kept[row][j] != 0;
          const double used = is_kept ? expected * factor : 0.0;
          expect(pd[row][j], used, std::expm1(2 * eps + gamma(i + 1) + 6 * u) * used, "dropped");
          const auto [t, t_magnitude] = dot(d_o[i] + q0, saved.value[j] + k0);
          const double ds = scale * p[row][j] * ((is_kept ? factor * t_magnitude : 0.0) + d_o_o);
          for (std::int64_t l = 0; l < size; ++l) {
            weighted[static_cast<std::size_t>(l)] += used * std::fabs(saved.value[j][k0 + l]);
            dq_bound[i][q0 + l] += (gamma(size + 8 + length) + again) * ds * std::fabs(saved.key[j][k0 + l]);
            dk_bound[j][k0 + l] += (gamma(size + 8 + group) + again) * ds * std::fabs(saved.query[i][q0 + l]);
            dv_bound[j][k0 + l] += (gamma(group) + again) * pd[row][j] * std::fabs(d_o[i][q0 + l]);
          }
        }
        for (std::int64_t l = 0; l < size; ++l) {
          expect(o[i][q0 + l], saved.output[i][q0 + l],
                 std::expm1(2 * eps + gamma(2 * (i + 1)) + 8 * u) * weighted[static_cast<std::size_t>(l)], "output");
        }
      }
    }

    // Backward alone: from the candidate's own forward.
    saved.probability = p;
    saved.probability_dropped = c.dropout > 0 ? pd : Matrix();
    saved.output = o;
    const auto gradient = reference::attend_input(arithmetic, shape, saved, d_o);
    const auto compare = [&](const Tensor& tensor, const Matrix& expected, const Matrix& bound, const char* what) {
      const auto got = get(tensor, expected.columns());
      for (std::int64_t i = 0; i < expected.rows(); ++i) {
        for (std::int64_t l = 0; l < expected.columns(); ++l) expect(got[i][l], expected[i][l], bound[i][l], what);
      }
    };
    compare(candidate.dq, gradient.query, dq_bound, "dq");
    compare(candidate.dk, gradient.key, dk_bound, "dk");
    compare(candidate.dv, gradient.value, dv_bound, "dv");
  }

  Device device_;
  ImmediateQueue queue_{device_};
};

using Scalars = ::testing::Types<double, float>;
TYPED_TEST_SUITE(AttentionBounds, Scalars);

TYPED_TEST(AttentionBounds, HoldInEveryCase) {
  for (const auto& c : testing::cases()) {
    for (const auto form : {Form::stored, Form::tiled}) {
      SCOPED_TRACE(c.name + ", " + name_of(form));
      this->check(c, form);
    }
  }
}

}  // namespace
}  // namespace shardproof::attention
