#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mpirun on this machine alone, with what Open MPI needs as root and with more ranks than processors.
#   scripts/mpirun.sh -n N PROGRAM [ARGUMENT...]
set -euo pipefail
. "$(dirname "$0")/help.sh"
if [[ $(id -u) -eq 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_btl_base_warn_component_unused=0
exec mpirun "$@"
