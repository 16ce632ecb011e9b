// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/core/errors.hpp"

namespace shardproof {

/// A training cannot go on: a number of it is out of range, infinite or none, and the step cannot be skipped.
struct NonFinite : NotSupported {
  using NotSupported::NotSupported;
};

}  // namespace shardproof
