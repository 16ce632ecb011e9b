// SPDX-License-Identifier: Apache-2.0
#include "harness/trace.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "harness/exchanges.hpp"
#include "harness/time_account.hpp"

namespace shardproof::harness {
namespace {

constexpr std::string_view lanes[] = {"step", "action", "compute", "copy", "communication", "wait"};
enum Lane : std::size_t { step, action, compute, copy, communication, wait };

class Writer {
 public:
  explicit Writer(std::int64_t zero) : zero_(zero) {}

  void name(std::size_t rank) {
    put(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":"rank {}"}}}})", rank, rank));
    for (std::size_t lane = 0; lane < std::size(lanes); ++lane)
      put(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank, lane,
                      lanes[lane]));
  }
  /// Names are literals of the program: letters, digits, '_', '.' and spaces.
  void span(std::size_t rank, Lane lane, std::string_view name, std::int64_t start, std::int64_t end) {
    if (end <= start) return;
    put(fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", name, rank,
                    static_cast<std::size_t>(lane), 1e-3 * static_cast<double>(start - zero_),
                    1e-3 * static_cast<double>(end - start)));
  }
  std::string finish() && { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + text_ + "\n]}\n"; }

 private:
  void put(const std::string& event) { text_ += (text_.empty() ? "\n" : ",\n") + event; }

  std::int64_t zero_;
  std::string text_;
};

Spans first_steps(Spans rank, std::size_t steps) {
  if (rank.steps.size() <= steps) return rank;
  rank.steps.resize(steps);
  const auto later = [&](const TimeSpan& span) { return steps == 0 || span.start >= rank.steps.back().end; };
  std::erase_if(rank.kernels, later);
  std::erase_if(rank.exchanges, later);
  std::erase_if(rank.actions, later);
  return rank;
}

/// The parts of the kernel before, between and after its exchanges, which have lanes of their own.
void write_kernel(Writer& writer, std::size_t rank, const KernelSpan& kernel, std::span<const ExchangeSpan> exchanges) {
  const Lane lane = is_copy(kernel) ? copy : compute;
  auto from = kernel.start;
  const auto first = std::ranges::lower_bound(exchanges, kernel.start, {}, &ExchangeSpan::start);
  for (auto e = first; e != exchanges.end() && e->start < kernel.end; ++e) {
    if (e->thread != kernel.thread || e->end > kernel.end) continue;
    writer.span(rank, lane, kernel.name, from, e->start);
    from = e->end;
  }
  writer.span(rank, lane, kernel.name, from, kernel.end);
}

}  // namespace

std::string chrome_trace(std::span<const Spans> all, std::size_t steps) {
  std::vector<Spans> ranks;
  for (const auto& rank : all) ranks.push_back(first_steps(rank, steps));
  auto zero = std::numeric_limits<std::int64_t>::max();
  for (const auto& rank : ranks)
    for (const auto& step : rank.steps) zero = std::min(zero, step.start);
  Writer writer(zero);
  const auto waiting = waits(ranks);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto& rank = ranks[r];
    writer.name(r);
    for (const auto& s : rank.steps) writer.span(r, step, fmt::format("step {}", s.step), s.start, s.end);
    for (const auto& a : rank.actions)
      writer.span(r, action, fmt::format("{}{}{}", a.stage, a.kind, a.microbatch), a.start, a.end);
    for (std::size_t k = 0; k < rank.exchanges.size(); ++k) {
      const auto& e = rank.exchanges[k];
      const auto name = fmt::format("{} {}", e.kind, e.purpose);
      writer.span(r, wait, name, e.start, e.start + waiting[r][k]);
      writer.span(r, communication, name, e.start + waiting[r][k], e.end);
    }
    auto exchanges = rank.exchanges;
    std::ranges::sort(exchanges, {}, &ExchangeSpan::start);
    for (const auto& kernel : rank.kernels) write_kernel(writer, r, kernel, exchanges);
  }
  return std::move(writer).finish();
}

}  // namespace shardproof::harness
