// SPDX-License-Identifier: Apache-2.0
#include "harness/schedule_trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/text.hpp"
#include "impl/plan/schedule_index.hpp"

namespace shardproof::harness {

std::string schedule_trace(const plan::Schedule& schedule, const plan::Timeline& timeline,
                           const plan::ActionCosts& costs, const std::string& title) {
  const plan::ScheduleIndex index(schedule, plan::extent_of(schedule));
  std::string events;
  const auto put = [&](const std::string& event) { events += (events.empty() ? "\n" : ",\n") + event; };
  std::int64_t messages = 0;
  const auto message = [&](const plan::ActionPlace& from, std::size_t to, const plan::Span& waiting) {
    const auto rank = static_cast<std::size_t>(from.rank), at = static_cast<std::size_t>(from.at);
    const plan::Span& sender = timeline.ranks[rank][at];
    // What a block makes is there at its end.
    const bool is_block = costs.overlapped && plan::begins_block(schedule.ranks[rank], at);
    const double sent = is_block ? timeline.ranks[rank][at + 1].end : sender.end;
    const auto name = print(index.action(from));
    // A flow belongs to the action that lies about its time, so it starts where its action does.
    put(fmt::format(R"({{"name":"{}","cat":"message","ph":"s","id":{},"pid":{},"tid":0,"ts":{},)"
                    R"("args":{{"sent":{},"arrives":{}}}}})",
                    name, messages, from.rank, sender.start, sent, sent + costs.message));
    put(fmt::format(R"({{"name":"{}","cat":"message","ph":"f","bp":"e","id":{},"pid":{},"tid":0,"ts":{}}})", name,
                    messages++, to, waiting.start));
  };
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    put(fmt::format(R"({{"name":"process_name","ph":"M","pid":{0},"args":{{"name":"rank {0}"}}}})", rank));
    put(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":0,"args":{{"name":"action"}}}})", rank));
    for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
      const plan::Action& action = schedule.ranks[rank][k];
      const plan::Span& span = timeline.ranks[rank][k];
      put(fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":0,"ts":{},"dur":{}}})", print(action), rank, span.start,
                      span.end - span.start));
      const auto source = index.source(action);
      if (source && *source && source->rank != static_cast<std::int32_t>(rank)) message(*source, rank, span);
    }
  }
  const nlohmann::ordered_json about = {
      {"title", printable(title)},
      {"costs",
       {{"F", costs.forward}, {"I", costs.backward_input}, {"W", costs.backward_weight}, {"message", costs.message}}},
      {"overlapped", costs.overlapped},
      {"makespan", timeline.makespan},
      {"bubble_fraction", timeline.bubble_fraction()}};
  return fmt::format(R"({{"displayTimeUnit":"ms","otherData":{},"traceEvents":[{})", about.dump(), events) + "\n]}\n";
}

}  // namespace shardproof::harness
