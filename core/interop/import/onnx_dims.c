/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions of lifted values: the parts of batch, time and features that make up each. */
#include "interop/import/onnx_dims.h"

int64_t sl_onnx_dims_get_size(const struct sl_onnx_dims *dims, int32_t d)
{
    int64_t size = 1;
    for (int32_t a = 0; a < dims->at[d].count; a++)
        size *= dims->at[d].atoms[a].size;
    return size;
}

void sl_onnx_dims_get_shape(const struct sl_onnx_dims *dims, int64_t *shape)
{
    for (int32_t d = 0; d < dims->rank; d++)
        shape[d] = sl_onnx_dims_get_size(dims, d);
}

bool sl_onnx_dims_are_equal(const struct sl_onnx_dims *a, const struct sl_onnx_dims *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t d = 0; d < a->rank; d++) {
        if (a->at[d].count != b->at[d].count)
            return false;
        for (int32_t k = 0; k < a->at[d].count; k++)
            if (a->at[d].atoms[k].kind != b->at[d].atoms[k].kind || a->at[d].atoms[k].size != b->at[d].atoms[k].size)
                return false;
    }
    return true;
}

bool sl_onnx_dims_is(const struct sl_onnx_dims *dims, int32_t d, int kind, int64_t size)
{
    if (size == 1)
        return dims->at[d].count == 0;
    return dims->at[d].count == 1 && (int)dims->at[d].atoms[0].kind == kind && dims->at[d].atoms[0].size == size;
}

bool sl_onnx_dims_is_features(const struct sl_onnx_dims *dims, int32_t d)
{
    for (int32_t a = 0; a < dims->at[d].count; a++)
        if (dims->at[d].atoms[a].kind != SL_ONNX_ATOM_FEATURE)
            return false;
    return true;
}

void sl_onnx_dims_remove(struct sl_onnx_dims *dims, int32_t d)
{
    for (int32_t k = d; k + 1 < dims->rank; k++)
        dims->at[k] = dims->at[k + 1];
    dims->rank--;
}

void sl_onnx_dims_set(struct sl_onnx_dims *dims, int32_t d, int kind, int64_t size)
{
    dims->at[d].count = size > 1;
    dims->at[d].atoms[0].kind = kind;
    dims->at[d].atoms[0].size = size;
}

void sl_onnx_dims_split(const struct sl_onnx_dims *dims, int32_t d, int64_t *outer, int64_t *here, int64_t *inner)
{
    *outer = *here = *inner = 1;
    for (int32_t k = 0; k < dims->rank; k++)
        for (int32_t a = 0; a < dims->at[k].count; a++)
            if (dims->at[k].atoms[a].kind == SL_ONNX_ATOM_FEATURE)
                *(k < d ? outer : k == d ? here : inner) *= dims->at[k].atoms[a].size;
}
