/* SPDX-License-Identifier: Apache-2.0 */
/* How a job on comm-shm ends: what a rank sends before it leaves arrives, one that dies is named and one that has left
 * is not, a user may stop what waits, and a rank without memory keeps nothing. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/collectives.h>

#include "common/host_ranks.h"
#include "oom.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);
seqlstm_status __real_host_ranks_check(const struct host_ranks *r, struct seqlstm_error *err);
seqlstm_status __wrap_host_ranks_check(const struct host_ranks *r, struct seqlstm_error *err);

enum { RANKS = 2 };
#define LONG_NS INT64_C(60000000000)

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

static atomic_int blocks, allocations, fails_at = -1; /* the allocation that fails; -1: none */
static atomic_bool stopped;

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    if (atomic_fetch_add(&allocations, 1) == atomic_load(&fails_at))
        return NULL;
    atomic_fetch_add(&blocks, 1);
    return calloc(1, bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    atomic_fetch_sub(&blocks, memory != NULL);
    free(memory);
}

static int is_cancelled(void *context)
{
    (void)context;
    return atomic_load(&stopped);
}

static const struct seqlstm_host host = {
    .struct_size = sizeof host, .allocate = allocate, .release = release, .cancelled = is_cancelled};
static const struct seqlstm_collectives *table;

struct rank {
    int32_t number;
    char job[64];
    struct seqlstm_connection *connection;
    struct seqlstm_group *group; /* of both */
};

static void *join(void *context)
{
    static const int32_t members[] = {0, 1};
    struct rank *r = context;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = r->number,
                                                  .ranks = RANKS,
                                                  .local_ranks = RANKS,
                                                  .job = r->job,
                                                  .timeout_ns = LONG_NS};
    if (table->open(&host, NULL, 0, &rendezvous, &r->connection, &err) == SEQLSTM_OK)
        (void)table->group_create(r->connection, 0, members, RANKS, &r->group, &err);
    return NULL;
}

static void leave(struct rank *r)
{
    table->group_destroy(r->group);
    table->close(r->connection);
    r->group = NULL;
    r->connection = NULL;
}

static struct rank ranks[RANKS];

static void name_job(void)
{
    static int jobs;
    for (int32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.number = r};
        snprintf(ranks[r].job, sizeof ranks[r].job, "ends-%d-%d", (int)getpid(), jobs);
    }
    jobs++;
}

static int join_both(void **state)
{
    pthread_t other;
    (void)state;
    name_job();
    assert_int_equal(pthread_create(&other, NULL, join, &ranks[1]), 0);
    join(&ranks[0]);
    pthread_join(other, NULL);
    assert_true(ranks[0].group != NULL && ranks[1].group != NULL);
    return 0;
}

static int leave_both(void **state)
{
    (void)state;
    for (int r = 0; r < RANKS; r++)
        leave(&ranks[r]);
    assert_int_equal(atomic_load(&blocks), 0);
    return 0;
}

