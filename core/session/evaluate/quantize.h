/* SPDX-License-Identifier: Apache-2.0 */
/* int8 for a trained run. */
#ifndef SL_SESSION_EVALUATE_QUANTIZE_H
#define SL_SESSION_EVALUATE_QUANTIZE_H

#include <seqlstm/status.h>

#include "session/run_folder/stored_quantization.h"

struct sl_session;

/* Measures the ranges of recurrent layers on the validation data, evaluates the run as it is and with those layers in
 * int8, and writes RUN/quantization.json, which evaluate, predict, embed and generate follow from then on.
 * INVALID_CONFIG: no validation data or no recurrent layer; UNSUPPORTED: no backend runs any of them in int8 (nothing
 * is written). */
seqlstm_status sl_session_quantize(struct sl_session *session, struct sl_quantize_result *out_result,
                                   struct seqlstm_error *err);

#endif
