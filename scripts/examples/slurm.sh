#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A batch file: sbatch scripts/examples/slurm.sh, in the project's root, which all nodes see. Judges the smallest suite,
# then trains on eight ranks: two threads of each of four processes, on two nodes.
#SBATCH --job-name=shardproof
#SBATCH --nodes=2
#SBATCH --ntasks=4
#SBATCH --cpus-per-task=2
#SBATCH --time=00:20:00
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:?this is a batch file: sbatch scripts/examples/slurm.sh}"
export OMP_NUM_THREADS=1 # a rank computes on one processor
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # which srun does not take from sbatch since Slurm 22.05
srun --mpi=pmix build/cpu/shardproof check --suite smoke --track exact --out "results/runs/$SLURM_JOB_ID/check"
srun --mpi=pmix build/cpu/shardproof run --workload tiny --strategy 'dp4 tp2' --out "results/runs/$SLURM_JOB_ID/run"
