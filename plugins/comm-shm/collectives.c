/* SPDX-License-Identifier: Apache-2.0 */
/* comm-shm: ranks of one host exchange data through shared memory. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/collectives_check.h"
#include "common/collectives_table.h"
#include "common/host_memory.h"
#include "common/processors.h"
#include "connection.h"
#include "reduce.h"

enum { SPIN_NS = 50 * 1000 };

static seqlstm_status shm_describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    collectives_describe(transport);
    transport->groups = SHM_GROUPS;
    transport->ranks_most = HOST_RANKS_MOST;
    transport->one_host = 1;
    snprintf(transport->name, sizeof transport->name, "shared memory");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static void shm_close(struct seqlstm_connection *c)
{
    if (c == NULL)
        return;
    const struct seqlstm_host *host = c->ranks.host;
    host_ranks_close(&c->ranks);
    host_release(host, c);
}

static seqlstm_status shm_open_connection(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                          uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                          struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)settings, (void)setting_count;
    struct seqlstm_connection *c = host_allocate(host, sizeof *c);
    if (c == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a connection");
    /* A rank that spins while another waits for its processor would slow both down. */
    c->spin_ns = processors_count() >= rendezvous->ranks ? SPIN_NS : 0;
    const seqlstm_status status =
        host_ranks_open(&c->ranks, host, rendezvous, shm_segment_bytes(rendezvous->ranks), err);
    if (status != SEQLSTM_OK) {
        shm_close(c);
        return status;
    }
    *out_connection = c;
    return SEQLSTM_OK;
}

static seqlstm_status shm_group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                       int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    const int32_t place = collectives_find_place(connection->ranks.rank, connection->ranks.ranks, ranks, count);
    SEQLSTM_TRY(collectives_check_group(place, number, SHM_GROUPS, connection->used_groups, err));
    const struct seqlstm_host *host = connection->ranks.host;
    struct seqlstm_group *group =
        host_allocate(host, sizeof *group + (uint64_t)count * (sizeof *group->boxes + sizeof *group->ranks));
    if (group == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a group");
    group->connection = connection;
    group->members = count;
    group->place = place;
    group->boxes = (struct shm_box **)(void *)(group + 1);
    group->ranks = (int32_t *)(void *)(group->boxes + count);
    for (int32_t m = 0; m < count; m++) {
        group->ranks[m] = ranks[m];
        group->boxes[m] = shm_segment_box(connection->ranks.memory, connection->ranks.ranks, number, ranks[m]);
    }
    connection->used_groups |= 1u << number;
    *out_group = group;
    return SEQLSTM_OK;
}

static void shm_group_destroy(struct seqlstm_group *group)
{
    if (group)
        host_release(group->connection->ranks.host, group);
}

static seqlstm_status shm_run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                              const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)queue;
    const int64_t bytes = collectives_elem_bytes(e->dtype);
    const int64_t deadline_ns = host_ranks_deadline_ns(e->timeout_ns);
    SEQLSTM_TRY(collectives_check(e, group->place, group->members, err));
    if (host_ranks_is_over(&group->connection->ranks))
        return host_ranks_check(&group->connection->ranks, err);
    if (!collectives_is_pair(e))
        return shm_run_group(group, e, bytes, deadline_ns, err);
    const int32_t peer = group->ranks[e->peer];
    return e->kind == SEQLSTM_COLLECTIVE_SEND
               ? shm_send(group->connection, peer, e->from, e->elems * bytes, deadline_ns, err)
               : shm_receive(group->connection, peer, e->to, e->elems * bytes, deadline_ns, err);
}

static seqlstm_status shm_poll(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    return host_ranks_check(&connection->ranks, err);
}

static void shm_abort(struct seqlstm_connection *connection)
{
    host_ranks_abort(&connection->ranks);
}

static seqlstm_status shm_allocate(struct seqlstm_connection *connection, uint64_t bytes, int64_t timeout_ns,
                                   void **out_memory, struct seqlstm_error *err)
{
    return host_ranks_share(&connection->ranks, bytes, host_ranks_deadline_ns(timeout_ns), out_memory, err);
}

static const struct seqlstm_collectives table = {
    COLLECTIVES_HEAD("comm-shm", "0.1.0", "futex, memfd, compiler " __VERSION__),
    .describe = shm_describe,
    .open = shm_open_connection,
    .close = shm_close,
    .group_create = shm_group_create,
    .group_destroy = shm_group_destroy,
    .run = shm_run,
    .poll = shm_poll,
    .abort = shm_abort,
    .allocate = shm_allocate,
};

COLLECTIVES_EXPORT(table)
