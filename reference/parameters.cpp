// SPDX-License-Identifier: Apache-2.0
#include "reference/parameters.hpp"

namespace shardproof::reference {

template <class S>
Parameters<S> initial_parameters(const workload::Workload& workload) {
  Parameters<S> out;
  for (const auto& info : workload::parameters(workload)) {
    const auto rows = info.dims.size() == 2 ? info.dims[0] : 1, columns = info.dims.back();
    std::vector<S> values;
    for (const double value : workload::initial_values(workload, info)) {
      values.push_back(round_to<S>(static_cast<Real<S>>(value)));
    }
    out[info.name] = {info, Array<S>(rows, columns, std::move(values)), Array<Sum<S>>(rows, columns),
                      Array<Real<S>>(rows, columns), Array<Real<S>>(rows, columns)};
  }
  return out;
}

template Parameters<Fixed> initial_parameters<Fixed>(const workload::Workload&);
template Parameters<double> initial_parameters<double>(const workload::Workload&);
template Parameters<float> initial_parameters<float>(const workload::Workload&);

}  // namespace shardproof::reference
