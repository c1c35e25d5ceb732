/* SPDX-License-Identifier: Apache-2.0 */
/* A case of the conformance kit for collectives, as one rank runs it. */
#ifndef SL_CONFORMANCE_COLLECTIVES_TRIAL_H
#define SL_CONFORMANCE_COLLECTIVES_TRIAL_H

#include <stdbool.h>

#include "registry/collectives/connection.h"

struct sl_trial {
    struct sl_connection *connection;
    const struct seqlstm_transport *transport;
    int32_t rank, ranks;
    uint64_t seed;
    const char *results; /* as a rank of a launcher: the folder for results; NULL: none */
    bool failed;
    char detail[400];  /* what the first failed check found */
    char report[1600]; /* lines of --bench */
};

/* How a case ends, apart from a failed check. */
enum sl_trial_kind {
    SL_TRIAL_USUAL,
    SL_TRIAL_LAST_DIES, /* the last rank kills itself */
    SL_TRIAL_LARGE,     /* only with --full */
    SL_TRIAL_TIMES      /* only with --bench */
};

struct sl_trial_case {
    const char *name;
    enum sl_trial_kind kind;
    void (*run)(struct sl_trial *trial);
};

/* All cases; the last entry has no name. */
extern const struct sl_trial_case sl_trial_cases[];

/* Notes the first check that fails; returns `holds`. */
bool sl_trial_check(struct sl_trial *trial, bool holds, const char *format, ...) SEQLSTM_PRINTF(3, 4);
/* Makes an exchange in group 0 that must succeed. */
bool sl_trial_exchange(struct sl_trial *trial, uint32_t kind, uint32_t dtype, uint32_t reduction, int32_t peer,
                       const void *from, void *to, int64_t elems);
/* As malloc; a failed check where there is no memory. Not empty. */
void *sl_trial_allocate(struct sl_trial *trial, int64_t bytes);

/* A number of (seed, rank, element): the same on all ranks. */
uint64_t sl_trial_random(const struct sl_trial *trial, uint64_t number, int32_t rank, int64_t element);

/* launched.c. Notes that this rank is about to die. */
void sl_trial_note_death(const struct sl_trial *trial);

/* times.c */
void sl_trial_time(struct sl_trial *trial);
/* numbers.c */
void sl_trial_all_reduce(struct sl_trial *trial);
void sl_trial_reduce_scatter(struct sl_trial *trial);
void sl_trial_shared(struct sl_trial *trial);
void sl_trial_rounding(struct sl_trial *trial);
void sl_trial_ordered_sum(struct sl_trial *trial);
void sl_trial_large(struct sl_trial *trial);
/* moves.c */
void sl_trial_all_gather(struct sl_trial *trial);
void sl_trial_broadcast(struct sl_trial *trial);
void sl_trial_send_receive(struct sl_trial *trial);
void sl_trial_barrier(struct sl_trial *trial);
void sl_trial_groups(struct sl_trial *trial);
void sl_trial_many(struct sl_trial *trial);
/* failures.c */
void sl_trial_time_out(struct sl_trial *trial);
void sl_trial_death(struct sl_trial *trial);
void sl_trial_leaving(struct sl_trial *trial);
void sl_trial_abort(struct sl_trial *trial);

#endif
