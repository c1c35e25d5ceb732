/* SPDX-License-Identifier: Apache-2.0 */
/* See embedding_layer.h. */
#include "session/predict/embedding_layer.h"

const struct sl_layer *sl_session_find_embedding_layer(const struct sl_model *model)
{
    if (model->encoder_count > 0)
        return model->embedding ? model->embedding : &model->layers[model->encoder_count - 1];
    const struct sl_layer *last = &model->layers[model->layer_count - 1];
    while (last->kind == SL_LAYER_ACTIVATION && last->from[0] >= 0)
        last = &model->layers[last->from[0]];
    if ((last->kind == SL_LAYER_DENSE || last->kind == SL_LAYER_OUTPUT) && last->from[0] >= 0)
        last = &model->layers[last->from[0]];
    return last;
}
