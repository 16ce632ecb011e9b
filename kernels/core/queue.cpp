// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/queue.hpp"

#include <algorithm>
#include <chrono>
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
    const bool flagged = tensor.storage_->overflow;
    inherited_ = inherited_ || flagged;
    if (device_.poison() && !(flagged && dtype == Dtype::fixed)) {
      const auto at = poison::find(dtype, data, tensor.elements());
      if (at >= 0) {
        refuse(tensor, "has poison at index " + std::to_string(tensor.offset_ + at) +
                           ": it was read before it was written, or after it was freed");
      }
    }
  }
  if (access != Access::read) {
    outputs_.push_back({tensor, access != Access::accumulate});
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
  bool raised = raised_;
  for (const auto& [tensor, finished] : outputs_) {
    auto& storage = *tensor.storage_;
    bool up = inherited_ || raised_;
    if (!up && finished && storage.dtype == Dtype::fixed) {
      const auto* data = reinterpret_cast<const Fixed*>(storage.data) + tensor.offset_;
      up = poison::find_out_of_range(data, tensor.elements()) >= 0;
    }
    raised = raised || up;
    // A whole tensor that is written anew is as good as its inputs; a part of one only ever raises the flag, so that
    // several queues may write parts.
    const bool whole = tensor.bytes() == storage.bytes;
    if (up || (whole && finished)) storage.overflow = up;
  }
  if (raised) device_.raise_overflow();
}

bool fetch_overflow(Queue& queue, const Tensor& tensor) {
  bool up = false;
  queue.submit("fetch_overflow", [&](KernelScope& scope) { up = scope.overflow_of(tensor); });
  queue.synchronize();
  return up;
}

void Event::complete(std::exception_ptr error) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->done) return;
    state_->done = true;
    state_->error = std::move(error);
  }
  state_->changed.notify_all();
}

void Event::wait() const { wait(std::stop_token()); }

bool Event::wait_for(double seconds) const {
  const std::chrono::duration<double> longest(std::min(seconds, 1e9));  // more would overflow the clock
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, longest, [&] { return state_->done; })) return false;
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

bool Event::wait(std::stop_token stop) const {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait(lock, std::move(stop), [&] { return state_->done; })) return false;
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

void Queue::run(Device& device, std::string_view name, const Kernel& kernel) {
  require_arithmetic();
  const Recorded recorded(device.spans(), KernelSpan{{}, name});
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
    stopping_.request_stop();
  }
  changed_.notify_all();
  thread_.join();
}

void WorkerQueue::push(Task task) {
  {
    const std::lock_guard lock(mutex_);
    const auto caller = std::this_thread::get_id();
    if (host_ == std::thread::id()) host_ = caller;
    if (host_ != caller) throw InternalError("a queue is used by two host threads at a time");
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void WorkerQueue::loop() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_.stop_requested() || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void WorkerQueue::attempt(const Task& task) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
  }
  try {
    task();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void WorkerQueue::submit(std::string_view name, Kernel kernel) {
  push([this, name, kernel = std::move(kernel)] { attempt([&] { run(device(), name, kernel); }); });
}

Event WorkerQueue::record() {
  Event event;
  push([this, event]() mutable {
    std::unique_lock lock(mutex_);
    auto error = error_;
    lock.unlock();
    event.complete(std::move(error));
  });
  return event;
}

void WorkerQueue::wait(const Event& event) {
  push([this, event] {
    attempt([&] {
      if (!event.wait(stopping_.get_token())) throw InternalError("the queue ended before an event that it waits for");
    });
  });
}

void WorkerQueue::synchronize() {
  const Event event = record();
  std::exception_ptr error;
  try {
    event.wait();
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    host_ = {};
    if (error) error_ = nullptr;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace shardproof
