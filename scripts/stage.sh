# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that run stages and end with a table of them.
#   stage NAME COMMAND...   runs it with no standard input; goes on when it fails
#   stage_table             prints name, exit code and seconds of each; fails if one failed, or there was none
stage_rows=()
stage_failed=0

stage() {
  local name=$1 code=0 start=$SECONDS
  shift
  echo "== $name: $*"
  "$@" </dev/null || code=$?
  [[ $code -eq 0 ]] || stage_failed=1
  stage_rows+=("$(printf '%-28s %5d %8d' "$name" "$code" $((SECONDS - start)))")
}

stage_table() {
  printf '\n%-28s %5s %8s\n' stage exit seconds
  printf '%s\n' "${stage_rows[@]}"
  printf '%-28s %5d %8d\n' total "$stage_failed" "$SECONDS"
  [[ $stage_failed -eq 0 && ${#stage_rows[@]} -gt 0 ]]
}
