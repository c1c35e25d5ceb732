/* SPDX-License-Identifier: Apache-2.0 */
/* This rank in its job, on NCCL.
 *
 * NCCL tells nothing of ranks that do not come, leave or die: an exchange then never ends. So the ranks of the host
 * watch each other (common/host_ranks.h), and write on a *board* in the memory that they share how many exchanges of
 * each group they have begun. A rank that waits looks there; when the job cannot go on it aborts its communicators,
 * which ends what runs on the device. For exchanges that are only queued, a thread looks (watcher.c).
 */
#ifndef COMM_NCCL_CONNECTION_H
#define COMM_NCCL_CONNECTION_H

#include <pthread.h>

#include "common/cuda_runtime.h"
#include "common/host_ranks.h"
#include "library.h"

enum { NCC_GROUPS = 8, NCC_QUEUED = 32, NCC_STAGE_BYTES = 4 << 20 };
enum { NCC_FAILED = 1, NCC_LATE = 2 };

/* What a rank says. Each has one writer. */
struct ncc_board {
    alignas(64) _Atomic uint32_t begun[NCC_GROUPS]; /* exchanges of each group, those of pairs aside */
    _Atomic int32_t failed; /* NCC_FAILED, or NCC_LATE + the rank that did not come in time; 0: not failed */
    struct {
        _Atomic uint32_t there; /* 1: `id` is that of the group whose first member this rank is */
        struct ncc_id id;
    } groups[NCC_GROUPS];
};

/* An exchange on its way. */
struct ncc_passage {
    struct seqlstm_group *group;
    void *event; /* happens at its end */
    uint32_t call;
    int32_t peer; /* rank of the other one of a pair; -1: an exchange of the group */
    int64_t deadline_ns;
};

struct seqlstm_connection {
    struct host_ranks ranks;
    int32_t device; /* CUDA's number */
    void *stream;   /* for buffers of the host */
    void *event;
    char *from, *to; /* [NCC_STAGE_BYTES] on the device */
    int64_t timeout_ns;
    uint32_t used_groups; /* bit of each number that was used */
    pthread_t watcher;
    bool watched;         /* the thread runs */
    pthread_mutex_t lock; /* recursive; also held in each call of NCCL for one of the `groups` */
    pthread_cond_t changed;
    /* under the lock */
    struct seqlstm_group *groups[NCC_GROUPS];
    seqlstm_status status; /* of the first failure */
    struct seqlstm_error failure;
    struct ncc_passage queued[NCC_QUEUED]; /* on streams of the host, oldest first */
    void *events[NCC_QUEUED];              /* of which the first queued_count are in use */
    int32_t queued_count;
    bool closes;
};

struct seqlstm_group {
    struct seqlstm_connection *connection;
    struct ncc_comm *comm; /* NULL: aborted */
    uint32_t number;
    uint32_t calls; /* begun */
    int32_t members, place;
    int32_t *ranks; /* [members] */
};

/* The result of a call of CUDA: its codes are no ranks, as native_code is here; the message has them, too. */
static inline seqlstm_status ncc_cuda(seqlstm_status status, struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK && err != NULL && err->struct_size >= sizeof *err)
        err->native_code = 0;
    return status;
}

struct ncc_board *ncc_get_board(const struct seqlstm_connection *c, int32_t rank);

/* wait.c. Can the exchange still end? Waits for nothing. */
seqlstm_status ncc_look(struct seqlstm_connection *c, const struct ncc_passage *passage, struct seqlstm_error *err);
/* A rank may go as soon as its own part of an exchange is done, while the rest is still on its way: does the event of
 * an exchange that has lost a rank happen within a second? */
bool ncc_ends_by_itself(const struct seqlstm_connection *c, const struct ncc_passage *passage);
/* Returns when its event has happened. */
seqlstm_status ncc_wait(struct seqlstm_connection *c, const struct ncc_passage *passage, struct seqlstm_error *err);
/* Waits until NCCL has finished what it does for the communicator besides exchanges. */
seqlstm_status ncc_settle(struct seqlstm_connection *c, const struct ncc_passage *passage, const char *what,
                          struct seqlstm_error *err);
/* Notes the first failure, and aborts all communicators. Returns `status`. */
seqlstm_status ncc_fail(struct seqlstm_connection *c, seqlstm_status status, const struct seqlstm_error *err);
/* The failure that is noted. */
seqlstm_status ncc_get_failure(struct seqlstm_connection *c, struct seqlstm_error *err);

/* watcher.c. A queued exchange; waits while too many are. */
seqlstm_status ncc_watch(struct seqlstm_connection *c, struct ncc_passage passage, void *stream,
                         struct seqlstm_error *err);
seqlstm_status ncc_start_watcher(struct seqlstm_connection *c, struct seqlstm_error *err);
void ncc_stop_watcher(struct seqlstm_connection *c);

/* exchange.c */
seqlstm_status ncc_exchange(struct seqlstm_group *group, void *stream, const struct seqlstm_exchange *exchange,
                            struct seqlstm_error *err);

#endif
