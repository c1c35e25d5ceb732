/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives between threads, each of which is a rank, and one offence that a test may ask for. They move bytes, and
 * add int32 and float32. A rank that leaves ends
 * the exchanges that wait for it. */
#ifndef TEST_THREAD_RANKS_H
#define TEST_THREAD_RANKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "registry/collectives/connection.h"

enum { THREAD_RANKS = 3, THREAD_GROUPS = 3 };

struct seqlstm_group {
    int32_t rank, place, members;
    uint32_t number;
    int32_t ranks[THREAD_RANKS];
};

struct seqlstm_connection {
    int32_t rank, ranks;
    uint32_t calls[SEQLSTM_COLLECTIVE_COUNT];
    uint32_t dtypes; /* bit of each that was exchanged */
    struct seqlstm_group groups[THREAD_GROUPS];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool left[THREAD_RANKS];
    struct seqlstm_connection connections[THREAD_RANKS];
    struct {
        int32_t waiting;
        uint64_t generation;
        const struct seqlstm_exchange *exchanges[THREAD_RANKS];
    } groups[THREAD_GROUPS][THREAD_RANKS];                           /* by number and by the first rank of the group */
    const struct seqlstm_exchange *sent[THREAD_RANKS][THREAD_RANKS]; /* from, to */
    /* The offence: where rank `to` gets data of rank `from`, in calls `call` and later of a kind, a bit of the first
     * and of the last byte is wrong. */
    int32_t kind, from, to; /* kind: -1: no offence; to: -1: every rank */
    uint32_t group, call;
    bool only_last; /* the first byte is right */
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Under the lock. */
static bool thread_is_left(const struct seqlstm_group *g)
{
    for (int32_t m = 0; m < g->members; m++)
        if (threads.left[g->ranks[m]])
            return true;
    return false;
}

static bool thread_meet(const struct seqlstm_group *g)
{
    bool met = true;
    pthread_mutex_lock(&threads.lock);
    const uint64_t generation = threads.groups[g->number][g->ranks[0]].generation;
    if (++threads.groups[g->number][g->ranks[0]].waiting == g->members) {
        threads.groups[g->number][g->ranks[0]].waiting = 0;
        threads.groups[g->number][g->ranks[0]].generation++;
        pthread_cond_broadcast(&threads.changed);
    } else {
        while (!thread_is_left(g) && threads.groups[g->number][g->ranks[0]].generation == generation)
            pthread_cond_wait(&threads.changed, &threads.lock);
        met = threads.groups[g->number][g->ranks[0]].generation != generation;
    }
    pthread_mutex_unlock(&threads.lock);
    return met;
}

/* What comes from a rank, with the offence. */
static void thread_take(const struct seqlstm_group *g, const struct seqlstm_exchange *e, int32_t from, char *to,
                        const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(to, bytes, count);
    if (count == 0 || threads.kind != (int32_t)e->kind || threads.from != from || threads.group != g->number ||
        (threads.to >= 0 && threads.to != g->rank) || threads.connections[g->rank].calls[e->kind] < threads.call)
        return;
    if (!threads.only_last)
        to[0] ^= 1;
    if (count > 1)
        to[count - 1] ^= 1;
}

static void thread_add(uint32_t dtype, void *to, const void *from, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++)
        if (dtype == SEQLSTM_DTYPE_INT32)
            ((int32_t *)to)[i] += ((const int32_t *)from)[i];
        else
            ((float *)to)[i] += ((const float *)from)[i];
}

static void thread_compute(const struct seqlstm_group *g, const struct seqlstm_exchange *e, char *out, char *part)
{
    const struct seqlstm_exchange *const *all = threads.groups[g->number][g->ranks[0]].exchanges;
    const size_t bytes = (size_t)(e->elems * sl_dtype_bytes(e->dtype));
    const size_t first = e->kind == SEQLSTM_COLLECTIVE_REDUCE_SCATTER ? bytes * (size_t)g->place : 0;
    for (int32_t m = 0; m < g->members; m++) {
        if (e->kind == SEQLSTM_COLLECTIVE_ALL_GATHER) {
            thread_take(g, e, g->ranks[m], out + (size_t)m * bytes, all[m]->from, bytes);
        } else if (e->kind == SEQLSTM_COLLECTIVE_BROADCAST) {
            if (m == e->peer)
                thread_take(g, e, g->ranks[m], out, all[m]->to, bytes);
        } else if (e->kind != SEQLSTM_COLLECTIVE_BARRIER) {
            thread_take(g, e, g->ranks[m], m == 0 ? out : part, (const char *)all[m]->from + first, bytes);
            if (m > 0)
                thread_add(e->dtype, out, part, e->elems);
        }
    }
}

static bool thread_run_group(const struct seqlstm_group *g, const struct seqlstm_exchange *e)
{
    const size_t bytes = (size_t)(e->elems * sl_dtype_bytes(e->dtype));
    const size_t got = e->kind == SEQLSTM_COLLECTIVE_ALL_GATHER ? bytes * (size_t)g->members : bytes;
    char *out = malloc(got + 1), *part = malloc(bytes + 1);
    threads.groups[g->number][g->ranks[0]].exchanges[g->place] = e;
    bool met = thread_meet(g);
    if (met && out && part)
        thread_compute(g, e, out, part);
    met = met && thread_meet(g);
    if (met && e->kind != SEQLSTM_COLLECTIVE_BARRIER && got > 0)
        memcpy(e->to, out, got);
    free(out);
    free(part);
    return met;
}

