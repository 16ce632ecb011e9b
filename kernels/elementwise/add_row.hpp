// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/fixed_row.hpp"

namespace shardproof::elementwise {

/// z = fin(x + y)
template <class S>
struct AddRow {
  const S *x, *y;
  S* z;

  template <class Team>
  SHARDPROOF_HD void operator()(const Team& team, std::int64_t n) const {
    const S *const a = x, *const b = y;
    S* const out = z;
    team.each(n, [=](std::int64_t i) { out[i] = add_in_range(a[i], b[i]); });
  }
};

}  // namespace shardproof::elementwise
