/* SPDX-License-Identifier: Apache-2.0 */
/* int8 for a trained run. */
#ifndef SL_SESSION_EVALUATE_QUANTIZE_H
#define SL_SESSION_EVALUATE_QUANTIZE_H

#include <seqlstm/status.h>

#include "session/run_folder/stored_quantization.h"

struct sl_session;

struct sl_quantize_request {
    double bound; /* by how much the judged metric may become worse, as a share of its value */
    bool force;   /* write even if it becomes worse than that */
};

/* Measures the ranges of recurrent layers on the data for training and validation, chooses the widest ranges which are
 * precise enough, evaluates the run as it is and with those layers in int8, on the test data too, and writes
 * RUN/quantization.json, which evaluate, predict, embed and generate follow from then on. Layers which make the result
 * too bad stay as they are. Nothing is written if the judged metric (the first of `validate.metrics`, else the loss)
 * becomes worse than the bound on a split: `refused`. INVALID_CONFIG: no recurrent layer; UNSUPPORTED: no backend runs
 * any of them in int8; NUMERIC: a value or a metric of the run is not finite. */
seqlstm_status sl_session_quantize(struct sl_session *session, const struct sl_quantize_request *request,
                                   struct sl_quantize_result *out_result, struct seqlstm_error *err);

#endif
