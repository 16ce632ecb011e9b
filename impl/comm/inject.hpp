// SPDX-License-Identifier: Apache-2.0
// Faults for judges to find, planted between a technique and its transport, and slow ranks (`--inject`).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::comm {

/// What a rank does wrong. Its peers never hang: but for the last two, which end the run, it still takes part in the
/// call. Its *contribution* is what
/// others get from it, its *result* what it gets; both faults of a side act where the call has that side.
enum class Fault : std::uint8_t {
  skip,     ///< the result is left out: the tensor stays as it was (or as poison). On the input: zero is contributed
  repeat,   ///< all_reduce and reduce_scatter, sum: the result as if summed again (times the members; doubled)
  scale,    ///< contribution times `factor`. Integers: exact by a whole factor, else by way of double and towards zero;
            ///< they stay where the product does not fit
  corrupt,  ///< lowest bit of `element` of the contribution flipped
  delay,    ///< begins `ms` later, or when another rank has failed
  wrong_group,  ///< reductions: over the others only (not sum: over itself only); all_gather, all_to_all: parts rotated
  slow,         ///< of no call: all kernels of the rank but exchanges take `factor` times as long (slow_queue)
  mismatch,     ///< collectives: made for the purpose `injected`, which the other members must refuse
  fail,         ///< throws an error of its own instead
};
enum class Side : std::uint8_t { input, output };

/// Written `corrupt:axis=tp,kind=all_reduce,purpose=mlp_row_output,rank=1,call=3,element=5`: filters are optional.
struct Injection {
  Fault fault = Fault::skip;
  std::optional<std::string> axis = {}, purpose = {};
  std::optional<Kind> kind = {};
  std::optional<std::int64_t> rank = {};  ///< in the world
  std::optional<std::int64_t> call = {};  ///< the rank's k-th call, from 1, of those that the other filters let through
  std::optional<Side> at = {};            ///< of skip, scale and corrupt; else skip acts on the result if there is one,
                                          ///< scale and corrupt on the contribution if there is one
  double factor = 2;
  std::int64_t element = 0;  ///< modulo the number of elements
  double ms = 1;
};

/// What can be written, for lists: parsing reads the same two tables.
struct FaultRow {
  std::string_view name, meaning;
};
struct FaultField {
  std::string name, values, meaning;
  std::string standard = {};       ///< "" where leaving it out means any, or what the meaning says
  std::vector<Fault> faults = {};  ///< that have it; empty: all of them
  bool of_calls = false;           ///< a filter of calls: also not of slow
};
/// In the enum's order.
std::span<const FaultRow> fault_rows();
std::span<const FaultField> fault_fields();
bool takes(Fault fault, const FaultField& field);

/// A run ended well, yet an injection met no call (slow: no rank that computes): it has shown nothing.
struct NoCallMatched : BadInput {
  explicit NoCallMatched(const Injection& injection);
};

/// Throws BadInput with every finding, one a line: field, value, and what would be legal.
std::vector<Injection> parse_injections(const std::vector<std::string>& specs, std::int64_t ranks);
/// Canonical; parses back.
std::string to_text(const Injection& injection);

/// Plants injections in the channels of one rank, which it outlives.
class Injector {
 public:
  /// `pause` sleeps for so many seconds, or until the world has failed; `goes_on`: it has not. Both may throw.
  Injector(const std::vector<Injection>& injections, Rank rank, std::function<void(double)> pause,
           std::function<bool()> goes_on);
  std::unique_ptr<Channel> wrap(std::unique_ptr<Channel> channel);
  /// As World::queue. Factors of several injections are multiplied.
  std::unique_ptr<Queue> queue(Device& device);
  /// How many calls injection i has met; of slow, how many queues.
  std::int64_t hits(std::size_t i) const { return hits_[i]; }
  void pause(double seconds) const { pause_(seconds); }
  /// The injections that this call meets, counted. Thread-safe.
  std::vector<const Injection*> meet(const Group& group, const Call& call);

 private:
  const std::vector<Injection>& injections_;
  const Rank rank_;
  const std::function<void(double)> pause_;
  const std::function<bool()> goes_on_;
  std::vector<std::atomic<std::int64_t>> seen_, hits_;
};

}  // namespace shardproof::comm
