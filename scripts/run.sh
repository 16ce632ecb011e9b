#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds build/cpu/shardproof and trains a GPT on the bytes of a text file, judged by the oracle.
#   scripts/run.sh [TEXT-FILE] [option of `shardproof run`...]    default: the project's README.md
# The exit code is the job's.
set -euo pipefail
file=
if [[ $# -gt 0 && $1 != -* ]]; then
  file=$(realpath -m -- "$1")
  shift
fi
cd "$(dirname "$0")/.."
scripts/install.sh run
scripts/build.sh cpu shardproof
[[ " $* " == *" --workload"* ]] || set -- --workload laptop "$@"
exec build/cpu/shardproof run "$@" --set "corpus=${file:-README.md}"
