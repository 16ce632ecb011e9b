// SPDX-License-Identifier: Apache-2.0
// Every kernel goes through a Queue, as it would go through a CUDA stream.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/core/tensor.hpp"

namespace shardproof {

/// What a running kernel may touch. Only a queue makes one. Each access checks owner rank, space and dtype, scans inputs
/// for poison (where the device has it on) and carries overflow flags from inputs to outputs.
class KernelScope {
 public:
  KernelScope(Device& device, std::string_view kernel) : device_(device), kernel_(kernel) {}
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
  ~KernelScope();

  template <class T>
  const T* read(const Tensor& tensor) {
    return static_cast<const T*>(open(tensor, dtype_of<T>(), Access::read));
  }
  /// Every element will be written.
  template <class T>
  T* write(const Tensor& tensor) {
    return static_cast<T*>(open(tensor, dtype_of<T>(), Access::write));
  }
  template <class T>
  T* update(const Tensor& tensor) {
    return static_cast<T*>(open(tensor, dtype_of<T>(), Access::update));
  }
  /// As update, for an unfinished sum: out-of-range elements are no overflow yet (see Accumulator).
  template <class T>
  T* accumulate(const Tensor& tensor) {
    return static_cast<T*>(open(tensor, dtype_of<T>(), Access::accumulate));
  }
  /// n uninitialised elements, 64-byte aligned, charged as workspace until the kernel ends.
  template <class T>
  T* scratch(std::int64_t n) {
    return static_cast<T*>(allocate_scratch(n * static_cast<std::int64_t>(sizeof(T))));
  }

  /// A tensor of this rank, made while a kernel runs (a lane that turned out to be needed).
  Tensor allocate(TensorSpec spec) { return {device_, std::move(spec)}; }
  /// Something that no output shows went out of range (R or fin gave fixed_invalid inside the kernel).
  void raise_overflow() { overflow_ = true; }
  /// The tensor's own flag; its elements are not read.
  bool overflow_of(const Tensor& tensor) const { return tensor.storage_->overflow; }
  Device& device() { return device_; }

  /// Called by the queue after the kernel's text: scans Fixed outputs for overflow and sets their flags.
  void close();

 private:
  enum class Access { read, write, update, accumulate };
  void* open(const Tensor& tensor, Dtype dtype, Access access);
  void* allocate_scratch(std::int64_t bytes);
  [[noreturn]] void refuse(const Tensor& tensor, const std::string& why) const;

  struct Scratch {
    std::byte* data;
    std::int64_t bytes;
  };
  Device& device_;
  std::string_view kernel_;
  bool overflow_ = false;
  std::vector<Tensor> outputs_;
  std::vector<bool> finished_;  // per output: scan it for overflow
  std::vector<Scratch> scratch_;
};

using Kernel = std::function<void(KernelScope&)>;

/// A point in a queue's work that another queue or the host can wait for.
class Event {
 public:
  Event() : state_(std::make_shared<State>()) {}
  void complete();
  void wait() const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  std::shared_ptr<State> state_;
};

/// Work in order. The first error stops the queue: later work is dropped and synchronize() throws the error.
class Queue {
 public:
  explicit Queue(Device& device) : device_(device) {}
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// `name` appears in errors and traces, and must outlive the queue (a literal).
  virtual void submit(std::string_view name, Kernel kernel) = 0;
  /// An event that completes when the work submitted so far has run.
  virtual Event record() = 0;
  /// Later work of this queue starts after the event.
  virtual void wait(const Event& event) = 0;
  /// Blocks the host until all work has run; throws the queue's first error, once.
  virtual void synchronize() = 0;

  Device& device() { return device_; }

 protected:
  static void run(Device& device, std::string_view name, const Kernel& kernel);

 private:
  Device& device_;
};

/// Runs each kernel inside submit(); errors leave submit() directly.
class ImmediateQueue final : public Queue {
 public:
  using Queue::Queue;
  void submit(std::string_view name, Kernel kernel) override { run(device(), name, kernel); }
  Event record() override;
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}
};

/// Runs kernels on a thread of its own: for copies and communication beside computation.
class WorkerQueue final : public Queue {
 public:
  explicit WorkerQueue(Device& device);
  ~WorkerQueue() override;
  void submit(std::string_view name, Kernel kernel) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;

 private:
  using Task = std::function<void()>;
  void push(Task task);
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace shardproof
