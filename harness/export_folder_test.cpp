// SPDX-License-Identifier: Apache-2.0
#include "harness/export_folder.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

void write(const fs::path& folder, const std::string& text) {
  fs::create_directories(folder);
  write_file(folder / "export.json", text);
  write_file(folder / "step-0001.safetensors", text);
}

std::string refusal(const fs::path& path, bool overwrite = true) {
  try {
    ExportFolder folder(path, overwrite);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ExportFolder, AppearsWholeOrNotAtAll) {
  const shardproof::testing::Folder root;
  for (const char* name : {"a/b", "a/c/"}) {
    ExportFolder folder(root / name, false);
    write_file(folder.path() / "export.json", "{}");
    EXPECT_FALSE(fs::exists(root / name));
    folder.commit();
    EXPECT_TRUE(fs::exists(root / name / "export.json"));
  }
  { ExportFolder dropped(root / "d", false); }
  EXPECT_EQ(root.names(), Names{"a"});
}

TEST(ExportFolder, ReplacesAnExportOnly) {
  const shardproof::testing::Folder root;
  write(root / "e", "old");
  EXPECT_EQ(refusal(root / "e", false),
            (root / "e").string() + " exists already; choose another folder or give --overwrite");
  fs::create_directory(root / "empty");
  for (const char* name : {"e", "empty", "new"}) {
    ExportFolder folder(root / name, true);
    write_file(folder.path() / "export.json", "new");
    folder.commit();
    EXPECT_EQ(read_file(root / name / "export.json"), "new");
    EXPECT_FALSE(fs::exists(root / name / "step-0001.safetensors"));
  }
  EXPECT_EQ(root.names(), (Names{"e", "empty", "new"}));
}

TEST(ExportFolder, LeavesEverythingElseAlone) {
  const shardproof::testing::Folder root;
  const auto expect_refused = [&](const std::string& name, const std::string& why) {
    EXPECT_NE(refusal(root / name).find(why), std::string::npos) << refusal(root / name);
  };
  write(root / "mixed", "old");
  write_file(root / "mixed/thesis.txt", "x");
  expect_refused("mixed", "holds thesis.txt, which no export writes");
  write(root / "deep", "old");
  fs::create_directories(root / "deep/step-0002.safetensors");
  expect_refused("deep", "holds step-0002.safetensors, which no export writes");
  write_file(root / "file", "x");
  expect_refused("file", "is no folder");
  write(root / "real", "old");
  fs::create_directory_symlink(root / "real", root / "link");
  expect_refused("link", "is no folder");
  fs::create_symlink("loop", root / "loop");
  expect_refused("loop", "is no folder");
  EXPECT_EQ(read_file(root / "mixed/thesis.txt"), "x");
  EXPECT_EQ(read_file(root / "real/export.json"), "old");

  const fs::path before = fs::current_path();
  fs::current_path(root / "real");
  EXPECT_NE(refusal("."), "accepted");
  EXPECT_NE(refusal(".."), "accepted");
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_NE(refusal("../real").find("is the current folder"), std::string::npos);
  fs::current_path(before);
  EXPECT_EQ(read_file(root / "real/export.json"), "old");
}

TEST(ExportFolder, WhatCameInTheMeantimeStays) {
  const shardproof::testing::Folder root;
  write(root / "e", "old");
  ExportFolder folder(root / "e", true);
  write_file(root / "e/notes.txt", "mine");
  EXPECT_THROW(folder.commit(), BadInput);
  EXPECT_EQ(read_file(root / "e/notes.txt"), "mine");
  EXPECT_EQ(read_file(root / "e/export.json"), "old");
}

TEST(ExportFolder, WhereItCannotBeMadeItSaysWhy) {
  const shardproof::testing::Folder root;
  write_file(root / "file", "x");
  EXPECT_THROW(ExportFolder(root / "file/below", true), shardproof::Error);
  EXPECT_EQ(read_file(root / "file"), "x");
}

TEST(ExportFolder, KnowsItsFiles) {
  for (const char* name : {"export.json", "initial.safetensors", "yardstick.safetensors", "step-0001.safetensors",
                           "step-12345.safetensors"})
    EXPECT_TRUE(is_export_name(name)) << name;
  for (const char* name : {"", "records.jsonl", "step-.safetensors", "step-001.safetensors", "step-00a1.safetensors",
                           "step-0001.safetensor", "export.json.partial0"})
    EXPECT_FALSE(is_export_name(name)) << name;
}

}  // namespace
}  // namespace shardproof::harness
