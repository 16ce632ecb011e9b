// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <stdexcept>

namespace shardproof {

/// The sizes of an array's dimensions. Held in place: every kernel copies the handles of its tensors.
class Dims {
 public:
  static constexpr std::size_t most = 8;
  using value_type = std::int64_t;
  using iterator = std::int64_t*;
  using const_iterator = const std::int64_t*;

  Dims() = default;
  Dims(std::initializer_list<std::int64_t> sizes) : Dims(sizes.begin(), sizes.end()) {}
  template <std::input_iterator Iterator>
  Dims(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  /// Throws std::length_error when there are `most` already: whoever reads a file asks before.
  void push_back(std::int64_t size) {
    if (count_ == most) throw std::length_error("an array of more than 8 dimensions");
    sizes_[count_++] = size;
  }

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  iterator begin() { return sizes_.data(); }
  iterator end() { return begin() + count_; }
  const_iterator begin() const { return sizes_.data(); }
  const_iterator end() const { return begin() + count_; }
  std::int64_t& operator[](std::size_t i) { return sizes_[i]; }
  std::int64_t operator[](std::size_t i) const { return sizes_[i]; }
  /// Throws std::out_of_range.
  std::int64_t at(std::size_t i) const {
    if (i >= count_) throw std::out_of_range("an array has no such dimension");
    return sizes_[i];
  }
  std::int64_t front() const { return at(0); }
  std::int64_t back() const { return at(count_ - 1); }
  friend bool operator==(const Dims& a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

 private:
  std::array<std::int64_t, most> sizes_{};
  std::size_t count_ = 0;
};

}  // namespace shardproof
