// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/core/errors.hpp"
#include "kernels/core/poison.hpp"
#include "kernels/core/queue.hpp"

namespace shardproof {

namespace detail {

Storage::Storage(Device& device_, std::string name_, Dtype dtype_, std::int64_t bytes_, Category category_,
                 Space space_)
    : device(device_), name(std::move(name_)), dtype(dtype_), bytes(bytes_), category(category_), space(space_) {
  device.memory().allocate(category, space, bytes, name);
  data = poison::allocate(bytes);
  if (data == nullptr) {
    device.memory().release(category, space, bytes);
    throw OutOfMemory("rank " + std::to_string(static_cast<int>(device.rank())) + ": the system has no " +
                      std::to_string(bytes) + " bytes for " + std::string(name_of(category)) + " '" + name + "'");
  }
  if (device.poison()) poison::fill(dtype, data, bytes);
}

Storage::~Storage() {
  if (device.poison()) poison::fill(dtype, data, bytes);
  poison::release(data);
  device.memory().release(category, space, bytes);
}

}  // namespace detail

Tensor::Tensor(Queue& queue, TensorSpec spec) : Tensor(queue.device(), std::move(spec)) {}

Tensor::Tensor(Device& device, TensorSpec spec) : dims_(spec.dims), elements_(elements_of(dims_)) {
  const auto bytes = elements_ * static_cast<std::int64_t>(size_of(spec.dtype));
  storage_ =
      std::make_shared<detail::Storage>(device, std::move(spec.name), spec.dtype, bytes, spec.category, spec.space);
}

Tensor Tensor::reshaped(Dims dims) const {
  if (elements_of(dims) != elements_) throw InternalError("reshaped: '" + name() + "' has another number of elements");
  Tensor view = *this;
  view.dims_ = dims;
  return view;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t count) const {
  if (dims_.empty() || begin < 0 || count < 0 || count > dims_[0] - begin) {
    throw InternalError("rows: no rows " + std::to_string(begin) + "+" + std::to_string(count) + " in '" + name() +
                        "'");
  }
  const auto row = dims_[0] == 0 ? 0 : elements_ / dims_[0];
  Tensor view = *this;
  view.dims_[0] = count;
  view.offset_ = offset_ + begin * row;
  view.elements_ = count * row;
  return view;
}

template <class T>
std::vector<T> fetch(Queue& queue, const Tensor& tensor) {
  std::vector<T> values(static_cast<std::size_t>(tensor.elements()));
  queue.submit("fetch", [&](KernelScope& scope) {
    const T* from = scope.read<T>(tensor);
    std::copy_n(from, values.size(), values.begin());
  });
  queue.synchronize();
  return values;
}

template <class T>
void upload(Queue& queue, const Tensor& tensor, std::span<const T> values) {
  if (std::ssize(values) != tensor.elements()) {
    throw InternalError("upload: '" + tensor.name() + "' has " + std::to_string(tensor.elements()) + " elements, not " +
                        std::to_string(values.size()));
  }
  queue.submit("upload", [tensor, copied = std::vector<T>(values.begin(), values.end())](KernelScope& scope) {
    std::copy(copied.begin(), copied.end(), scope.write<T>(tensor));
  });
}

template std::vector<Fixed> fetch(Queue&, const Tensor&);
template std::vector<double> fetch(Queue&, const Tensor&);
template std::vector<float> fetch(Queue&, const Tensor&);
template std::vector<std::int64_t> fetch(Queue&, const Tensor&);
template std::vector<std::int32_t> fetch(Queue&, const Tensor&);
template std::vector<std::uint8_t> fetch(Queue&, const Tensor&);
template void upload(Queue&, const Tensor&, std::span<const Fixed>);
template void upload(Queue&, const Tensor&, std::span<const double>);
template void upload(Queue&, const Tensor&, std::span<const float>);
template void upload(Queue&, const Tensor&, std::span<const std::int64_t>);
template void upload(Queue&, const Tensor&, std::span<const std::int32_t>);
template void upload(Queue&, const Tensor&, std::span<const std::uint8_t>);

namespace {

/// Calls f with an element type of the dtype's size class, for work that only moves elements.
template <class F>
void with_element(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::fixed: return f(Fixed{});
    case Dtype::f64: return f(double{});
    case Dtype::f32: return f(float{});
    case Dtype::i64: return f(std::int64_t{});
    case Dtype::i32: return f(std::int32_t{});
    case Dtype::u8: return f(std::uint8_t{});
    default: refuse_scalar(dtype);
  }
}

}  // namespace

void zero(Queue& queue, const Tensor& tensor) {
  with_element(tensor.dtype(), [&]<class T>(T) {
    queue.submit("zero", [tensor](KernelScope& scope) { std::fill_n(scope.write<T>(tensor), tensor.elements(), T{}); });
  });
}

void copy(Queue& queue, const Tensor& from, const Tensor& to) {
  if (from.elements() != to.elements()) {
    throw InternalError("copy: '" + from.name() + "' and '" + to.name() + "' differ in size");
  }
  with_element(from.dtype(), [&]<class T>(T) {
    queue.submit("copy", [from, to](KernelScope& scope) {
      std::copy_n(scope.read<T>(from), from.elements(), scope.write<T>(to));
    });
  });
}

}  // namespace shardproof
