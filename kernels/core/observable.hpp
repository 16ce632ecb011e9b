// SPDX-License-Identifier: Apache-2.0
// What a training run shows of itself to be compared (reference/ARITHMETIC.md, section 12).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/core/dtype.hpp"
#include "kernels/core/sha256.hpp"

namespace shardproof {

/// In the order in which a digest takes them.
enum class Observed : std::uint8_t { loss, gradient, norm, clip, skipped, parameter, state };
std::string_view name_of(Observed kind);

using Values = std::variant<std::vector<Fixed>, std::vector<double>, std::vector<float>, std::vector<std::int64_t>>;

/// One tensor (or scalar: dims {1}) of one step. A null loss has dims {0} and no values.
struct Observable {
  std::int64_t step;
  Observed kind;
  std::string name;
  Dims dims;
  Values values;
};

Dtype dtype_of(const Values& values);
std::int64_t size_of(const Values& values);
/// Elements as doubles: D(x) of Fixed.
std::vector<double> as_doubles(const Values& values);

/// SHA-256 over observables in the order of step, kind and name, however they were collected.
std::string digest_of(std::vector<const Observable*> observables);
std::string digest_of(const std::vector<Observable>& observables);

/// The digest of a run whose observables come step by step and are not kept.
class Digest {
 public:
  /// All observables of one step, in any order; steps ascend (InternalError).
  void add(const std::vector<Observable>& step);
  /// digest_of all that was added; the object is spent.
  std::string finish();

 private:
  Sha256 hash_;
  std::int64_t last_step_ = 0;
};

}  // namespace shardproof
