/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls of MPI the exchanges of comm-mpi become, with which parts of the buffers, counts, types and roots: small
 * ones, and large ones in chunks. MPI notes the calls and touches no memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "comm-mpi/connection.h"
#include "comm-mpi/elements.h"

/* Where buffers would lie, so that parts of large ones have a name. */
#define FROM ((char *)0x100000000000)
#define TO   ((char *)0x200000000000)

static char calls[600];
static int parts, code_at = -1, failure_at = -1; /* the part whose call, or whose end, fails; -1: none */
static struct seqlstm_connection connection;
static seqlstm_status looks;

static void note(const char *format, ...) SEQLSTM_PRINTF(1, 2);

static void note(const char *format, ...)
{
    va_list args;
    const size_t used = strlen(calls);
    va_start(args, format);
    vsnprintf(calls + used, sizeof calls - used, format, args);
    va_end(args);
}

/* What a call of MPI returns, which is made under the lock. */
static int get_code(void)
{
    assert_int_equal(pthread_mutex_trylock(&connection.lock), EBUSY);
    return parts == code_at ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* "f" and "t": FROM and TO, with the offset; "-": in place. */
static const char *name(const void *buffer)
{
    static char names[2][40];
    static int turn;
    char *out = names[turn = 1 - turn];
    if (buffer == MPI_IN_PLACE)
        return "-";
    const uintptr_t at = (uintptr_t)buffer, f = (uintptr_t)FROM, t = (uintptr_t)TO;
    snprintf(out, 40, "%c%lld", at < t ? 'f' : 't', (long long)(at - (at < t ? f : t)));
    return out;
}

static const char *name_type(MPI_Datatype type)
{
    return type == MPI_BYTE ? "byte" : type == MPI_FLOAT ? "float" : type == MPI_DOUBLE ? "double" : "?";
}

static const char *name_operation(MPI_Op op)
{
    return op == MPI_SUM ? "sum" : op == MPI_MAX ? "max" : op == MPI_MIN ? "min" : "?";
}

/* Of the group, and of pairs. */
static const char *name_comm(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? "" : comm == MPI_COMM_SELF ? " pairs" : " ?";
}

int MPI_Iallreduce(const void *source, void *target, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
    (void)request;
    note("allreduce %s %s %d %s %s%s; ", name(source), name(target), count, name_type(type), name_operation(op),
         name_comm(comm));
    return get_code();
}

int MPI_Ireduce(const void *source, void *target, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
    (void)request, (void)type;
    note("reduce %s %s %d %s %d%s; ", name(source), name(target), count, name_operation(op), root, name_comm(comm));
    return get_code();
}

int MPI_Ireduce_scatter_block(const void *source, void *target, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request)
{
    (void)request;
    note("scatter %s %s %d %s %s%s; ", name(source), name(target), count, name_type(type), name_operation(op),
         name_comm(comm));
    return get_code();
}

int MPI_Ibcast(void *target, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request *request)
{
    (void)request;
    note("bcast %s %d %s %d%s; ", name(target), count, name_type(type), root, name_comm(comm));
    return get_code();
}

int MPI_Iallgather(const void *source, int source_count, MPI_Datatype source_type, void *target, int count,
                   MPI_Datatype type, MPI_Comm comm, MPI_Request *request)
{
    (void)request, (void)source_count, (void)source_type;
    note("allgather %s %s %d %s%s; ", name(source), name(target), count, name_type(type), name_comm(comm));
    return get_code();
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    (void)request;
    note("barrier%s; ", name_comm(comm));
    return get_code();
}

int MPI_Isend(const void *source, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)request, (void)tag;
    note("send %s %d %s %d%s; ", name(source), count, name_type(type), rank, name_comm(comm));
    return get_code();
}

int MPI_Irecv(void *target, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)request, (void)tag;
    note("recv %s %d %s %d%s; ", name(target), count, name_type(type), rank, name_comm(comm));
    return get_code();
}

int MPI_Error_string(int code, char *text, int *length)
{
    *length = sprintf(text, "code %d", code);
    return MPI_SUCCESS;
}

seqlstm_status mpi_finish(struct mpi_wait *wait, MPI_Request *request)
{
    (void)request;
    assert_int_equal(pthread_mutex_trylock(&connection.lock), 0);
    pthread_mutex_unlock(&connection.lock);
    assert_true((wait->group == NULL) == (wait->peer >= 0)); /* of a pair, or of a group */
    if (parts++ == failure_at)
        SEQLSTM_FAIL(wait->err, SEQLSTM_DEVICE, "rank 5 did not come in time");
    return SEQLSTM_OK;
}

