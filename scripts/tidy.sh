#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy, by the checks of .clang-tidy, on the sources that build/cpu compiles and that differ from a revision (a
# header stands for the source of its name), or on all of them. Needs `scripts/build.sh cpu` before it.
#   scripts/tidy.sh [REVISION|--all]    default: HEAD~1
set -euo pipefail
. "$(dirname "$0")/help.sh"
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
commands=build/cpu/compile_commands.json
[[ -f $commands ]] || { echo "tidy.sh: there is no $commands: run scripts/build.sh cpu" >&2; exit 2; }
if [[ $base == --all ]]; then
  changed=$(git ls-files '*.cpp')
elif git rev-parse -q --verify "$base^{commit}" >/dev/null; then
  changed=$(git diff --name-only "$base" -- '*.cpp' '*.hpp' | sed 's/hpp$/cpp/' | sort -u)
else
  echo "tidy.sh: this checkout has no $base: name a revision, or --all" >&2
  exit 2
fi
mapfile -t files < <(for file in $changed; do grep -qF "\"file\": \"$PWD/$file\"" "$commands" && echo "$file"; done)
echo "clang-tidy on ${#files[@]} sources"
if [[ ${#files[@]} -eq 0 ]]; then
  [[ $base != --all ]] && exit 0
  echo "tidy.sh: $commands names no source of this checkout" >&2
  exit 2
fi
# clang counts changes of sign among conversions, g++ does not; it has no ivdep.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang-tidy -p build/cpu --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas \
  --extra-arg=-Wno-sign-conversion 2> >(grep -v 'warnings generated' >&2)
