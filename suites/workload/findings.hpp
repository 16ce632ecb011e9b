// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/workload/workload.hpp"

namespace shardproof::workload {

struct Finding {
  std::vector<std::string_view> keys;  ///< the ones that it is about
  std::string text;
};

std::vector<Finding> examine(const Workload& workload);

}  // namespace shardproof::workload
