// SPDX-License-Identifier: Apache-2.0
// How a workload is spread over ranks. One table of keys (strategy.cpp) serves parsing, printing, refusals and lists.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/plan/mesh.hpp"
#include "impl/plan/schedule.hpp"
#include "impl/plan/schedule_file.hpp"
#include "kernels/core/track.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::plan {

/// "dp2 pp2 schedule=gpipe microbatches=4": sizes of mesh axes are written NAMEsize, all other keys NAME=value. Members
/// stand in the table's order.
struct Strategy {
  std::int64_t dp = 1;                                                  ///< ranks that see different samples
  std::int64_t pp = 1;                                                  ///< ranks that hold different stages
  std::int64_t tp = 1;                                                  ///< ranks that hold different slices of a layer
  std::array<Axis, axis_count> order = {Axis::pp, Axis::dp, Axis::tp};  ///< of the mesh, outermost first
  ScheduleSource schedule = "naive";                                    ///< one of schedules(), or file:PATH
  std::int64_t chunks = 0;                  ///< stages that a pipeline rank holds; 0: the schedule's own
  std::string vertical_sync = "off";        ///< of pipedream; on: a step reads one version on all stages
  std::vector<std::int64_t> replicas = {};  ///< of pipedream: ranks of each stage; empty: one each
  std::int64_t microbatches = 1;            ///< parts that a data rank's share of the batch is accumulated over
  std::vector<std::int64_t> layers = {};    ///< by stage; empty: balanced, the first stages get one more
  std::string boundary = "whole";           ///< scattered: tensor ranks send a part each of what crosses stages
  std::string attention = "stored";         ///< tiled: without a matrix of scores
  std::string sync = "all_reduce";          ///< how gradients meet in the data group
  std::string optimizer = {};               ///< empty: the workload's
  std::optional<double> clip = {};          ///< 0: off; none: the workload's

  /// Size of the mesh's axis pp: a pipeline's ranks, which are more than its stages where these have replicas.
  std::int64_t pipeline_ranks() const;
  /// Ranks of the mesh.
  std::int64_t ranks() const { return dp * pipeline_ranks() * tp; }
  bool operator==(const Strategy&) const = default;
};

Mesh mesh_of(const Strategy& strategy);
/// What the strategy's schedule is made for. One that updates without a flush covers all steps of a run, others one.
ScheduleShape schedule_shape(const Strategy& strategy, std::int64_t steps = 1);

/// `dp*`, or another axis, takes what the other axes leave of `ranks`. Throws BadInput with every finding, one a line:
/// unknown keys (with the nearest one), doubled keys, wrong values, more than 2^31 ranks. Throws NotSupported where it
/// leaves a rest.
Strategy parse_strategy(std::string_view text, std::optional<std::int64_t> ranks = {});

/// The canonical form: the table's order, defaults left out, "dp1" when nothing is left. Parses back.
std::string print(const Strategy& strategy);

/// The workload with the program keys that the strategy names in place of its own, and the stale program that its
/// schedule is: what the oracle computes.
workload::Workload with_program_keys(workload::Workload workload, const Strategy& strategy);

/// What a run promises relative to one device: "EXACT", the same function summed in another order, or "ROUNDED", the
/// same function in other algebra, or "STALE", the stale program of its schedule (workload.hpp). In the exact track
/// every layout key is EXACT.
std::string_view contract(const Strategy& strategy, Track track);

/// Why a strategy is refused.
struct Refusal {
  std::string key;     ///< of the table; "ranks" for all axes together
  std::string reason;  ///< one sentence
};

/// Every reason why the strategy cannot run the workload (on so many ranks, where they are given); empty: it is legal.
std::vector<Refusal> refusals(const Strategy& strategy, const workload::Workload& workload,
                              std::optional<std::int64_t> ranks = {});
/// The strategy itself where it is legal; else one without its refusals: the fewest axes changed, then by the least
/// factor, keys without effect at their default, and the schedule kept where other microbatches (or clip=off) do.
Strategy nearest_legal(const Strategy& strategy, const workload::Workload& workload,
                       std::optional<std::int64_t> ranks = {});
/// Throws NotSupported with every reason, one a line, and the nearest legal strategy.
void require_legal(const Strategy& strategy, const workload::Workload& workload,
                   std::optional<std::int64_t> ranks = {});

struct StrategyKey {
  std::string name, values, standard, meaning;
  bool program;  ///< changes what the oracle computes; otherwise it must not change a bit
};
std::vector<StrategyKey> strategy_keys();

}  // namespace shardproof::plan
