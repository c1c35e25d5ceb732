/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes: a case that crashes or hangs takes its worker with it and nothing else.
 *
 * Protocol: names of cases and of checks go in, one a line; results come back, one a line, fields separated by tabs:
 * verdict, worst, variant, detail. SL_WORKER_RECORD is answered with the record of the backend (record_line.h). One
 * worker at a time, started when the first case needs it. The number of the running function of the plugin stands in
 * memory that both sides share.
 */
#ifndef SL_CONFORMANCE_WORKERS_H
#define SL_CONFORMANCE_WORKERS_H

#include <stdint.h>

#include "conformance/checks/checks.h"
#include "conformance/workbench.h"

struct sl_workers;

/* `timeout_ns` (0: 60 s) is processor time of all threads of the worker for one case, so that a busy machine fails no
 * case; a worker that waits without end is stopped after ten times as much by the clock. `argv` is borrowed. The
 * worker gets names on descriptor 3 and answers on descriptor 4; its standard output goes to standard error. */
seqlstm_status sl_workers_create(const char *const *argv, int64_t timeout_ns, struct sl_workers **out_workers,
                                 struct seqlstm_error *err);
void sl_workers_destroy(struct sl_workers *workers);

/* Has the backend loaded and opened. Errors: those of sl_workbench_init; INVALID_ARGUMENT if the worker died or hung,
 * with the function of the plugin in which it did. */
seqlstm_status sl_workers_load(struct sl_workers *workers, struct sl_arena *arena, struct sl_backend_record *out_record,
                               struct seqlstm_error *err);

/* Has the worker close the backend and end as a program does: what the plugin registered for the end runs. */
void sl_workers_end(struct sl_workers *workers, struct sl_check_result *out_result);

/* A worker that dies or does not answer in time gives the verdict CRASH. */
void sl_workers_run(struct sl_workers *workers, const char *name, struct sl_check_result *out_result);

enum { SL_WORKER_IN = 3, SL_WORKER_OUT = 4, SL_WORKER_SHARED = 5 };
#define SL_WORKER_RECORD "record"

/* The other side. First of all: from now on the running function is known to the parent. */
void sl_worker_share(void);
/* Until the end of file. */
seqlstm_status sl_worker_serve(struct sl_workbench *w, const struct sl_conformance_request *request, int in, int out,
                               struct seqlstm_error *err);
/* Answers the first line with the reason why the backend does not load. False: nothing was asked. */
bool sl_worker_refuse(const struct sl_backend_record *record, seqlstm_status status, const char *message, int in,
                      int out);

#endif
