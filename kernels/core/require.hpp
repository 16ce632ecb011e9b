// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/core/errors.hpp"
#include "kernels/core/tensor.hpp"

namespace shardproof {

/// Throws InternalError("KERNEL: 'NAME' has N elements, not M") unless the tensor or accumulator has so many. An
/// accumulator goes by the name that the kernel's contract gives it.
inline void require_elements(std::string_view kernel, std::string_view name, std::int64_t found,
                             std::int64_t elements) {
  if (found == elements) return;
  throw InternalError(std::string(kernel) + ": '" + std::string(name) + "' has " + std::to_string(found) +
                      " elements, not " + std::to_string(elements));
}
inline void require_elements(std::string_view kernel, const Tensor& tensor, std::int64_t elements) {
  require_elements(kernel, tensor.name(), tensor.elements(), elements);
}

}  // namespace shardproof
