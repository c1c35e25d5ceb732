/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank this process is: what its launcher says in the environment. */
#ifndef SL_PARALLEL_IDENTITY_H
#define SL_PARALLEL_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/collectives.h>

struct sl_rank_identity {
    int32_t rank, ranks; /* ranks 0: the launcher does not say how many there are */
    int32_t local_ranks; /* on this host; 0: unknown */
    int32_t local_rank;  /* among those, from 0 */
    char job[SEQLSTM_MAX_JOB_BYTES];
    const char *launcher; /* "seqlstm", "OpenMPI", "Slurm" …; static */
    int32_t parent;       /* process of our own launcher; 0: another one */
};

/* The variables of seqlstm itself, OpenMPI, MPICH, Slurm, torchrun and Kubernetes' indexed jobs, in this order. `get`:
 * getenv. False: none is set, or only in part. */
bool sl_rank_identity_find(const char *(*get)(const char *name), struct sl_rank_identity *out);

#endif
