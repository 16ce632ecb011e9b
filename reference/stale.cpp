// SPDX-License-Identifier: Apache-2.0
#include "reference/stale.hpp"

#include <algorithm>
#include <string>

#include "kernels/core/errors.hpp"

namespace shardproof::reference {
namespace {

using Rule = workload::StaleProgram::Rule;

std::int64_t stages(const workload::StaleProgram& program) { return std::ssize(program.stage_layers); }

std::int64_t stage_of_layer(const workload::StaleProgram& program, std::int64_t layer) {
  std::int64_t stage = 0;
  for (std::int64_t end = program.stage_layers[0]; end <= layer; end += program.stage_layers[stage]) ++stage;
  return stage;
}

}  // namespace

std::int64_t stage_of(const workload::Workload& workload, std::string_view parameter) {
  const auto& program = workload.stale;
  const auto last = stages(program) - 1;
  if (parameter == "token_embedding.weight") {
    if (workload.tied_head && last > 0) throw BadInput("tied_head: two stages of a stale program would update it");
    return 0;
  }
  if (parameter == "position_embedding.weight" || parameter.starts_with("unused.")) return 0;
  if (!parameter.starts_with("blocks.")) return last;
  const std::int64_t layer = std::stoll(std::string(parameter.substr(7)));
  const auto stage = stage_of_layer(program, layer);
  const auto& shared = workload.shared_block;
  if (!shared.empty() && layer == shared[0] && stage_of_layer(program, shared[1]) != stage)
    throw BadInput("shared_block: two stages of a stale program would update it");
  return stage;
}

std::int64_t version_read(const workload::StaleProgram& program, std::int64_t stage, std::int64_t step) {
  const std::int64_t n = stages(program);
  std::int64_t version = step - 1;
  switch (program.rule) {
    case Rule::none: break;
    case Rule::stashed: version -= n - 1 - stage; break;
    case Rule::vertical_sync: version -= n - 1; break;
    case Rule::double_buffered: version -= 1; break;
  }
  return std::max<std::int64_t>(version, 0);
}

template <class S>
void History<S>::begin(std::int64_t step, Parameters<S>& parameters) {
  auto& newest = versions_[step - 1];
  for (const auto& [name, parameter] : parameters) newest[name] = parameter.value;
  std::int64_t oldest = step;
  for (auto& [name, parameter] : parameters) {
    const auto version = version_read(workload_.stale, stage_of(workload_, name), step);
    parameter.value = versions_.at(version).at(name);
    oldest = std::min(oldest, version);
  }
  std::erase_if(versions_, [&](const auto& version) { return version.first < oldest; });
}

template <class S>
void History<S>::end(std::int64_t step, Parameters<S>& parameters) const {
  for (auto& [name, parameter] : parameters) parameter.value = versions_.at(step - 1).at(name);
}

template class History<Fixed>;
template class History<double>;
template class History<float>;

}  // namespace shardproof::reference
