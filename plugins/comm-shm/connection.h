/* SPDX-License-Identifier: Apache-2.0 */
/* This rank in its job, and how it waits for others. */
#ifndef COMM_SHM_CONNECTION_H
#define COMM_SHM_CONNECTION_H

#include "segment.h"

struct seqlstm_connection {
    struct host_ranks ranks;
    int64_t spin_ns;
    uint32_t used_groups; /* bit of each number that was used */
};

struct seqlstm_group {
    struct seqlstm_connection *connection;
    int32_t members, place; /* this rank's place */
    uint32_t chunks;        /* begun so far; equal for all members between exchanges */
    uint32_t phases;
    struct shm_box **boxes; /* [members] */
    int32_t *ranks;         /* [members] */
};

/* wait.c. Waits until the counter, which `rank` advances, has reached `value`. */
seqlstm_status shm_wait(struct seqlstm_connection *connection, struct shm_counter *counter, uint32_t value,
                        int32_t rank, int64_t deadline_ns, struct seqlstm_error *err);
/* Sets the counter and wakes those that sleep on it. What was written before is visible to those that see it. */
void shm_advance(struct shm_counter *counter, uint32_t value);
/* group.c, pair.c. */
seqlstm_status shm_run_group(struct seqlstm_group *group, const struct seqlstm_exchange *exchange, int64_t elem_bytes,
                             int64_t deadline_ns, struct seqlstm_error *err);
seqlstm_status shm_send(struct seqlstm_connection *connection, int32_t to, const void *from, int64_t bytes,
                        int64_t deadline_ns, struct seqlstm_error *err);
seqlstm_status shm_receive(struct seqlstm_connection *connection, int32_t from, void *to, int64_t bytes,
                           int64_t deadline_ns, struct seqlstm_error *err);

#endif
