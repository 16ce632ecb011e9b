// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_standin/block.hpp"

#include <algorithm>
#include <bit>
#include <random>

#include "kernels/cuda_standin/device.hpp"

namespace shardproof::cuda_standin {

namespace {

thread_local Block* running_block = nullptr;

struct Running {
  explicit Running(Block& block) { running_block = &block; }
  ~Running() { running_block = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

/// What came before its end comes before what follows acquire(p), also where an error ends it.
class ReleasedAtEnd {
 public:
  explicit ReleasedAtEnd(char* p) : p_(p) {}
  ~ReleasedAtEnd() { sanitizer::release(p_); }
  ReleasedAtEnd(const ReleasedAtEnd&) = delete;
  ReleasedAtEnd& operator=(const ReleasedAtEnd&) = delete;

 private:
  char* p_;
};

std::string text(const uint3& index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," + std::to_string(index.z) + ")";
}

std::string text(const Site& site) {
  const std::string file = site.file;
  return site.call + (" (" + file.substr(file.rfind('/') + 1)) + ":" + std::to_string(site.line) + ")";
}

std::string hex(unsigned mask) {
  std::string digits;
  for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[mask >> shift & 15];
  return "0x" + digits;
}

constexpr unsigned bit(unsigned lane) { return 1u << lane; }
unsigned first_of(unsigned bits) { return static_cast<unsigned>(std::countr_zero(bits)); }

}  // namespace

struct Block::Thread {
  unsigned id = 0;
  uint3 index{};
  Fiber fiber{};
  std::function<void()> body{};
  bool waiting = false, left = false;
  Site site{};               // where it waits
  std::uint64_t result = 0;  // what its meeting gave it

