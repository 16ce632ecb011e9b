// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace shardproof::harness {

/// Whether an export writes a file of this name (harness/export.hpp).
bool is_export_name(std::string_view name);

/// A folder beside the wanted one, moved into place by commit() and removed if that never comes.
class ExportFolder {
 public:
  /// Throws BadInput: the wanted folder exists and `overwrite` is off; or it is no folder, the current one, or holds
  /// what no export writes, so that replacing it would lose that. Throws WriteError: it cannot be made.
  ExportFolder(const std::filesystem::path& wanted, bool overwrite);
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;
  ExportFolder& operator=(const ExportFolder&) = delete;

  /// To write to.
  const std::filesystem::path& path() const { return path_; }
  /// The wanted folder is the new one, whole; at no moment is there neither the old one nor the new. Throws as the
  /// constructor does; then the wanted folder is as it was.
  void commit();

 private:
  /// Whether there is one; throws BadInput where it may not be replaced.
  bool replaces() const;

  std::filesystem::path wanted_, path_;
  bool overwrite_;
};

}  // namespace shardproof::harness
