/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and layouts of Keras 3's LSTM, GRU, SimpleRNN, Dense, Embedding and LayerNormalization. Kernels are [inputs,
 * units]; a GRU's gates stand as z r n. */
#include <stdio.h>

#include "interop/names_private.h"

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
