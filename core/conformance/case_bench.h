/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm conformance --bench`: the time that each variant of a backend takes for a case. Variants are timed in turn.
 *
 * A case is timed as training runs it (pack weights, forward, backward); in inference forward alone. Ratios are
 * relative to the first variant of the answer, with the intervals of interval.h over the rounds. */
#ifndef SL_CONFORMANCE_CASE_BENCH_H
#define SL_CONFORMANCE_CASE_BENCH_H

#include "base/system/interrupt.h"
#include "registry/registry.h"
#include "measure/interval.h"

struct sl_case_time {
    const char *name; /* of the case */
    char variant[SEQLSTM_MAX_VARIANT_BYTES];
    double median_ns, spread;    /* spread: width of the middle half of the rounds, divided by the median */
    double gflops, fraction;     /* of products; as a fraction of this machine's peak. 0: the case has no products */
    struct sl_interval interval; /* its time divided by the first variant's; for the first: 1, 1, 1 */
};

struct sl_case_bench_request {
    struct sl_registry_entry backend; /* a file, or the id of a built-in */
    bool trust;
    const struct sl_backend_builtin *builtins;
    uint32_t builtin_count;
    const char *const *cases;
    uint32_t case_count;
    const char *variant; /* only this one; NULL: all */
    int32_t threads;     /* 0: auto */
    double seconds;      /* for each case */
    uint64_t seed;
    const struct sl_log *log;
    const struct sl_interrupt *interrupt;
    /* Called for each variant of each case, in order. */
    seqlstm_status (*on_time)(void *context, const struct sl_case_time *time, struct seqlstm_error *err);
    void *context;
};

/* The cases that are timed if no others are named. NULL at the end. */
extern const char *const sl_case_bench_usual[];

/* Cases that the backend refuses are skipped. Errors: UNAVAILABLE if it does not load, INVALID_ARGUMENT for a case
 * that cannot be read or timed, CANCELLED, and those that the backend returns. */
seqlstm_status sl_case_bench_run(const struct sl_case_bench_request *request, struct seqlstm_error *err);

#endif
