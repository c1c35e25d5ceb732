/* SPDX-License-Identifier: Apache-2.0 */
/* See names_tensor.h. */
#include "interop/names_tensor.h"

static void set_shape(struct sl_name_tensor *tensor, const struct sl_name_param *p, int64_t rows, bool is_transposed)
{
    bool is_vector = p->role == SL_NAME_BIAS || p->role == SL_NAME_DENSE_BIAS || p->role == SL_NAME_NORM_GAIN ||
                     p->role == SL_NAME_NORM_BIAS;
    tensor->is_transposed = is_transposed;
    tensor->rank = is_vector ? 1 : 2;
    tensor->shape[0] = is_transposed ? p->param->columns : rows;
    tensor->shape[1] = is_transposed ? rows : p->param->columns;
}

void sl_name_tensor_set_whole(struct sl_name_tensor *tensor, const struct sl_name_param *param, bool is_transposed)
{
    set_shape(tensor, param, param->param->rows, is_transposed);
    tensor->block_count = 1;
    tensor->blocks[0].of = 0;
    tensor->blocks[0].is_home = true;
}

void sl_name_tensor_set_blocks(struct sl_name_tensor *tensor, const struct sl_name_param *param, const int32_t *of,
                               int32_t count, bool is_transposed)
{
    tensor->block_count = count;
    for (int32_t k = 0; k < count; k++) {
        tensor->blocks[k].of = of[k];
        tensor->blocks[k].is_home = true;
    }
    set_shape(tensor, param, count * param->layer->recurrent.units, is_transposed);
}
