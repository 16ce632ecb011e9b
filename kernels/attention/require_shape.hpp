// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/attention/attention.hpp"

namespace shardproof::attention {

/// Throws InternalError, naming the kernel, for heads that do not lie in the logical tensor or whose key heads are not
/// those that kv_heads counts.
void require_shape(const char* kernel, const Shape& shape);

}  // namespace shardproof::attention