static bool thread_run_pair(const struct seqlstm_group *g, const struct seqlstm_exchange *e)
{
    const bool sends = e->kind == SEQLSTM_COLLECTIVE_SEND;
    const int32_t peer = g->ranks[e->peer];
    const struct seqlstm_exchange **slot = sends ? &threads.sent[g->rank][peer] : &threads.sent[peer][g->rank];
    pthread_mutex_lock(&threads.lock);
    if (sends)
        *slot = e;
    pthread_cond_broadcast(&threads.changed);
    while (!threads.left[peer] && (*slot != NULL) == sends)
        pthread_cond_wait(&threads.changed, &threads.lock);
    const bool done = sends ? *slot == NULL : *slot != NULL;
    if (done && !sends) {
        thread_take(g, e, peer, e->to, (*slot)->from, (size_t)(e->elems * sl_dtype_bytes(e->dtype)));
        *slot = NULL;
    }
    pthread_cond_broadcast(&threads.changed);
    if (sends && !done)
        *slot = NULL;
    pthread_mutex_unlock(&threads.lock);
    return done;
}

static seqlstm_status thread_run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                                 const struct seqlstm_exchange *e, struct seqlstm_error *err)
{
    (void)queue;
    threads.connections[group->rank].calls[e->kind]++;
    threads.connections[group->rank].dtypes |= 1u << e->dtype;
    const bool pair = e->kind == SEQLSTM_COLLECTIVE_SEND || e->kind == SEQLSTM_COLLECTIVE_RECEIVE;
    if (!(pair ? thread_run_pair(group, e) : thread_run_group(group, e)))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "a rank has left");
    return SEQLSTM_OK;
}

static seqlstm_status thread_describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    transport->dtypes = 1u << SEQLSTM_DTYPE_INT32;
    transport->reductions = 1u << SEQLSTM_REDUCE_SUM;
    transport->groups = THREAD_GROUPS;
    snprintf(transport->name, sizeof transport->name, "threads");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static seqlstm_status thread_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                  uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                  struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)err;
    *out_connection = &threads.connections[rendezvous->rank];
    memset(*out_connection, 0, sizeof **out_connection);
    (*out_connection)->rank = rendezvous->rank;
    (*out_connection)->ranks = rendezvous->ranks;
    return SEQLSTM_OK;
}

static void thread_close(struct seqlstm_connection *connection)
{
    pthread_mutex_lock(&threads.lock);
    threads.left[connection->rank] = true;
    pthread_cond_broadcast(&threads.changed);
    pthread_mutex_unlock(&threads.lock);
}

static seqlstm_status thread_group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                          int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    struct seqlstm_group *g = &connection->groups[number];
    bool fine = count <= THREAD_RANKS;
    int32_t place = -1;
    for (int32_t m = 0; fine && m < count; m++) {
        place = ranks[m] == connection->rank ? m : place;
        fine = ranks[m] >= 0 && ranks[m] < connection->ranks && (m == 0 || ranks[m] > ranks[m - 1]);
    }
    if (!fine || place < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "no such group");
    *g = (struct seqlstm_group){.rank = connection->rank, .place = place, .members = count, .number = number};
    memcpy(g->ranks, ranks, (size_t)count * sizeof *ranks);
    *out_group = g;
    return SEQLSTM_OK;
}

static void thread_group_destroy(struct seqlstm_group *group)
{
    (void)group;
}

static seqlstm_status thread_poll(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    return SEQLSTM_OK;
}

static void thread_abort(struct seqlstm_connection *connection)
{
    (void)connection;
}

static const struct seqlstm_collectives *thread_query(uint32_t host_minor)
{
    static const struct seqlstm_collectives table = {.struct_size = sizeof table,
                                                     .magic = SEQLSTM_MAGIC,
                                                     .abi_major = SEQLSTM_COLLECTIVES_MAJOR,
                                                     .abi_minor_needed = SEQLSTM_COLLECTIVES_MINOR,
                                                     .id = "comm-threads",
                                                     .version = "1",
                                                     .vendor = "a test",
                                                     .license = "none",
                                                     .build = "none",
                                                     .describe = thread_describe,
                                                     .open = thread_open,
                                                     .close = thread_close,
                                                     .group_create = thread_group_create,
                                                     .group_destroy = thread_group_destroy,
                                                     .run = thread_run,
                                                     .poll = thread_poll,
                                                     .abort = thread_abort};
    (void)host_minor;
    return &table;
}

/* `query`: thread_query, or that of a table which differs from its table. */
static seqlstm_status thread_connect(seqlstm_collectives_query_fn query, int32_t rank, int32_t ranks,
                                     struct sl_connection **out_connection, struct seqlstm_error *err)
{
    const struct sl_collectives_builtin builtins[] = {{"comm-threads", query}};
    const struct sl_connection_request request = {.name = "comm-threads",
                                                  .builtins = builtins,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = ranks,
                                                  .job = "a-job",
                                                  .timeout_ns = INT64_C(60000000000)};
    return sl_connection_open(&request, out_connection, err);
}

#endif
