/* SPDX-License-Identifier: Apache-2.0 */
/* See elements.h. A build without nvcc has no conversion kernels; supports.c then refuses 16 bits. */
#include "elements.h"

#include "plugin.h"

#if CDN_KERNELS
#include "common/cuda_cast.h"
#endif

seqlstm_status cdn_elements_give(const struct seqlstm_op *op, void *stream, void *to, const float *from, int64_t elems,
                                 struct seqlstm_error *err)
{
#if CDN_KERNELS
    if (cdn_is_narrow(&op->desc))
        return gpu_check_launch(op->ordinal,
                                gpu_cast(stream, SEQLSTM_DTYPE_FLOAT32, op->desc.head.dtype_compute, elems, from, to),
                                "cast", err);
#endif
    return gpu_copy(op->ordinal, stream, SEQLSTM_COPY_WITHIN, to, from, (uint64_t)elems * sizeof(float), err);
}

seqlstm_status cdn_elements_take(const struct seqlstm_op *op, void *stream, float *to, const void *from, int64_t elems,
                                 bool add, struct seqlstm_error *err)
{
#if CDN_KERNELS
    const uint32_t dtype = op->desc.head.dtype_compute;
    if (cdn_is_narrow(&op->desc))
        return gpu_check_launch(op->ordinal,
                                add ? gpu_cast_add(stream, dtype, elems, from, to)
                                    : gpu_cast(stream, dtype, SEQLSTM_DTYPE_FLOAT32, elems, from, to),
                                "cast", err);
#endif
    (void)add;
    return gpu_copy(op->ordinal, stream, SEQLSTM_COPY_WITHIN, to, from, (uint64_t)elems * sizeof(float), err);
}
