#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants public faults of distributed training, one at a time, and prints which of them the suite catches.
#   scripts/faults.sh [--suite NAME|FILE] [--only ID,AREA,...] [--track TRACK]
# All patches (impl/*/faults/ID.patch) go onto one copy of this tree, which is built once; SHARDPROOF_FAULT=ID chooses at
# run time. The copy must pass the suite while none is chosen. Ends non-zero if a fault survives, or is caught by another
# observable than suites/faults.json expects.
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
tree=$PWD/build/faults/tree
/usr/bin/python3 scripts/faults.py copy "$tree"
"$tree/scripts/build.sh" cpu shardproof
exec /usr/bin/python3 scripts/faults.py kill "$tree/build/cpu/shardproof" "$@"