  unsigned lane() const { return id % warp_lanes; }
};

Block::Block(const dim3& dim, const ThreadOrder& order) {
  const unsigned n = dim.x * dim.y * dim.z;
  for (unsigned i = 0; i < n; ++i) {
    auto& thread = *threads_.emplace_back(std::make_unique<Thread>());
    thread.id = i;
    thread.index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
    turns_.push_back(&thread);
  }
  if (order.kind == ThreadOrder::Kind::reverse) std::ranges::reverse(turns_);
  if (order.kind == ThreadOrder::Kind::shuffled) std::ranges::shuffle(turns_, std::mt19937(order.seed));
  warps_.resize((n + warp_lanes - 1) / warp_lanes);
  for (auto& warp : warps_) warp.lanes = ~0u;
  if (n % warp_lanes != 0) warps_.back().lanes = bit(n % warp_lanes) - 1;
}

Block::~Block() = default;

Block& Block::running() {
  if (running_block == nullptr) throw InternalError("device code was called outside of a kernel");
  return *running_block;
}

void Block::run(const std::function<void()>& kernel) {
  const Running running(*this);
  sanitizer::release(&start_);
  left_ = 0;
  for (auto& warp : warps_) warp.left = 0;
  for (auto& thread : threads_) {
    thread->left = false;
    thread->body = [this, &kernel] {
      sanitizer::acquire(&start_);
      const ReleasedAtEnd end(&end_);
      kernel();
    };
    thread->fiber.start(thread->body);
  }
  while (left_ < threads_.size()) {
    bool any = false;
    for (Thread* thread : turns_) {
      if (thread->left || thread->waiting) continue;
      any = true;
      resume(*thread);
    }
    if (!any) fault_deadlock();
  }
  sanitizer::acquire(&end_);
}

void Block::resume(Thread& thread) {
  self_ = &thread;
  threadIdx = thread.index;
  try {
    thread.fiber.resume();
  } catch (...) {
    sanitizer::acquire(&end_);  // the error's memory was this CUDA thread's
    throw;
  }
  if (thread.fiber.ended()) leave(thread);
}

void Block::leave(Thread& thread) {
  thread.left = true;
  ++left_;
  if (arrived_ > 0) fault(thread, "has left the kernel while others wait at " + text(site_));
  Warp& warp = warps_[thread.id / warp_lanes];
  warp.left |= bit(thread.lane());
  for (unsigned open = warp.open; open != 0; open &= open - 1) {
    const Meeting& meeting = warp.meetings[first_of(open)];
    if ((meeting.mask & bit(thread.lane())) != 0) {
      fault(thread, "has left the kernel while lanes whose mask names it wait at " + text(meeting.site));
    }
  }
}

void Block::wait(const Site& site) {
  Thread& self = *self_;
  self.waiting = true;
  self.site = site;
  self.fiber.suspend();
}

void Block::sync_threads(const Site& site) {
  if (left_ > 0) fault(*self_, "is at " + text(site) + ", but other threads have left the kernel");
  if (arrived_ == 0) site_ = site;
  if (!(site == site_)) fault(*self_, "is at " + text(site) + ", but others wait at " + text(site_));
  char* const order = &order_[passed_ % 2];
  sanitizer::release(order);
  if (++arrived_ < threads_.size()) {
    wait(site);
  } else {
    arrived_ = 0;
    ++passed_;
    for (auto& thread : threads_) thread->waiting = false;
  }
  sanitizer::acquire(order);
}

Block::Meeting& Block::join(Warp& warp, const Site& site, unsigned mask) {
  const unsigned self = bit(self_->lane());
  for (unsigned open = warp.open; open != 0; open &= open - 1) {
    Meeting& meeting = warp.meetings[first_of(open)];
    const bool same = meeting.mask == mask;
    if (same && meeting.site == site) return meeting;
    // Lanes that wait elsewhere may come here later, unless they wait for this one.
    if ((meeting.arrived & mask) != 0 && (meeting.mask & self) != 0) {
      fault(*self_, "is at " + text(site) + " with mask " + hex(mask) + ", but lanes that it names wait for it at " +
                        text(meeting.site) + " with mask " + hex(meeting.mask));
    }
  }
  const unsigned place = first_of(~warp.open);
  warp.open |= bit(place);
  Meeting& meeting = warp.meetings[place];
  meeting.site = site;
  meeting.mask = mask;
  meeting.arrived = 0;
  meeting.value = {};
  return meeting;
}

std::uint64_t Block::meet(const Site& site, unsigned mask, std::uint64_t value, unsigned from, Deliver deliver,
                          bool orders) {
  Thread& self = *self_;
  Warp& warp = warps_[self.id / warp_lanes];
  mask &= warp.lanes;
  if ((mask & bit(self.lane())) == 0) {
    fault(self, "is at " + text(site) + ", but mask " + hex(mask) + " does not name it");
  }
  if ((mask & warp.left) != 0) {
    fault(self, "is at " + text(site) + ", but lanes of mask " + hex(mask) + " have left the kernel");
  }
  if ((mask & bit(from)) == 0) {
    fault(self, "is at " + text(site) + " and reads lane " + std::to_string(from) + ", which mask " + hex(mask) +
                    " does not name");
  }
  Meeting& meeting = join(warp, site, mask);
  meeting.arrived |= bit(self.lane());
  meeting.value[self.lane()] = value;
  meeting.from[self.lane()] = from;
  char* const order = &meeting.order[meeting.passed % 2];
  if (orders) sanitizer::release(order);
  if (meeting.arrived != mask) {
    wait(site);
  } else {
    complete(self, warp, meeting, deliver);
  }
  if (orders) sanitizer::acquire(order);
  return self.result;
}

void Block::complete(const Thread& last, Warp& warp, Meeting& meeting, Deliver deliver) {
  const unsigned first = last.id - last.lane();
  for (unsigned mask = meeting.mask; mask != 0; mask &= mask - 1) {
    Thread& thread = *threads_[first + first_of(mask)];
    thread.result = deliver(meeting, thread.lane());
    thread.waiting = false;
  }
  ++meeting.passed;
  warp.open &= ~bit(static_cast<unsigned>(&meeting - warp.meetings.data()));
}

void Block::sync_warp(const Site& site, unsigned mask) {
  meet(
      site, mask, 0, lane(), [](const Meeting&, unsigned) { return std::uint64_t{0}; }, true);
}

std::uint64_t Block::shuffle(const Site& site, unsigned mask, std::uint64_t value, unsigned from) {
  return meet(site, mask, value, from, [](const Meeting& m, unsigned lane) { return m.value[m.from[lane]]; });
}

unsigned Block::ballot(const Site& site, unsigned mask, bool predicate) {
  const auto votes = meet(site, mask, predicate ? 1 : 0, lane(), [](const Meeting& m, unsigned) {
    std::uint64_t bits = 0;
    for (unsigned lane = 0; lane < warp_lanes; ++lane) bits |= m.value[lane] << lane;
    return bits;
  });
  return static_cast<unsigned>(votes);
}

unsigned Block::lane() const { return self_->lane(); }

std::string Block::name(const Thread& thread) const {
  return "thread " + text(thread.index) + " of block " + text(blockIdx);
}

void Block::fault(const Thread& thread, const std::string& what) const { throw KernelFault(name(thread) + " " + what); }

void Block::fault_deadlock() const {
  std::string who;
  std::vector<Site> named;
  for (const Thread* thread : turns_) {
    if (!thread->waiting || std::ranges::find(named, thread->site) != named.end()) continue;
    named.push_back(thread->site);
    who += (who.empty() ? "" : "; ") + name(*thread) + " waits at " + text(thread->site);
  }
  throw KernelFault("no thread can go on: " + who);
}

}  // namespace shardproof::cuda_standin
