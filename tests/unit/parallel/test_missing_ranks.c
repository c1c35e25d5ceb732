/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a host that do not come, or come and stop before they have mapped the memory: the others say which. The
 * ranks are threads; their time is over as soon as all that come have come. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/host_ranks.h"
#include "oom.h"

enum { RANKS = 4 };
enum behaviour { COMES, STOPS, STAYS_AWAY };

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
int64_t __real_host_ranks_now_ns(void);
int64_t __wrap_host_ranks_now_ns(void);

static _Thread_local int32_t own = -1; /* the rank of this thread; -1: none */
static enum behaviour behaviours[RANKS];
static atomic_bool has_mapped[RANKS], is_waiting[RANKS];
static atomic_bool stopped;

/* A rank writes its number of a process when it has mapped the memory; 0: it is not there yet. */
pid_t __wrap_getpid(void)
{
    if (own < 0)
        return __real_getpid();
    atomic_store(&has_mapped[own], true);
    return behaviours[own] == STOPS ? 0 : __real_getpid();
}

/* Asked while a rank waits. Rank 0 first waits for those that have not connected, and then as the others do. */
int64_t __wrap_host_ranks_now_ns(void)
{
    bool over = true, away = false;
    if (own >= 0 && atomic_load(&has_mapped[own]))
        atomic_store(&is_waiting[own], true);
    for (int r = 0; r < RANKS; r++)
        away |= behaviours[r] == STAYS_AWAY;
    for (int r = away; r < RANKS; r++)
        over &= behaviours[r] == STAYS_AWAY || atomic_load(&is_waiting[r]);
    return over ? INT64_MAX : 0;
}

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static int is_cancelled(void *context)
{
    (void)context;
    return atomic_load(&stopped) && own == 0;
}

static const struct seqlstm_host host = {
    .struct_size = sizeof host, .allocate = allocate, .release = release, .cancelled = is_cancelled};

struct joined {
    int32_t rank;
    char job[64];
    seqlstm_status status;
    struct seqlstm_error err;
};

static void *join(void *context)
{
    struct joined *j = context;
    struct host_ranks r = {0};
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = j->rank,
                                                  .ranks = RANKS,
                                                  .local_ranks = RANKS,
                                                  .job = j->job,
                                                  .timeout_ns = INT64_C(3600000000000)};
    own = j->rank;
    j->err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    j->status = host_ranks_open(&r, &host, &rendezvous, 5000, &j->err);
    host_ranks_close(&r);
    return NULL;
}

static void join_all(struct joined ranks[RANKS])
{
    static int jobs;
    pthread_t ids[RANKS];
    jobs++;
    for (int r = 0; r < RANKS; r++) {
        has_mapped[r] = is_waiting[r] = false;
        ranks[r].rank = r;
        snprintf(ranks[r].job, sizeof ranks[r].job, "missing-%d-%d", (int)__real_getpid(), jobs);
    }
    for (int r = 0; r < RANKS; r++)
        if (behaviours[r] != STAYS_AWAY)
            assert_int_equal(pthread_create(&ids[r], NULL, join, &ranks[r]), 0);
    for (int r = 0; r < RANKS; r++)
        if (behaviours[r] != STAYS_AWAY)
            pthread_join(ids[r], NULL);
}

static void check_blamed(const struct joined *j, int32_t rank)
{
    char expected[60];
    snprintf(expected, sizeof expected, "rank %d did not come in time", rank);
    if (j->status != SEQLSTM_DEVICE || j->err.native_code != 1 + rank || strcmp(j->err.message, expected) != 0)
        fail_msg("rank %d: '%s' (%d), expected '%s'", j->rank, j->err.message, j->err.native_code, expected);
}

static void the_one_that_is_missing_is_blamed_by_all(void **state)
{
    (void)state;
    struct joined ranks[RANKS];
    for (int behaviour = STOPS; behaviour <= STAYS_AWAY; behaviour++)
        for (int32_t missing = 1; missing < RANKS; missing++) {
            memset(behaviours, 0, sizeof behaviours);
            behaviours[missing] = (enum behaviour)behaviour;
            join_all(ranks);
            check_blamed(&ranks[0], missing);
            for (int r = 1; r < RANKS; r++)
                if (behaviours[r] == COMES && behaviour == STOPS)
                    check_blamed(&ranks[r], missing);
        }
}

static void without_rank_0_nobody_meets(void **state)
{
    (void)state;
    struct joined j = {.rank = 2, .job = "missing-first"};
    for (int r = 0; r < RANKS; r++)
        behaviours[r] = STAYS_AWAY;
    join(&j);
    own = -1;
    check_blamed(&j, 0);
}

static void a_user_stops_what_waits(void **state)
{
    (void)state;
    struct joined j = {.rank = 0, .job = "missing-all"};
    for (int r = 0; r < RANKS; r++)
        behaviours[r] = COMES;
    atomic_store(&stopped, true);
    join(&j);
    atomic_store(&stopped, false);
    own = -1;
    assert_int_equal(j.status, SEQLSTM_CANCELLED);
    assert_string_equal(j.err.message, "the user stopped it");
    assert_int_equal(j.err.native_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_is_missing_is_blamed_by_all),
        cmocka_unit_test(without_rank_0_nobody_meets),
        cmocka_unit_test(a_user_stops_what_waits),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
