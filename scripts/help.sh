# SPDX-License-Identifier: Apache-2.0
# Sourced first by every script: with -h or --help as the first argument, prints the comment at its head and ends.
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
