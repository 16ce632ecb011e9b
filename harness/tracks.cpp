// SPDX-License-Identifier: Apache-2.0
#include "harness/tracks.hpp"

#include <algorithm>
#include <array>

#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

const std::array names = {std::string(name_of(Track::exact)), std::string(name_of(Track::f64)),
                          std::string(name_of(Track::native))};

}  // namespace

std::span<const std::string> track_names() { return names; }

Track track_named(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw BadInput(unknown("track", name, names));
  return static_cast<Track>(found - names.begin());
}

}  // namespace shardproof::harness
