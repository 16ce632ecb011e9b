// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/functions.hpp"
#include "kernels/core/testing/values.hpp"

namespace shardproof {
namespace {

struct Shape {
  std::int64_t n, vocab;
};
constexpr Shape shapes[] = {{0, 3}, {1, 1}, {3, 2}, {7, 31}, {5, 64}, {4, 257}, {3, 1009}};
constexpr double smoothings[] = {0, 0.1};
constexpr double factor = 65536.0 / 12;

/// Every third row has no label; the others' labels walk over the vocabulary, its ends too.
std::vector<std::int32_t> labels_of(const Shape& s) {
  std::vector<std::int32_t> labels;
  for (std::int64_t r = 0; r < s.n; ++r) {
    labels.push_back(r % 3 == 1 ? -1
                                : static_cast<std::int32_t>(r * (s.vocab - 1) / std::max<std::int64_t>(s.n - 1, 1)));
  }
  return labels;
}

/// Where slices of the vocabulary begin and end: from one to five, uneven, some empty.
std::vector<std::vector<std::int64_t>> slicings(std::int64_t vocab) {
  std::vector<std::vector<std::int64_t>> all{{0, 0, vocab / 3, vocab / 3, vocab - vocab / 5, vocab}};
  for (std::int64_t slices = 1; slices <= 5; ++slices) {
    auto& cuts = all.emplace_back();
    for (std::int64_t i = 0; i <= slices; ++i) cuts.push_back(vocab * i / slices);
  }
  return all;
}

/// What the kernels give.
template <class S>
struct Results {
  std::vector<S> row_max, row_sum, dlogits;
  double loss;
  bool overflow;
};

/// The kernels on slices of the vocabulary, their row values combined as ranks do.
template <class S>
class Run {
 public:
  Run(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double smoothing,
      const std::vector<std::int64_t>& cuts)
      : shape_(s), smoothing_(smoothing), labels_(testing::put(queue_, "labels", {s.n}, labels)) {
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const auto v = cuts[i + 1] - cuts[i];
      std::vector<S> z;
      for (auto row = logits.begin(); row != logits.end(); row += s.vocab) {
        z.insert(z.end(), row + cuts[i], row + cuts[i + 1]);
      }
      slices_.push_back({{cuts[i], s.vocab},
                         testing::put(queue_, "logits", {s.n, v}, z),
                         testing::blank<S>(queue_, "row_max", {s.n}),
                         testing::blank<S>(queue_, "row_sum", {s.n}),
                         testing::blank<S>(queue_, "target", {s.n}),
                         testing::blank<S>(queue_, "dlogits", {s.n, v})});
    }
  }

  Results<S> results() {
    const WideTotal loss(queue_, dtype_of<S>(), "loss");
    forward(loss);
    const bool overflow = device_.overflow();
    forward(loss);  // a second microbatch adds its losses
    std::vector<S> dlogits(static_cast<std::size_t>(shape_.n * shape_.vocab));
    for (auto& slice : slices_) {
      cross_entropy::backward(queue_, slice.logits, labels_, slice.slice, slice.row_max, slice.row_sum, smoothing_,
                              factor, slice.dlogits);
      const auto part = fetch<S>(queue_, slice.dlogits);
      const auto columns = slice.logits.dim(1);
      for (std::int64_t r = 0; r < shape_.n; ++r) {
        std::copy_n(part.begin() + r * columns, columns, dlogits.begin() + r * shape_.vocab + slice.slice.first);
      }
    }
    const auto& any = slices_.back();
    return {fetch<S>(queue_, any.row_max), fetch<S>(queue_, any.row_sum), dlogits, loss.fetch(queue_), overflow};
  }

 private:
  struct Part {
    cross_entropy::Slice slice;
    Tensor logits, row_max, row_sum, target, dlogits;
  };

  void forward(const WideTotal& loss) {
    Accumulator logit_sum;
    if (smoothing_ > 0) logit_sum = {queue_, {"logit_sum", dtype_of<S>(), {shape_.n}, Category::workspace}};
    for (auto& s : slices_) cross_entropy::row_max(queue_, s.logits, s.row_max);
    combine(&Part::row_max, [](S a, S b) { return a > b ? a : b; });
    for (auto& s : slices_) {
      cross_entropy::row_sums(queue_, s.logits, labels_, s.slice, s.row_max, s.row_sum, s.target, logit_sum);
    }
    const auto plus = [](S a, S b) {
      if constexpr (std::is_same_v<S, Fixed>) {
        return Fixed{a.raw + b.raw};
      } else {
        return a + b;
      }
    };
    combine(&Part::row_sum, plus);
    combine(&Part::target, plus);
    const auto& any = slices_.back();
    cross_entropy::loss(queue_, labels_, any.row_max, any.row_sum, any.target,
                        logit_sum ? logit_sum.finish(queue_) : Tensor(), smoothing_, shape_.vocab, loss);
  }

