/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm bench`: how fast each backend and thread count runs this model, for each size of the batch.
 *
 * A candidate gives its backend every operation that the backend accepts. The best other backend runs the rest; the
 * report names it if it has products. Each backend is first checked against the reference, and a backend that fails
 * is not timed. At each batch size, the candidates take turns in a random order, each time with new buffers. See
 * side.h. */
#ifndef SL_COMPARE_SWEEP_SWEEP_H
#define SL_COMPARE_SWEEP_SWEEP_H

#include "compare/sweep/sweep_report.h"
#include "compare/sweep/sweep_request.h"

/* Errors: UNAVAILABLE if nothing is left to time; errors of the model and the data; CANCELLED. The report points
 * into the session's model. */
seqlstm_status sl_sweep_run(const struct sl_sweep_request *request, struct sl_sweep_report **out_report,
                            struct seqlstm_error *err);

#endif
