#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures and builds one preset of CMakePresets.json under build/PRESET.
#   scripts/build.sh PRESET [TARGET...]    default: every target
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
preset=${1:?which preset: cpu, cuda, cuda_standin, asan or tsan}
shift
build=build/$preset
# Ninja configures again when a CMakeLists.txt has changed, but does not know the presets.
if [[ ! -e $build/build.ninja || CMakePresets.json -nt $build/build.ninja ]]; then
  cmake --preset "$preset" >&2
fi
# One compiler cache for every checkout: paths below this folder count as relative.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true
cmake --build "$build" ${1:+--target "$@"} >&2
