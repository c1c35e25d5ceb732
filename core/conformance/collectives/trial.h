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

#endif
