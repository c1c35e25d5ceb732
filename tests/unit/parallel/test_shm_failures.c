/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks of comm-shm that do not do what the others wait for: each exchange names the rank that is late, has left
 * or has ended the job. The ranks meet as threads; then one thread makes their calls, one after another. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/collectives.h>

#include "oom.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

enum { RANKS = 4, LARGE = (3 << 16) + 1 }; /* LARGE: more than two chunks of a group, and of a pair */
#define SHORT_NS INT64_C(5000000)
#define LONG_NS  INT64_C(60000000000)

static int blocks;

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return calloc(1, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    __atomic_sub_fetch(&blocks, memory != NULL, __ATOMIC_RELAXED);
    free(memory);
}

static const struct seqlstm_host host = {.struct_size = sizeof host, .allocate = allocate, .release = release};
static const struct seqlstm_collectives *table;

struct rank {
    int32_t number;
    const char *job;
    struct seqlstm_connection *connection;
    seqlstm_status status;
};

static void *join(void *context)
{
    struct rank *r = context;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = r->number,
                                                  .ranks = RANKS,
                                                  .local_ranks = RANKS,
                                                  .job = r->job,
                                                  .timeout_ns = LONG_NS};
    r->status = table->open(&host, NULL, 0, &rendezvous, &r->connection, &err);
    return NULL;
}

static struct rank ranks[RANKS];

static int join_all(void **state)
{
    static char job[64];
    static int jobs;
    pthread_t ids[RANKS];
    (void)state;
    table = seqlstm_comm_shm_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    snprintf(job, sizeof job, "failures-%d-%d", (int)getpid(), jobs++);
    for (int32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.number = r, .job = job};
        assert_int_equal(pthread_create(&ids[r], NULL, join, &ranks[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(ids[r], NULL);
        assert_int_equal(ranks[r].status, SEQLSTM_OK);
    }
    return 0;
}

static int leave_all(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        table->close(ranks[r].connection);
    assert_int_equal(blocks, 0);
    return 0;
}

static void expect(seqlstm_status status, const struct seqlstm_error *err, seqlstm_status expected, int32_t blamed,
                   const char *what)
{
    char message[80];
    snprintf(message, sizeof message, "rank %d %s", blamed, what);
    if (status != expected || err->native_code != 1 + blamed || strcmp(err->message, message) != 0)
        fail_msg("status %d, '%s' (%d), expected %d, '%s'", (int)status, err->message, err->native_code, (int)expected,
                 message);
}

/* Rank 1 waits for rank 3, which does nothing: in a group of both, and in a pair. */
static void each_exchange_names_the_rank_that_is_late(void **state)
{
    static const int32_t members[] = {1, 3};
    static const struct {
        uint32_t kind;
        int32_t peer; /* place in the group */
        int64_t elems;
    } cases[] = {{SEQLSTM_COLLECTIVE_BARRIER, 0, 0},        {SEQLSTM_COLLECTIVE_ALL_REDUCE, 0, 5},
                 {SEQLSTM_COLLECTIVE_REDUCE_SCATTER, 0, 5}, {SEQLSTM_COLLECTIVE_ALL_GATHER, 0, 5},
                 {SEQLSTM_COLLECTIVE_BROADCAST, 1, 5},      {SEQLSTM_COLLECTIVE_BROADCAST, 0, LARGE},
                 {SEQLSTM_COLLECTIVE_RECEIVE, 1, 5},        {SEQLSTM_COLLECTIVE_SEND, 1, LARGE}};
    static unsigned char from[2 * LARGE], to[2 * LARGE];
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_group *group = NULL;
        const struct seqlstm_exchange e = {.kind = cases[k].kind,
                                           .dtype = SEQLSTM_DTYPE_UINT8,
                                           .reduction = SEQLSTM_REDUCE_SUM,
                                           .peer = cases[k].peer,
                                           .elems = cases[k].elems,
                                           .from = from,
                                           .to = to,
                                           .timeout_ns = SHORT_NS};
        assert_int_equal(table->group_create(ranks[1].connection, k, members, 2, &group, &err), SEQLSTM_OK);
        expect(table->run(group, NULL, &e, &err), &err, SEQLSTM_DEVICE, 3, "did not come in time");
        table->group_destroy(group);
    }
}

static void memory_of_all_needs_the_first_rank_in_time(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *memory = NULL;
    (void)state;
    expect(table->allocate(ranks[2].connection, 4096, SHORT_NS, &memory, &err), &err, SEQLSTM_DEVICE, 0,
           "did not come in time");
    assert_null(memory);
}

/* One that has left will not come however long the time is. */
static void a_rank_that_has_left_is_not_waited_for(void **state)
{
    static const int32_t members[] = {0, 2, 3};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_group *group = NULL;
    char byte = 0;
    const struct seqlstm_exchange e = {.kind = SEQLSTM_COLLECTIVE_RECEIVE,
                                       .dtype = SEQLSTM_DTYPE_UINT8,
                                       .peer = 1,
                                       .elems = 1,
                                       .to = &byte,
                                       .timeout_ns = LONG_NS};
    (void)state;
    assert_int_equal(table->group_create(ranks[3].connection, 5, members, 3, &group, &err), SEQLSTM_OK);
    table->close(ranks[2].connection);
    ranks[2].connection = NULL;
    expect(table->run(group, NULL, &e, &err), &err, SEQLSTM_CANCELLED, 2, "has left the job");
    table->group_destroy(group);
}

static void the_first_that_ends_the_job_is_named(void **state)
{
    (void)state;
    table->abort(ranks[3].connection);
    table->abort(ranks[1].connection);
    for (int r = 0; r < RANKS; r++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        expect(table->poll(ranks[r].connection, &err), &err, SEQLSTM_CANCELLED, 3, "has ended the job");
    }
}

static void a_number_stays_used_when_others_are(void **state)
{
    static const int32_t members[] = {0, 1, 2, 3};
    struct seqlstm_group *group[2] = {NULL}, *none = NULL;
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        for (uint32_t k = 0; round == 0 && k < 2; k++)
            assert_int_equal(table->group_create(ranks[2].connection, 6 - k, members, 4, &group[k], &err), SEQLSTM_OK);
        for (uint32_t k = 0; k < 2; k++)
            assert_int_equal(table->group_create(ranks[2].connection, 6 - k, members, 4, &none, &err),
                             SEQLSTM_INVALID_ARGUMENT);
        for (int k = 0; round == 0 && k < 2; k++)
            table->group_destroy(group[k]);
    }
    assert_null(none);
}

