/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm verify`: every loaded backend checked against the reference on the user's own model and data, layer by
 * layer.
 *
 * Training (forward with masks, and every gradient) and inference are run with one batch of the training data and
 * freshly drawn weights. See oracle.h for what is compared and tolerance.h for how far results may be apart. */
#ifndef SL_COMPARE_VERIFY_H
#define SL_COMPARE_VERIFY_H

#include "base/value/buf.h"
#include "judge/oracle.h"
#include "compare/sample.h"
#include "session/session.h"

struct sl_verify_request {
    struct sl_session *session;
    const char *backend; /* only this id; NULL: all that load */
    int64_t sequences;   /* of the batch; 0: up to 8, as many as the reference runs in reasonable time */
    int32_t threads;     /* of the backends under test; 0: auto */
    const struct sl_interrupt *interrupt;
};

struct sl_verify_report;

/* Errors: those of model, data and backends; UNAVAILABLE when there is no backend but the reference; CANCELLED. A
 * backend that computes something else is a finding, not an error. */
seqlstm_status sl_verify_run(const struct sl_verify_request *request, struct sl_verify_report **out_report,
                             struct seqlstm_error *err);
void sl_verify_report_destroy(struct sl_verify_report *report);

int32_t sl_verify_report_get_count(const struct sl_verify_report *report);
/* `*out_phase`: which run it comes from. */
const struct sl_judgement *sl_verify_report_get(const struct sl_verify_report *report, int32_t index,
                                                enum sl_phase *out_phase);
int32_t sl_verify_report_get_failures(const struct sl_verify_report *report);
/* The batch that was used. */
struct sl_envelope sl_verify_report_get_batch(const struct sl_verify_report *report);

/* "seqlstm.verify/1". NO_MEMORY. */
seqlstm_status sl_verify_report_print_json(const struct sl_verify_report *report, struct sl_buf *out,
                                           struct seqlstm_error *err);

#endif
