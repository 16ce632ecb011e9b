// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes little-endian header length, a JSON header, the tensors' bytes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/core/dtype.hpp"

namespace shardproof::safetensors {

/// Fixed has no safetensors type: it is exported as F64 by whoever writes it.
struct Entry {
  std::string name;
  Dtype dtype;
  Dims dims;
  std::vector<std::byte> bytes;
};

struct File {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;
  /// The entry, or nullptr.
  const Entry* find(const std::string& name) const;
};

/// Writes all or nothing. Throws WriteError (disk), InternalError (doubled name, size that does not fit dims).
void write(const std::filesystem::path& path, const File& file);

/// Throws BadInput with every finding, one a line, each naming path and tensor: truncated, a header longer than the
/// file or than 100 MB, not JSON, unknown dtype, offsets that overlap, leave gaps or do not fit dims, doubled names.
File read(const std::filesystem::path& path);

template <class T>
Entry entry(std::string name, Dims dims, const std::vector<T>& values);
/// The elements; throws BadInput when the entry has another dtype.
template <class T>
std::vector<T> values(const Entry& entry);

}  // namespace shardproof::safetensors
