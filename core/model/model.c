/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <string.h>

const struct sl_layer *sl_model_find_layer(const struct sl_model *model, const char *name)
{
    for (size_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].name != NULL && strcmp(model->layers[i].name, name) == 0)
            return &model->layers[i];
    return NULL;
}
