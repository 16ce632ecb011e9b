// SPDX-License-Identifier: Apache-2.0
// Every kernel goes through a Queue, as it would go through a CUDA stream.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/core/tensor.hpp"

namespace shardproof {

/// What a running kernel may touch. Only a queue makes one. Each access checks owner rank, space and dtype and carries
/// overflow flags from inputs to outputs. read() and update() scan for poison where the device has it on; not in a
/// Fixed tensor whose flag is up (poison is a number out of range too), and accumulate() never: a partial sum may be
/// anything.
class KernelScope {
 public:
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
  void raise_overflow() { raised_ = true; }
  /// The tensor's own flag; its elements are not read.
  bool overflow_of(const Tensor& tensor) const { return tensor.storage_->overflow; }
  Device& device() { return device_; }

 private:
  friend class Queue;
  KernelScope(Device& device, std::string_view kernel) : device_(device), kernel_(kernel) {}
  /// After the kernel's text: scans Fixed outputs for overflow, sets their flags and the device's.
  void close();

  enum class Access { read, write, update, accumulate };
  void* open(const Tensor& tensor, Dtype dtype, Access access);
  void* allocate_scratch(std::int64_t bytes);
  [[noreturn]] void refuse(const Tensor& tensor, const std::string& why) const;

  struct Output {
    Tensor tensor;
    bool finished;  // an out-of-range element is an overflow
  };
  struct Scratch {
    std::byte* data;
    std::int64_t bytes;
  };
  Device& device_;
  std::string_view kernel_;
  bool inherited_ = false;  // some input's flag is up
  bool raised_ = false;
  std::vector<Output> outputs_;
  std::vector<Scratch> scratch_;
};

using Kernel = std::function<void(KernelScope&)>;

/// A point in a queue's work that another queue or the host can wait for.
class Event {
 public:
  Event() : state_(std::make_shared<State>()) {}
  /// `error`: what stopped the work before it, if anything did. The first call counts, so that whoever gives up may
  /// complete an event with an error and be too late.
  void complete(std::exception_ptr error = nullptr);
  /// Blocks until complete; throws its error.
  void wait() const;
  /// As wait(), for at most so long: whether it is complete.
  bool wait_for(double seconds) const;
  /// As wait(), until a stop is asked for: whether it is complete.
  bool wait(std::stop_token stop) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable_any changed;
    bool done = false;
    std::exception_ptr error;
  };
  std::shared_ptr<State> state_;
};

/// Work in order. The first error stops the queue: later work is dropped and synchronize() throws the error; so do
/// waits for events that were recorded after it. From one synchronize() to the next one host thread uses a queue.
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

/// Runs kernels on a thread of its own: for copies and communication beside computation. Throws InternalError when a
/// second host thread uses it between two calls of synchronize(): whose work an error had dropped would be unknown.
class WorkerQueue final : public Queue {
 public:
  explicit WorkerQueue(Device& device);
  /// Runs what is pending, but for work behind an event that is not complete by now: that is dropped, not waited for.
  ~WorkerQueue() override;
  void submit(std::string_view name, Kernel kernel) override;
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;

 private:
  using Task = std::function<void()>;
  void push(Task task);
  /// Runs the task unless an error came before; keeps its error.
  void attempt(const Task& task);
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr error_;
  std::thread::id host_;  // who uses the queue since the last synchronize()
  std::stop_source stopping_;
  std::thread thread_;
};

}  // namespace shardproof