  template <class Op>
  void combine(Tensor Part::*member, Op op) {
    auto total = fetch<S>(queue_, slices_[0].*member);
    for (std::size_t i = 1; i < slices_.size(); ++i) {
      const auto part = fetch<S>(queue_, slices_[i].*member);
      for (std::size_t r = 0; r < total.size(); ++r) total[r] = op(total[r], part[r]);
    }
    if (slices_.size() == 1) return;
    for (auto& s : slices_) upload<S>(queue_, s.*member, total);
  }

  Device device_;
  ImmediateQueue queue_{device_};
  Shape shape_;
  double smoothing_;
  Tensor labels_;
  std::vector<Part> slices_;
};

/// Without cuts: in one slice.
template <class S>
Results<S> run(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double smoothing,
               std::vector<std::int64_t> cuts = {}) {
  if (cuts.empty()) cuts = {0, s.vocab};
  return Run<S>(s, logits, labels, smoothing, cuts).results();
}

// Section 6 of ARITHMETIC.md; sums of S run in order.
template <class S>
struct Literal {
  using C = Real<S>;
  std::vector<S> row_max, row_sum, losses;
  bool overflow = false;

  S checked(S value) {
    overflow = overflow || !in_range(value);
    return value;
  }
  S exponential(S z, S m) { return checked(round_to<S>(exp_of(real(checked(sub(z, m)))))); }

  Literal(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double a) {
    for (std::int64_t r = 0; r < s.n; ++r) {
      const S* z = logits.data() + r * s.vocab;
      S m = z[0];
      for (std::int64_t j = 1; j < s.vocab; ++j) m = z[j] > m ? z[j] : m;
      Sum<S> total{}, z_sum{};
      for (std::int64_t j = 0; j < s.vocab; ++j) {
        total += term(exponential(z[j], m));
        z_sum += term(z[j]);
      }
      const S sum = checked(finish<S>(total));
      row_max.push_back(m);
      row_sum.push_back(sum);
      const auto label = labels[static_cast<std::size_t>(r)];
      if (label < 0) continue;
      if (a == 0) {
        losses.push_back(checked(finish<S>(term(round_to<S>(log_of(real(sum)))) + term(m) - term(z[label]))));
      } else {
        losses.push_back(checked(round_to<S>(((log_of(real(sum)) + real(m)) - C(1 - a) * real(z[label])) -
                                             C(a / static_cast<double>(s.vocab)) * real(checked(finish<S>(z_sum))))));
      }
    }
  }
};

/// dz from the kernel's own maxima and sums: nothing is summed, so it is the same in every track.
template <class S>
S gradient(S z, S m, S sum, bool hit, double a, std::int64_t vocab) {
  using C = Real<S>;
  const C p = real(round_to<S>(exp_of(real(sub(z, m))))) / real(sum);
  const C indicator = hit ? C(1) : C(0);
  if (a == 0) return round_to<S>((p - indicator) * C(factor));
  return round_to<S>(((p - C(1 - a) * indicator) - C(a / static_cast<double>(vocab))) * C(factor));
}

template <class S>
void expect_gradient(const Shape& s, const std::vector<S>& logits, const std::vector<std::int32_t>& labels, double a,
                     const Results<S>& found) {
  for (std::int64_t r = 0; r < s.n; ++r) {
    const auto row = static_cast<std::size_t>(r);
    for (std::int64_t j = 0; j < s.vocab; ++j) {
      const auto i = static_cast<std::size_t>(r * s.vocab + j);
      const S expected =
          labels[row] < 0 ? S{0}
                          : gradient(logits[i], found.row_max[row], found.row_sum[row], j == labels[row], a, s.vocab);
      // == and not bits: 0 * factor may be -0.
      ASSERT_TRUE(found.dlogits[i] == expected) << r << "," << j;
    }
  }
}

/// However the vocabulary is cut. Returns whether it overflowed.
bool expect_literal(const Shape& s, const std::vector<Fixed>& logits, double smoothing) {
  const auto labels = labels_of(s);
  const Literal<Fixed> expected(s, logits, labels, smoothing);
  WideSum sum;
  for (const Fixed loss : expected.losses) sum.add(2 * static_cast<int128>(loss.raw));
  for (const auto& cuts : slicings(s.vocab)) {
    SCOPED_TRACE(::testing::PrintToString(cuts));
    const auto found = run(s, logits, labels, smoothing, cuts);
    EXPECT_EQ(found.overflow, expected.overflow);
    if (expected.overflow) continue;
    EXPECT_TRUE(found.row_max == expected.row_max);
    EXPECT_TRUE(found.row_sum == expected.row_sum);
    EXPECT_EQ(found.loss, to_double(sum));
    expect_gradient(s, logits, labels, smoothing, found);
  }
  return expected.overflow;
}

TEST(CrossEntropyFixed, EqualsTheDefinition) {
  for (const auto& shape : shapes) {
    for (const double smoothing : smoothings) {
      SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.vocab));
      const auto n = shape.n * shape.vocab;
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -6, 6), smoothing));
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -3000, 2000), smoothing));
      EXPECT_FALSE(expect_literal(shape, testing::random<Fixed>("z", n, -1e-11, 1e-11), smoothing));  // ties in the max
      EXPECT_FALSE(expect_literal(shape, std::vector<Fixed>(static_cast<std::size_t>(n), Fixed{-5}), smoothing));
    }
  }
}

