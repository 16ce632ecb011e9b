// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "reference/arithmetic.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::reference {

/// A parameter of the model as it stands, and its gradient: one unfinished sum over the whole step.
template <class S>
struct Parameter {
  workload::Parameter info;
  Array<S> value;
  Array<Sum<S>> gradient;
  Array<Real<S>> first, second;  ///< optimizer state: momentum or the two moments
  std::int64_t taken = 0;        ///< updates so far
};

/// By name.
template <class S>
using Parameters = std::map<std::string, Parameter<S>, std::less<>>;

/// Initial values, gradients and state zero. Vectors are one row.
template <class S>
Parameters<S> initial_parameters(const workload::Workload& workload);

}  // namespace shardproof::reference
