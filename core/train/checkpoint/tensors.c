/* SPDX-License-Identifier: Apache-2.0 */
/* Views of flat buffers as tensors. Padding between views is never written, so files do not depend on it. */
#include "train/checkpoint/tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"

enum { NAME_BYTES = 512 };

/* A matrix with one column stays a matrix; the last part of a parameter's name says what it is. */
static bool is_vector(const struct sl_param_view *view)
{
    static const char *const VECTORS[] = {"bias", "peephole", "norm", "gain"};
    const char *dot = strrchr(view->name, '.');
    const char *word = dot ? dot + 1 : view->name;
    for (size_t i = 0; i < sizeof VECTORS / sizeof *VECTORS; i++)
        if (view->columns == 1 && strcmp(word, VECTORS[i]) == 0)
            return true;
    return false;
}

static void set_shape(struct sl_safetensors_entry *entry, const struct sl_param_view *view)
{
    entry->rank = is_vector(view) ? 1 : 2;
    entry->shape[0] = view->rows;
    entry->shape[1] = view->columns;
}

static struct sl_safetensors_entry *add(struct sl_tensor_list *list, const char *prefix, const char *name)
{
    if (list->count == list->capacity) {
        int32_t capacity = list->capacity ? 2 * list->capacity : 32;
        struct sl_safetensors_entry *grown = realloc(list->entries, (size_t)capacity * sizeof *grown);
        if (!grown)
            return NULL;
        list->entries = grown;
        list->capacity = capacity;
    }
    struct sl_safetensors_entry *entry = &list->entries[list->count];
    memset(entry, 0, sizeof *entry);
    entry->name = sl_arena_printf(&list->arena, "%s%s", prefix, name);
    entry->dtype = SL_SAFETENSORS_F32;
    if (!entry->name)
        return NULL;
    list->count++;
    return entry;
}

seqlstm_status sl_tensor_list_add(struct sl_tensor_list *list, const struct sl_params *params, const char *prefix,
                                  const float *flat, struct seqlstm_error *err)
{
    for (int32_t i = 0; i < params->view_count; i++) {
        struct sl_safetensors_entry *entry = add(list, prefix, params->views[i].name);
        if (!entry)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to list %d tensors", list->count);
        set_shape(entry, &params->views[i]);
        entry->data = flat + params->views[i].offset_elems;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_tensor_list_add_vector(struct sl_tensor_list *list, const char *name, const float *data,
                                         int64_t elems, struct seqlstm_error *err)
{
    struct sl_safetensors_entry *entry = add(list, "", name);
    if (!entry)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to list %d tensors", list->count);
    entry->rank = 1;
    entry->shape[0] = elems;
    entry->data = data;
    return SEQLSTM_OK;
}

void sl_tensor_list_deinit(struct sl_tensor_list *list)
{
    sl_arena_deinit(&list->arena);
    free(list->entries);
    memset(list, 0, sizeof *list);
}

static void print_shape(char *out, size_t bytes, const struct sl_safetensors_entry *entry)
{
    size_t used = 0;
    out[0] = 0;
    for (int32_t i = 0; i < entry->rank && used + 24 < bytes; i++)
        used += (size_t)sl_text_snprintf(out + used, bytes - used, "%s%" PRId64, i ? ", " : "", entry->shape[i]);
}

seqlstm_status sl_tensor_blame(const char *name, struct seqlstm_error *err)
{
    if (err)
        snprintf(err->where, sizeof err->where, "%s", name);
    return SEQLSTM_INVALID_CONFIG;
}

seqlstm_status sl_tensor_find(const struct sl_safetensors *file, const char *prefix, const struct sl_param_view *view,
                              const struct sl_safetensors_entry **out_entry, struct seqlstm_error *err)
{
    char name[NAME_BYTES];
    int length = sl_text_snprintf(name, sizeof name, "%s%s", prefix, view->name);
    if (length < 0 || (size_t)length >= sizeof name)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the parameter's name `%.64s…` is too long", view->name);
    const struct sl_safetensors_entry *entry = sl_safetensors_find(file, name);
    struct sl_safetensors_entry wanted = {0};
    set_shape(&wanted, view);
    if (entry) {
        bool same = entry->rank == wanted.rank && entry->shape[0] == wanted.shape[0] &&
                    (wanted.rank == 1 || entry->shape[1] == wanted.shape[1]);
        if (!same || entry->dtype < SL_SAFETENSORS_F16) {
            char has[200], want[200];
            print_shape(has, sizeof has, entry);
            print_shape(want, sizeof want, &wanted);
            seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                              "`%s` is %s [%s] in the file, the model has float32 [%s]", name,
                              sl_safetensors_dtype_get_name(entry->dtype), has, want);
            return sl_tensor_blame(name, err);
        }
    }
    *out_entry = entry;
    return SEQLSTM_OK;
}

seqlstm_status sl_tensors_check(const struct sl_safetensors *file, const char *prefix, const struct sl_params *params,
                                struct seqlstm_error *err)
{
    for (int32_t i = 0; i < params->view_count; i++) {
        const struct sl_safetensors_entry *entry = NULL;
        SEQLSTM_TRY(sl_tensor_find(file, prefix, &params->views[i], &entry, err));
        if (!entry) {
            seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "the file holds no `%s%s`", prefix,
                              params->views[i].name);
            return sl_tensor_blame(*prefix ? prefix : params->views[i].name, err);
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_tensors_read(const struct sl_safetensors *file, const char *prefix, const struct sl_params *params,
                               float *flat, struct seqlstm_error *err)
{
    for (int32_t i = 0; i < params->view_count; i++) {
        const struct sl_param_view *view = &params->views[i];
        const struct sl_safetensors_entry *entry = NULL;
        SEQLSTM_TRY(sl_tensor_find(file, prefix, view, &entry, err));
        if (entry)
            SEQLSTM_TRY(sl_safetensors_read_float32(entry, flat + view->offset_elems, view->elems, err));
    }
    return SEQLSTM_OK;
}
