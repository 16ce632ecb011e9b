// SPDX-License-Identifier: Apache-2.0
#include "harness/progress.hpp"

#include <chrono>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

namespace shardproof::harness {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::show(const std::string& text) {
  if (!terminal_ || now_seconds() - last_ < 0.1) return;
  last_ = now_seconds();
  std::fprintf(stderr, "\r\033[K%s", text.substr(0, terminal_width()).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace shardproof::harness
