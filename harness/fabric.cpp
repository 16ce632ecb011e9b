// SPDX-License-Identifier: Apache-2.0
#include "harness/fabric.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/json_fields.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

constexpr std::uintmax_t most_file_bytes = 64 << 10;

}  // namespace

Fabric take_fabric(Fields& fields) {
  Fabric fabric{.name = fields.name("name"),
                .latency_seconds = fields.number("latency_seconds", 0, 1),
                .bytes_per_second = fields.number("bytes_per_second", 1e3, 1e15)};
  fields.finish();
  return fabric;
}

Fabric parse_fabric(std::string_view text, const std::string& origin) {
  const nlohmann::ordered_json object = parse_object(text, origin);
  std::vector<std::string> findings;
  Fields fields(object, origin, findings);
  Fabric fabric = take_fabric(fields);
  throw_findings(findings);
  return fabric;
}

Fabric load_fabric(const std::string& path) { return parse_fabric(read_file(path, most_file_bytes), path); }

std::string to_text(const Fabric& fabric) {
  return fmt::format("{} ({:g} us, {:g} GB/s)", fabric.name, 1e6 * fabric.latency_seconds,
                     1e-9 * fabric.bytes_per_second);
}

std::string over_text(const std::optional<Fabric>& fabric) { return fabric ? " over " + to_text(*fabric) : ""; }

}  // namespace shardproof::harness
