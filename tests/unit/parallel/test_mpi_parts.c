/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of comm-mpi around MPI: the environment that MPI changes, and the rules of groups, on an MPI that connects
 * all ranks with nothing. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm-mpi/connection.h"

extern char **environ;
const struct seqlstm_collectives *seqlstm_collectives_query_v0(uint32_t host_minor);

/* ---- what the rest of the plugin would do ----------------------------------------------------------------------- */

static struct {
    seqlstm_status exchange_status;
    int exchanges, ends, told;
    char passed[80]; /* the bytes of pairs: "<1" came from member 1, ">2" went to member 2 */
    int failing;     /* 1: MPI makes no communicator */
    int counted, number, made, freed, handlers;
    int64_t timeout_ns; /* of the last exchange */
    int ranks[4];       /* of the communicator */
} fake;

seqlstm_status mpi_begin(struct seqlstm_connection *connection, const struct seqlstm_rendezvous *rendezvous,
                         struct seqlstm_error *err)
{
    (void)connection;
    if (rendezvous->timeout_ns == 1)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "no launcher");
    return SEQLSTM_OK;
}

void mpi_end(struct seqlstm_connection *connection)
{
    (void)connection;
    fake.ends++;
}

seqlstm_status mpi_exchange(struct seqlstm_group *group, const struct seqlstm_exchange *exchange,
                            struct seqlstm_error *err)
{
    (void)group;
    fake.exchanges++;
    fake.timeout_ns = exchange->timeout_ns;
    if (exchange->kind == SEQLSTM_COLLECTIVE_SEND || exchange->kind == SEQLSTM_COLLECTIVE_RECEIVE)
        snprintf(fake.passed + strlen(fake.passed), sizeof fake.passed - strlen(fake.passed), "%c%d",
                 exchange->kind == SEQLSTM_COLLECTIVE_SEND ? '>' : '<', exchange->peer);
    if (fake.exchange_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, fake.exchange_status, "rank 1 has died");
    return SEQLSTM_OK;
}

seqlstm_status mpi_look(struct mpi_wait *wait)
{
    (void)wait;
    return SEQLSTM_OK;
}

void mpi_tell_all(struct seqlstm_connection *connection, enum mpi_notice_kind kind)
{
    (void)connection;
    fake.told += kind == MPI_NOTICE_ABORT;
}

seqlstm_status mpi_check(int code, const char *what, struct seqlstm_error *err)
{
    if (code != MPI_SUCCESS)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "MPI failed in %s", what);
    return SEQLSTM_OK;
}

