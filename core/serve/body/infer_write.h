/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the answer to a request of the Open Inference Protocol. */
#ifndef SL_SERVE_BODY_INFER_WRITE_H
#define SL_SERVE_BODY_INFER_WRITE_H

#include "base/value/buf.h"
#include "serve/job/job.h"

/* Appends the answer: JSON, then binary outputs. Outputs: `y`, FP32 [rows, features]; `label`, BYTES [rows], the class
 * with the largest probability. *out_json_bytes: of the JSON; -1: there is nothing behind it. [any thread] */
void sl_infer_write(const struct sl_job *job, struct sl_buf *out, int64_t *out_json_bytes);

#endif
