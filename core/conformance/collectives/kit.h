/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit for collectives. Each case runs on ranks that are started for it (the program, started again),
 * so a crash or a hang is the verdict of one case. */
#ifndef SL_CONFORMANCE_COLLECTIVES_KIT_H
#define SL_CONFORMANCE_COLLECTIVES_KIT_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/collectives/cases.h"
#include "judge/check.h"

struct sl_collectives_result {
    const char *name;
    enum sl_verdict verdict; /* PASS, FAIL, CRASH, SKIP */
    char detail[512];        /* why it did not pass */
    char report[1600];       /* rank 0: lines of times */
    int64_t took_ns;
};

struct sl_collectives_kit_request {
    struct sl_connection_request connection; /* name, builtins, folders, trust, log, interrupt */
    int32_t ranks;
    const char *const *cases; /* only these; NULL: all */
    uint32_t case_count;
    bool full;
    bool times; /* only times */
    uint64_t seed;
    int64_t timeout_ns;        /* for one case */
    const char *const *worker; /* the command of a rank, which --rank, --job and --case are added to; ends with NULL */
    const char *const *launcher; /* words of the program that starts the ranks, such as mpirun; ends with NULL. NULL:
                                  * the kit starts them */
    const char *results;         /* as a rank of a launcher: the folder for results; NULL: none */
    void (*on_result)(void *context, const struct sl_collectives_result *result);
    void *context;
};

/* Runs the cases. Errors: NO_MEMORY, CANCELLED, IO (a rank cannot be started), INVALID_ARGUMENT (no such case). */
seqlstm_status sl_collectives_kit_run(const struct sl_collectives_kit_request *request, struct seqlstm_error *err);

/* Runs one case as one rank, and writes what it finds to descriptor `out`. */
seqlstm_status sl_collectives_kit_work(const struct sl_collectives_kit_request *request, const char *name, int32_t rank,
                                       const char *job, int out, struct seqlstm_error *err);

/* launched.c. Runs a case whose ranks a launcher starts; and, as such a rank, writes what it has found. */
seqlstm_status sl_trial_launch(const struct sl_collectives_kit_request *request, const struct sl_trial_case *c,
                               struct sl_collectives_result *result, struct seqlstm_error *err);
seqlstm_status sl_trial_write(const struct sl_trial *trial, const char *folder, struct seqlstm_error *err);

#endif
