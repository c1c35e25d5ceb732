/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm verify`: checks every loaded backend against the reference on the user's own model and data, layer by layer.
 *
 * Training (forward with masks, and every gradient) and inference run with one batch of the training data and random
 * initial weights. See oracle.h for what is compared, and tolerance.h for how far results may differ. */
#ifndef SL_COMPARE_VERIFY_VERIFY_H
#define SL_COMPARE_VERIFY_VERIFY_H

#include "base/value/buf.h"
#include "judge/oracle.h"
#include "compare/sample/sample.h"
#include "session/session.h"

struct sl_verify_request {
    struct sl_session *session;
    const char *backend; /* only this id; NULL: all that load */
    int64_t sequences;   /* of the batch; 0: up to 8, or as many as the reference runs in reasonable time */
    int32_t threads;     /* of the backends under test; 0: auto */
    const struct sl_interrupt *interrupt;
};

struct sl_verify_report;

/* Errors: those of model, data and backends; UNAVAILABLE if the reference is the only backend; CANCELLED. A backend
 * with wrong results is a finding, not an error. */
seqlstm_status sl_verify_run(const struct sl_verify_request *request, struct sl_verify_report **out_report,
                             struct seqlstm_error *err);
void sl_verify_report_destroy(struct sl_verify_report *report);

int32_t sl_verify_report_get_count(const struct sl_verify_report *report);
/* `*out_phase`: the run that it comes from. */
const struct sl_judgement *sl_verify_report_get(const struct sl_verify_report *report, int32_t index,
                                                enum sl_phase *out_phase);
int32_t sl_verify_report_get_failures(const struct sl_verify_report *report);
/* The size of the batch that was used. */
struct sl_envelope sl_verify_report_get_batch(const struct sl_verify_report *report);

/* "seqlstm.verify/1". NO_MEMORY. */
seqlstm_status sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *out,
                                           struct seqlstm_error *err);

#endif
