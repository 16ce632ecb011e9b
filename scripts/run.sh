#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds build/cpu/shardproof and trains a GPT on the bytes of a text file, judged by the oracle.
#   scripts/run.sh [TEXT-FILE] [option of `shardproof run`...]
# Without --workload and --suite: `laptop`, on the text of LICENSE where no other corpus is given; without any option also
# the suite `smoke` on the same text: 1, 2 and 4 ranks, compared. With --workload or --suite: that alone, on its corpus.
# The exit code is the job's.
set -euo pipefail
. "$(dirname "$0")/help.sh"
file=
if [[ $# -gt 0 && $1 != -* ]]; then
  file=$(realpath -m -- "$1")
  shift
fi
cd "$(dirname "$0")/.."
scripts/install.sh run
scripts/build.sh cpu shardproof
if [[ " $* " == *" --workload"* || " $* " == *" --suite"* ]]; then
  exec build/cpu/shardproof run "$@" ${file:+--set "corpus=$file"}
fi
[[ " $* " == *corpus=* ]] || file=${file:-LICENSE}
build/cpu/shardproof run --workload laptop "$@" ${file:+--set "corpus=$file"}
[[ $# -eq 0 ]] || exit 0
exec build/cpu/shardproof run --suite smoke --set "corpus=$file"
