/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives which connect up to three ranks with nothing: each exchange returns what a test wants. */
#ifndef TEST_FAKE_COLLECTIVES_H
#define TEST_FAKE_COLLECTIVES_H

#include <stdio.h>

#include "registry/collectives/connection.h"

static struct {
    struct seqlstm_collectives table; /* what the query function returns; a test may change it */
    seqlstm_status run_status;
    const char *run_message;  /* with a run_status that is not OK; or NULL */
    int runs, groups, closed; /* calls of run, groups that exist, calls of close */
} fake;

static seqlstm_status fake_describe(struct seqlstm_transport *transport, struct seqlstm_error *err)
{
    (void)err;
    transport->groups = 2;
    transport->ranks_most = 3;
    snprintf(transport->name, sizeof transport->name, "nothing");
    snprintf(transport->domain, sizeof transport->domain, "host");
    return SEQLSTM_OK;
}

static seqlstm_status fake_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, const struct seqlstm_rendezvous *rendezvous,
                                struct seqlstm_connection **out_connection, struct seqlstm_error *err)
{
    (void)host, (void)settings, (void)setting_count, (void)rendezvous, (void)err;
    *out_connection = (struct seqlstm_connection *)&fake;
    return SEQLSTM_OK;
}

static void fake_close(struct seqlstm_connection *connection)
{
    (void)connection;
    fake.closed++;
}

static seqlstm_status fake_group_create(struct seqlstm_connection *connection, uint32_t number, const int32_t *ranks,
                                        int32_t count, struct seqlstm_group **out_group, struct seqlstm_error *err)
{
    (void)connection, (void)number, (void)ranks, (void)count, (void)err;
    fake.groups++;
    *out_group = (struct seqlstm_group *)&fake.groups;
    return SEQLSTM_OK;
}

static void fake_group_destroy(struct seqlstm_group *group)
{
    (void)group;
    fake.groups--;
}

static seqlstm_status fake_run(struct seqlstm_group *group, struct seqlstm_queue *queue,
                               const struct seqlstm_exchange *exchange, struct seqlstm_error *err)
{
    (void)group, (void)queue;
    fake.runs++;
    if (exchange->timeout_ns <= 0)
        return SEQLSTM_INTERNAL;
    if (fake.run_status != SEQLSTM_OK && fake.run_message)
        seqlstm_error_set(err, fake.run_status, __FILE__, __LINE__, "%s", fake.run_message);
    return fake.run_status;
}

static seqlstm_status fake_poll(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    (void)connection, (void)err;
    return SEQLSTM_OK;
}

static void fake_abort(struct seqlstm_connection *connection)
{
    (void)connection;
}

static const struct seqlstm_collectives *fake_query(uint32_t host_minor)
{
    (void)host_minor;
    return &fake.table;
}

/* A sound plugin whose exchanges succeed, and nothing counted. */
static void fake_reset(void)
{
    fake.table = (struct seqlstm_collectives){.struct_size = sizeof fake.table,
                                              .magic = SEQLSTM_MAGIC,
                                              .abi_major = SEQLSTM_COLLECTIVES_MAJOR,
                                              .abi_minor_needed = SEQLSTM_COLLECTIVES_MINOR,
                                              .id = "comm-test",
                                              .version = "1",
                                              .vendor = "a test",
                                              .license = "none",
                                              .build = "none",
                                              .describe = fake_describe,
                                              .open = fake_open,
                                              .close = fake_close,
                                              .group_create = fake_group_create,
                                              .group_destroy = fake_group_destroy,
                                              .run = fake_run,
                                              .poll = fake_poll,
                                              .abort = fake_abort};
    fake.run_status = SEQLSTM_OK;
    fake.run_message = NULL;
    fake.runs = fake.groups = fake.closed = 0;
}

static seqlstm_status fake_connect(int32_t rank, int32_t ranks, struct sl_connection **out_connection,
                                   struct seqlstm_error *err)
{
    static const struct sl_collectives_builtin builtins[] = {{"comm-test", fake_query}};
    const struct sl_connection_request request = {.name = "comm-test",
                                                  .builtins = builtins,
                                                  .builtin_count = 1,
                                                  .rank = rank,
                                                  .ranks = ranks,
                                                  .job = "a-job",
                                                  .timeout_ns = 1000};
    return sl_connection_open(&request, out_connection, err);
}

#endif
