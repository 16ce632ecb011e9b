// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/observable.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <type_traits>

#include "kernels/core/errors.hpp"

namespace shardproof {

namespace {

std::string header_of(const Observable& o) {
  const bool null = o.kind == Observed::loss && o.dims == Dims{0};
  std::string line = std::to_string(o.step) + ' ';
  line.append(name_of(o.kind)).append(" ").append(o.name).append(" ");
  line.append(null ? "null" : name_of(dtype_of(o.values))).append(" ");
  for (std::size_t i = 0; i < o.dims.size(); ++i) line.append(i == 0 ? "" : "x").append(std::to_string(o.dims[i]));
  return line + '\n';
}

/// -0 becomes +0; everything else keeps its bits.
template <class T>
T one_zero(T value) {
  if constexpr (std::is_floating_point_v<T>) return value == 0 ? T{0} : value;
  return value;
}

template <class T>
void add_elements(Sha256& hash, const std::vector<T>& values) {
  static_assert(std::endian::native == std::endian::little, "digests take elements as little-endian bytes");
  std::array<T, 2048> block;
  for (std::size_t begin = 0; begin < values.size(); begin += block.size()) {
    const auto count = std::min(block.size(), values.size() - begin);
    for (std::size_t i = 0; i < count; ++i) block[i] = one_zero(values[begin + i]);
    hash.add(std::as_bytes(std::span(block.data(), count)));
  }
}

/// Adds the observables in the order of step, kind and name.
void add_sorted(Sha256& hash, std::vector<const Observable*> observables) {
  const auto key = [](const Observable* o) { return std::tie(o->step, o->kind, o->name); };
  std::ranges::sort(observables, {}, key);
  const auto twice = std::ranges::adjacent_find(observables, {}, key);
  if (twice != observables.end()) throw InternalError("digest: observed twice: " + header_of(**twice));
  for (const auto* o : observables) {
    if (elements_of(o->dims) != size_of(o->values)) {
      throw InternalError("digest: " + std::to_string(size_of(o->values)) + " values for " + header_of(*o));
    }
    hash.add(header_of(*o));
    std::visit([&](const auto& values) { add_elements(hash, values); }, o->values);
  }
}

std::vector<const Observable*> pointers_to(const std::vector<Observable>& observables) {
  std::vector<const Observable*> pointers;
  for (const auto& o : observables) pointers.push_back(&o);
  return pointers;
}

}  // namespace

std::string_view name_of(Observed kind) {
  constexpr std::array<std::string_view, 7> names{"loss", "gradient", "norm", "clip", "skipped", "parameter", "state"};
  return names[static_cast<std::size_t>(kind)];
}

Dtype dtype_of(const Values& values) {
  return std::visit([]<class T>(const std::vector<T>&) { return dtype_of<T>(); }, values);
}

std::int64_t size_of(const Values& values) {
  return std::visit([](const auto& v) { return static_cast<std::int64_t>(v.size()); }, values);
}

std::vector<double> as_doubles(const Values& values) {
  return std::visit(
      []<class T>(const std::vector<T>& v) {
        std::vector<double> doubles(v.size());
        std::ranges::transform(v, doubles.begin(), [](T x) {
          if constexpr (std::is_same_v<T, Fixed>)
            return real(x);
          else
            return static_cast<double>(x);
        });
        return doubles;
      },
      values);
}

std::string digest_of(std::vector<const Observable*> observables) {
  Sha256 hash;
  add_sorted(hash, std::move(observables));
  return hash.finish_hex();
}

std::string digest_of(const std::vector<Observable>& observables) { return digest_of(pointers_to(observables)); }

void Digest::add(const std::vector<Observable>& step) {
  for (const auto& o : step) {
    if (o.step <= last_step_ || o.step != step.front().step) {
      throw InternalError("digest: steps do not ascend: " + header_of(o));
    }
  }
  if (!step.empty()) last_step_ = step.front().step;
  add_sorted(hash_, pointers_to(step));
}

std::string Digest::finish() { return hash_.finish_hex(); }

}  // namespace shardproof
