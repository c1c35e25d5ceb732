/* SPDX-License-Identifier: Apache-2.0 */
/* A few updates of a training without a run folder, to find how long they take. */
#ifndef SL_SESSION_RUN_TURN_H
#define SL_SESSION_RUN_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_recorder;
struct sl_session;

struct sl_turn {
    int64_t updates, rows; /* that were timed; rows: real steps */
    double ns;             /* of them */
};

/* Trains from the first batch on: `warm` updates that are not timed, and then `updates` more, or fewer if the training
 * ends before. With a recorder it records updates after the warm ones, and ends when that is done. The session has
 * prepared its training; its weights go on from those that they are. INVALID_CONFIG: the training is divided among
 * ranks. */
seqlstm_status sl_session_take_turn(struct sl_session *session, struct sl_recorder *recorder, int64_t warm,
                                    int64_t updates, struct sl_turn *out_turn, struct seqlstm_error *err);

/* Are products of the training in float16, so that its loss is scaled? */
bool sl_session_scales_loss(const struct sl_session *session);

/* The updates of the whole training, as far as the model limits them. */
int64_t sl_session_count_updates(const struct sl_session *session);

#endif
