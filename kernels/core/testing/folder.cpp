// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/testing/folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace shardproof::testing {

Folder::Folder() {
  auto name = (std::filesystem::temp_directory_path() / "shardproof_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace shardproof::testing
