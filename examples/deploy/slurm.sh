#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#SBATCH --nodes=2 --ntasks-per-node=4 --cpus-per-task=1 --time=04:00:00 --requeue
# A training on 2 nodes with 4 ranks each: sbatch slurm.sh model.yaml
#
# OpenMPI must know the launcher of the cluster (srun --mpi=list). The run is in runs/job-ID of the folder from which the
# job was submitted, which all nodes share. When its time is over, and after a lost node (--requeue), the job resumes
# from the newest checkpoint: exit status 75 means that the run is not finished.
run=$PWD/runs/job-$SLURM_JOB_ID
if [ -f "$run/config.yaml" ]; then set -- resume "$run"; else set -- run "$1" --out "$run"; fi
srun --mpi=pmix seqlstm "$@" --set "parallel.data=$SLURM_NTASKS" --set train.max_time=13800s
status=$?
[ $status -ne 75 ] || scontrol requeue "$SLURM_JOB_ID"
exit $status
