#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs all tests.
#   scripts/test.sh [OPTION...]    options go to ctest: -R kernels
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
scripts/install.sh test
scripts/build.sh cpu
exec ctest --preset cpu --parallel "$(nproc)" "$@"