static seqlstm_status exchange(struct rank *r, uint32_t kind, int64_t elems, const void *from, void *to,
                               struct seqlstm_error *err)
{
    const struct seqlstm_exchange e = {.kind = kind,
                                       .dtype = SEQLSTM_DTYPE_UINT8,
                                       .reduction = SEQLSTM_REDUCE_SUM,
                                       .peer = 1 - r->number,
                                       .elems = elems,
                                       .from = from,
                                       .to = to,
                                       .timeout_ns = LONG_NS};
    return table->run(r->group, NULL, &e, err);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static bool sends_late; /* rank 1 sends and leaves when rank 0 has looked for its bytes in vain */

seqlstm_status __wrap_host_ranks_check(const struct host_ranks *r, struct seqlstm_error *err)
{
    const seqlstm_status status = __real_host_ranks_check(r, err);
    if (sends_late && status == SEQLSTM_OK && r->rank == 0) {
        static const char byte = 42;
        struct seqlstm_error other = SEQLSTM_ERROR_INIT;
        sends_late = false;
        assert_int_equal(exchange(&ranks[1], SEQLSTM_COLLECTIVE_SEND, 1, &byte, NULL, &other), SEQLSTM_OK);
        leave(&ranks[1]);
    }
    return status;
}

static void what_a_rank_sends_before_it_leaves_arrives(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char byte = 0;
    (void)state;
    sends_late = true;
    const seqlstm_status status = exchange(&ranks[0], SEQLSTM_COLLECTIVE_RECEIVE, 1, NULL, &byte, &err);
    assert_false(sends_late);
    assert_string_equal(err.message, "");
    assert_int_equal(status, SEQLSTM_OK);
    assert_int_equal(byte, 42);
    assert_int_equal(exchange(&ranks[0], SEQLSTM_COLLECTIVE_RECEIVE, 1, NULL, &byte, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "rank 1 has left the job");
}

static void a_user_stops_what_waits(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *memory = NULL;
    char byte = 0;
    (void)state;
    atomic_store(&stopped, true);
    const seqlstm_status waiting = exchange(&ranks[0], SEQLSTM_COLLECTIVE_RECEIVE, 1, NULL, &byte, &err);
    assert_string_equal(err.message, "the user stopped it");
    err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    const seqlstm_status growing = table->allocate(ranks[1].connection, 4096, LONG_NS, &memory, &err);
    atomic_store(&stopped, false);
    assert_string_equal(err.message, "the user stopped it");
    assert_int_equal(err.native_code, 0);
    assert_true(waiting == SEQLSTM_CANCELLED && growing == SEQLSTM_CANCELLED);
    assert_null(memory);
}

static void an_exchange_that_cannot_be_is_refused(void **state)
{
    static const struct {
        struct seqlstm_exchange exchange;
        const char *message;
    } cases[] = {{{.kind = 99}, "no exchange of kind 99, dtype 0 and reduction 0"},
                 {{.dtype = 31}, "no exchange of kind 0, dtype 31 and reduction 0"},
                 {{.elems = -1}, "no exchange of kind 0, dtype 0 and reduction 0"},
                 {{.kind = SEQLSTM_COLLECTIVE_SEND, .peer = 2}, "a group of 2 has no member 2"},
                 {{.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = -1}, "a group of 2 has no member -1"},
                 {{.kind = SEQLSTM_COLLECTIVE_RECEIVE, .peer = 0}, "a rank does not send to itself"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(table->run(ranks[0].group, NULL, &cases[k].exchange, &err),
                         k < 3 ? SEQLSTM_UNSUPPORTED : SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, cases[k].message);
    }
}

/* Memory of all comes from rank 0. */
static void memory_of_a_rank_that_has_left_does_not_come(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *memory = NULL;
    (void)state;
    leave(&ranks[0]);
    assert_int_equal(table->allocate(ranks[1].connection, 4096, LONG_NS, &memory, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "rank 0 has left the job");
    assert_int_equal(err.native_code, 1);
    assert_null(memory);
}

static void after_the_end_of_the_job_nothing_is_exchanged(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char byte = 0;
    (void)state;
    table->abort(ranks[1].connection);
    assert_int_equal(exchange(&ranks[0], SEQLSTM_COLLECTIVE_SEND, 1, &byte, NULL, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "rank 1 has ended the job");
    assert_int_equal(err.native_code, 2);
}

/* Also one whose end its parent has not yet asked for. `leaves`: before it ends. */
static void a_rank_that_dies_is_named(void **state)
{
    (void)state;
    for (int leaves = 0; leaves < 2; leaves++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        siginfo_t end;
        name_job();
        const pid_t other = fork();
        assert_true(other >= 0);
        if (other == 0) {
            join(&ranks[1]);
            if (leaves)
                leave(&ranks[1]);
            _exit(0);
        }
        join(&ranks[0]);
        assert_non_null(ranks[0].group);
        assert_int_equal(waitid(P_PID, (id_t)other, &end, WEXITED | WNOWAIT), 0);
        const seqlstm_status status = table->poll(ranks[0].connection, &err);
        assert_int_equal(status, leaves ? SEQLSTM_OK : SEQLSTM_CANCELLED);
        assert_string_equal(err.message, leaves ? "" : "rank 1 has died");
        assert_int_equal(err.native_code, leaves ? 0 : 2);
        assert_int_equal(waitpid(other, NULL, 0), other);
        leave(&ranks[0]);
    }
}

static void a_rank_without_memory_keeps_nothing(void **state)
{
    static const int32_t members[] = {0};
    (void)state;
    for (int k = 0;; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_connection *connection = NULL;
        struct seqlstm_group *group = NULL;
        const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                      .ranks = 1,
                                                      .local_ranks = 1,
                                                      .job = "ends-without-memory",
                                                      .timeout_ns = LONG_NS};
        atomic_store(&fails_at, atomic_load(&allocations) + k);
        seqlstm_status status = table->open(&host, NULL, 0, &rendezvous, &connection, &err);
        const bool opened = status == SEQLSTM_OK;
        if (opened)
            status = table->group_create(connection, 0, members, 1, &group, &err);
        atomic_store(&fails_at, -1);
        assert_true(opened == (connection != NULL) && (status == SEQLSTM_OK) == (group != NULL));
        table->group_destroy(group);
        table->close(connection);
        assert_int_equal(atomic_load(&blocks), 0);
        if (status == SEQLSTM_OK) {
            assert_int_equal(k, 3);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_string_equal(err.message, opened ? "no memory for a group" : "no memory for a connection");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_rank_sends_before_it_leaves_arrives, join_both, leave_both),
        cmocka_unit_test_setup_teardown(a_user_stops_what_waits, join_both, leave_both),
        cmocka_unit_test_setup_teardown(an_exchange_that_cannot_be_is_refused, join_both, leave_both),
        cmocka_unit_test_setup_teardown(memory_of_a_rank_that_has_left_does_not_come, join_both, leave_both),
        cmocka_unit_test_setup_teardown(after_the_end_of_the_job_nothing_is_exchanged, join_both, leave_both),
        cmocka_unit_test(a_rank_that_dies_is_named),
        cmocka_unit_test(a_rank_without_memory_keeps_nothing),
    };
    table = seqlstm_comm_shm_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
