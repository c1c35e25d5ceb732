/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep while it runs, with its candidates: each backend with each number of threads. */
#ifndef SL_COMPARE_SWEEP_SWEEP_CANDIDATES_H
#define SL_COMPARE_SWEEP_SWEEP_CANDIDATES_H

#include "base/system/pool.h"
#include "compare/sample/backend_spec.h"
#include "compare/sweep/sweep_report.h"

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

/* Fills in backends, threads, pools and the candidates of the report. */
seqlstm_status sl_sweep_list_candidates(struct sl_sweep *sweep);

#endif
