/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a sweep: sweep.c lists the candidates and goes through the batch sizes, sweep_batch.c times one size. */
#ifndef SL_COMPARE_SWEEP_SWEEP_PRIVATE_H
#define SL_COMPARE_SWEEP_SWEEP_PRIVATE_H

#include "base/system/pool.h"
#include "compare/sweep/sweep.h"

/* Candidate c is backend c / thread_count with threads[c % thread_count]. */
struct sl_sweep {
    const struct sl_sweep_request *request;
    struct sl_sweep_report *report;
    struct sl_backend_spec backends[SL_SWEEP_BACKENDS_MOST];
    int32_t backend_count;
    int32_t threads[SL_SWEEP_THREADS_MOST];
    int32_t thread_count;
    struct sl_pool *pools[SL_SWEEP_THREADS_MOST];
    int64_t begin_ns;
    struct seqlstm_error *err;
};

static inline seqlstm_status sl_sweep_fail_no_memory(const struct sl_sweep *sweep)
{
    SEQLSTM_FAIL(sweep->err, SEQLSTM_NO_MEMORY, "no memory for the sweep");
}

/* Times all candidates on batches of this size for about `seconds`, and appends the result to the report. The first
 * size also decides which candidates are excluded, by what they accept and by their results. */
seqlstm_status sl_sweep_run_batch(struct sl_sweep *sweep, int64_t batch, double seconds);

#endif
