/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a split. */
#ifndef SL_SESSION_EVALUATE_EVALUATE_H
#define SL_SESSION_EVALUATE_EVALUATE_H

#include <seqlstm/status.h>

#include "exec/exec.h"
#include "model/model.h"
#include "train/evaluate.h"

struct sl_clipped;
struct sl_session;
struct sl_stage;

/* Metrics of a split with the run's final weights. */
seqlstm_status sl_session_evaluate(struct sl_session *session, enum sl_split split,
                                   struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

/* For other files of core/session: an evaluation with a watcher. */
struct sl_evaluation_watch {
    sl_exec_watch_fn *on_call; /* NULL: none */
    seqlstm_status (*on_end)(void *context, const struct sl_stage *stage, struct seqlstm_error *err);
    void *context;
    sl_evaluation_batch_fn *on_batch; /* NULL: none */
    void *batch_context;
    const struct sl_quantization *quantization; /* in place of the run's */
    struct sl_clipped *clipped;                 /* set to what int8 clipped, in place of warnings; NULL: not */
    const struct sl_metric_list *metrics;       /* in place of those of validation, without those of texts; NULL: not */
};
seqlstm_status sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                           const struct sl_evaluation_watch *watch,
                                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err);

#endif
