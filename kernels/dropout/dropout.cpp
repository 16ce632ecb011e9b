// SPDX-License-Identifier: Apache-2.0
#include "kernels/dropout/dropout.hpp"

#include <algorithm>
#include <array>

#include "kernels/core/require.hpp"
#include "kernels/dropout/dropout_row.hpp"

namespace shardproof::dropout {

namespace {

template <class S>
void keep(double probability, std::int64_t n, const S* x, const std::uint8_t* mask, S* y) {
  // A block's magnitudes are scanned, and its elements then taken from the first-level cache.
  constexpr std::int64_t block = 2048;
  const S k = round_to<S>(static_cast<Real<S>>(keep_factor(probability)));
  for (std::int64_t i = 0; i < n; i += block) {
    KeepRow<S>{x + i, mask + i, y + i, k}(HostTeam<row_lanes<S>>{}, std::min(block, n - i));
  }
}

}  // namespace

void fill_mask(const Site& site, std::uint64_t offset, std::int64_t n, std::uint8_t* mask) {
  const auto threshold = static_cast<std::uint32_t>(site.probability * 0x1p32);
  std::array<std::uint32_t, 1024> words;
  for (std::int64_t begin = 0; begin < n; begin += std::ssize(words)) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(words), n - begin));
    site.stream.words(site.first + offset + static_cast<std::uint64_t>(begin), std::span(words).first(count));
    for (std::size_t i = 0; i < count; ++i) mask[begin + static_cast<std::int64_t>(i)] = words[i] >= threshold;
  }
}

void forward(Queue& queue, const Site& site, const Tensor& x, const Tensor& mask, const Tensor& y) {
  require_elements("dropout_forward", mask, x.elements());
  require_elements("dropout_forward", y, x.elements());
  dispatch(x.dtype(), [&]<class S>(S) {
    queue.submit("dropout_forward", [=](KernelScope& scope) {
      const S* const from = scope.read<S>(x);
      auto* const kept = scope.write<std::uint8_t>(mask);
      fill_mask(site, 0, x.elements(), kept);
      keep(site.probability, x.elements(), from, kept, scope.write<S>(y));
    });
  });
}

void backward(Queue& queue, double probability, const Tensor& mask, const Tensor& dy, const Tensor& dx) {
  require_elements("dropout_backward", mask, dy.elements());
  require_elements("dropout_backward", dx, dy.elements());
  dispatch(dy.dtype(), [&]<class S>(S) {
    queue.submit("dropout_backward", [=](KernelScope& scope) {
      const S* const from = scope.read<S>(dy);
      const auto* const kept = scope.read<std::uint8_t>(mask);
      keep(probability, dy.elements(), from, kept, scope.write<S>(dx));
    });
  });
}

}  // namespace shardproof::dropout
