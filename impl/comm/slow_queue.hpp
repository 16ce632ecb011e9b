// SPDX-License-Identifier: Apache-2.0
// A rank that computes slowly: what `--inject slow` makes of its queue.
#pragma once

#include <functional>
#include <string_view>

#include "kernels/core/queue.hpp"

namespace shardproof::comm {

/// Runs each kernel inside submit(), as ImmediateQueue. A kernel that is no exchange with other ranks takes `factor`
/// times the processor time that it needs, inside its recorded span: the thread spins for the rest of it, so that both
/// the wall's clock and the thread's own see it. Every millisecond of that it asks `goes_on`, which may throw, and
/// spins no longer once that is false.
class SlowQueue final : public Queue {
 public:
  SlowQueue(Device& device, double factor, std::function<bool()> goes_on);
  void submit(std::string_view name, Kernel kernel) override;
  Event record() override;
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}

 private:
  void spin(std::int64_t nanoseconds) const;

  const double factor_;
  const std::function<bool()> goes_on_;
};

}  // namespace shardproof::comm
