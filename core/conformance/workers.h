/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes: a case that crashes or hangs ends only its worker.
 *
 * Protocol: names of cases and checks are sent, one per line. Results come back, one per line, with fields separated
 * by tabs: verdict, worst, variant, detail. The answer to SL_WORKER_RECORD is the record of the backend
 * (record_line.h). There is one worker at a time; it is started when the first case needs it. The number of the
 * plugin's function that is running lies in memory that both processes share. */
#ifndef SL_CONFORMANCE_WORKERS_H
#define SL_CONFORMANCE_WORKERS_H

#include <stdint.h>

#include "conformance/checks/checks.h"
#include "conformance/workbench.h"

struct sl_workers;

/* `timeout_ns` (0: 60 s) limits the processor time of all threads of the worker for one case, so that other programs
 * cannot make a case fail. A worker that waits without end is stopped after ten times as long by the clock. `argv`
 * is borrowed. The worker reads names from descriptor 3 and writes answers to descriptor 4; its standard output goes
 * to standard error. */
seqlstm_status sl_workers_create(const char *const *argv, int64_t timeout_ns, struct sl_workers **out_workers,
                                 struct seqlstm_error *err);
void sl_workers_destroy(struct sl_workers *workers);

/* Makes the worker load and open the backend. Errors: those of sl_workbench_init; INVALID_ARGUMENT if the worker
 * died or hung, with the plugin's function in which it did. */
seqlstm_status sl_workers_load(struct sl_workers *workers, struct sl_arena *arena, struct sl_backend_record *out_record,
                               struct seqlstm_error *err);

/* Makes the worker close the backend and exit normally, so that functions which the plugin registered for the exit
 * run. */
void sl_workers_end(struct sl_workers *workers, struct sl_check_result *out_result);

/* If the worker dies, or does not answer in time, the verdict is CRASH. */
void sl_workers_run(struct sl_workers *workers, const char *name, struct sl_check_result *out_result);

enum { SL_WORKER_IN = 3, SL_WORKER_OUT = 4, SL_WORKER_SHARED = 5 };
#define SL_WORKER_RECORD "record"

/* For the worker process, before anything else: lets the parent see which function is running. */
void sl_worker_share(void);
/* Answers until the end of the file. */
seqlstm_status sl_worker_serve(struct sl_workbench *w, const struct sl_conformance_request *request, int in, int out,
                               struct seqlstm_error *err);
/* Answers the first line with the reason why the backend does not load. False: there was no line. */
bool sl_worker_refuse(const struct sl_backend_record *record, seqlstm_status status, const char *message, int in,
                      int out);

#endif
