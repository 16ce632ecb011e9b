#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds build/cpu/shardproof and trains a GPT on the bytes of a text file, judged by the oracle.
#   scripts/run.sh [TEXT-FILE] [option of `shardproof run`...]
# Without --workload: `laptop`, on the text of LICENSE where no other corpus is given. With it: the workload's own corpus.
# The exit code is the job's.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '3,6s/^# *//p' "$0"
  exit
fi
file=
if [[ $# -gt 0 && $1 != -* ]]; then
  file=$(realpath -m -- "$1")
  shift
fi
cd "$(dirname "$0")/.."
scripts/install.sh run
scripts/build.sh cpu shardproof
if [[ " $* " != *" --workload"* ]]; then
  set -- --workload laptop "$@"
  [[ " $* " == *corpus=* ]] || file=${file:-LICENSE}
fi
exec build/cpu/shardproof run "$@" ${file:+--set "corpus=$file"}
