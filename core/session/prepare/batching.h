/* SPDX-License-Identifier: Apache-2.0 */
/* Batchers of training and validation. */
#ifndef SL_SESSION_PREPARE_BATCHING_H
#define SL_SESSION_PREPARE_BATCHING_H

#include <seqlstm/status.h>

struct sl_session;
struct sl_step_cost;

/* The cost of a step of training on the planned backends: from the stored plan, or measured now, in about a second.
 * NULL for data without steps. Borrowed until close. Only before training, because it runs the executor. */
seqlstm_status sl_session_find_step_cost(struct sl_session *session, const struct sl_step_cost **out_cost,
                                         struct seqlstm_error *err);

/* After the data was read. `bucketing: auto` measures the cost of a step, unless a stored plan holds the edges. */
seqlstm_status sl_session_open_train_batcher(struct sl_session *session, struct seqlstm_error *err);
/* With the edges of the training batcher. */
seqlstm_status sl_session_open_valid_batcher(struct sl_session *session, struct seqlstm_error *err);

#endif
