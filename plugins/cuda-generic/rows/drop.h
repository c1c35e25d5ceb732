/* SPDX-License-Identifier: Apache-2.0 */
/* Masked rows, for kernels that also do something else. */
#ifndef CG_DROP_H
#define CG_DROP_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/rows.h"

static __device__ __forceinline__ float cg_draw_mask(const struct cg_mask &m, uint64_t key, const struct cg_axis &axis,
                                                     int64_t sequence, uint32_t t, int64_t element)
{
    const uint32_t position = axis.position0[sequence];
    const uint32_t step = m.per_step ? position + axis.t0 + t : axis.stream ? position : 0;
    return seqlstm_mask(key, (uint64_t)element, step, axis.sequence_id[sequence], m.rate);
}

/* y = x * mask (+ y), by all threads of the grid. On the sequences axis the step is 0. */
static __device__ __forceinline__ void cg_drop(const struct cg_drop &d, const struct cg_axis &axis)
{
    const struct cg_mask &m = d.mask;
    const uint64_t key = cg_live_key(&m.live, m.stream);
    CG_FOR_EACH(e, d.rows * d.n)
    {
        const int64_t r = e / d.n, k = e % d.n;
        const float factor = m.on_sequences
                                 ? seqlstm_mask(key, (uint64_t)k, 0, axis.sequence_id[r], m.rate)
                                 : cg_draw_mask(m, key, axis, axis.row_sequence[r], (uint32_t)axis.row_step[r], k);
        d.y[e] = d.add ? d.y[e] + d.x[e] * factor : d.x[e] * factor;
    }
}

#endif
