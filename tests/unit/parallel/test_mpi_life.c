/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank of comm-mpi begins and ends MPI, on an MPI that spoils the environment and the signals when it starts. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "comm-mpi/connection.h"

enum { RANKS = 4 };

static struct {
    int runs, ended, level, rank, ranks; /* what MPI says */
    int inits, finals, copies, freed;    /* its calls */
    int told;                            /* the notice to all; -1: none */
    int dead;                            /* a process that has died; -1: none */
    int init_code, copy_fails;           /* what MPI_Init_thread returns; the copy of a communicator that fails */
    int handlers, cancels, waits;        /* calls */
    int looks, dies_at;                  /* looks for a rank; the one that finds it dead, 0: none */
    int listens, aborts_at, breaks_at, leaves_at; /* listening; when another rank ends the job or MPI fails, 0: never */
} mpi;

int MPI_Initialized(int *out)
{
    *out = mpi.runs;
    return MPI_SUCCESS;
}

int MPI_Finalized(int *out)
{
    *out = mpi.ended;
    return MPI_SUCCESS;
}

int MPI_Query_thread(int *out)
{
    *out = mpi.level;
    return MPI_SUCCESS;
}

int MPI_Init_thread(int *count, char ***arguments, int needed, int *out)
{
    (void)count, (void)arguments;
    assert_int_equal(needed, MPI_THREAD_SERIALIZED);
    mpi.inits++;
    setenv("TEST_MPI_ADDED", "x", 1);
    setenv("TEST_MPI_CHANGED", "after", 1);
    unsetenv("TEST_MPI_REMOVED");
    signal(SIGUSR2, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    *out = mpi.level;
    return mpi.init_code;
}

int MPI_Comm_rank(MPI_Comm comm, int *out)
{
    assert_true(comm == MPI_COMM_WORLD);
    *out = mpi.rank;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *out)
{
    assert_true(comm == MPI_COMM_WORLD);
    *out = mpi.ranks;
    return MPI_SUCCESS;
}

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *out, MPI_Request *request)
{
    (void)request;
    assert_true(comm == MPI_COMM_WORLD);
    if (++mpi.copies == mpi.copy_fails)
        return 18;
    *out = MPI_COMM_SELF;
    return MPI_SUCCESS;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    assert_true(comm == MPI_COMM_SELF && handler == MPI_ERRORS_RETURN);
    mpi.handlers++;
    return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm)
{
    mpi.freed++;
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    mpi.finals++;
    return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request)
{
    (void)request;
    mpi.cancels++;
    return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    (void)status;
    *request = MPI_REQUEST_NULL;
    mpi.waits++;
    return MPI_SUCCESS;
}

int MPI_Error_string(int code, char *text, int *length)
{
    *length = sprintf(text, "code %d", code);
    return MPI_SUCCESS;
}

seqlstm_status mpi_finish(struct mpi_wait *wait, MPI_Request *request)
{
    (void)wait, (void)request;
    return SEQLSTM_OK;
}

seqlstm_status mpi_listen(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    if (++mpi.listens > 1000)
        fail_msg("it listens for ever");
    if (mpi.listens == mpi.leaves_at)
        connection->peers[1].last.kind = MPI_NOTICE_LEFT;
    if (mpi.listens == mpi.aborts_at)
        atomic_store(&connection->aborted, 1 + 3);
    if (mpi.listens == mpi.breaks_at)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "MPI failed in a notice");
    return SEQLSTM_OK;
}

void mpi_tell_all(struct seqlstm_connection *connection, enum mpi_notice_kind kind)
{
    (void)connection;
    mpi.told = (int)kind;
}

seqlstm_status mpi_watch_processes(struct seqlstm_connection *connection, int64_t deadline_ns,
                                   struct seqlstm_error *err)
{
    (void)connection, (void)deadline_ns, (void)err;
    return SEQLSTM_OK;
}

bool mpi_is_gone(const struct mpi_peer *peer)
{
    return peer->last.kind == MPI_NOTICE_LEFT || peer->last.kind == MPI_NOTICE_FAILED;
}