static int count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void what_ranks_open_is_closed(void **state)
{
    const int before = count_files();
    join_all(state);
    assert_true(count_files() > before);
    leave_all(state);
    assert_int_equal(count_files(), before);
}

/* What a rank answers that cannot meet the others here. */
static void ranks_elsewhere_are_refused_with_their_number(void **state)
{
    static const struct {
        int32_t ranks, local_ranks;
        const char *message;
    } cases[] = {{7, 3, "only 3 of the 7 ranks are on this host"},
                 {129, 129, "shared memory connects at most 128 ranks, not 129"}};
    (void)state;
    table = seqlstm_comm_shm_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_connection *connection = NULL;
        const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                      .rank = 1,
                                                      .ranks = cases[k].ranks,
                                                      .local_ranks = cases[k].local_ranks,
                                                      .job = "elsewhere",
                                                      .timeout_ns = SHORT_NS};
        assert_int_equal(table->open(&host, NULL, 0, &rendezvous, &connection, &err), SEQLSTM_UNAVAILABLE);
        assert_string_equal(err.message, cases[k].message);
        assert_null(connection);
    }
    assert_int_equal(blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_exchange_names_the_rank_that_is_late, join_all, leave_all),
        cmocka_unit_test_setup_teardown(memory_of_all_needs_the_first_rank_in_time, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_rank_that_has_left_is_not_waited_for, join_all, leave_all),
        cmocka_unit_test_setup_teardown(the_first_that_ends_the_job_is_named, join_all, leave_all),
        cmocka_unit_test_setup_teardown(a_number_stays_used_when_others_are, join_all, leave_all),
        cmocka_unit_test(what_ranks_open_is_closed),
        cmocka_unit_test(ranks_elsewhere_are_refused_with_their_number),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
