// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace shardproof {

/// The whole file as bytes. Throws BadInput naming path and cause (missing, no file, unreadable, above limit_bytes).
std::string read_file(const std::filesystem::path& path, std::uintmax_t limit_bytes = std::uintmax_t{1} << 40);

/// Writes path so that it appears whole or not at all: a temporary file beside it, flushed to disk, then renamed.
/// Several pieces are written one after the other. Throws WriteError naming path and cause (a full disk, ...).
void write_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace shardproof
