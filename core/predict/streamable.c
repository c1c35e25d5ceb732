/* SPDX-License-Identifier: Apache-2.0 */
/* See streamable.h. */
#include "predict/streamable.h"

#include <stdio.h>

/* NULL: it needs only the steps so far. */
static const char *find_need(const struct sl_layer *layer)
{
    if (sl_layer_is_recurrent(layer) && layer->recurrent.direction == SL_DIRECTION_BIDIRECTIONAL)
        return "is bidirectional";
    if (sl_layer_is_recurrent(layer) && layer->recurrent.direction == SL_DIRECTION_BACKWARD)
        return "runs backward";
    if (layer->kind == SL_LAYER_POOL)
        return "pools over all steps";
    if (layer->kind == SL_LAYER_ATTENTION)
        return "reads all steps of the source";
    if (sl_layer_is_recurrent(layer) && layer->recurrent.initial_state.layer != SL_NO_LAYER)
        return "starts from the final state of another layer";
    return NULL;
}

bool sl_model_is_streamable(const struct sl_model *model, const struct sl_layer *output, char *reason,
                            size_t capacity_bytes)
{
    if (capacity_bytes > 0)
        reason[0] = 0;
    if (model->encoder_count > 0) {
        const struct sl_layer *first = &model->layers[model->encoder_count];
        snprintf(reason, capacity_bytes,
                 "`%s` (%s:%d) is in a decoder, which begins when its encoder has read the whole sequence", first->name,
                 first->place.file ? first->place.file : model->path, first->place.line);
        return false;
    }
    for (size_t l = 0; l < model->layer_count && (output == NULL || (int)l <= output->index); l++) {
        const struct sl_layer *layer = &model->layers[l];
        const char *need = find_need(layer);
        if (need == NULL)
            continue;
        snprintf(reason, capacity_bytes, "`%s` (%s:%d) %s, so it needs the whole sequence", layer->name,
                 layer->place.file ? layer->place.file : model->path, layer->place.line, need);
        return false;
    }
    return true;
}
