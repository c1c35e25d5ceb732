/* SPDX-License-Identifier: Apache-2.0 */
/* This rank in its job, on MPI.
 *
 * MPI says nothing about ranks that leave, abort or do not come. So each rank keeps one receive open for the *notices*
 * of the others (notice.c), and reads them while it waits. All calls of MPI are made under one lock, which is enough
 * for MPI_THREAD_SERIALIZED, and only the one that makes a group waits for other ranks.
 */
#ifndef COMM_MPI_CONNECTION_H
#define COMM_MPI_CONNECTION_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/collectives.h>

enum { MPI_GROUPS = 8 };

enum mpi_notice_kind {
    MPI_NOTICE_WAITING, /* in exchange `call` of group `group` */
    MPI_NOTICE_LEFT,    /* closed its connection */
    MPI_NOTICE_FAILED,  /* closed it after a failed exchange */
    MPI_NOTICE_ABORT
};

/* What a rank tells another one. */
struct mpi_notice {
    int32_t kind, rank;
    uint32_t group, call;
    uint32_t made[MPI_GROUPS]; /* exchanges of each group that it has finished */
    uint32_t sent, received;   /* of the pair: messages that it has sent to the other rank, and received from it */
    int32_t late;              /* FAILED: 1 + the rank for which it has waited in vain; 0: it has failed otherwise */
};

/* Another rank. */
struct mpi_peer {
    int process;               /* pidfd; -1: on another host, or it cannot be watched */
    uint32_t sent, received;   /* messages to and from it */
    struct mpi_notice last;    /* LEFT or FAILED; otherwise it is still there */
    struct mpi_notice waiting; /* the exchange for which it said that it waits */
    struct mpi_notice outgoing[2];
    MPI_Request sending[2]; /* of WAITING; of the others */
};

struct seqlstm_connection {
    const struct seqlstm_host *host;
    int32_t rank, ranks;
    int64_t spin_ns;     /* how long a wait asks without a break, */
    int64_t patience_ns; /* and then without a sleep */
    int64_t timeout_ns;  /* for the making of a group */
    bool begun;          /* it has called MPI_Init itself */
    bool failed;         /* an exchange has failed */
    int32_t fault;       /* 1 + the rank that is to blame */
    int32_t late;        /* 1 + the rank that did not come in time */
    atomic_int aborted;  /* 1 + the rank that has ended the job */
    pthread_mutex_t lock;
    MPI_Comm notices, pairs, all; /* MPI_COMM_NULL: not made */
    MPI_Request listening;
    struct mpi_notice heard;
    uint32_t used_groups; /* bit of each number that was used */
    uint32_t made[MPI_GROUPS];
    struct mpi_peer *peers; /* [ranks] */
};

struct seqlstm_group {
    struct seqlstm_connection *connection;
    MPI_Comm comm;
    uint32_t number;
    uint32_t calls; /* begun */
    int32_t members, place;
    int32_t *ranks; /* [members] */
};

/* What a rank waits for. */
struct mpi_wait {
    struct seqlstm_connection *connection;
    struct seqlstm_group *group; /* NULL: a message of a pair, or nothing of other ranks */
    int32_t peer;                /* of a pair; -1: none */
    bool receives;
    bool told; /* the others of the group know that this rank waits */
    int64_t begin_ns, deadline_ns, look_ns;
    struct seqlstm_error *err;
};

/* status.c */
int64_t mpi_now_ns(void);
/* OK, or DEVICE with the text of MPI. */
seqlstm_status mpi_check(int code, const char *what, struct seqlstm_error *err);

/* peer.c. Has it left or failed? */
bool mpi_is_gone(const struct mpi_peer *peer);
bool mpi_has_died(const struct seqlstm_connection *connection, int32_t rank);

/* wait.c. Waits until the request is complete. Errors: those of `run`. */
seqlstm_status mpi_finish(struct mpi_wait *wait, MPI_Request *request);
/* Can the job go on? Waits for nothing. */
seqlstm_status mpi_look(struct mpi_wait *wait);

/* notice.c */
seqlstm_status mpi_listen(struct seqlstm_connection *connection, struct seqlstm_error *err);
/* To one rank, if an earlier notice of this kind is on its way no longer. Under the lock. */
void mpi_tell(struct seqlstm_connection *connection, int32_t rank, enum mpi_notice_kind kind,
              const struct seqlstm_group *group);
void mpi_tell_all(struct seqlstm_connection *connection, enum mpi_notice_kind kind);

/* process.c. Finds the ranks of this host, and watches their processes. */
seqlstm_status mpi_watch_processes(struct seqlstm_connection *connection, int64_t deadline_ns,
                                   struct seqlstm_error *err);

/* environment.c. A copy of the environment; NULL without memory. */
char **mpi_copy_environment(void);
/* Makes the environment what it was. Nothing for NULL. */
void mpi_restore_environment(char *const *copy);
void mpi_free_environment(char **copy);

/* life.c */
seqlstm_status mpi_begin(struct seqlstm_connection *connection, const struct seqlstm_rendezvous *rendezvous,
                         struct seqlstm_error *err);
void mpi_end(struct seqlstm_connection *connection);

/* exchange.c */
seqlstm_status mpi_exchange(struct seqlstm_group *group, const struct seqlstm_exchange *exchange,
                            struct seqlstm_error *err);

#endif
