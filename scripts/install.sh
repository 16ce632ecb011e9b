#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing from Debian's or Ubuntu's packages, without recommended extras. Needs root or sudo, and does
# nothing when nothing is missing.
#   scripts/install.sh [run|test|nightly]    what building and running, testing, the nightly checks need (default: test)
set -euo pipefail
. "$(dirname "$0")/help.sh"

run="g++ cmake ninja-build ccache libopenblas-dev libdnnl-dev libcli11-dev libfmt-dev nlohmann-json3-dev libssl-dev
  libgtest-dev libbenchmark-dev libopenmpi-dev openmpi-bin python3 python3-numpy"
tests="git python3-torch python3-jsonschema python3-matplotlib python3-scipy libbenchmark-tools clang-format clang-tidy"
# Ubuntu's chromium is no package but a snap; without a browser the test of report.html parses it itself.
grep -qsx 'ID=debian' /etc/os-release && tests+=" chromium"
nightly="clang libomp-dev"
case "${1:-test}" in
  run) wanted="$run" ;;
  test) wanted="$run $tests" ;;
  nightly) wanted="$run $tests $nightly" ;;
  *) echo "install.sh: '$1' is none of: run, test, nightly" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "install.sh: not a Debian or Ubuntu system; CMake will look for the counterparts of:" $wanted >&2
  exit 0
fi
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
missing=()
for package in $wanted; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "install.sh: neither root nor sudo; ask for: ${missing[*]}" >&2; exit 4; }
  as_root=(sudo)
fi
echo "installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
