#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything and runs all tests. Arguments go to ctest: scripts/test.sh -R kernels
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh test
scripts/build.sh cpu
exec ctest --preset cpu --parallel "$(nproc)" "$@"
