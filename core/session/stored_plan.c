/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the choices of a stored plan back. */
#include <jansson.h>
#include <stdlib.h>

#include "base/file.h"
#include "session/session_private.h"

enum { PLAN_LIMIT = 64 << 20 };

static seqlstm_status read_layers(const char *path, json_t *layers, struct sl_stored_plan *out,
                                  struct seqlstm_error *err)
{
    out->choices = SL_ARENA_ARRAY(&out->arena, struct sl_plan_choice, json_array_size(layers) + 1);
    if (out->choices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    size_t i;
    json_t *layer;
    json_array_foreach(layers, i, layer)
    {
        const char *name = json_string_value(json_object_get(layer, "name"));
        const char *backend = json_string_value(json_object_get(layer, "backend"));
        const char *variant = json_string_value(json_object_get(layer, "variant"));
        if (!name || !backend || !variant)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: layer %zu has no name, backend or variant", path, i);
        struct sl_plan_choice *choice = &out->choices[out->count];
        choice->node = sl_arena_strdup(&out->arena, name);
        choice->backend = sl_arena_strdup(&out->arena, backend);
        choice->variant = sl_arena_strdup(&out->arena, variant);
        if (!choice->node || !choice->backend || !choice->variant)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
        out->count++;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_stored_plan_read(const char *path, struct sl_stored_plan *out, struct seqlstm_error *err)
{
    char *text = NULL;
    size_t bytes;
    SEQLSTM_TRY(sl_file_read(path, PLAN_LIMIT, &text, &bytes, err));
    json_error_t why;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (root == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%d:%d: %s", path, why.line, why.column, why.text);
    json_t *layers = json_object_get(root, "layers");
    seqlstm_status status =
        json_is_array(layers) ? read_layers(path, layers, out, err)
                              : seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                                  "%s: no array \"layers\", expected a plan of this program", path);
    json_decref(root);
    return status;
}
