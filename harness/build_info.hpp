// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shardproof::harness {

/// What the build knows of itself.
struct BuildInfo {
  const char *version, *commit, *compiler, *flags, *preset, *cuda;
  bool dirty;
};

/// Generated: build_info.cpp.in.
extern const BuildInfo build_info;

}  // namespace shardproof::harness
