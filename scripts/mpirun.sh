#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mpirun with what Open MPI needs as root and with more ranks than processors: on this machine alone, or on those of a
# hostfile.
#   scripts/mpirun.sh [--hostfile FILE] -n N PROGRAM [ARGUMENT...]
# Other options of mpirun may follow the first. When a process ends with another exit code than 0, mpirun adds lines of its
# own; its exit code is then the program's.
set -euo pipefail
. "$(dirname "$0")/help.sh"
if [[ $# -eq 0 ]]; then
  echo "mpirun.sh: no program; scripts/mpirun.sh [--hostfile FILE] -n N PROGRAM [ARGUMENT...]" >&2
  exit 2
fi
if [[ $(id -u) -eq 0 ]]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# Processes may outnumber the processors, and each may have several threads: none is bound to one processor.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml=ob1 OMPI_MCA_btl_base_warn_component_unused=0
script=$(printf %q "$(realpath "$0")")
case $1 in
  --hostfile | -hostfile | --machinefile | -machinefile | --host | -host | -H) # other machines are met over TCP
    where=${2-}
    [[ ! -f $where ]] || where=$(realpath "$where")
    script+=" $1 $(printf %q "$where")" ;;
  *) export OMPI_MCA_btl=self,vader ;;
esac
export SHARDPROOF_MPIRUN=$script # lines that repeat a run begin with it
exec mpirun "$@"
