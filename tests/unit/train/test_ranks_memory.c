/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that add what they have, of which one or two find no memory: they say so, the others end with an error instead
 * of waiting for it, and none keeps a block of memory. */
#include "forked_ranks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "oom.h"
#include "parallel/reducer.h"
#include "parallel/shards.h"
#include "parallel/tree_sum.h"

enum { RANKS = 3, SHARDS = 7, ELEMS = 20000, UPDATES = 2 };

/* What a rank ends with. */
enum { FAILED, WRONG, DONE, DONE_WITHOUT }; /* the latter: without an allocation that nothing needs */

static const struct sl_bundle_matrix matrices[] = {{64, 50, 16, false}, {2000, 40, 50, true}, {9000, 30, 20, true}};

struct trial {
    const char *name;
    int compress_rank;
    bool tree; /* sums in a fixed order */
    int fails; /* the ranks, as bits */
    int at;    /* which allocation of each of them */
};

static seqlstm_status add_shards(const struct sl_ranks *ranks, float *values, struct sl_memory *memory,
                                 struct seqlstm_error *err)
{
    struct sl_tree_sum *sum = NULL;
    SEQLSTM_TRY(sl_tree_sum_create(&ranks->replicas, SHARDS, ELEMS, false, memory, &sum, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int u = 0; u < UPDATES && status == SEQLSTM_OK; u++) {
        const int32_t first = sl_shards_get_first(SHARDS, RANKS, ranks->rank);
        const int32_t end = sl_shards_get_first(SHARDS, RANKS, ranks->rank + 1);
        for (int i = 0; i < ELEMS; i++)
            values[i] = (float)(i % 13);
        for (int32_t s = first; s < end && status == SEQLSTM_OK; s++)
            status = sl_tree_sum_add(sum, values, err);
        if (status == SEQLSTM_OK)
            status = sl_tree_sum_finish(sum, values, err);
        for (int i = 0; i < ELEMS && status == SEQLSTM_OK; i++)
            if (values[i] != (float)(SHARDS * (i % 13)))
                status = SEQLSTM_INTERNAL;
    }
    sl_tree_sum_destroy(sum);
    return status;
}

static seqlstm_status add_gradients(const struct sl_ranks *ranks, float *grads, struct sl_memory *memory,
                                    struct seqlstm_error *err)
{
    const struct sl_reducer_request request = {.ranks = ranks,
                                               .grads = grads,
                                               .elems = ELEMS,
                                               .matrices = matrices,
                                               .matrix_count = ranks->compress_rank > 0 ? 3 : 1,
                                               .errors = ranks->compress_rank > 0 ? grads + ELEMS : NULL,
                                               .memory = memory};
    struct sl_reducer *reducer = NULL;
    SEQLSTM_TRY(sl_reducer_create(&request, &reducer, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int u = 0; u < UPDATES && status == SEQLSTM_OK; u++) {
        for (int i = 0; i < ELEMS; i++)
            grads[i] = (float)(i % 13);
        status = sl_reducer_finish(reducer, err);
        for (int i = 0; i < ELEMS && status == SEQLSTM_OK; i++)
            if ((ranks->compress_rank == 0 || i < 2000) && grads[i] != (float)(RANKS * (i % 13)))
                status = SEQLSTM_INTERNAL;
    }
    sl_reducer_destroy(reducer);
    return status;
}

static int be_rank(int rank, const char *job, const struct trial *trial)
{
    const struct sl_parallel_config config = {
        .data = RANKS,
        .reduce = {SL_REDUCE_ALL, SL_REDUCE_FLOAT32},
        .compress = {trial->compress_rank > 0 ? SL_COMPRESS_POWERSGD : SL_COMPRESS_NONE, trial->compress_rank}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_connection *connection = NULL;
    struct sl_memory memory = {0};
    struct sl_ranks ranks;
    float *values = calloc(2 * ELEMS, sizeof *values);
    if (!values || join_ranks(rank, RANKS, job, &connection) != SEQLSTM_OK ||
        sl_ranks_init(&ranks, connection, &config, NULL, &err) != SEQLSTM_OK)
        return WRONG;
    oom_watch();
    if (trial->fails >> rank & 1)
        oom_fail_at(trial->at);
    const seqlstm_status status = (trial->tree ? add_shards : add_gradients)(&ranks, values, &memory, &err);
    const bool failed = oom_disarm();
    const int blocks = oom_unwatch(NULL, 0);
    sl_connection_close(connection);
    free(values);
    if (blocks > 0 || memory.live_bytes != 0 || (status == SEQLSTM_NO_MEMORY) > failed)
        return WRONG;
    if (status == SEQLSTM_OK)
        return failed ? DONE_WITHOUT : DONE;
    const char *begin = failed ? "no memory for " : "rank ";
    const bool told = err.code == status && strncmp(err.message, begin, strlen(begin)) == 0;
    return told && status == (failed ? SEQLSTM_NO_MEMORY : SEQLSTM_CANCELLED) ? FAILED : WRONG;
}

/* What all ranks end with. */
static int run_ranks(const struct trial *trial)
{
    static int jobs;
    char job[64];
    pid_t pids[RANKS];
    int ends[RANKS];
    snprintf(job, sizeof job, "ranks-memory-%d-%d", jobs++, (int)getpid());
    for (int r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] == 0)
            _exit(be_rank(r, job, trial));
    }
    for (int r = 0; r < RANKS; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        ends[r] = WIFEXITED(status) ? WEXITSTATUS(status) : WRONG;
    }
    for (int r = 0; r < RANKS; r++)
        if (ends[r] == WRONG || (ends[r] == FAILED) != (ends[0] == FAILED))
            fail_msg("%s: ranks %x without allocation %d: rank %d ends with %d, rank 0 with %d", trial->name,
                     (unsigned)trial->fails, trial->at, r, ends[r], ends[0]);
    int end = DONE;
    for (int r = 0; r < RANKS; r++)
        end = ends[r] == DONE ? end : ends[r];
    return end;
}

static void the_others_do_not_wait(void **state)
{
    static const struct trial trials[] = {{"shards", 0, true, 1 << 0, 0},
                                          {"shards", 0, true, 1 << 2, 0},
                                          {"shards", 0, true, 1 << 1 | 1 << 2, 0},
                                          {"gradients", 0, false, 1 << 1, 0},
                                          {"gradients", 0, false, 1 << 0 | 1 << 2, 0},
                                          {"factors", 2, false, 1 << 0, 0},
                                          {"factors", 2, false, 1 << 0 | 1 << 1, 0}};
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        struct trial trial = trials[t];
        do
            trial.at++;
        while (run_ranks(&trial) != DONE);
        assert_true(trial.at > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_others_do_not_wait),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
