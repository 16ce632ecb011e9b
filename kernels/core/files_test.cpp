// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/files.hpp"

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "kernels/core/errors.hpp"
#include "kernels/core/testing/folder.hpp"

namespace shardproof {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

/// Files may not grow beyond this, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(Files, WritesAndReads) {
  const testing::Folder folder;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 100003u}) {
    std::string text(size, 'x');
    if (size > 1) text[size / 2] = '\0';
    write_file(folder / "a", text);
    EXPECT_EQ(read_file(folder / "a"), text) << size;
  }
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(Files, WritesPiecesInOrder) {
  const testing::Folder folder;
  const std::string first = "one ", second, third = "three";
  const std::array pieces{std::as_bytes(std::span(first)), std::as_bytes(std::span(second)),
                          std::as_bytes(std::span(third))};
  write_file(folder / "a", pieces);
  EXPECT_EQ(read_file(folder / "a"), "one three");
}

TEST(Files, ReplacesAndHasOrdinaryPermissions) {
  const testing::Folder folder;
  const auto mask = ::umask(022);
  write_file(folder / "a", "a longer text");
  write_file(folder / "a", "short");
  ::umask(mask);
  EXPECT_EQ(read_file(folder / "a"), "short");
  EXPECT_EQ(static_cast<int>(fs::status(folder / "a").permissions()), 0644);
}

TEST(Files, AFullDiskLeavesTheOldFileAndNothingElse) {
  const testing::Folder folder;
  write_file(folder / "a", "old");
  std::string message;
  {
    const FileSizeLimit limit(10000);
    message = message_of<WriteError>([&] { write_file(folder / "a", std::string(20000, 'x')); });
  }
  EXPECT_EQ(message, "cannot write '" + (folder / "a").string() + "': File too large");
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(Files, AReaderOfTheOldFileKeepsIt) {
  // What is replaced is the name: the old file is not written into.
  const testing::Folder folder;
  write_file(folder / "a", "old");
  std::ifstream reader(folder / "a");
  write_file(folder / "a", "new");
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "old");
}

TEST(Files, LeavesTheUnfinishedFilesOfOthers) {
  const testing::Folder folder;
  std::ofstream(folder / "a.partial0") << "of another";
  write_file(folder / "a", "mine");
  EXPECT_EQ(read_file(folder / "a.partial0"), "of another");
  EXPECT_EQ(folder.names(), (Names{"a", "a.partial0"}));
}

TEST(Files, SaysWhyItCannotWrite) {
  const testing::Folder folder;
  const auto missing = folder / "no/such/a";
  EXPECT_EQ(message_of<WriteError>([&] { write_file(missing, "x"); }),
            "cannot write '" + missing.string() + "': No such file or directory");
  EXPECT_EQ(message_of<WriteError>([&] { write_file(folder.path(), "x"); }),
            "cannot write '" + folder.path().string() + "': it is there and no regular file");
  EXPECT_EQ(message_of<WriteError>([&] { write_file("/dev/full", "x"); }),
            "cannot write '/dev/full': it is there and no regular file");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  // Even root may not create files there.
  EXPECT_NE(message_of<WriteError>([&] { write_file("/proc/shardproof", "x"); }), "no error");
}

TEST(Files, SaysWhyItCannotRead) {
  const testing::Folder folder;
  const auto missing = folder / "missing";
  EXPECT_EQ(message_of<BadInput>([&] { read_file(missing); }),
            "cannot read '" + missing.string() + "': No such file or directory");
  EXPECT_EQ(message_of<BadInput>([&] { read_file(folder.path()); }),
            "cannot read '" + folder.path().string() + "': it is a folder, not a file");
  write_file(folder / "a", "12345");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
  EXPECT_EQ(message_of<BadInput>([&] { read_file(folder / "a", 4); }),
            "cannot read '" + (folder / "a").string() + "': it is longer than 4 bytes");
  // Without a size beforehand the limit holds all the same.
  EXPECT_GT(read_file("/proc/self/maps").size(), 0u);
  EXPECT_EQ(message_of<BadInput>([&] { read_file("/proc/self/maps", 10); }),
            "cannot read '/proc/self/maps': it is longer than 10 bytes");
}

// A pipe that nobody writes to would be waited for without end, and a device may have none.
TEST(Files, WhatIsNoFileIsRefusedAtOnce) {
  const testing::Folder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  EXPECT_EQ(message_of<BadInput>([&] { read_file(pipe); }),
            "cannot read '" + pipe.string() + "': it is a pipe, not a file");
  for (const std::string device : {"/dev/zero", "/dev/null"})
    EXPECT_EQ(message_of<BadInput>([&] { read_file(device); }),
              "cannot read '" + device + "': it is a device, not a file");
  fs::create_symlink(pipe, folder / "link");
  EXPECT_NE(message_of<BadInput>([&] { read_file(folder / "link"); }).find("it is a pipe"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
