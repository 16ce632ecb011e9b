// SPDX-License-Identifier: Apache-2.0
#include "harness/dropped_term.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernels/matmul/matmul.hpp"

namespace shardproof::harness {

namespace {

/// Terms dy[row][output] x[row][input] of one element's sum.
struct Term {
  double value;
  std::int64_t row, output, input;
};

/// The column that holds the greatest magnitude of a [rows, columns] matrix.
std::int64_t greatest_column(const double* values, std::int64_t rows, std::int64_t columns) {
  const auto* const end = values + rows * columns;
  const auto smaller = [](double a, double b) { return std::abs(a) < std::abs(b); };
  return (std::max_element(values, end, smaller) - values) % columns;
}

/// Not zero and finite; else its value is 0.
Term median_term(const double* dy, const double* x, std::int64_t rows, std::int64_t outputs, std::int64_t inputs) {
  const std::int64_t output = greatest_column(dy, rows, outputs), input = greatest_column(x, rows, inputs);
  std::vector<Term> terms;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double value = dy[row * outputs + output] * x[row * inputs + input];
    if (std::isfinite(value) && value != 0) terms.push_back({value, row, output, input});
  }
  if (terms.empty()) return {};
  const auto middle = terms.begin() + std::ssize(terms) / 2;
  std::ranges::nth_element(terms, middle, {}, [](const Term& term) { return std::abs(term.value); });
  return *middle;
}

}  // namespace

struct DroppedTerm::State {
  const std::string weight;
  const Rank rank;
  double dropped = 0;  // written by the rank's thread alone
};

DroppedTerm::DroppedTerm(std::string weight, Rank rank)
    : state_(std::make_shared<State>(State{std::move(weight), rank})) {}

engine::Tamper DroppedTerm::tamper(engine::Tamper others) const {
  others.contraction = [state = state_](std::int64_t, const std::string& name, Queue& queue, const Tensor& dy,
                                        const Tensor& x, const Accumulator& dw) {
    if (name != state->weight || queue.device().rank() != state->rank) return;
    if (state->dropped != 0 || dy.elements() == 0 || x.elements() == 0) return;
    const std::int64_t outputs = dy.dim(1), inputs = x.dim(1);
    // A row of -dy and one of x, zero but for the term's: their product is what is left out.
    const Tensor minus(queue, {"dropped_term_dy", Dtype::f64, {1, outputs}, Category::workspace}),
        other(queue, {"dropped_term_x", Dtype::f64, {1, inputs}, Category::workspace});
    Term term{};
    queue.submit("drop_term", [&](KernelScope& scope) {
      const auto* const dys = scope.read<double>(dy);
      const auto* const xs = scope.read<double>(x);
      term = median_term(dys, xs, dy.dim(0), outputs, inputs);
      auto* const left = scope.write<double>(minus);
      auto* const right = scope.write<double>(other);
      std::fill_n(left, outputs, 0.0);
      std::fill_n(right, inputs, 0.0);
      if (term.value == 0) return;
      left[term.output] = -dys[term.row * outputs + term.output];
      right[term.input] = xs[term.row * inputs + term.input];
    });
    queue.synchronize();
    if (term.value == 0) return;
    matmul::backward_weight(queue, minus, other, dw);
    state->dropped = term.value;
  };
  return others;
}

std::string DroppedTerm::what() const {
  if (state_->dropped == 0) return "";
  return fmt::format("a term of {:.3g} left out of the gradient of {}", state_->dropped, state_->weight);
}

}  // namespace shardproof::harness