bool mpi_has_died(const struct seqlstm_connection *connection, int32_t rank)
{
    (void)connection;
    if (++mpi.looks == mpi.dies_at)
        mpi.dead = rank;
    return rank == mpi.dead;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static const char *const launchers[] = {"PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_ID"};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static struct mpi_peer peers[RANKS];
static struct seqlstm_connection connection;

static int make_rank(void **state)
{
    (void)state;
    for (int k = 0; k < LAUNCHERS; k++)
        unsetenv(launchers[k]);
    memset(&mpi, 0, sizeof mpi);
    mpi.level = MPI_THREAD_MULTIPLE;
    mpi.rank = 2;
    mpi.ranks = RANKS;
    mpi.told = mpi.dead = -1;
    memset(peers, 0, sizeof peers);
    memset(&connection, 0, sizeof connection);
    connection.rank = 2;
    connection.ranks = RANKS;
    connection.peers = peers;
    connection.notices = connection.pairs = connection.all = MPI_COMM_NULL;
    connection.listening = MPI_REQUEST_NULL;
    for (int r = 0; r < RANKS; r++) {
        peers[r].process = -1;
        peers[r].sending[0] = peers[r].sending[1] = MPI_REQUEST_NULL;
    }
    return 0;
}

static void expect_begin(const char *message)
{
    const struct seqlstm_rendezvous rendezvous = {
        .struct_size = (uint32_t)sizeof rendezvous, .rank = 2, .ranks = RANKS, .timeout_ns = INT64_MAX};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(mpi_begin(&connection, &rendezvous, &err), message ? SEQLSTM_UNAVAILABLE : SEQLSTM_OK);
    assert_string_equal(err.message, message ? message : "");
}

static void any_launcher_is_known(void **state)
{
    expect_begin("no launcher of MPI has started this process; use `mpirun -n 4 seqlstm …`, or srun");
    assert_int_equal(mpi.inits, 0);
    for (int k = 0; k < LAUNCHERS; k++) {
        make_rank(state);
        setenv(launchers[k], "2", 1);
        expect_begin(NULL);
        assert_int_equal(mpi.inits, 1);
        assert_int_equal(mpi.copies, 3);
        assert_int_equal(mpi.handlers, 3);
        assert_true(connection.begun);
    }
}

static void an_mpi_that_runs_is_used(void **state)
{
    (void)state;
    mpi.runs = 1;
    expect_begin(NULL);
    assert_int_equal(mpi.inits, 0);
    assert_false(connection.begun);
    mpi.ended = 1;
    expect_begin("MPI has ended in this process, and cannot begin again");
}

static void an_mpi_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    mpi.runs = 1;
    mpi.rank = 3;
    expect_begin("this is rank 2 of 4, but MPI calls it rank 3 of 4");
    mpi.rank = 2;
    mpi.ranks = 6;
    expect_begin("this is rank 2 of 4, but MPI calls it rank 2 of 6");
    mpi.level = MPI_THREAD_FUNNELED;
    expect_begin("this MPI works in one thread only (MPI_THREAD_SERIALIZED is needed)");
}

static void an_mpi_that_fails_is_named(void **state)
{
    const struct seqlstm_rendezvous rendezvous = {
        .struct_size = (uint32_t)sizeof rendezvous, .rank = 2, .ranks = RANKS, .timeout_ns = INT64_MAX};
    for (int k = 0; k <= 3; k++) { /* the beginning, and each communicator */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_rank(state);
        setenv(launchers[0], "2", 1);
        mpi.init_code = k == 0 ? 17 : MPI_SUCCESS;
        mpi.copy_fails = k;
        assert_int_equal(mpi_begin(&connection, &rendezvous, &err), SEQLSTM_DEVICE);
        assert_string_equal(err.message, k == 0 ? "MPI failed in MPI_Init: code 17"
                                                : "MPI failed in the meeting of the ranks: code 18");
        assert_int_equal(mpi.copies, k);
        assert_int_equal(connection.begun, k > 0);
    }
}

static void note_signal(int number)
{
    (void)number;
}

static void what_mpi_changes_is_taken_back(void **state)
{
    (void)state;
    setenv(launchers[0], "2", 1);
    setenv("TEST_MPI_CHANGED", "before", 1);
    setenv("TEST_MPI_REMOVED", "there", 1);
    signal(SIGUSR2, note_signal);
    signal(SIGTERM, SIG_DFL);
    expect_begin(NULL);
    assert_null(getenv("TEST_MPI_ADDED"));
    assert_string_equal(getenv("TEST_MPI_CHANGED"), "before");
    assert_string_equal(getenv("TEST_MPI_REMOVED"), "there");
    assert_true(signal(SIGUSR2, SIG_DFL) == note_signal);
    assert_true(signal(SIGTERM, SIG_DFL) == SIG_DFL);
}

