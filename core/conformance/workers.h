/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes: a case that crashes or hangs takes its worker with it and nothing else.
 *
 * Protocol: names of cases go in, one a line; results come back, one a line, fields separated by tabs:
 * verdict, worst, variant, detail. One worker at a time, started when the first case needs it.
 */
#ifndef SL_CONFORMANCE_WORKERS_H
#define SL_CONFORMANCE_WORKERS_H

#include <stdint.h>

#include "conformance/checks/checks.h"

struct sl_workers;

/* `timeout_ns` (0: 60 s) is processor time of all threads of the worker for one case, so that a busy machine fails no
 * case; a worker that waits without end is stopped after ten times as much by the clock. `argv` is borrowed. The
 * worker gets names on descriptor 3 and answers on descriptor 4; its standard output goes to standard error. */
seqlstm_status sl_workers_create(const char *const *argv, int64_t timeout_ns, struct sl_workers **out_workers,
                                 struct seqlstm_error *err);
void sl_workers_destroy(struct sl_workers *workers);

/* A worker that dies or does not answer in time gives the verdict CRASH. */
void sl_workers_run(struct sl_workers *workers, const char *name, struct sl_check_result *out_result);

enum { SL_WORKER_IN = 3, SL_WORKER_OUT = 4 };

/* The other side: until the end of file. */
seqlstm_status sl_worker_serve(struct sl_bench *bench, int in, int out, struct seqlstm_error *err);

#endif