TEST(CrossEntropyFixed, OverflowIsTheDefinitions) {
  int up = 0;
  constexpr int cases = 600;
  for (int seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE(seed);
    const Shape shape{1 + seed % 2, 1 + seed % 5};
    std::vector<Fixed> z;
    for (const double v : testing::scattered(static_cast<std::uint64_t>(seed), "z", shape.n * shape.vocab, 21)) {
      z.push_back(round_to<Fixed>(v));
    }
    if (seed % 3 == 0) z.back() = Fixed{fixed_limit - 1};
    up += expect_literal(shape, z, smoothings[seed % 2]);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(up, 50);
  EXPECT_LT(up, cases - 50);
}

TEST(CrossEntropyFixed, OnlyTotalsOverflow) {
  const auto fixed = [](std::initializer_list<double> values) {
    std::vector<Fixed> result;
    for (const double v : values) result.push_back(round_to<Fixed>(v));
    return result;
  };
  const Shape shape{1, 5};
  // Partial sums of z leave the range and return; without smoothing they are not summed at all.
  EXPECT_FALSE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, -1.5e6, -1.5e6}), 0.1));
  EXPECT_TRUE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, 1.5e6, 1.5e6}), 0.1));
  EXPECT_FALSE(expect_literal(shape, fixed({1.5e6, 1.5e6, 1.5e6, 1.5e6, 1.5e6}), 0));
  EXPECT_TRUE(expect_literal(shape, fixed({3e6, 3e6, 3e6, 3e6, -3e6}), 0));  // fin(z - max)
}

TEST(CrossEntropyFixed, ALossMayOverflowAlone) {
  // z - max is one unit inside the range; log 2 more is outside.
  const std::int64_t half = fixed_limit / 2;
  for (const std::int64_t below : {half, half - 2 * (std::int64_t{1} << 40)}) {
    const std::vector<Fixed> z{Fixed{half - 1}, Fixed{half - 1}, Fixed{-below}};
    EXPECT_EQ(run<Fixed>({1, 3}, z, {2}, 0).overflow, below == half);
    EXPECT_FALSE(run<Fixed>({1, 3}, z, {-1}, 0).overflow);  // no label, no loss
  }
}

template <class S>
class CrossEntropyTest : public ::testing::Test {};
using Floats = ::testing::Types<double, float>;
TYPED_TEST_SUITE(CrossEntropyTest, Floats);

TYPED_TEST(CrossEntropyTest, IsWithinItsBound) {
  using S = TypeParam;
  const double u = testing::roundoff<S>;
  for (const auto& shape : shapes) {
    for (const double smoothing : smoothings) {
      SCOPED_TRACE(std::to_string(shape.n) + "x" + std::to_string(shape.vocab));
      const auto logits = testing::random<S>("z", shape.n * shape.vocab, -6, 6);
      const auto labels = labels_of(shape);
      const Literal<S> expected(shape, logits, labels, smoothing);
      for (const auto& cuts : slicings(shape.vocab)) {
        SCOPED_TRACE(::testing::PrintToString(cuts));
        const auto found = run(shape, logits, labels, smoothing, cuts);
        const auto v = static_cast<double>(shape.vocab);
        double loss = 0, loss_bound = 0;
        std::size_t labelled = 0;
        for (std::size_t r = 0; r < labels.size(); ++r) {
          EXPECT_EQ(found.row_max[r], expected.row_max[r]);
          // The same V positive terms in two orders: each within gamma_V of their sum.
          const double z = static_cast<double>(expected.row_sum[r]);
          EXPECT_NEAR(static_cast<double>(found.row_sum[r]), z, 2.02 * v * u * z);
          if (labels[r] < 0) continue;
          loss += 2 * static_cast<double>(expected.losses[labelled++]);
          // log turns that relative difference into an absolute one. Each loss rounds log and at most three sums of
          // numbers below log V + 2 * 6 (|z| <= 6), in both texts; (a/V) sum z differs by 2 gamma_V * 6.
          const double size = std::log(v) + 12;
          loss_bound += 2 * (2.02 * v * u * (1 + 6 * smoothing) + 2 * 5 * u * size);
        }
        EXPECT_NEAR(found.loss, loss, loss_bound + 0x1p-50 * std::fabs(loss));
        expect_gradient(shape, logits, labels, smoothing, found);
      }
    }
  }
}

