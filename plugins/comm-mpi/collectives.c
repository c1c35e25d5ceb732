/* SPDX-License-Identifier: Apache-2.0 */
/* comm-mpi: ranks of any number of hosts exchange data through the MPI of the system. */
#include <stdio.h>
#include <unistd.h>

#include "common/collectives_check.h"
#include "common/collectives_table.h"
#include "common/host_memory.h"
#include "connection.h"

enum { SPIN_NS = 100 * 1000, PATIENCE_NS = 2 * 1000 * 1000 };

static seqlstm_status mpi_describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    collectives_describe(transport);
    transport->groups = MPI_GROUPS;
    snprintf(transport->name, sizeof transport->name, "MPI");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static void mpi_close(struct seqlstm_connection *c)
{
    if (c == NULL)
        return;
    const struct seqlstm_host *host = c->host;
    mpi_end(c);
    for (int32_t r = 0; r < c->ranks; r++)
        if (c->peers[r].process >= 0)
            close(c->peers[r].process);
    pthread_mutex_destroy(&c->lock);
    host_release(host, c->peers);
    host_release(host, c);
}

static seqlstm_status mpi_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                               uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                               struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)settings, (void)setting_count;
    struct seqlstm_connection *c = host_allocate(host, sizeof *c);
    struct mpi_peer *peers = host_allocate(host, (uint64_t)rendezvous->ranks * sizeof *peers);
    if (c == NULL || peers == NULL) {
        host_release(host, peers);
        host_release(host, c);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a connection");
    }
    for (int32_t r = 0; r < rendezvous->ranks; r++) {
        peers[r].process = -1;
        peers[r].sending[0] = peers[r].sending[1] = MPI_REQUEST_NULL;
    }
    c->host = host;
    c->rank = rendezvous->rank;
    c->ranks = rendezvous->ranks;
    c->peers = peers;
    c->spin_ns = SPIN_NS;
    c->patience_ns = PATIENCE_NS;
    c->timeout_ns = rendezvous->timeout_ns;
    c->notices = c->pairs = c->all = MPI_COMM_NULL;
    c->listening = MPI_REQUEST_NULL;
    pthread_mutex_init(&c->lock, NULL);
    const seqlstm_status status = mpi_begin(c, rendezvous, err);
    if (status != SEQLSTM_OK) {
        c->failed = true;
        mpi_close(c);
        return status;
    }
    *out_connection = c;
    return SEQLSTM_OK;
}

/* Sends a byte to a member, or receives one. */
static seqlstm_status pass_byte(struct seqlstm_group *g, int32_t member, bool sends, struct seqlstm_error *err)
{
    char byte = 0;
    const struct seqlstm_exchange e = {.kind = sends ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE,
                                       .dtype = SEQLSTM_DTYPE_UINT8,
                                       .peer = member,
                                       .elems = 1,
                                       .from = &byte,
                                       .to = &byte,
                                       .timeout_ns = g->connection->timeout_ns};
    return mpi_exchange(g, &e, err);
}

/* Returns when all members are about to make the group: MPI's own call waits for them without a limit. */
static seqlstm_status meet(struct seqlstm_group *g, struct seqlstm_error *err)
{
    for (int32_t m = 1; g->place == 0 && m < g->members; m++)
        SEQLSTM_TRY(pass_byte(g, m, false, err));
    for (int32_t m = 1; g->place == 0 && m < g->members; m++)
        SEQLSTM_TRY(pass_byte(g, m, true, err));
    if (g->place == 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(pass_byte(g, 0, true, err));
    return pass_byte(g, 0, false, err);
}

/* The communicator of some of the ranks. */
static seqlstm_status split(struct seqlstm_group *g, struct seqlstm_error *err)
{
    MPI_Group all, some = MPI_GROUP_NULL;
    struct seqlstm_connection *c = g->connection;
    SEQLSTM_TRY(meet(g, err));
    pthread_mutex_lock(&c->lock);
    MPI_Comm_group(c->all, &all);
    int code = MPI_Group_incl(all, g->members, g->ranks, &some);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_create_group(c->all, some, (int)g->number, &g->comm);
    if (code == MPI_SUCCESS)
        MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    if (some != MPI_GROUP_NULL)
        MPI_Group_free(&some);
    MPI_Group_free(&all);
    pthread_mutex_unlock(&c->lock);
    return mpi_check(code, "a group", err);
}

static seqlstm_status mpi_group_create(struct seqlstm_connection *c, uint32_t number, const int32_t *ranks,
                                       int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    const int32_t place = collectives_find_place(c->rank, c->ranks, ranks, count);
    SEQLSTM_TRY(collectives_check_group(place, number, MPI_GROUPS, c->used_groups, err));
    struct seqlstm_group *group = host_allocate(c->host, sizeof *group + (uint64_t)count * sizeof *group->ranks);
    if (group == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a group");
    group->connection = c;
    group->number = number;
    group->members = count;
    group->place = place;
    group->ranks = (int32_t *)(void *)(group + 1);
    group->comm = c->all;
    memcpy(group->ranks, ranks, (size_t)count * sizeof *ranks);
    const seqlstm_status status = count < c->ranks ? split(group, err) : SEQLSTM_OK;
    if (status != SEQLSTM_OK) {
        c->failed = true;
        host_release(c->host, group);
        return status;
    }
    c->used_groups |= 1u << number;
    *out_group = group;
    return SEQLSTM_OK;
}

static void mpi_group_destroy(struct seqlstm_group *group)
{
    if (group)
        host_release(group->connection->host, group);
}

static seqlstm_status mpi_run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                              const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)queue;
    struct seqlstm_connection *c = group->connection;
    SEQLSTM_TRY(collectives_check(e, group->place, group->members, err));
    if (c->failed && !atomic_load(&c->aborted))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "an earlier exchange has failed");
    const seqlstm_status status = mpi_exchange(group, e, err);
    c->failed |= status != SEQLSTM_OK;
    return status;
}

static seqlstm_status mpi_poll(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    struct mpi_wait wait = {.connection = connection, .peer = -1, .err = err};
    return mpi_look(&wait);
}

static void mpi_abort(struct seqlstm_connection *connection)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&connection->aborted, &none, 1 + connection->rank))
        mpi_tell_all(connection, MPI_NOTICE_ABORT);
}

static const struct seqlstm_collectives table = {
    COLLECTIVES_HEAD("comm-mpi", "0.1.0", MPI_BUILD ", compiler " __VERSION__),
    .describe = mpi_describe,
    .open = mpi_open,
    .close = mpi_close,
    .group_create = mpi_group_create,
    .group_destroy = mpi_group_destroy,
    .run = mpi_run,
    .poll = mpi_poll,
    .abort = mpi_abort,
};

COLLECTIVES_EXPORT(table)
