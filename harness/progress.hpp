// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace shardproof::harness {

/// One line on stderr that is rewritten in place; nothing where stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows text, cut to the terminal's width; at most ten times a second.
  void show(const std::string& text);
  void clear();

 private:
  bool terminal_, shown_ = false;
  double last_ = 0;
};

}  // namespace shardproof::harness
