/* SPDX-License-Identifier: Apache-2.0 */
/* Masked rows, for kernels that also do something else. */
#ifndef CG_DROP_H
#define CG_DROP_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/rows.h"

/* A mask that is drawn once per sequence. */
static __device__ __forceinline__ float cg_draw_once(uint64_t key, const struct cg_axis &axis, int64_t sequence,
                                                     int64_t element, float rate)
{
    return seqlstm_mask(key, (uint64_t)element, axis.stream ? axis.position0[sequence] : 0, axis.sequence_id[sequence],
                        rate);
}

/* The factor of an element of a row. On the sequences axis the step is 0. */
static __device__ __forceinline__ float cg_draw_mask(const struct cg_mask &m, uint64_t key, const struct cg_axis &axis,
                                                     int64_t row, int64_t element)
{
    if (m.on_sequences)
        return seqlstm_mask(key, (uint64_t)element, 0, axis.sequence_id[row], m.rate);
    const int64_t sequence = axis.row_sequence[row];
    if (!m.per_step)
        return cg_draw_once(key, axis, sequence, element, m.rate);
    return seqlstm_mask(key, (uint64_t)element, axis.position0[sequence] + axis.t0 + (uint32_t)axis.row_step[row],
                        axis.sequence_id[sequence], m.rate);
}

/* By all threads of the grid; without `other`. */
static __device__ __forceinline__ void cg_drop(const struct cg_drop &d, const struct cg_axis &axis)
{
    const struct cg_mask &m = d.mask;
    const uint64_t key = cg_live_key(&m.live, m.stream);
    CG_FOR_EACH(e, d.rows * d.n)
    d.y[e] = d.x[e] * cg_draw_mask(m, key, axis, e / d.n, e % d.n);
}

#endif
