// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/errors.hpp"

namespace shardproof::reference {

/// Row-major [rows, columns], zero at first. A vector is one row.
template <class T>
class Array {
 public:
  Array() = default;
  Array(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns), values_(rows * columns) {}
  Array(std::int64_t rows, std::int64_t columns, std::vector<T> values)
      : rows_(rows), columns_(columns), values_(std::move(values)) {
    if (static_cast<std::int64_t>(values_.size()) != rows * columns) {
      throw InternalError("oracle: " + std::to_string(values_.size()) + " values for an array of " +
                          std::to_string(rows) + "x" + std::to_string(columns));
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  T* operator[](std::int64_t row) { return values_.data() + row * columns_; }
  const T* operator[](std::int64_t row) const { return values_.data() + row * columns_; }
  const std::vector<T>& values() const { return values_; }

 private:
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<T> values_;
};

}  // namespace shardproof::reference
