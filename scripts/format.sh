#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ and CUDA source; with --check, only names those that are not formatted, and fails if there are any.
#   scripts/format.sh [--check]
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
mapfile -t files < <(find kernels suites reference impl harness scripts -name '*.[hc]pp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
if [[ ${1:-} == --check ]]; then
  clang-format --dry-run --Werror --ferror-limit=1 "${files[@]}"
else
  clang-format -i "${files[@]}"
fi