TYPED_TEST(CrossEntropyTest, ANonFiniteLogitMakesTheGradientNonFinite) {
  using S = TypeParam;
  const Shape shape{1, 70};
  for (const std::size_t at : {0u, 33u, 69u}) {
    for (const S value : {std::numeric_limits<S>::infinity(), std::numeric_limits<S>::quiet_NaN()}) {
      auto logits = testing::random<S>("z", 70);
      logits[at] = value;
      EXPECT_TRUE(std::isnan(run(shape, logits, {5}, 0).dlogits[5])) << at;
      EXPECT_TRUE(std::isnan(run(shape, logits, {5}, 0, {0, 10, 10, 70}).dlogits[5])) << at;
    }
  }
  const std::vector<S> none(70, -std::numeric_limits<S>::infinity());
  EXPECT_TRUE(std::isnan(run(shape, none, {5}, 0, {0, 0, 70}).dlogits[5]));
}

template <class S>
class CrossEntropyContract : public ::testing::Test {};
using Scalars = ::testing::Types<Fixed, double, float>;
TYPED_TEST_SUITE(CrossEntropyContract, Scalars);

TYPED_TEST(CrossEntropyContract, OfLabelsAndShapes) {
  using S = TypeParam;
  const auto z = testing::random<S>("z", 6);
  for (const std::int32_t label : {-2, 3}) EXPECT_THROW(run<S>({2, 3}, z, {0, label}, 0), DeviceError);
  Device device;
  ImmediateQueue queue(device);
  const auto logits = testing::put(queue, "logits", {2, 3}, z);
  const auto labels = testing::put<std::int32_t>(queue, "labels", {2}, {0, 4});
  const auto row = testing::put(queue, "row", {2}, testing::random<S>("row", 2));
  const auto out = testing::blank<S>(queue, "out", {2}), target = testing::blank<S>(queue, "target", {2});
  const auto one = labels.rows(0, 1);
  const WideTotal loss(queue, dtype_of<S>(), "loss");
  const Accumulator three(queue, {"three", dtype_of<S>(), {3}, Category::workspace});
  const auto sums = [&](const Tensor& t, const cross_entropy::Slice& slice, const Accumulator& logit_sum) {
    cross_entropy::row_sums(queue, logits, t, slice, row, out, target, logit_sum);
  };
  const auto backward = [&](const cross_entropy::Slice& slice) {
    cross_entropy::backward(queue, logits, labels, slice, row, row, 0, 1, logits);
  };
  // Label 4 is outside of a vocabulary of 4, whichever slice of it is here.
  EXPECT_THROW(sums(labels, {0, 4}, {}), DeviceError);
  EXPECT_THROW(backward({1, 4}), DeviceError);
  EXPECT_THROW(cross_entropy::loss(queue, labels, row, row, row, {}, 0, 4, loss), DeviceError);
  EXPECT_NO_THROW(sums(labels, {1, 5}, {}));
  EXPECT_THROW(sums(labels, {3, 5}, {}), InternalError);
  EXPECT_THROW(sums(labels, {-1, 5}, {}), InternalError);
  EXPECT_THROW(backward({3, 5}), InternalError);
  EXPECT_THROW(sums(one, {0, 5}, {}), InternalError);
  EXPECT_THROW(sums(labels, {0, 5}, three), InternalError);
  EXPECT_THROW(cross_entropy::loss(queue, one, row, row, row, {}, 0, 5, loss), InternalError);
  EXPECT_THROW(cross_entropy::row_max(queue, logits, one), InternalError);
  EXPECT_THROW(sums(labels, {0, 0}, {}), NotSupported);
  EXPECT_THROW(sums(labels, {0, 1 << 22}, {}), NotSupported);
}

TYPED_TEST(CrossEntropyContract, AnEmptySliceHasTheLowestMaximum) {
  using S = TypeParam;
  Device device;
  ImmediateQueue queue(device);
  const auto top = testing::blank<S>(queue, "top", {2});
  cross_entropy::row_max(queue, testing::blank<S>(queue, "logits", {2, 0}), top);
  for (const S value : fetch<S>(queue, top)) {
    if constexpr (std::is_same_v<S, Fixed>) {
      EXPECT_EQ(value.raw, 1 - fixed_limit);
    } else {
      EXPECT_EQ(value, -std::numeric_limits<S>::infinity());
    }
  }
}

}  // namespace
}  // namespace shardproof
