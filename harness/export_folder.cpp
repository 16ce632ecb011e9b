// SPDX-License-Identifier: Apache-2.0
#include "harness/export_folder.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what, const std::error_code& error) {
  throw WriteError(fmt::format("{}: cannot be {}: {}", path.string(), what, error.message()));
}

}  // namespace

bool is_export_name(std::string_view name) {
  if (name == "export.json" || name == "initial.safetensors" || name == "yardstick.safetensors") return true;
  constexpr std::string_view before = "step-", after = ".safetensors";
  if (!name.starts_with(before) || !name.ends_with(after)) return false;
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - after.size());
  return digits.size() >= 4 && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

ExportFolder::ExportFolder(const fs::path& wanted, bool overwrite) : wanted_(wanted), overwrite_(overwrite) {
  if (!wanted_.has_filename()) wanted_ = wanted_.parent_path();  // "x/"
  replaces();
  const fs::path name = wanted_.filename();
  if (name.empty() || name == "." || name == "..")
    throw BadInput(fmt::format("{}: name the folder that the export is to be", wanted.string()));
  path_ = wanted_;
  path_ += fmt::format(".writing-{}", getpid());
  std::error_code error;
  if (!fs::create_directories(path_, error)) {
    if (!error) error = std::make_error_code(std::errc::file_exists);
    const fs::path made = std::exchange(path_, {});
    fail(made, "made", error);
  }
}

ExportFolder::~ExportFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

bool ExportFolder::replaces() const {
  std::error_code error;
  const auto status = fs::symlink_status(wanted_, error);
  if (status.type() == fs::file_type::not_found) return false;
  const auto refuse = [&](const std::string& why) { throw BadInput(fmt::format("{} {}", wanted_.string(), why)); };
  if (status.type() == fs::file_type::none) refuse("cannot be looked at: " + error.message());
  if (!overwrite_) refuse("exists already; choose another folder or give --overwrite");
  if (!fs::is_directory(status)) refuse("is no folder: it is not replaced");
  if (fs::equivalent(wanted_, ".", error)) refuse("is the current folder: it is not replaced");
  for (auto entry = fs::directory_iterator(wanted_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!is_export_name(name) || !entry->is_regular_file(error))
      refuse(fmt::format("holds {}, which no export writes: it is not replaced", name));
  }
  if (error) refuse("cannot be looked at: " + error.message());
  return true;
}

void ExportFolder::commit() {
  std::error_code error, ignored;
  const bool old = replaces();
  fs::path aside = wanted_;
  aside += fmt::format(".replaced-{}", getpid());
  if (old) fs::rename(wanted_, aside, error);
  if (error) fail(wanted_, "replaced", error);
  fs::rename(path_, wanted_, error);
  if (error) {
    if (old) fs::rename(aside, wanted_, ignored);
    fail(wanted_, "written", error);
  }
  path_.clear();
  if (old) fs::remove_all(aside, ignored);
}

}  // namespace shardproof::harness
