/* SPDX-License-Identifier: Apache-2.0 */
/* What to test, and what comes of each case. */
#ifndef SL_CONFORMANCE_REQUEST_H
#define SL_CONFORMANCE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/system/log.h"
#include "registry/registry.h"
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

#endif
