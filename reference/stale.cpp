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

std::int64_t replicas(const workload::StaleProgram& program, std::int64_t stage) {
  return program.replicas.empty() ? 1 : program.replicas.at(static_cast<std::size_t>(stage));
}

/// Versions of the stage that step t is behind the one of its own update.
std::int64_t updates_behind(const workload::StaleProgram& program, std::int64_t stage) {
  std::int64_t ranks = 0;
  for (std::int64_t s = stage; s < stages(program); ++s) ranks += replicas(program, s);
  return (ranks - 1) / replicas(program, stage);
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

std::int64_t steps_per_update(const workload::StaleProgram& program, std::int64_t stage) {
  return program.rule == Rule::stashed || program.rule == Rule::vertical_sync ? replicas(program, stage) : 1;
}

std::int64_t version_read(const workload::StaleProgram& program, std::int64_t stage, std::int64_t step) {
  const auto stashed = [&](std::int64_t s) {
    return std::max<std::int64_t>((step - 1) / replicas(program, s) - updates_behind(program, s), 0);
  };
  switch (program.rule) {
    case Rule::none: break;
    case Rule::stashed: return stashed(stage);
    case Rule::vertical_sync: return stashed(0) * replicas(program, 0) / replicas(program, stage);
    case Rule::double_buffered: return std::max<std::int64_t>(step - 2, 0);
  }
  return step - 1;
}

std::int64_t steps_of_update(const workload::Workload& workload, std::string_view parameter, std::int64_t step) {
  if (!workload.stale) return 1;
  const std::int64_t steps = steps_per_update(workload.stale, stage_of(workload, parameter));
  return step % steps == 0 ? steps : 0;
}

template <class S>
void History<S>::begin(std::int64_t step, Parameters<S>& parameters) {
  auto& newest = versions_[step - 1];
  for (const auto& [name, parameter] : parameters) newest[name] = parameter.value;
  std::int64_t oldest = step;
  for (auto& [name, parameter] : parameters) {
    const auto stage = stage_of(workload_, name);
    const auto steps = version_read(workload_.stale, stage, step) * steps_per_update(workload_.stale, stage);
    parameter.value = versions_.at(steps).at(name);
    oldest = std::min(oldest, steps);
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
