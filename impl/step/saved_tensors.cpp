// SPDX-License-Identifier: Apache-2.0
#include "impl/step/saved_tensors.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/core/errors.hpp"

namespace shardproof::step {

void SavedTensors::keep(std::string_view name, Tensor tensor, Readers readers) {
  if (find(name)) throw InternalError("saved tensor '" + std::string(name) + "' is kept twice");
  saved_.push_back({name, std::move(tensor), static_cast<std::uint8_t>(readers)});
}

Tensor SavedTensors::find(std::string_view name) const {
  const auto at = std::ranges::find(saved_, name, &Saved::name);
  return at == saved_.end() ? Tensor() : at->tensor;
}

const Tensor& SavedTensors::operator[](std::string_view name) const {
  const auto at = std::ranges::find(saved_, name, &Saved::name);
  if (at == saved_.end()) {
    throw InternalError("saved tensor '" + std::string(name) +
                        "' is not there: never kept, or read after its last declared reader");
  }
  return at->tensor;
}

void SavedTensors::release_after(Readers action) {
  const auto claim = static_cast<std::uint8_t>(action);
  for (auto& s : saved_) s.readers = static_cast<std::uint8_t>(s.readers & ~claim);
  std::erase_if(saved_, [](const Saved& s) { return s.readers == 0; });
}

void SavedTensors::require_released() const {
  if (saved_.empty()) return;
  throw InternalError("saved tensor '" + std::string(saved_.front().name) + "' has a reader that did not run");
}

}  // namespace shardproof::step
