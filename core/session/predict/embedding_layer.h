/* SPDX-License-Identifier: Apache-2.0 */
/* Which layer makes the text vectors of a model. */
#ifndef SL_SESSION_PREDICT_EMBEDDING_LAYER_H
#define SL_SESSION_PREDICT_EMBEDDING_LAYER_H

#include "model/model.h"

/* The layer that `embedding` names, or the last one of the encoder; without an encoder the one before the last layer,
 * if the last layer makes classes or values of it. */
const struct sl_layer *sl_session_find_embedding_layer(const struct sl_model *model);

#endif
