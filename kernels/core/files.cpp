// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/files.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/core/errors.hpp"

namespace shardproof {

namespace {

namespace fs = std::filesystem;

/// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  /// False, with errno, when delayed writing failed.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

std::string cause(int error) { return std::generic_category().message(error); }

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw WriteError("cannot write '" + path.string() + "': " + cause(error));
}

/// What stands at a path where no file does; "" for a file.
std::string no_file(mode_t mode) {
  if (S_ISREG(mode)) return "";
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::string read_file(const fs::path& path, std::uintmax_t limit_bytes) {
  const auto refuse = [&](const std::string& why) { throw BadInput("cannot read '" + path.string() + "': " + why); };
  // O_NONBLOCK: opening a pipe waits for its writer otherwise.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) refuse(cause(errno));
  if (const std::string what = no_file(status.st_mode); !what.empty()) refuse("it is " + what + ", not a file");
  const auto too_long = "it is longer than " + std::to_string(limit_bytes) + " bytes";
  if (std::cmp_greater(status.st_size, limit_bytes)) refuse(too_long);

  // Files of /proc have no size beforehand; others may grow while they are read.
  std::string bytes;
  bytes.resize(static_cast<std::size_t>(status.st_size) + 1);
  std::size_t size = 0;
  for (;;) {
    const auto count = ::read(file.number(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(cause(errno));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
    if (size > limit_bytes) refuse(too_long);
    if (size == bytes.size()) bytes.resize(2 * size + 4096);
  }
  bytes.resize(size);
  return bytes;
}

void write_file(const fs::path& path, std::span<const std::span<const std::byte>> pieces) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw WriteError("cannot write '" + path.string() + "': it is there and no regular file");
  }
  fs::path partial;
  int number = -1;
  for (int k = 0; number < 0; ++k) {
    partial = path.string() + ".partial" + std::to_string(k);
    number = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0 && errno != EEXIST) cannot_write(path, errno);
  }
  Descriptor file(number);
  bool ok = true;
  for (const auto& piece : pieces) ok = ok && write_all(file.number(), piece);
  ok = ok && ::fsync(file.number()) == 0;
  ok = ok && file.close();
  ok = ok && std::rename(partial.c_str(), path.c_str()) == 0;
  if (ok) return;
  const int error = errno;
  ::unlink(partial.c_str());
  cannot_write(path, error);
}

void write_file(const fs::path& path, std::string_view text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, {&piece, 1});
}

}  // namespace shardproof