seqlstm_status mpi_look(struct mpi_wait *wait)
{
    (void)wait;
    note("look; ");
    return looks;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static struct mpi_peer peers[6];
static int32_t members[] = {1, 3, 5};
static struct seqlstm_group group;

static int make_group(void **state)
{
    (void)state;
    memset(peers, 0, sizeof peers);
    memset(&connection, 0, sizeof connection);
    connection.rank = 3;
    connection.ranks = 6;
    connection.peers = peers;
    connection.pairs = MPI_COMM_SELF;
    pthread_mutex_init(&connection.lock, NULL);
    group = (struct seqlstm_group){
        .connection = &connection, .comm = MPI_COMM_WORLD, .number = 4, .members = 3, .place = 1, .ranks = members};
    calls[0] = 0;
    parts = 0;
    code_at = failure_at = -1;
    return 0;
}

#define EXCHANGE(k, d, r, p, n, f, t)                                                                                  \
    {                                                                                                                  \
        .kind = SEQLSTM_COLLECTIVE_##k, .dtype = SEQLSTM_DTYPE_##d, .reduction = SEQLSTM_REDUCE_##r, .peer = p,        \
        .elems = n, .from = f, .to = t, .timeout_ns = 1000                                                             \
    }

/* A chunk has 2^27 elements, or bytes where data are only moved: 134217728. */
static const struct {
    struct seqlstm_exchange exchange;
    const char *calls;
} cases[] = {
    {EXCHANGE(ALL_REDUCE, FLOAT32, SUM, 0, 7, FROM, TO), "allreduce f0 t0 7 float sum; "},
    {EXCHANGE(ALL_REDUCE, FLOAT64, MAX, 0, 7, TO, TO), "allreduce - t0 7 double max; "},
    {EXCHANGE(ALL_REDUCE, FLOAT64, MIN, 0, 0, TO, TO), ""},
    {EXCHANGE(ALL_REDUCE, FLOAT64, MIN, 0, 134217728 + 5, FROM, TO),
     "allreduce f0 t0 134217728 double min; allreduce f1073741824 t1073741824 5 double min; "},
    {EXCHANGE(ALL_REDUCE, FLOAT32, SUM, 0, 134217728 + 5, TO, TO),
     "allreduce - t0 134217728 float sum; allreduce - t536870912 5 float sum; "},
    {EXCHANGE(REDUCE_SCATTER, FLOAT32, MIN, 0, 7, FROM, TO), "scatter f0 t0 7 float min; "},
    {EXCHANGE(REDUCE_SCATTER, FLOAT32, SUM, 0, 44739242, FROM, TO), "scatter f0 t0 44739242 float sum; "},
    {EXCHANGE(REDUCE_SCATTER, FLOAT32, MAX, 0, 44739243, FROM, TO),
     "reduce f0 t0 44739243 max 0; reduce f178956972 t0 44739243 max 1; reduce f357913944 t0 44739243 max 2; "},
    {EXCHANGE(REDUCE_SCATTER, UINT8, SUM, 0, 134217730, FROM, TO),
     "reduce f0 t0 134217728 sum 0; reduce f134217728 t134217728 2 sum 0; "
     "reduce f134217730 t0 134217728 sum 1; reduce f268435458 t134217728 2 sum 1; "
     "reduce f268435460 t0 134217728 sum 2; reduce f402653188 t134217728 2 sum 2; "},
    {EXCHANGE(ALL_GATHER, FLOAT32, SUM, 0, 3, TO + 12, TO), "allgather - t0 12 byte; "},
    {EXCHANGE(BROADCAST, FLOAT32, SUM, 2, 3, NULL, TO), "bcast t0 12 byte 2; "},
    {EXCHANGE(BROADCAST, FLOAT32, SUM, 1, 33554433, NULL, TO),
     "bcast t0 134217728 byte 1; bcast t134217728 4 byte 1; "},
    {EXCHANGE(BARRIER, FLOAT32, SUM, 0, 0, NULL, NULL), "barrier; "},
    {EXCHANGE(SEND, FLOAT32, SUM, 2, 3, FROM, TO), "send f0 12 byte 5 pairs; "},
    {EXCHANGE(SEND, UINT8, SUM, 0, 0, FROM, TO), "send f0 0 byte 1 pairs; "},
    {EXCHANGE(RECEIVE, FLOAT64, SUM, 0, 3, FROM, TO), "recv t0 24 byte 1 pairs; "},
    {EXCHANGE(RECEIVE, UINT8, SUM, 2, 134217729, FROM, TO),
     "recv t0 134217728 byte 5 pairs; recv t134217728 1 byte 5 pairs; "},
};

static void each_exchange_is_made_of_its_parts(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_group(state);
        assert_int_equal(mpi_exchange(&group, &cases[k].exchange, &err), SEQLSTM_OK);
        if (strcmp(calls, cases[k].calls) != 0)
            fail_msg("case %zu: '%s', expected '%s'", k, calls, cases[k].calls);
    }
}

