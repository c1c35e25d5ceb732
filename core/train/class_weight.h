/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of the classes for the loss: given by label in the model file, or balanced: targets / (classes * targets of
 * the class), 1 for a class that does not occur. */
#ifndef SL_TRAIN_CLASS_WEIGHT_H
#define SL_TRAIN_CLASS_WEIGHT_H

#include <stdbool.h>

#include <seqlstm/status.h>

#include "data/batch/batcher.h"
#include "data/dataset/state.h"
#include "model/model.h"

/* Does the model ask for them? */
bool sl_class_weights_are_on(const struct sl_model *model);

/* INVALID_CONFIG as for sl_class_weights_create, without the weights. */
seqlstm_status sl_class_weights_check(const struct sl_model *model, const struct sl_data_state *state,
                                      struct seqlstm_error *err);

/* `*out_weights` has one float per class (*out_count) and is freed with free(); NULL and 0 if the model has none.
 * `counting` is a batcher of the training split (phase EVALUATE), read for one epoch if weights are balanced. Errors:
 * INVALID_CONFIG (an unknown label: the message names the nearest; targets without classes), errors of the batcher. */
seqlstm_status sl_class_weights_create(const struct sl_model *model, const struct sl_data_state *state,
                                       struct sl_batcher *counting, float **out_weights, int64_t *out_count,
                                       struct seqlstm_error *err);

#endif
