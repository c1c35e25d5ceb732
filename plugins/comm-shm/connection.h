/* SPDX-License-Identifier: Apache-2.0 */
/* This rank in its job, and how it waits for others. */
#ifndef COMM_SHM_CONNECTION_H
#define COMM_SHM_CONNECTION_H

#include "segment.h"

struct seqlstm_connection {
    const struct seqlstm_host *host;
    int32_t rank, ranks;
    void *segment;
    int *watched; /* [ranks] pidfd of each rank; -1: none */
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

int64_t shm_now_ns(void);

/* meet.c. All ranks meet: fills `segment`. */
seqlstm_status shm_meet(struct seqlstm_connection *connection, const struct seqlstm_rendezvous *rendezvous,
                        struct seqlstm_error *err);

/* wait.c. Says whether the job can go on: no rank has aborted, and none has died without leaving it. */
seqlstm_status shm_check(struct seqlstm_connection *connection, struct seqlstm_error *err);
/* Waits until the counter, which `rank` advances, has reached `value`. */
seqlstm_status shm_wait(struct seqlstm_connection *connection, struct shm_counter *counter, uint32_t value,
                        int32_t rank, int64_t deadline_ns, struct seqlstm_error *err);
/* Sets the counter and wakes those that sleep on it. What was written before is visible to those that see it. */
void shm_advance(struct shm_counter *counter, uint32_t value);
/* Opens what tells the death of the other ranks. */
seqlstm_status shm_watch_ranks(struct seqlstm_connection *connection, struct seqlstm_error *err);

/* group.c, pair.c. */
seqlstm_status shm_run_group(struct seqlstm_group *group, const struct seqlstm_exchange *exchange, int64_t elem_bytes,
                             int64_t deadline_ns, struct seqlstm_error *err);
seqlstm_status shm_send(struct seqlstm_connection *connection, int32_t to, const void *from, int64_t bytes,
                        int64_t deadline_ns, struct seqlstm_error *err);
seqlstm_status shm_receive(struct seqlstm_connection *connection, int32_t from, void *to, int64_t bytes,
                           int64_t deadline_ns, struct seqlstm_error *err);

#endif
