#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speed. Kernels on one core and collectives over threads: median and spread (standard deviation, coefficient of variation)
# over repetitions. All-reduces of two processes against MPI's own call, what recording adds to a step, and training on two
# ranks against its twin: the median of interleaved pairs with its interval.
#   scripts/bench.sh [OPTION...]    options go to bench_kernels, which then runs alone: --benchmark_filter=matmul
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
scripts/install.sh run
scripts/build.sh cpu bench_kernels bench_collectives bench_recording shardproof
lscpu | grep -E '^(Architecture|CPU\(s\)|Model name|Thread|L[123]|NUMA node\(s\)|Hypervisor)' || true
echo "OPENBLAS_CORETYPE: ${OPENBLAS_CORETYPE:-unset}${OPENBLAS_CORETYPE:+, unset for the figures below}"
unset OPENBLAS_CORETYPE
repeated=(--benchmark_repetitions=7 --benchmark_enable_random_interleaving=true --benchmark_display_aggregates_only=true)
env OMP_NUM_THREADS=1 taskset -c 0 build/cpu/bench_kernels "${repeated[@]}" "$@"
[[ $# -eq 0 ]] || exit 0
build/cpu/bench_collectives "${repeated[@]}"
if command -v mpirun >/dev/null; then
  scripts/build.sh cpu bench_mpi && scripts/mpirun.sh -n 2 build/cpu/bench_mpi
fi
taskset -c 0 build/cpu/bench_recording
for strategy in dp2 tp2; do
  build/cpu/shardproof run --workload laptop --track native --steps 5 --no-check --strategy "$strategy" --twin 9 \
    --out "build/bench/$strategy" --overwrite | grep -E '^(throughput|twin)' | sed "s/^/$strategy /"
done
