// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/ready.hpp"

#include <algorithm>

#include "kernels/core/errors.hpp"

namespace shardproof::engine {

Ready::Ready(const std::vector<plan::Action>& actions, ParameterStore& store)
    : actions_(actions), final_(actions.size()) {
  using plan::ActionKind;
  std::size_t gradient = 0;
  for (const auto& slot : store.slots()) {
    if (!slot.gradient) continue;
    std::size_t last = actions.size() - 1;
    for (std::size_t i = actions.size(); i-- > 0;) {
      const plan::Action& action = actions[i];
      const bool adds = action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
      const auto touches = [&, s = action.stage](const plan::Site& site) {
        return site.part != "none" && site.stage == s;
      };
      if (!adds || std::ranges::none_of(slot.layout->sites, touches)) continue;
      last = i;
      break;
    }
    final_.at(last).push_back(gradient++);
  }
}

const std::vector<std::size_t>& Ready::after(const plan::Action& action) {
  if (at_ == actions_.size() || actions_[at_] != action)
    throw InternalError("ready: " + plan::print(action) + " is not the schedule's next action");
  return final_[at_++];
}

}  // namespace shardproof::engine
