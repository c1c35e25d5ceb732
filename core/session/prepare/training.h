/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares training: data, batchers, class weights, plans and executors. */
#ifndef SL_SESSION_PREPARE_TRAINING_H
#define SL_SESSION_PREPARE_TRAINING_H

#include <seqlstm/status.h>

struct sl_plan;
struct sl_session;

/* Plans training (and evaluation). Borrowed until close. */
seqlstm_status sl_session_make_plan(struct sl_session *session, const struct sl_plan **out_plan,
                                    struct seqlstm_error *err);

/* The weights of the classes in training, [classes], from data that was read; NULL if the model has none. Borrowed
 * until close. */
seqlstm_status sl_session_weigh_classes(struct sl_session *session, const float **out_weights,
                                        struct seqlstm_error *err);

/* Opens data and batchers of training; makes plans and executors of training and evaluation; draws the weights. */
seqlstm_status sl_session_prepare_training(struct sl_session *session, struct seqlstm_error *err);

#endif
