/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration asks for other shapes than the run's weights have: finds the option that causes it. The error of
 * the reader names the tensor, the tensor its layer, and the layer its options, one of which comes from --set or an
 * overlay. */
#include "session/finding/mismatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/error_place.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "train/checkpoint/checkpoint.h"

/* The layer of the parameter; NULL: it belongs to none. */
static const struct sl_layer *find_layer(const struct sl_model *model, const char *name)
{
    for (size_t l = 0; l < model->layer_count; l++) {
        const size_t bytes = strlen(model->layers[l].name);
        if (strncmp(name, model->layers[l].name, bytes) == 0 && name[bytes] == '.')
            return &model->layers[l];
    }
    return NULL;
}

/* Among the options under `key`, the one that was set at another place than `place`, which is that of all of them. */
static struct sl_place find_change(const struct sl_place_list *places, const char *key, struct sl_place place)
{
    for (size_t i = 0; i < places->count && place.line > 0; i++) {
        const struct sl_place_entry *entry = &places->items[i];
        if (strncmp(entry->path, key, strlen(key)) == 0 && strcmp(entry->value.file, place.file) != 0)
            return entry->value;
    }
    return place;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static struct sl_place find_cause(const struct sl_model *model, const char *name)
{
    const struct sl_layer *layer = find_layer(model, name);
    if (layer)
        return find_change(&layer->places, "", layer->place);
    const char *key = begins_with(name, SL_CHECKPOINT_AVERAGE) ? "train.ema"
                      : begins_with(name, SL_CHECKPOINT_BEST)  ? "train.early_stopping"
                      : begins_with(name, "optimizer.")        ? "train.optimizer"
                      : begins_with(name, "carried")           ? "data.batch_size"
                                                               : "model";
    return find_change(&model->places, key, sl_model_find_place(model, key));
}

seqlstm_status sl_session_add_mismatch(struct sl_session *session, const char *path, seqlstm_status status,
                                       struct seqlstm_error *err)
{
    if (status != SEQLSTM_INVALID_CONFIG || err == NULL)
        return status;
    const struct sl_place place = find_cause(session->model, err->where);
    char reason[sizeof err->message];
    snprintf(reason, sizeof reason, "%s", err->message);
    seqlstm_error_set(err, status, __FILE__, __LINE__,
                      "%.300s was made with another configuration: %.500s; use `seqlstm run` to train a new run with "
                      "this one, or take the change back",
                      path, reason);
    sl_error_place_set(err, place.file, place.line, place.column);
    return sl_session_add_finding(session, "E0507", NULL, status, err);
}
