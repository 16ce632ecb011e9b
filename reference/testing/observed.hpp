// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/errors.hpp"
#include "kernels/core/observable.hpp"

namespace shardproof::reference::testing {

inline bool has(const std::vector<Observable>& all, Observed kind) {
  return std::ranges::any_of(all, [&](const Observable& o) { return o.kind == kind; });
}

inline const Observable& find(const std::vector<Observable>& all, Observed kind, std::string_view name) {
  const auto found = std::ranges::find_if(all, [&](const Observable& o) { return o.kind == kind && o.name == name; });
  if (found == all.end()) throw InternalError("nothing observed by the name of " + std::string(name));
  return *found;
}

/// A scalar of the step.
inline double number(const std::vector<Observable>& all, Observed kind) {
  return as_doubles(find(all, kind, name_of(kind)).values).at(0);
}

/// All values of one kind, one after the other.
inline std::vector<double> values(const std::vector<Observable>& all, Observed kind) {
  std::vector<double> out;
  for (const auto& o : all) {
    if (o.kind != kind) continue;
    const auto part = as_doubles(o.values);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace shardproof::reference::testing
