/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm conformance`: tests one backend case by case against the float64 reference.
 *
 * Cases run in worker processes (the program, started again), so that a crash or a hang is the verdict of one case;
 * the next worker continues after it. Without a worker command they run in this process, for use in a debugger. */
#ifndef SL_CONFORMANCE_CONFORMANCE_H
#define SL_CONFORMANCE_CONFORMANCE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/value/buf.h"
#include "base/system/log.h"
#include "registry/registry.h"
#include "conformance/case_bench.h"
#include "conformance/cases/catalogue.h"
#include "conformance/checks/checks.h"
#include "conformance/claims.h"

struct sl_conformance_result {
    enum sl_level level;
    const char *name; /* the case, or "load:…", "contract:…" */
    struct sl_check_result check;
    int64_t took_ns;
};

struct sl_conformance_request {
    const char *file; /* absolute path of the .so, or the id of a built-in */
    const struct sl_backend_builtin *builtins;
    uint32_t builtin_count;
    seqlstm_backend_query_fn reference; /* the oracle; never NULL */
    const struct seqlstm_setting *settings;
    uint32_t setting_count;
    bool trust;
    uint32_t levels;          /* bit 1 << SL_LEVEL_…; 0: all */
    const char *const *cases; /* run exactly these; globs (* and ?) select from the catalogue */
    uint32_t case_count;
    const char *variant; /* only this one; NULL: all */
    bool full;
    uint32_t random; /* run this many random cases (sl_catalogue_random) instead of the catalogue */
    const struct sl_claim *claims;
    uint32_t claim_count;
    uint64_t seed;
    const char *const *worker; /* argv of a worker, ends with NULL; NULL: run in this process */
    bool is_worker;            /* set by sl_conformance_work */
    int64_t timeout_ns;        /* of processor time for one case in a worker; 0: 60 s. By the clock ten times as much */
    const struct sl_log *log;
    const struct sl_interrupt *interrupt; /* stops between two cases; NULL: never */
    /* Called after each case, in order; may be NULL. */
    void (*on_result)(void *context, const struct sl_conformance_result *result);
    void *context;
};

struct sl_conformance_report;

/* Errors: UNAVAILABLE, NOT_FOUND or INVALID_ARGUMENT if the backend does not load (with the record's message),
 * CANCELLED, NO_MEMORY. Cases that fail are results, not errors. */
seqlstm_status sl_conformance_run(const struct sl_conformance_request *request,
                                  struct sl_conformance_report **out_report, struct seqlstm_error *err);
void sl_conformance_report_destroy(struct sl_conformance_report *report);

uint32_t sl_conformance_report_get_count(const struct sl_conformance_report *report, enum sl_verdict verdict);
/* Number of verdicts that are bad. */
uint32_t sl_conformance_report_count_bad(const struct sl_conformance_report *report);
uint32_t sl_conformance_report_get_size(const struct sl_conformance_report *report);
const struct sl_conformance_result *sl_conformance_report_get(const struct sl_conformance_report *report,
                                                              uint32_t index);
const struct sl_backend_record *sl_conformance_report_get_record(const struct sl_conformance_report *report);

/* Times for the JSON, borrowed. There are none if no case that was to be timed passed. */
void sl_conformance_report_set_times(struct sl_conformance_report *report, const struct sl_case_time *times,
                                     uint32_t count);
bool sl_conformance_report_is_timed(const struct sl_conformance_report *report);
const struct sl_case_time *sl_conformance_report_get_times(const struct sl_conformance_report *report,
                                                           uint32_t *out_count);

/* "seqlstm.conformance/1". */
void sl_conformance_report_print_json(const struct sl_conformance_report *report, struct sl_buf *out);
void sl_conformance_report_print_junit(const struct sl_conformance_report *report, struct sl_buf *out);

/* Writes the names of the cases that a request selects, one per line. Loads nothing. */
seqlstm_status sl_conformance_list(const struct sl_conformance_request *request, struct sl_buf *out,
                                   struct seqlstm_error *err);

/* Runs a worker: reads names of cases from descriptor `in`, one per line, and answers each with one line on `out`,
 * until the end of the file. */
seqlstm_status sl_conformance_work(const struct sl_conformance_request *request, int in, int out,
                                   struct seqlstm_error *err);

#endif
