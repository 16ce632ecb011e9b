// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "impl/step/optimizer.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::step {

const Optimizer& optimizer(std::string_view name) {
  std::string known;
  for (const auto* o : optimizers()) {
    if (o->name == name) return *o;
    known += (known.empty() ? "" : ", ") + std::string(o->name);
  }
  throw NotSupported("optimizer=" + std::string(name) + ": there is " + known);
}

}  // namespace shardproof::step
