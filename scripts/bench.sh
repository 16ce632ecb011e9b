#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds bench_kernels and prints, per benchmark, median and spread (standard deviation, coefficient of variation) over
# repetitions on one core. Arguments go to it: scripts/bench.sh --benchmark_filter=matmul
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install.sh run
scripts/build.sh cpu bench_kernels
lscpu | grep -E '^(Architecture|CPU\(s\)|Model name|Thread|L[123]|NUMA node\(s\)|Hypervisor)' || true
echo "OPENBLAS_CORETYPE: ${OPENBLAS_CORETYPE:-unset}${OPENBLAS_CORETYPE:+, unset for the figures below}"
unset OPENBLAS_CORETYPE
exec env OMP_NUM_THREADS=1 taskset -c 0 build/cpu/bench_kernels --benchmark_repetitions=7 \
  --benchmark_enable_random_interleaving=true --benchmark_display_aggregates_only=true "$@"
