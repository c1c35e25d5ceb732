/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between runs: keys of their configurations beside their metrics. */
#ifndef SL_RUNS_COMPARISON_H
#define SL_RUNS_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "runs/run_value.h"

struct sl_arena;

enum { SL_COMPARED_MOST = 12 };

struct sl_compared_row {
    const char *key;
    struct sl_run_value values[SL_COMPARED_MOST]; /* one per run */
};

struct sl_run_comparison {
    size_t run_count;
    struct sl_compared_row *config; /* keys whose values are not all equal, in the order of the configurations */
    size_t config_count;
    struct sl_compared_row *metrics; /* every metric that any run has, train before valid before test */
    size_t metric_count;
};

/* Compares 2 to SL_COMPARED_MOST runs. All memory is the arena's. False: no memory. */
bool sl_run_comparison_make(struct sl_arena *arena, const struct sl_run_facts *const *runs, size_t count,
                            struct sl_run_comparison *out);

#endif
