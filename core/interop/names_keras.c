/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and layouts of Keras 3's LSTM, GRU, SimpleRNN, Dense, Embedding and LayerNormalization. Kernels are [inputs,
 * units]; a GRU's gates stand as z r n. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "interop/names_maps.h"

static const char *get_cell(const struct sl_layer *layer)
{
    return layer->kind == SL_LAYER_LSTM ? "lstm" : layer->kind == SL_LAYER_GRU ? "gru" : "simple_rnn";
}

static void write_path(const struct sl_name_param *p, const char *leaf, char *out, size_t bytes)
{
    const struct sl_recurrent *o = &p->layer->recurrent;
    const char *cell = get_cell(p->layer);
    char level[32] = "", direction[64] = "";
    if (o->layers > 1)
        snprintf(level, sizeof level, "_l%lld", (long long)p->l);
    if (o->direction == SL_DIRECTION_BIDIRECTIONAL)
        snprintf(direction, sizeof direction, "/%s_%s", p->is_backward ? "backward" : "forward", cell);
    snprintf(out, bytes, "%s%s%s/%s_cell/%s", p->prefix, level, direction, cell, leaf);
}

static void map_bias(const struct sl_name_param *p, struct sl_name_tensor *tensor)
{
    static const int32_t after[6] = {1, 0, 2, 1, 0, 3}, before[3] = {1, 0, 2};
    if (p->layer->kind != SL_LAYER_GRU) {
        sl_name_tensor_set_whole(tensor, p, false);
        return;
    }
    if (!p->layer->recurrent.reset_after) {
        sl_name_tensor_set_blocks(tensor, p, before, 3, false);
        return;
    }
    sl_name_tensor_set_blocks(tensor, p, after, 6, false);
    tensor->blocks[3].is_home = tensor->blocks[4].is_home = false;
    tensor->rank = 2;
    tensor->shape[1] = tensor->shape[0] / 2;
    tensor->shape[0] = 2;
}

static void map_kernel(const struct sl_name_param *p, struct sl_name_tensor *tensor)
{
    static const int32_t gates[3] = {1, 0, 2};
    if (p->layer->kind == SL_LAYER_GRU)
        sl_name_tensor_set_blocks(tensor, p, gates, 3, true);
    else
        sl_name_tensor_set_whole(tensor, p, true);
}

static const char *get_leaf(const struct sl_name_param *p)
{
    switch (p->role) {
    case SL_NAME_W_X:
        return "kernel";
    case SL_NAME_W_H:
        return "recurrent_kernel";
    case SL_NAME_W:
        return p->layer->kind == SL_LAYER_EMBEDDING ? "embeddings" : "kernel";
    case SL_NAME_NORM_GAIN:
        return "gamma";
    case SL_NAME_NORM_BIAS:
        return "beta";
    default:
        return "bias";
    }
}

seqlstm_status sl_names_map_keras(const struct sl_name_param *param, struct sl_name_tensor *tensors, int32_t *out_count,
                                  struct seqlstm_error *err)
{
    (void)err;
    struct sl_name_tensor *tensor = &tensors[0];
    *out_count = param->role == SL_NAME_OTHER || param->role == SL_NAME_PROJECTION ? 0 : 1;
    if (*out_count == 0)
        return SEQLSTM_OK;
    const char *leaf = get_leaf(param);
    switch (param->role) {
    case SL_NAME_W_X:
    case SL_NAME_W_H:
        map_kernel(param, tensor);
        write_path(param, leaf, tensor->name, sizeof tensor->name);
        return SEQLSTM_OK;
    case SL_NAME_BIAS:
        map_bias(param, tensor);
        write_path(param, leaf, tensor->name, sizeof tensor->name);
        return SEQLSTM_OK;
    default:
        sl_name_tensor_set_whole(tensor, param, param->role == SL_NAME_W && param->layer->kind != SL_LAYER_EMBEDDING);
        snprintf(tensor->name, sizeof tensor->name, "%s/%s", param->prefix, leaf);
        return SEQLSTM_OK;
    }
}

/* Takes one segment that begins with `begin` (NULL: any that is `word` or `word_N`) off the path. */
static const char *skip_segment(const char *path, const char *begin, const char *word)
{
    const char *end = strchr(path, '/');
    size_t length = begin ? strlen(begin) : strlen(word);
    if (end == NULL || strncmp(path, begin ? begin : word, length) != 0)
        return NULL;
    if (begin)
        return end + 1;
    const char *rest = path + length;
    if (*rest == '_')
        for (rest++; isdigit((unsigned char)*rest);)
            rest++;
    return rest == end ? end + 1 : NULL;
}

/* Is `path` the parameter's: PREFIX [/LAST-OF-PREFIX] [/forward_*] [/CELL] /leaf [:0]? A dense layer may be in a
 * TimeDistributed: PREFIX /DENSE /leaf. */
static bool is_path(const struct sl_name_param *p, const char *path, const char *prefix, const char *leaf)
{
    bool is_recurrent = p->role == SL_NAME_W_X || p->role == SL_NAME_W_H || p->role == SL_NAME_BIAS;
    bool is_both = is_recurrent && p->layer->recurrent.direction == SL_DIRECTION_BIDIRECTIONAL;
    const char *last = strrchr(prefix, '/') ? strrchr(prefix, '/') + 1 : prefix, *next;
    char cell[32];
    size_t length = strlen(prefix);
    if (strncmp(path, prefix, length) != 0 || path[length] != '/')
        return false;
    path += length + 1;
    if (strncmp(path, last, strlen(last)) == 0 && path[strlen(last)] == '/')
        path += strlen(last) + 1;
    if (is_both) {
        next = skip_segment(path, p->is_backward ? "backward_" : "forward_", NULL);
        if (next == NULL)
            return false;
        path = next;
    }
    snprintf(cell, sizeof cell, "%s_cell", get_cell(p->layer));
    if (is_recurrent && (next = skip_segment(path, NULL, cell)) != NULL)
        path = next;
    if (p->role == SL_NAME_DENSE_BIAS || (p->role == SL_NAME_W && p->layer->kind != SL_LAYER_EMBEDDING))
        path = strchr(path, '/') ? strchr(path, '/') + 1 : path;
    length = strlen(leaf);
    return strncmp(path, leaf, length) == 0 && (path[length] == '\0' || strcmp(path + length, ":0") == 0);
}

int32_t sl_names_find_keras(const struct sl_name_param *param, const struct sl_name_tensor *tensor,
                            const struct sl_safetensors *file)
{
    const char *leaf = strrchr(tensor->name, '/');
    char prefix[SL_NAME_BYTES];
    int32_t found = -1;
    bool is_level =
        param->layer->kind == SL_LAYER_LSTM || param->layer->kind == SL_LAYER_GRU || param->layer->kind == SL_LAYER_RNN;
    if (is_level && param->layer->recurrent.layers > 1)
        snprintf(prefix, sizeof prefix, "%s_l%lld", param->prefix, (long long)param->l);
    else
        snprintf(prefix, sizeof prefix, "%s", param->prefix);
    for (int32_t e = 0; leaf && e < sl_safetensors_get_count(file); e++)
        if (is_path(param, sl_safetensors_get_entry(file, e)->name, prefix, leaf + 1))
            found = found == -1 ? e : -2;
    return found;
}
