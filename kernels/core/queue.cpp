// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/queue.hpp"

#include <utility>

#include "kernels/core/errors.hpp"
#include "kernels/core/poison.hpp"

namespace shardproof {

KernelScope::~KernelScope() {
  for (const auto& s : scratch_) {
    poison::release(s.data);
    device_.memory().release(Category::workspace, Space::device, s.bytes);
  }
}

void KernelScope::refuse(const Tensor& tensor, const std::string& why) const {
  throw DeviceError("rank " + std::to_string(static_cast<int>(device_.rank())) + ": kernel " + std::string(kernel_) +
                    ": tensor '" + tensor.name() + "' " + why);
}

void* KernelScope::open(const Tensor& tensor, Dtype dtype, Access access) {
  if (!tensor) throw DeviceError("kernel " + std::string(kernel_) + ": an empty tensor");
  if (&tensor.storage_->device != &device_) {
    refuse(tensor, "belongs to rank " + std::to_string(static_cast<int>(tensor.owner())) +
                       "; a kernel may touch its own rank's only");
  }
  if (tensor.space() != Space::device) refuse(tensor, "is in host space; copy it to the device first");
  if (tensor.dtype() != dtype) {
    refuse(tensor, "is " + std::string(name_of(tensor.dtype())) + ", not " + std::string(name_of(dtype)));
  }
  std::byte* data = tensor.storage_->data + tensor.offset_ * static_cast<std::int64_t>(size_of(dtype));
  if (access == Access::read || access == Access::update) {
    if (tensor.storage_->overflow) {
      overflow_ = true;
    } else if (device_.poison()) {
      const auto at = poison::find(dtype, data, tensor.elements());
      if (at >= 0)
        refuse(tensor, "has poison at index " + std::to_string(at) +
                           ": it was read before it was written, or after it was freed");
    }
  }
  if (access != Access::read) {
    outputs_.push_back(tensor);
    finished_.push_back(access != Access::accumulate);
  }
  return data;
}

void* KernelScope::allocate_scratch(std::int64_t bytes) {
  device_.memory().allocate(Category::workspace, Space::device, bytes, kernel_);
  std::byte* data = poison::allocate(bytes);
  if (data == nullptr) {
    device_.memory().release(Category::workspace, Space::device, bytes);
    throw OutOfMemory("kernel " + std::string(kernel_) + ": the system has no " + std::to_string(bytes) +
                      " bytes of workspace");
  }
  scratch_.push_back({data, bytes});
  return data;
}

void KernelScope::close() {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const auto& t = outputs_[i];
    auto& storage = *t.storage_;
    bool overflow = overflow_;
    if (t.dtype() == Dtype::fixed && finished_[i]) {
      const auto* data = reinterpret_cast<const Fixed*>(storage.data) + t.offset_;
      overflow = overflow || poison::find_out_of_range(data, t.elements()) >= 0;
    }
    // A whole tensor that is written anew is as good as its inputs; a part of one only ever raises the flag.
    const bool whole = t.offset_ == 0 && t.bytes() == storage.bytes;
    storage.overflow = overflow || (storage.overflow && (!whole || !finished_[i]));
    overflow_ = overflow_ || overflow;
  }
  if (overflow_) device_.raise_overflow();
}

bool fetch_overflow(Queue& queue, const Tensor& tensor) {
  bool up = false;
  queue.submit("fetch_overflow", [&](KernelScope& scope) { up = scope.overflow_of(tensor); });
  queue.synchronize();
  return up;
}

void Event::complete() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->done = true;
  }
  state_->changed.notify_all();
}

void Event::wait() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done; });
}

void Queue::run(Device& device, std::string_view name, const Kernel& kernel) {
  KernelScope scope(device, name);
  kernel(scope);
  scope.close();
}

Event ImmediateQueue::record() {
  Event event;
  event.complete();
  return event;
}

WorkerQueue::WorkerQueue(Device& device) : Queue(device), thread_([this] { loop(); }) {}

WorkerQueue::~WorkerQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerQueue::push(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void WorkerQueue::loop() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void WorkerQueue::submit(std::string_view name, Kernel kernel) {
  push([this, name, kernel = std::move(kernel)] {
    {
      const std::lock_guard lock(mutex_);
      if (error_) return;
    }
    try {
      run(device(), name, kernel);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
  });
}

Event WorkerQueue::record() {
  Event event;
  push([event]() mutable { event.complete(); });
  return event;
}

void WorkerQueue::wait(const Event& event) {
  push([event] { event.wait(); });
}

void WorkerQueue::synchronize() {
  record().wait();
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace shardproof
