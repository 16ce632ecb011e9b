// SPDX-License-Identifier: Apache-2.0
// What carries the exchanges of a replay (`--fabric`), stated by whoever asks for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardproof::harness {

class Fields;

/// One kind of link between any two ranks. A collective takes as long as its ring algorithm (Patarasuk and Yuan 2009),
/// a message latency + bytes / bandwidth.
struct Fabric {
  std::string name;
  double latency_seconds = 0;
  double bytes_per_second = 0;

  bool operator==(const Fabric&) const = default;
};

/// name, latency_seconds (0 to 1), bytes_per_second (1e3 to 1e15): all of the object's fields.
Fabric take_fabric(Fields& fields);
/// A profile: the JSON object of these fields. Throws BadInput with every finding, one a line, starting with `origin`.
Fabric parse_fabric(std::string_view text, const std::string& origin);
/// Of a file. Throws BadInput.
Fabric load_fabric(const std::string& path);

/// "NAME (5 us, 12.5 GB/s)"
std::string to_text(const Fabric& fabric);
/// What stands behind the word "replay" of a figure: " over NAME (5 us, 12.5 GB/s)"; "" where no fabric is stated.
std::string over_text(const std::optional<Fabric>& fabric);

}  // namespace shardproof::harness
