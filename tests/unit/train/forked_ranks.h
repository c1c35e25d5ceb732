/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are processes, connected by comm-shm. */
#ifndef TEST_FORKED_RANKS_H
#define TEST_FORKED_RANKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "oom.h"
#include "registry/collectives/connection.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { FORKED_RANKS_MOST = 8 };

static inline seqlstm_status join_ranks(int rank, int count, const char *job, struct sl_connection **out)
{
    static const struct sl_collectives_builtin builtin = {"comm-shm", seqlstm_comm_shm_query_v0};
    const struct sl_connection_request joining = {.name = "comm-shm",
                                                  .builtins = &builtin,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = count,
                                                  .job = job,
                                                  .timeout_ns = INT64_C(60000000000)};
    return sl_connection_open(&joining, out, NULL);
}

/* Does the rank find all as it expected, and leave no memory and no descriptor behind? */
static inline bool is_clean_rank(int rank, const char *job, bool (*be)(int rank, const char *job, const void *trial),
                                 const void *trial)
{
    const int descriptors = descriptors_count();
    oom_watch();
    const bool fine = be(rank, job, trial), is_clean = oom_end() == 0;
    return fine && is_clean && descriptors_count() == descriptors;
}

/* Each rank is a process, which ends with 0 if all was as it expected. */
static inline void expect_of_ranks(int count, const char *name,
                                   bool (*be)(int rank, const char *job, const void *trial), const void *trial)
{
    static int jobs;
    char job[64];
    pid_t pids[FORKED_RANKS_MOST];
    snprintf(job, sizeof job, "forked-ranks-%d-%d", jobs++, (int)getpid());
    for (int r = 0; r < count; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            _exit(is_clean_rank(r, job, be, trial) ? 0 : 1);
    }
    for (int r = 0; r < count; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (status != 0)
            fail_msg("%s: rank %d does otherwise", name, r);
    }
}

#endif
