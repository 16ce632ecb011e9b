# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that run stages and end with a table of them.
#   stages_wanted NAME...   from here on only these stages run; none named: all
#   stage NAME COMMAND...   runs it with no standard input; goes on when it fails
#   stage_table             prints name, exit code and seconds of each; fails if one failed, there was none, or a wanted
#                           one does not exist
stage_rows=()
stage_failed=0
declare -A stage_wanted=()

stages_wanted() {
  local name
  for name in "$@"; do stage_wanted[$name]=1; done
}

stage() {
  local name=$1 code=0 start=$SECONDS
  shift
  if [[ ${#stage_wanted[@]} -gt 0 ]]; then
    [[ -n ${stage_wanted[$name]:-} ]] || return 0
    stage_wanted[$name]=done
  fi
  echo "== $name: $*"
  "$@" </dev/null || code=$?
  [[ $code -eq 0 ]] || stage_failed=1
  stage_rows+=("$(printf '%-28s %5d %8d' "$name" "$code" $((SECONDS - start)))")
}

stage_table() {
  local name
  for name in "${!stage_wanted[@]}"; do
    [[ ${stage_wanted[$name]} == done ]] || { echo "no stage is called $name" >&2 && stage_failed=1; }
  done
  printf '\n%-28s %5s %8s\n' stage exit seconds
  printf '%s\n' "${stage_rows[@]}"
  printf '%-28s %5d %8d\n' total "$stage_failed" "$SECONDS"
  [[ $stage_failed -eq 0 && ${#stage_rows[@]} -gt 0 ]]
}
