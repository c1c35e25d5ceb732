/* SPDX-License-Identifier: Apache-2.0 */
/* A second copy of the weights that follows the first: an exponential moving average, or the plain mean of NT-ASGD.
 * Evaluation and the saved model use it once it is active.
 *
 * Invariants:
 *  1. While inactive the copy means nothing and is not saved.
 *  2. swap exchanges the contents of params->values and the copy; twice in a row it has no effect. Everything else is
 *     called unswapped.
 */
#ifndef SL_TRAIN_AVERAGE_H
#define SL_TRAIN_AVERAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/memory.h"
#include "exec/exec.h"
#include "exec/params/params.h"

enum sl_average_kind { SL_AVERAGE_NONE, SL_AVERAGE_EMA, SL_AVERAGE_MEAN };

struct sl_average {
    enum sl_average_kind kind;
    double decay; /* EMA */
    bool active;
    int64_t count; /* updates that went into it */
    float *values; /* as params->values; only [0, trainable_elems) is kept; NULL for NONE */
    struct sl_params *params;
    struct sl_memory *memory;
};

seqlstm_status sl_average_init(struct sl_average *average, enum sl_average_kind kind, double decay,
                               struct sl_params *params, struct sl_memory *memory, struct seqlstm_error *err);
void sl_average_deinit(struct sl_average *average);

/* Begins with a copy of the present weights. They must be on the host (sl_params_pull), as for swap. */
void sl_average_start(struct sl_average *average);

/* After each update: EMA: a += (1 - decay)(w - a); MEAN: a += (w - a) / (count + 1). Nothing while inactive. */
seqlstm_status sl_average_update(struct sl_average *average, struct sl_exec *exec, struct seqlstm_error *err);

/* Exchanges weights and copy, and touches params. Nothing while inactive. */
void sl_average_swap(struct sl_average *average);

#endif
