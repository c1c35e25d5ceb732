/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the evaluation of a split. */
#ifndef SL_SESSION_PREPARE_EVALUATION_H
#define SL_SESSION_PREPARE_EVALUATION_H

#include <seqlstm/status.h>

#include "data/batch/batcher.h"
#include "session/record/stages.h"
#include "session/record/stored.h"

struct sl_dataset;
struct sl_metric_list;
struct sl_session;

struct sl_evaluation_request {
    const struct sl_dataset *data;
    enum sl_split split;
    const struct sl_quantization *quantization;
    const struct sl_metric_list *metrics; /* NULL: those of validation */
    const struct sl_choices *choices;     /* as for sl_session_prepare_stage */
    bool with_exec;                       /* false: only planned, with an exact prediction of the memory */
};
/* Makes the batcher of the data, and graph and plan (and executor) for its batches. */
seqlstm_status sl_session_prepare_evaluation(struct sl_session *session, const struct sl_evaluation_request *request,
                                             struct sl_batcher **out_batcher, struct sl_stage *stage,
                                             struct seqlstm_error *err);

/* The plan by which a split is evaluated, without the evaluation. Borrowed until the next one is made, or close. */
seqlstm_status sl_session_plan_evaluation(struct sl_session *session, enum sl_split split,
                                          const struct sl_plan **out_plan, struct seqlstm_error *err);

/* Plans the evaluation of the test split that ends a run: reads the split, and keeps only the plans. */
seqlstm_status sl_session_plan_test(struct sl_session *session, struct seqlstm_error *err);

#endif
