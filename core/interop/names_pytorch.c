/* SPDX-License-Identifier: Apache-2.0 */
/* Names and layouts of torch.nn.LSTM, GRU, RNN, Linear, Embedding and LayerNorm in a state_dict. */
#include <stdio.h>

#include "interop/names_maps.h"

/* r and z have two biases that are only added; n has one on each side of the reset gate. */
static void map_gru_bias(const struct sl_name_param *p, struct sl_name_tensor *tensors)
{
    static const int32_t input[3] = {0, 1, 2}, hidden[3] = {0, 1, 3};
    sl_name_tensor_set_blocks(&tensors[0], p, input, 3, false);
    sl_name_tensor_set_blocks(&tensors[1], p, hidden, 3, false);
    tensors[1].blocks[0].is_home = tensors[1].blocks[1].is_home = false;
}

static void map_bias(const struct sl_name_param *p, struct sl_name_tensor *tensors)
{
    sl_name_tensor_set_whole(&tensors[0], p, false);
    sl_name_tensor_set_whole(&tensors[1], p, false);
    tensors[1].blocks[0].is_home = false;
}

static seqlstm_status map_recurrent(const struct sl_name_param *p, struct sl_name_tensor *tensors, int32_t *out_count,
                                    struct seqlstm_error *err)
{
    if (p->layer->kind == SL_LAYER_GRU && !p->layer->recurrent.reset_after)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "layer `%s`: PyTorch's GRU applies the reset gate after the product; `reset_after: false` has no "
                     "equal there",
                     p->layer->name);
    bool is_reverse = p->is_backward && p->layer->recurrent.direction == SL_DIRECTION_BIDIRECTIONAL;
    static const char *const words[][2] = {[SL_NAME_W_X] = {"weight_ih"},
                                           [SL_NAME_W_H] = {"weight_hh"},
                                           [SL_NAME_BIAS] = {"bias_ih", "bias_hh"},
                                           [SL_NAME_PROJECTION] = {"weight_hr"}};
    *out_count = p->role == SL_NAME_BIAS ? 2 : 1;
    if (p->role != SL_NAME_BIAS)
        sl_name_tensor_set_whole(&tensors[0], p, false);
    else if (p->layer->kind == SL_LAYER_GRU)
        map_gru_bias(p, tensors);
    else
        map_bias(p, tensors);
    for (int32_t k = 0; k < *out_count; k++)
        snprintf(tensors[k].name, sizeof tensors[k].name, "%s.%s_l%lld%s", p->prefix, words[p->role][k],
                 (long long)p->l, is_reverse ? "_reverse" : "");
    return SEQLSTM_OK;
}

seqlstm_status sl_names_map_pytorch(const struct sl_name_param *param, struct sl_name_tensor *tensors,
                                    int32_t *out_count, struct seqlstm_error *err)
{
    switch (param->role) {
    case SL_NAME_W_X:
    case SL_NAME_W_H:
    case SL_NAME_BIAS:
    case SL_NAME_PROJECTION:
        return map_recurrent(param, tensors, out_count, err);
    case SL_NAME_OTHER:
        *out_count = 0;
        return SEQLSTM_OK;
    default:
        break;
    }
    bool is_bias = param->role == SL_NAME_DENSE_BIAS || param->role == SL_NAME_NORM_BIAS;
    sl_name_tensor_set_whole(&tensors[0], param, false);
    snprintf(tensors[0].name, sizeof tensors[0].name, "%s.%s", param->prefix, is_bias ? "bias" : "weight");
    *out_count = 1;
    return SEQLSTM_OK;
}
