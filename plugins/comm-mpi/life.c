/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of MPI. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "connection.h"

/* Without a launcher MPI_Init would make a job of one rank, and start a daemon for it. */
static bool has_launcher(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_ID"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (getenv(names[k]))
            return true;
    return false;
}

/* MPI_Init; the signal handlers and the environment stay those of the host. */
static int initialize(int *out_level)
{
    struct sigaction before[NSIG];
    char **environment = mpi_copy_environment();
    for (int n = 1; n < NSIG; n++)
        sigaction(n, NULL, &before[n]);
    const int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, out_level);
    for (int n = 1; n < NSIG; n++)
        sigaction(n, &before[n], NULL);
    mpi_restore_environment(environment);
    mpi_free_environment(environment);
    return code;
}

static seqlstm_status start(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    int runs = 0, ended = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&runs);
    MPI_Finalized(&ended);
    if (ended)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "MPI has ended in this process, and cannot begin again");
    if (!runs && !has_launcher())
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "no launcher of MPI has started this process; use `mpirun -n %d seqlstm …`, or srun", c->ranks);
    if (!runs) {
        SEQLSTM_TRY(mpi_check(initialize(&level), "MPI_Init", err));
        c->begun = true;
    } else {
        MPI_Query_thread(&level);
    }
    if (level < MPI_THREAD_SERIALIZED)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "this MPI works in one thread only (MPI_THREAD_SERIALIZED is needed)");
    return SEQLSTM_OK;
}

/* A communicator of all ranks for one purpose. */
static seqlstm_status make_comm(struct seqlstm_connection *c, int64_t deadline_ns, MPI_Comm *out,
                                struct seqlstm_error *err)
{
    MPI_Request request;
    struct mpi_wait wait = {
        .connection = c, .peer = -1, .begin_ns = mpi_now_ns(), .deadline_ns = deadline_ns, .err = err};
    wait.look_ns = INT64_MAX - 1; /* there are no notices yet */
    SEQLSTM_TRY(mpi_check(MPI_Comm_idup(MPI_COMM_WORLD, out, &request), "the meeting of the ranks", err));
    SEQLSTM_TRY(mpi_finish(&wait, &request));
    MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
    return SEQLSTM_OK;
}

seqlstm_status mpi_begin(struct seqlstm_connection *c, const struct seqlstm_rendezvous *r, struct seqlstm_error *err)
{
    const int64_t now = mpi_now_ns(), deadline_ns = now > INT64_MAX - r->timeout_ns ? INT64_MAX : now + r->timeout_ns;
    int rank = 0, ranks = 0;
    SEQLSTM_TRY(start(c, err));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank != r->rank || ranks != r->ranks)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "this is rank %d of %d, but MPI calls it rank %d of %d", r->rank,
                     r->ranks, rank, ranks);
    SEQLSTM_TRY(make_comm(c, deadline_ns, &c->notices, err));
    SEQLSTM_TRY(make_comm(c, deadline_ns, &c->pairs, err));
    SEQLSTM_TRY(make_comm(c, deadline_ns, &c->all, err));
    return mpi_watch_processes(c, deadline_ns, err);
}

/* Have all others closed their connections, too? False after a failure of any. */
static bool wait_for_others(struct seqlstm_connection *c)
{
    const struct timespec pause = {.tv_nsec = 500000};
    for (int32_t r = 0; r < c->ranks; nanosleep(&pause, NULL)) {
        while (r < c->ranks && (r == c->rank || c->peers[r].last.kind == MPI_NOTICE_LEFT))
            r++;
        if (r == c->ranks)
            return true;
        if (mpi_listen(c, NULL) != SEQLSTM_OK || atomic_load(&c->aborted))
            return false;
        for (int32_t k = 0; k < c->ranks; k++)
            if (c->peers[k].last.kind == MPI_NOTICE_FAILED || (!mpi_is_gone(&c->peers[k]) && mpi_has_died(c, k)))
                return false;
    }
    return true;
}

/* Lets the rank that has failed first end first, so that the launcher gives its exit status. */
static void wait_for_fault(const struct seqlstm_connection *c)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int k = 0; k < 100 && c->fault > 0 && c->fault != 1 + c->rank && c->peers[c->fault - 1].process >= 0 &&
                    !mpi_has_died(c, c->fault - 1);
         k++)
        nanosleep(&pause, NULL);
}

static void finalize(struct seqlstm_connection *c)
{
    MPI_Comm *comms[] = {&c->notices, &c->pairs, &c->all};
    if (c->listening != MPI_REQUEST_NULL) {
        MPI_Cancel(&c->listening);
        MPI_Wait(&c->listening, MPI_STATUS_IGNORE);
    }
    for (int32_t r = 0; r < c->ranks; r++)
        for (int k = 0; k < 2; k++)
            if (c->peers[r].sending[k] != MPI_REQUEST_NULL)
                MPI_Wait(&c->peers[r].sending[k], MPI_STATUS_IGNORE);
    for (size_t k = 0; k < sizeof comms / sizeof *comms; k++)
        MPI_Comm_free(comms[k]);
    if (c->begun)
        MPI_Finalize();
}

void mpi_end(struct seqlstm_connection *c)
{
    const bool fine = !c->failed && !atomic_load(&c->aborted);
    if (c->all == MPI_COMM_NULL)
        return;
    if (!atomic_load(&c->aborted))
        mpi_tell_all(c, fine ? MPI_NOTICE_LEFT : MPI_NOTICE_FAILED);
    if (fine && wait_for_others(c))
        finalize(c);
    else if (!fine)
        wait_for_fault(c);
}
