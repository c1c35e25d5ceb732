/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a request of the Open Inference Protocol, version 2: JSON, and binary tensors behind it. */
#ifndef SL_SERVE_BODY_INFER_READ_H
#define SL_SERVE_BODY_INFER_READ_H

#include "serve/job/job.h"

/* Fills the job from the body of an `infer` request. Inputs:
 *
 *   - x: FP32 or FP64 [rows, features], or INT32 or INT64 ids [rows]; the steps of all sequences, one after the other
 *   - lengths: INT32 or INT64 [sequences]; absent: x is one sequence
 *   - text: BYTES [texts], in place of both: each becomes a sequence of tokens
 *
 * `json_bytes`: of the body, the rest is binary; -1: all is JSON. INVALID_ARGUMENT: the message says what is wrong;
 * NO_MEMORY. [any thread] */
seqlstm_status sl_infer_read(struct sl_job *job, const char *body, uint64_t bytes, int64_t json_bytes,
                             struct seqlstm_error *err);

#endif
