/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended: summary.json. */
#ifndef SL_SESSION_RUN_FOLDER_SUMMARY_H
#define SL_SESSION_RUN_FOLDER_SUMMARY_H

#include <stdbool.h>

#include <seqlstm/status.h>

#include "train/trainer/result.h"

struct sl_examples; /* session/report/examples.h */
struct sl_session;

struct sl_run_result {
    struct sl_train_result train;
    const char *folder;  /* of the run; borrowed */
    bool measured_again; /* `train.train` was measured with the final weights, not while they were learned */
    bool has_test;
    struct sl_metric_values test;
    const struct sl_examples *examples; /* for the report; NULL: none. Borrowed */
    double seconds;
};

seqlstm_status sl_run_folder_write_summary(struct sl_session *session, const struct sl_run_result *result,
                                           struct seqlstm_error *err);

#endif