/* Of each exchange: nothing follows the part that fails, and it does not count as made. */
static void a_part_that_fails_ends_the_exchange(void **state)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int count = 0;
        for (const char *at = cases[k].calls; (at = strchr(at, ';')) != NULL; at++)
            count++;
        for (int n = 0; n < 2 * count; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            const char *end = cases[k].calls;
            make_group(state);
            *(n % 2 ? &code_at : &failure_at) = n / 2;
            assert_int_equal(mpi_exchange(&group, &cases[k].exchange, &err), SEQLSTM_DEVICE);
            for (int part = 0; part <= n / 2; part++)
                end = strchr(end, ';') + 2;
            if (strncmp(calls, cases[k].calls, (size_t)(end - cases[k].calls)) != 0 || calls[end - cases[k].calls] != 0)
                fail_msg("case %zu, part %d fails: '%s'", k, n / 2, calls);
            assert_non_null(
                strstr(err.message, n % 2 ? "MPI failed in an exchange: code" : "rank 5 did not come in time"));
            assert_int_equal(connection.made[4], 0);
            for (int r = 0; r < 6; r++)
                assert_true(peers[r].sent == 0 && peers[r].received == 0);
        }
    }
}

/* Parts of more than 2^27 bytes are broadcast member by member; this member's is in its place already. */
static void a_large_gather_is_a_broadcast_of_each(void **state)
{
    (void)state;
    const int64_t bytes = 134217732;
    const struct seqlstm_exchange e = EXCHANGE(ALL_GATHER, FLOAT32, SUM, 0, bytes / 4, TO + 134217732, TO);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(mpi_exchange(&group, &e, &err), SEQLSTM_OK);
    assert_string_equal(calls, "bcast t0 134217728 byte 0; bcast t134217728 4 byte 0; "
                               "bcast t134217732 134217728 byte 1; bcast t268435460 4 byte 1; "
                               "bcast t268435464 134217728 byte 2; bcast t402653192 4 byte 2; ");
}

static void own_part_is_gathered_from_elsewhere(void **state)
{
    (void)state;
    char from[64], to[64], expected[64] = {0};
    const struct seqlstm_exchange e = EXCHANGE(ALL_GATHER, FLOAT64, SUM, 0, 2, from, to);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(to, 0, sizeof to);
    memset(from, 0x5A, sizeof from);
    memset(expected + 16, 0x5A, 16);
    assert_int_equal(mpi_exchange(&group, &e, &err), SEQLSTM_OK);
    assert_memory_equal(to, expected, sizeof to);
}

/* Exchanges of a group count for it, messages for their pair and direction. */
static void what_is_done_is_counted_where_it_belongs(void **state)
{
    (void)state;
    const struct seqlstm_exchange barrier = EXCHANGE(BARRIER, UINT8, SUM, 0, 0, NULL, NULL),
                                  send = EXCHANGE(SEND, UINT8, SUM, 2, 1, FROM, TO),
                                  receive = EXCHANGE(RECEIVE, UINT8, SUM, 0, 1, FROM, TO);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < 3; k++)
        assert_int_equal(mpi_exchange(&group, &barrier, &err), SEQLSTM_OK);
    assert_int_equal(mpi_exchange(&group, &send, &err), SEQLSTM_OK);
    assert_int_equal(mpi_exchange(&group, &send, &err), SEQLSTM_OK);
    assert_int_equal(mpi_exchange(&group, &receive, &err), SEQLSTM_OK);
    assert_int_equal(group.calls, 3);
    for (int g = 0; g < MPI_GROUPS; g++)
        assert_int_equal(connection.made[g], g == 4 ? 3 : 0);
    for (int r = 0; r < 6; r++) {
        assert_int_equal(peers[r].sent, r == 5 ? 2 : 0);
        assert_int_equal(peers[r].received, r == 1 ? 1 : 0);
    }
    calls[0] = 0;
    atomic_store(&connection.aborted, 1 + 5);
    looks = SEQLSTM_CANCELLED;
    assert_int_equal(mpi_exchange(&group, &barrier, &err), SEQLSTM_CANCELLED);
    looks = SEQLSTM_OK;
    assert_string_equal(calls, "look; ");
    assert_int_equal(group.calls, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_exchange_is_made_of_its_parts, make_group),
        cmocka_unit_test_setup(a_part_that_fails_ends_the_exchange, make_group),
        cmocka_unit_test_setup(a_large_gather_is_a_broadcast_of_each, make_group),
        cmocka_unit_test_setup(own_part_is_gathered_from_elsewhere, make_group),
        cmocka_unit_test_setup(what_is_done_is_counted_where_it_belongs, make_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
