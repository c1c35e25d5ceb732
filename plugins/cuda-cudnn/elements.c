/* SPDX-License-Identifier: Apache-2.0 */
/* See elements.h. A build without nvcc has no conversion kernels; supports.c then refuses 16 bits. */
#include "elements.h"

#include "plugin.h"

#if GPU_KERNELS
#include "common/cuda_cast.h"
#endif

seqlstm_status cdn_ranges_put(struct cdn_ranges *p, void *to, const void *from, int64_t elems,
                              struct seqlstm_error *err)
{
    if (p->count == CDN_RANGES)
        SEQLSTM_TRY(cdn_ranges_copy(p, err));
    p->of[p->count++] = (struct cdn_range){from, to, elems};
    return SEQLSTM_OK;
}

#if GPU_KERNELS
seqlstm_status cdn_ranges_copy(struct cdn_ranges *p, struct seqlstm_error *err)
{
    const uint32_t wide = SEQLSTM_DTYPE_FLOAT32;
    const uint32_t narrow = cdn_is_narrow(&p->op->desc) ? p->op->desc.head.dtype_compute : wide;
    const bool give = p->direction == CDN_GIVE;
    struct gpu_cast_part parts[GPU_CAST_PARTS];
    const int32_t count = p->count;
    _Static_assert((int)CDN_RANGES <= (int)GPU_CAST_PARTS, "one launch");
    for (int32_t k = 0; k < count; k++)
        parts[k] = (struct gpu_cast_part){p->of[k].from, p->of[k].to, p->of[k].elems};
    p->count = 0;
    return gpu_check_launch(p->op->ordinal,
                            gpu_cast_parts(p->stream, give ? wide : narrow, give ? narrow : wide, parts, count,
                                           p->direction == CDN_TAKE_ADD),
                            "cast", err);
}
#else
seqlstm_status cdn_ranges_copy(struct cdn_ranges *p, struct seqlstm_error *err)
{
    const int32_t count = p->count;
    p->count = 0;
    for (int32_t k = 0; k < count; k++)
        SEQLSTM_TRY(gpu_copy(p->op->ordinal, p->stream, SEQLSTM_COPY_WITHIN, p->of[k].to, p->of[k].from,
                             (uint64_t)p->of[k].elems * sizeof(float), err));
    return SEQLSTM_OK;
}
#endif
