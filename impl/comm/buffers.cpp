// SPDX-License-Identifier: Apache-2.0
#include "impl/comm/buffers.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "impl/comm/element.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/poison.hpp"

namespace shardproof::comm {

Buffers open(KernelScope& scope, const Call& call, std::int64_t place) {
  Buffers own{.overflow = call.overflow};
  if (call.kind == Kind::barrier) return own;
  with_element(payload(call).dtype(), [&]<class T>(T) {
    own.element = sizeof(T);
    const auto read = [&](const Tensor& tensor) {
      own.overflow = own.overflow || scope.overflow_of(tensor);
      return reinterpret_cast<const std::byte*>(scope.read<T>(tensor));
    };
    if (call.kind == Kind::all_reduce) {
      own.overflow = own.overflow || scope.overflow_of(call.output);
      own.input = own.output = reinterpret_cast<std::byte*>(scope.update<T>(call.output));
    } else if (call.kind == Kind::broadcast && call.peer == place) {
      own.input = read(call.output);
    } else {
      if (call.input) own.input = read(call.input);
      if (call.output) own.output = reinterpret_cast<std::byte*>(scope.write<T>(call.output));
    }
  });
  if (own.output == nullptr || call.kind == Kind::all_reduce) return own;

  // Of an output that the input is a part of, or the reverse, that part stays.
  const auto fill = [&](std::int64_t begin, std::int64_t end) {
    if (scope.device().poison()) poison::fill(call.output.dtype(), own.output + begin, end - begin);
  };
  const auto output_bytes = call.output.bytes(), input_bytes = call.input ? call.input.bytes() : 0;
  const bool apart = own.input + input_bytes <= own.output || own.output + output_bytes <= own.input;
  if (input_bytes == 0 || output_bytes == 0 || apart) {
    fill(0, output_bytes);
    return own;
  }
  const auto before = call.kind == Kind::all_gather ? sum_of_first(call.outputs, place) * own.element : 0;
  const bool gathers_in_place = call.kind == Kind::all_gather && own.input == own.output + before;
  const bool scatters_in_place =
      call.kind == Kind::reduce_scatter && own.output == own.input + sum_of_first(call.inputs, place) * own.element;
  if (!gathers_in_place && !scatters_in_place) {
    throw InternalError(std::string(name_of(call.kind)) + " (purpose " + std::string(call.purpose) + "): '" +
                        call.input.name() + "' and '" + call.output.name() + "' overlap");
  }
  if (gathers_in_place) {
    fill(0, before);
    fill(before + input_bytes, output_bytes);
  }
  return own;
}

std::int64_t sum_of_first(const std::vector<std::int64_t>& counts, std::int64_t k) {
  return std::accumulate(counts.begin(), counts.begin() + k, std::int64_t{0});
}

std::int64_t begin_of(std::int64_t elements, std::int64_t n, std::int64_t k) {
  return k * (elements / n) + std::min(k, elements % n);
}

}  // namespace shardproof::comm
