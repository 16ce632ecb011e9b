// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/stream.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cuda_standin/sanitizer.hpp"

namespace shardproof::cuda_standin {

void Progress::reach(std::uint64_t n) {
  sanitizer::release(&order_);
  const sanitizer::Unseen unseen;
  {
    const std::lock_guard lock(mutex_);
    reached_ = std::max(reached_, n);
  }
  changed_.notify_all();
}

void Progress::wait(std::uint64_t n) {
  {
    const sanitizer::Unseen unseen;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= n; });
  }
  sanitizer::acquire(&order_);
}

}  // namespace shardproof::cuda_standin

namespace sanitizer = shardproof::cuda_standin::sanitizer;

CUstream_st::CUstream_st(bool late) : late_(late), thread_([this] { loop(); }) {}

CUstream_st::~CUstream_st() {
  const sanitizer::Unseen unseen;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t CUstream_st::push(std::function<void()> work) {
  auto item = std::make_unique<Work>(Work{std::move(work)});
  sanitizer::release(&item->order);
  const sanitizer::Unseen unseen;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(item));
    number = ++pushed_;
  }
  changed_.notify_all();
  return number;
}

void CUstream_st::demand(std::uint64_t n) {
  const sanitizer::Unseen unseen;
  {
    const std::lock_guard lock(mutex_);
    demanded_ = std::max(demanded_, n);
  }
  changed_.notify_all();
}

void CUstream_st::drain() {
  std::uint64_t last = 0;
  {
    const sanitizer::UnseenLock lock(mutex_);
    last = pushed_;
  }
  demand(last);
  progress_.wait(last);
}

std::unique_ptr<CUstream_st::Work> CUstream_st::next() {
  const sanitizer::Unseen unseen;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || (!waiting_.empty() && (!late_ || taken_ < demanded_)); });
  if (waiting_.empty()) return nullptr;
  auto work = std::move(waiting_.front());
  waiting_.pop_front();
  ++taken_;
  return work;
}

void CUstream_st::loop() {
  while (auto work = next()) {
    sanitizer::acquire(&work->order);
    work->run();
    const auto number = taken_;  // only this thread counts it
    work = nullptr;
    progress_.reach(number);
  }
}