/* MPI_GROUP_EMPTY and MPI_COMM_SELF stand for the group of some ranks and its communicator. */
int MPI_Comm_group(MPI_Comm comm, MPI_Group *out)
{
    (void)comm;
    *out = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int MPI_Group_incl(MPI_Group all, int count, const int ranks[], MPI_Group *out)
{
    (void)all;
    fake.counted = count;
    memcpy(fake.ranks, ranks, (size_t)count * sizeof *ranks);
    *out = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out)
{
    (void)comm;
    assert_true(group == MPI_GROUP_EMPTY);
    fake.made++;
    fake.number = tag;
    *out = MPI_COMM_SELF;
    return fake.failing ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    assert_true(comm == MPI_COMM_SELF);
    assert_true(handler == MPI_ERRORS_RETURN);
    fake.handlers++;
    return MPI_SUCCESS;
}

int MPI_Group_free(MPI_Group *group)
{
    (void)group;
    fake.freed++;
    return MPI_SUCCESS;
}

static int fails_in = -1; /* allocations until one fails; -1: none */

static void *allocate(void *context, uint64_t bytes)
{
    if (fails_in == 0)
        return NULL;
    fails_in -= fails_in > 0;
    (*(int *)context)++;
    return calloc(1, bytes);
}

static void release(void *context, void *memory)
{
    *(int *)context -= memory != NULL;
    free(memory);
}

static int blocks;
static const struct seqlstm_host host = {
    .struct_size = sizeof host, .context = &blocks, .allocate = allocate, .release = release};

static struct seqlstm_connection *join(int32_t rank, int32_t ranks)
{
    const struct seqlstm_rendezvous rendezvous = {
        .struct_size = (uint32_t)sizeof rendezvous, .rank = rank, .ranks = ranks, .timeout_ns = 1000000000};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_connection *connection = NULL;
    memset(&fake, 0, sizeof fake);
    assert_int_equal(
        seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR)->open(&host, NULL, 0, &rendezvous, &connection, &err),
        SEQLSTM_OK);
    return connection;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void a_number_is_that_of_one_group(void **state)
{
    (void)state;
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    static const int32_t all[] = {0, 1, 2}, down[] = {2, 1, 0}, beyond[] = {1, 2, 3}, others[] = {0, 2};
    struct seqlstm_connection *c = join(1, 3);
    struct seqlstm_group *groups[MPI_GROUPS] = {0}, *none = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(table->group_create(c, 0, down, 3, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(table->group_create(c, 0, beyond, 3, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(table->group_create(c, 0, others, 2, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(table->group_create(c, MPI_GROUPS, all, 3, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    for (uint32_t g = 0; g < MPI_GROUPS; g++) {
        assert_int_equal(table->group_create(c, g, all, 3, &groups[g], &err), SEQLSTM_OK);
        assert_int_equal(table->group_create(c, g, all, 3, &none, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_true(groups[g]->number == g && groups[g]->members == 3 && groups[g]->place == 1);
        assert_memory_equal(groups[g]->ranks, all, sizeof all);
    }
    assert_null(none);
    for (uint32_t g = 0; g < MPI_GROUPS; g++)
        table->group_destroy(groups[g]);
    table->group_destroy(NULL);
    table->close(c);
    table->close(NULL);
    assert_int_equal(fake.ends, 1);
    assert_int_equal(blocks, 0);
}

/* Its place is that among the members, not that among all ranks; its first member meets the others. */
static void a_group_of_some_ranks_has_its_own_places(void **state)
{
    (void)state;
    static const struct {
        int32_t rank, count, ranks[4], place;
        const char *passed;
    } cases[] = {{3, 3, {1, 3, 4}, 1, ">0<0"},
                 {4, 3, {1, 3, 4}, 2, ">0<0"},
                 {1, 3, {1, 3, 4}, 0, "<1<2>1>2"},
                 {4, 4, {1, 2, 3, 4}, 3, ">0<0"},
                 {2, 2, {2, 3}, 0, "<1>1"},
                 {0, 2, {0, 4}, 0, "<1>1"},
                 {0, 4, {0, 1, 2, 4}, 0, "<1<2<3>1>2>3"},
                 {3, 1, {3}, 0, ""}};
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_connection *c = join(cases[k].rank, 5);
        struct seqlstm_group *group = NULL;
        const uint32_t number = 7 - (uint32_t)k % 7;
        assert_int_equal(table->group_create(c, number, cases[k].ranks, cases[k].count, &group, &err), SEQLSTM_OK);
        assert_int_equal(group->place, cases[k].place);
        assert_int_equal(group->members, cases[k].count);
        assert_int_equal(group->ranks[group->place], cases[k].rank);
        assert_memory_equal(group->ranks, cases[k].ranks, (size_t)cases[k].count * sizeof(int32_t));
        assert_true(group->comm == MPI_COMM_SELF);
        assert_string_equal(fake.passed, cases[k].passed);
        assert_true(fake.made == 1 && fake.number == (int)number && fake.freed == 2 && fake.handlers == 1);
        assert_true(cases[k].count == 1 || fake.timeout_ns == 1000000000); /* that of the meeting */
        assert_int_equal(pthread_mutex_trylock(&c->lock), 0);
        pthread_mutex_unlock(&c->lock);
        assert_int_equal(fake.counted, cases[k].count);
        assert_memory_equal(fake.ranks, cases[k].ranks, (size_t)cases[k].count * sizeof(int32_t));
        const struct seqlstm_exchange itself = {.kind = SEQLSTM_COLLECTIVE_SEND, .peer = cases[k].place},
                                      beyond = {.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = cases[k].count};
        assert_int_equal(table->run(group, NULL, &itself, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_int_equal(table->run(group, NULL, &beyond, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_int_equal(c->used_groups, 1u << number);
        table->group_destroy(group);
        table->close(c);
    }
    assert_int_equal(blocks, 0);
}

/* One that does not reach the first member asks it for nothing. */
static void a_member_that_fails_asks_no_further(void **state)
{
    (void)state;
    static const int32_t ranks[] = {0, 2};
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_connection *c = join(2, 3);
    struct seqlstm_group *group = NULL;
    fake.exchange_status = SEQLSTM_CANCELLED;
    assert_int_equal(table->group_create(c, 2, ranks, 2, &group, &err), SEQLSTM_CANCELLED);
    assert_string_equal(fake.passed, ">0");
    table->close(c);
    assert_int_equal(blocks, 0);
}

static void processes_are_watched_until_the_end(void **state)
{
    (void)state;
    struct seqlstm_connection *c = join(2, 3);
    const int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    assert_true(first >= 0 && second >= 0);
    c->peers[0].process = first;
    c->peers[1].process = second;
    seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR)->close(c);
    assert_int_equal(fcntl(first, F_GETFD), -1);
    assert_int_equal(fcntl(second, F_GETFD), -1);
}

/* A group that cannot be made leaves its number unused, and all that follows fails. */
static void a_group_that_fails_ends_the_connection(void **state)
{
    (void)state;
    static const int32_t all[] = {0, 1, 2}, ranks[] = {0, 2};
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    const struct seqlstm_exchange barrier = {.kind = SEQLSTM_COLLECTIVE_BARRIER};
    for (int meets = 0; meets < 2; meets++) {
        struct seqlstm_connection *c = join(0, 3);
        struct seqlstm_group *whole = NULL, *group = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(table->group_create(c, 0, all, 3, &whole, &err), SEQLSTM_OK);
        fake.failing = meets;
        fake.exchange_status = meets ? SEQLSTM_OK : SEQLSTM_CANCELLED;
        assert_int_equal(table->group_create(c, 2, ranks, 2, &group, &err), meets ? SEQLSTM_DEVICE : SEQLSTM_CANCELLED);
        assert_string_equal(err.message, meets ? "MPI failed in a group" : "rank 1 has died");
        assert_null(group);
        assert_int_equal(fake.made, meets);
        assert_int_equal(fake.freed, 2 * meets);
        assert_int_equal(c->used_groups, 1);
        fake.exchange_status = SEQLSTM_OK;
        assert_int_equal(table->run(whole, NULL, &barrier, &err), SEQLSTM_CANCELLED);
        table->group_destroy(whole);
        table->close(c);
    }
    assert_int_equal(blocks, 0);
}

static void after_a_failed_exchange_all_fail(void **state)
{
    (void)state;
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    static const int32_t all[] = {0, 1};
    const struct seqlstm_exchange barrier = {.kind = SEQLSTM_COLLECTIVE_BARRIER},
                                  self = {.kind = SEQLSTM_COLLECTIVE_SEND, .peer = 0};
    struct seqlstm_connection *c = join(0, 2);
    struct seqlstm_group *group = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(table->group_create(c, 0, all, 2, &group, &err), SEQLSTM_OK);
    assert_int_equal(table->run(group, NULL, &self, &err),
                     SEQLSTM_INVALID_ARGUMENT); /* the others do not notice that */
    assert_int_equal(table->run(group, NULL, &barrier, &err), SEQLSTM_OK);
    fake.exchange_status = SEQLSTM_DEVICE;
    assert_int_equal(table->run(group, NULL, &barrier, &err), SEQLSTM_DEVICE);
    fake.exchange_status = SEQLSTM_OK;
    assert_int_equal(table->run(group, NULL, &barrier, &err), SEQLSTM_CANCELLED);
    assert_non_null(strstr(err.message, "an earlier exchange has failed"));
    assert_int_equal(fake.exchanges, 2);
    table->abort(c);
    table->abort(c);
    assert_int_equal(fake.told, 1);
    assert_int_equal(atomic_load(&c->aborted), 1);
    table->group_destroy(group);
    table->close(c);
}

static void a_connection_that_cannot_begin_keeps_nothing(void **state)
{
    (void)state;
    const struct seqlstm_rendezvous rendezvous = {.rank = 0, .ranks = 2, .timeout_ns = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_connection *connection = NULL;
    assert_int_equal(
        seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR)->open(&host, NULL, 0, &rendezvous, &connection, &err),
        SEQLSTM_UNAVAILABLE);
    assert_null(connection);
    assert_int_equal(blocks, 0);
}

static void a_rank_without_memory_keeps_nothing(void **state)
{
    static const int32_t all[] = {0, 1};
    const struct seqlstm_collectives *table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    const struct seqlstm_rendezvous rendezvous = {.rank = 0, .ranks = 2, .timeout_ns = 1000000000};
    (void)state;
    for (fails_in = 0;;) {
        static int next;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_connection *connection = NULL;
        struct seqlstm_group *group = NULL;
        seqlstm_status status = table->open(&host, NULL, 0, &rendezvous, &connection, &err);
        const bool opened = status == SEQLSTM_OK;
        assert_true(opened == (connection != NULL));
        if (opened)
            status = table->group_create(connection, 3, all, 2, &group, &err);
        assert_true((status == SEQLSTM_OK) == (group != NULL));
        if (opened) /* a number that is not used yet */
            assert_int_equal(connection->used_groups, group != NULL ? 1u << 3 : 0);
        fails_in = -1;
        table->group_destroy(group);
        table->close(connection);
        assert_int_equal(blocks, 0);
        if (status == SEQLSTM_OK) {
            assert_int_equal(next, 3);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_string_equal(err.message, opened ? "no memory for a group" : "no memory for a connection");
        fails_in = ++next;
    }
    fails_in = -1;
}

static size_t count_variables(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    return count;
}

/* What was added, changed or removed meanwhile, next to each other and apart. */
static void the_environment_is_what_it_was(void **state)
{
    (void)state;
    static char one[] = "ONE=1", two[] = "TWO=", three[] = "THREE=a=b", on[] = "ON=same";
    static char *small[] = {one, two, three, on, NULL};
    char **before = environ;
    environ = small;
    char **copy = mpi_copy_environment();
    assert_non_null(copy);
    setenv("OMPI_A", "1", 1);
    setenv("OMPI_B", "2", 1);
    setenv("OMPI_C", "", 1);
    setenv("THREE", "a", 1);
    setenv("ON", "other", 1);
    unsetenv("TWO");
    setenv("OMPI_D", "4", 1);
    mpi_restore_environment(copy);
    assert_int_equal(count_variables(), 4);
    assert_string_equal(getenv("ONE"), "1");
    assert_string_equal(getenv("TWO"), "");
    assert_string_equal(getenv("THREE"), "a=b");
    assert_string_equal(getenv("ON"), "same");
    mpi_restore_environment(NULL);
    assert_int_equal(count_variables(), 4);
    mpi_free_environment(copy);
    mpi_free_environment(NULL);
    environ = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_that_of_one_group),
        cmocka_unit_test(a_group_of_some_ranks_has_its_own_places),
        cmocka_unit_test(a_member_that_fails_asks_no_further),
        cmocka_unit_test(processes_are_watched_until_the_end),
        cmocka_unit_test(a_group_that_fails_ends_the_connection),
        cmocka_unit_test(after_a_failed_exchange_all_fail),
        cmocka_unit_test(a_connection_that_cannot_begin_keeps_nothing),
        cmocka_unit_test(a_rank_without_memory_keeps_nothing),
        cmocka_unit_test(the_environment_is_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