/* MPI ends with all ranks, or is left as it is; it is ended by the one that began it. */
static void mpi_ends_when_all_have_left(void **state)
{
    static const struct {
        bool begun, failed, aborted;
        int other, dead; /* the last notice of rank 3, and the rank that has died; ranks 0 and 1 have left */
        int told, freed, finals;
    } cases[] = {{true, false, false, MPI_NOTICE_LEFT, -1, MPI_NOTICE_LEFT, 3, 1},
                 {false, false, false, MPI_NOTICE_LEFT, -1, MPI_NOTICE_LEFT, 3, 0},
                 {true, false, false, MPI_NOTICE_LEFT, 3, MPI_NOTICE_LEFT, 3, 1}, /* it had left before */
                 {true, false, false, MPI_NOTICE_FAILED, -1, MPI_NOTICE_LEFT, 0, 0},
                 {true, false, false, MPI_NOTICE_WAITING, 3, MPI_NOTICE_LEFT, 0, 0},
                 {true, true, false, MPI_NOTICE_LEFT, -1, MPI_NOTICE_FAILED, 0, 0},
                 {true, false, true, MPI_NOTICE_LEFT, -1, -1, 0, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        make_rank(state);
        connection.notices = connection.pairs = connection.all = MPI_COMM_SELF;
        connection.begun = cases[k].begun;
        connection.failed = cases[k].failed;
        atomic_store(&connection.aborted, cases[k].aborted ? 1 + 3 : 0);
        peers[0].last.kind = peers[1].last.kind = MPI_NOTICE_LEFT;
        peers[3].last.kind = (enum mpi_notice_kind)cases[k].other;
        mpi.dead = cases[k].dead;
        mpi_end(&connection);
        if (mpi.told != cases[k].told || mpi.freed != cases[k].freed || mpi.finals != cases[k].finals)
            fail_msg("case %zu: told %d, freed %d, ended %d", k, mpi.told, mpi.freed, mpi.finals);
    }
    make_rank(state); /* no rank has met it */
    mpi_end(&connection);
    assert_true(mpi.told == -1 && mpi.freed == 0 && mpi.finals == 0);
}

/* While it waits for rank 3 to leave: the job ends, or MPI fails. It is not ended then, and nothing more is waited for.
 */
static void closing_ends_with_the_job(void **state)
{
    for (int k = 0; k < 2; k++) {
        make_rank(state);
        connection.notices = connection.pairs = connection.all = MPI_COMM_SELF;
        connection.begun = true;
        peers[0].last.kind = peers[1].last.kind = MPI_NOTICE_LEFT;
        mpi.aborts_at = k == 0 ? 5 : 0;
        mpi.breaks_at = k == 0 ? 0 : 5;
        mpi_end(&connection);
        assert_int_equal(mpi.listens, 5);
        assert_int_equal(mpi.told, MPI_NOTICE_LEFT);
        assert_true(mpi.freed == 0 && mpi.finals == 0);
    }
}

/* One that has left may end before another leaves. */
static void a_rank_that_has_left_may_end(void **state)
{
    (void)state;
    connection.notices = connection.pairs = connection.all = MPI_COMM_SELF;
    connection.begun = true;
    peers[0].last.kind = peers[3].last.kind = MPI_NOTICE_LEFT;
    mpi.dead = 3;
    mpi.leaves_at = 4;
    mpi_end(&connection);
    assert_int_equal(mpi.listens, 4);
    assert_int_equal(mpi.finals, 1);
}

/* What is still open is ended before the communicators are: a receive is taken back, notices are sent. */
static void what_is_on_its_way_is_ended(void **state)
{
    static int somewhere;
    const MPI_Request open = (MPI_Request)(void *)&somewhere;
    (void)state;
    connection.notices = connection.pairs = connection.all = MPI_COMM_SELF;
    connection.listening = peers[0].sending[0] = peers[3].sending[1] = open;
    peers[0].last.kind = peers[1].last.kind = peers[3].last.kind = MPI_NOTICE_LEFT;
    mpi_end(&connection);
    assert_int_equal(mpi.cancels, 1);
    assert_int_equal(mpi.waits, 3);
    assert_true(connection.listening == MPI_REQUEST_NULL);
    assert_true(peers[0].sending[0] == MPI_REQUEST_NULL && peers[3].sending[1] == MPI_REQUEST_NULL);
    assert_int_equal(mpi.freed, 3);
}

/* The rank that is to blame ends first, for its exit status; if that is this one, or is elsewhere, none is waited for.
 */
static void the_rank_to_blame_ends_first(void **state)
{
    static const struct {
        int fault, process, looks;
    } cases[] = {{1 + 3, 7, 4}, {1 + 3, -1, 0}, {1 + 2, 7, 0}, {0, 7, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        make_rank(state);
        connection.notices = connection.pairs = connection.all = MPI_COMM_SELF;
        connection.failed = true;
        connection.fault = cases[k].fault;
        peers[2].process = peers[3].process = cases[k].process;
        mpi.dies_at = 4;
        mpi_end(&connection);
        assert_int_equal(mpi.told, MPI_NOTICE_FAILED);
        assert_int_equal(mpi.looks, cases[k].looks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_launcher_is_known, make_rank),
        cmocka_unit_test_setup(an_mpi_that_runs_is_used, make_rank),
        cmocka_unit_test_setup(an_mpi_that_does_not_fit_is_refused, make_rank),
        cmocka_unit_test_setup(what_mpi_changes_is_taken_back, make_rank),
        cmocka_unit_test_setup(an_mpi_that_fails_is_named, make_rank),
        cmocka_unit_test_setup(closing_ends_with_the_job, make_rank),
        cmocka_unit_test_setup(a_rank_that_has_left_may_end, make_rank),
        cmocka_unit_test_setup(what_is_on_its_way_is_ended, make_rank),
        cmocka_unit_test_setup(the_rank_to_blame_ends_first, make_rank),
        cmocka_unit_test_setup(mpi_ends_when_all_have_left, make_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
