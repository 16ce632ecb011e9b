// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/device.hpp"
#include "kernels/core/dtype.hpp"

namespace shardproof {

class Queue;

namespace detail {

/// One allocation, charged to its rank's ledger while it lives; poisoned when fresh and when freed.
class Storage {
 public:
  Storage(Device& device, std::string name, Dtype dtype, std::int64_t bytes, Category category, Space space);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device& device;
  const std::string name;
  const Dtype dtype;
  const std::int64_t bytes;
  const Category category;
  const Space space;
  /// Some element is the result of an overflow (Fixed). Beside the data, in the tensor's own space; not charged.
  /// Atomic: queues may write parts of one tensor at a time.
  std::atomic<bool> overflow = false;
  std::byte* data = nullptr;
};

}  // namespace detail

struct TensorSpec {
  std::string name;
  Dtype dtype;
  Dims dims;
  Category category;
  Space space = Space::device;
};

/// A handle to a row-major array in a rank's memory. Copies share the array; the last handle frees it. The elements can
/// be reached from kernels (KernelScope) and through fetch() and upload() only.
class Tensor {
 public:
  Tensor() = default;
  /// Allocates on the queue's device. Contents are poison (if on) or unspecified. Throws OutOfMemory.
  Tensor(Queue& queue, TensorSpec spec);

  explicit operator bool() const { return storage_ != nullptr; }
  const std::string& name() const { return storage_->name; }
  Dtype dtype() const { return storage_->dtype; }
  const Dims& dims() const { return dims_; }
  std::int64_t dim(std::size_t i) const { return dims_.at(i); }
  std::int64_t elements() const { return elements_; }
  std::int64_t bytes() const { return elements_ * static_cast<std::int64_t>(size_of(dtype())); }
  Space space() const { return storage_->space; }
  Rank owner() const { return storage_->device.rank(); }
  Category category() const { return storage_->category; }

  /// The same elements under other dims (same product).
  Tensor reshaped(Dims dims) const;
  /// Rows begin..begin+count-1 of the first dim.
  Tensor rows(std::int64_t begin, std::int64_t count) const;

 private:
  friend class KernelScope;
  Tensor(Device& device, TensorSpec spec);
  std::shared_ptr<detail::Storage> storage_;
  Dims dims_;
  std::int64_t elements_ = 0, offset_ = 0;
};

/// Copies the elements to the host, after all work queued so far. Throws DeviceError for another dtype or poison.
template <class T>
std::vector<T> fetch(Queue& queue, const Tensor& tensor);
/// Copies elements from the host; sizes must agree (InternalError).
template <class T>
void upload(Queue& queue, const Tensor& tensor, std::span<const T> values);
/// Whether the tensor's overflow flag is up, after all work queued so far.
bool fetch_overflow(Queue& queue, const Tensor& tensor);

/// All elements zero.
void zero(Queue& queue, const Tensor& tensor);
/// Elements of `from` to `to` (same dtype and count), flags too.
void copy(Queue& queue, const Tensor& from, const Tensor& to);

}  // namespace shardproof
