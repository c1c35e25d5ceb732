/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of an `infer` request: those of the sequence extension of the protocol. */
#ifndef SL_SERVE_BODY_INFER_PARAMETERS_H
#define SL_SERVE_BODY_INFER_PARAMETERS_H

#include <jansson.h>

#include "serve/job/job.h"

/* Reads `sequence_id` (a number above 0 or a text; 0 and "": none), `sequence_start` and `sequence_end`. `root` is the
 * whole request. INVALID_ARGUMENT: a parameter is unknown or has no sense; NO_MEMORY. [any thread] */
seqlstm_status sl_infer_read_parameters(struct sl_job *job, json_t *root, struct seqlstm_error *err);
/* A request on a stream is one sequence with steps. */
seqlstm_status sl_infer_check_stream(const struct sl_job *job, struct seqlstm_error *err);

#endif
