/* SPDX-License-Identifier: Apache-2.0 */
/* The number types of fake_cudnn.h. */
#include "fake_cudnn.h"

#include "common/half.h"

size_t fake_element_bytes(cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE ? 8 : (type == CUDNN_DATA_FLOAT ? 4 : 2);
}

double fake_load(cudnnDataType_t type, const void *from, size_t at)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE:
        return ((const double *)from)[at];
    case CUDNN_DATA_HALF:
        return (double)gpu_from_f16(((const uint16_t *)from)[at]);
    case CUDNN_DATA_BFLOAT16:
        return (double)gpu_from_bf16(((const uint16_t *)from)[at]);
    default:
        return (double)((const float *)from)[at];
    }
}

void fake_store(cudnnDataType_t type, void *to, size_t at, double value)
{
    switch (type) {
    case CUDNN_DATA_DOUBLE:
        ((double *)to)[at] = value;
        break;
    case CUDNN_DATA_HALF:
        ((uint16_t *)to)[at] = gpu_to_f16((float)value);
        break;
    case CUDNN_DATA_BFLOAT16:
        ((uint16_t *)to)[at] = gpu_to_bf16((float)value);
        break;
    default:
        ((float *)to)[at] = (float)value;
        break;
    }
}

double fake_round(cudnnDataType_t type, double value)
{
    double room;
    fake_store(type, &room, 0, value);
    return fake_load(type, &room, 0);
}
