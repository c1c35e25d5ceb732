/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run: run folder, data, plan, training, evaluation. */
#ifndef SL_SESSION_RUN_RUN_H
#define SL_SESSION_RUN_RUN_H

#include <seqlstm/status.h>

#include "session/run_folder/summary.h"
#include "train/trainer/request.h"

struct sl_plan;
struct sl_session;

/* on_folder: when the run folder exists, with its configuration. on_start: when the plan exists, too, before the first
 * step. */
struct sl_run_observer {
    struct sl_train_observer train;
    void (*on_folder)(void *context, const char *folder);
    void (*on_start)(void *context, const struct sl_session *session, const struct sl_plan *plan, const char *folder);
};

/* Meets the other ranks, if the model is divided among ranks; then only rank 0 writes, and evaluates the result.
 * Makes the run folder, trains, evaluates and saves. A session from open_run resumes from the newest checkpoint, or
 * starts at the beginning if there is none. The result is complete on OK, however training ended. On an error,
 * what was saved stays. */
seqlstm_status sl_session_run(struct sl_session *session, const struct sl_run_observer *observer,
                              struct sl_run_result *out_result, struct seqlstm_error *err);

#endif
