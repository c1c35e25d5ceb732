/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a case of the conformance kit on an offender: the reference, in which one thing is wrong. Include it after
 * cmocka. */
#ifndef TESTS_OFFENDER_H
#define TESTS_OFFENDER_H

#include <string.h>

#include "conformance/conformance.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* Runs one case, on the backend that `query` gives in place of the reference. */
static inline seqlstm_status offender_run(seqlstm_backend_query_fn query, const char *name,
                                          struct sl_conformance_report **out_report, struct seqlstm_error *err)
{
    const struct sl_backend_builtin builtin = {"reference", query};
    const struct sl_conformance_request request = {.file = "reference",
                                                   .builtins = &builtin,
                                                   .builtin_count = 1,
                                                   .reference = seqlstm_reference_query_v0,
                                                   .cases = &name,
                                                   .case_count = 1};
    return sl_conformance_run(&request, out_report, err);
}

/* The case must fail, and its detail must begin with `detail`; NULL: it must pass, and say nothing. `whole`: no more
 * may follow. `with` names the fault in messages. */
static inline void offender_expect(seqlstm_backend_query_fn query, const char *name, const char *with,
                                   const char *detail, bool whole)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    if (offender_run(query, name, &report, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", with, err.message);
    const struct sl_check_result *result = &sl_conformance_report_get(report, 0)->check;
    const char *wanted = detail ? detail : "";
    const size_t compared = strlen(wanted) + (whole || !detail);
    if (result->verdict != (detail ? SL_VERDICT_FAIL : SL_VERDICT_PASS) ||
        strncmp(result->detail, wanted, compared) != 0)
        fail_msg("%s, %s: %s '%s', expected '%s'", name, with, sl_verdict_name(result->verdict), result->detail,
                 wanted);
    sl_conformance_report_destroy(report);
}

#endif
