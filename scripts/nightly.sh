#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The long checks, and those that read clocks: every case of the suites, also over processes, every planted fault,
# processes that fail at 20 drawn moments, 1,000 flipped bits, random strategies for SHARDPROOF_SOAK (30m), a part of the
# suite pipeline's full grid, another each day of the year, for at most SHARDPROOF_EXHAUSTIVE (30m), and of
# pipeline_full's, another each day of the month, all tests under both sanitizers, one digest from three compilers'
# builds, long runs, pipelines beside theory. Prints a table and fails if a stage did.
#   scripts/nightly.sh [STAGE...]    only these stages: faults soak
set -uo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
. scripts/stage.sh
stages_wanted "$@"
scripts/install.sh nightly || exit
out=build/nightly
mkdir -p "$out" && { [[ $# -gt 0 ]] || rm -f "$out"/*.digest; }

# Some tests take ten times as long under a sanitizer.
sanitizer() {
  scripts/build.sh "$1" && ctest --preset "$1" --label-exclude readme --timeout 7200 --parallel "$(nproc)"
}

# digest_of NAME COMPILER BUILD-TYPE [CMake argument...]: builds shardproof and keeps the digest of tiny in NAME.digest.
digest_of() {
  local name=$1 compiler=$2 type=$3
  shift 3
  cmake -G Ninja -B "$out/$name" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$type" "$@" &&
    cmake --build "$out/$name" --target shardproof &&
    "$out/$name/shardproof" run --workload tiny --track exact --out "$out/$name/run" --overwrite |
    awk '$1 == "digest" { print $2 }' | tee "$out/$name.digest"
}
digests_agree() {
  cat "$out"/*.digest && [[ $(cat "$out"/*.digest | wc -l) -eq 3 && $(sort -u "$out"/*.digest | wc -l) -eq 1 ]]
}

fuzz() {
  cmake -G Ninja -B "$out/fuzz" -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSHARDPROOF_FUZZ=ON \
    -DSHARDPROOF_SANITIZE=fuzzer-no-link,address &&
    cmake --build "$out/fuzz" --target fuzz_parsers && mkdir -p "$out/fuzz/corpus" &&
    "$out/fuzz/fuzz_parsers" -max_total_time="${SHARDPROOF_FUZZ_SECONDS:-600}" -max_len=4096 -timeout=60 -verbosity=0 \
      -print_final_stats=1 -artifact_prefix="$out/fuzz/" "$out/fuzz/corpus"
}

stage tests scripts/test.sh
stage one_device build/cpu/shardproof check --suite one_device --out "$out/one_device" --overwrite
stage conformance build/cpu/shardproof check --suite conformance --out "$out/conformance" --overwrite
stage pipeline build/cpu/shardproof check --suite pipeline --out "$out/pipeline" --overwrite
for processes in 2 8; do # on two, four ranks of each are threads
  for suite in conformance pipeline; do
    stage "mpi_${processes}_$suite" scripts/mpirun.sh -n "$processes" build/cpu/shardproof check --suite "$suite" \
      --track exact --out "$out/mpi" --overwrite
  done
done
stage failures_20 env SHARDPROOF_FAILURE_SEEDS=20 /usr/bin/python3 scripts/tests/failure_test.py build/cpu/shardproof .
stage flips_1000 env SHARDPROOF_FLIPS=1000 build/cpu/harness/harness_tests --gtest_filter='Flips.*'
stage faults scripts/faults.sh
stage soak build/cpu/shardproof check --random --seed "$(date +%Y%j)" --time-budget "${SHARDPROOF_SOAK:-30m}" \
  --out "$out/soak" --overwrite
stage exhaustive build/cpu/shardproof check --suite pipeline --exhaustive --shard "$((10#$(date +%j)))/366" \
  --time-budget "${SHARDPROOF_EXHAUSTIVE:-30m}" --out "$out/exhaustive" --overwrite
stage pipeline_full build/cpu/shardproof check --suite pipeline_full --exhaustive --shard "$((10#$(date +%d)))/31" \
  --out "$out/pipeline_full" --overwrite
stage fuzz fuzz
stage digest_gcc_o0 digest_of gcc_o0 g++ Debug
stage digest_gcc_o3 digest_of gcc_o3 g++ RelWithDebInfo -DSHARDPROOF_ARCH=native
stage digest_clang digest_of clang clang++ RelWithDebInfo
stage digests_agree digests_agree
stage markov_1000 build/cpu/shardproof run --workload tiny --set vocab=16 --set batch=16 --set learning_rate=0.01 \
  --set learning_rate_schedule=linear --steps 1000 --out "$out/markov" --overwrite
stage laptop_text build/cpu/shardproof run --workload laptop --set corpus=README.md --steps 50 \
  --out "$out/laptop" --overwrite
stage laptop_exact build/cpu/shardproof run --workload laptop --track exact --steps 3 --out "$out/exact" --overwrite
stage tidy scripts/tidy.sh --all
stage asan sanitizer asan
stage tsan sanitizer tsan
stage pipeline_grid scripts/pipeline_grid.py --out "$out/pipeline_grid"
stage bench scripts/bench.sh
stage_table
