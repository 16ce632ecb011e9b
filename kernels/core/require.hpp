// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/core/errors.hpp"
#include "kernels/core/tensor.hpp"

namespace shardproof {

/// Throws InternalError("KERNEL: 'NAME' has N elements, not M") unless the tensor has so many.
inline void require_elements(std::string_view kernel, const Tensor& tensor, std::int64_t elements) {
  if (tensor.elements() == elements) return;
  throw InternalError(std::string(kernel) + ": '" + tensor.name() + "' has " + std::to_string(tensor.elements()) +
                      " elements, not " + std::to_string(elements));
}

}  // namespace shardproof
