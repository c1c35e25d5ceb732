/* SPDX-License-Identifier: Apache-2.0 */
/* See fold_rows.h. */
#include "cuda-generic/recurrent/kernels/fold_rows.h"
#include "cuda-generic/device/device.h"

/* The row of the step of sequence b which forward takes first, or last. */
static __device__ int64_t end_row(const struct cg_layer *y, int64_t b, bool last)
{
    return cg_row(y, last != (y->reverse != 0) ? y->axis.lengths[b] - 1 : 0, b);
}

static __global__ void add_first(const struct cg_layer *y, int64_t sequences)
{
    CG_FOR_EACH(e, sequences * y->gh)
    y->z[end_row(y, e / y->gh, false) * y->gh + e % y->gh] += y->product[e];
}

static __global__ void collect(const struct cg_layer *y, int64_t rows)
{
    CG_FOR_EACH(e, rows * y->out)
    {
        const int64_t r = e / y->out, k = e % y->out, b = y->axis.row_sequence[r];
        float dh =
            cg_or_zero(y->dy, r * y->dy_stride + y->dy_offset + k) * cg_dy_factor(y, b, k) * cg_or_one(y->other_h, e);
        if (y->dhn && r == end_row(y, b, true))
            dh += y->dhn[b * y->out + k];
        y->dh_new[e] = dh;
    }
}

static __global__ void carry_back(const struct cg_layer *y, int64_t rows)
{
    CG_FOR_EACH(e, rows * y->out)
    {
        const int64_t r = e / y->out, k = e % y->out, b = y->axis.row_sequence[r];
        const int64_t before = cg_row_before(y, y->axis.row_step[r], b);
        if (before >= 0) /* no other row adds to it */
            y->dh_new[before * y->out + k] += y->h_rows[e];
        else if (y->dh0)
            y->dh0[b * y->out + k] = y->h_rows[e];
    }
}

extern "C" int cg_fold_add_first(void *stream, const struct cg_layer *layer, int64_t sequences, int64_t gh)
{
    return GPU_LAUNCH(stream, cg_blocks(sequences * gh), CG_THREADS, 0, add_first, layer, sequences);
}

extern "C" int cg_fold_collect(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(rows * out), CG_THREADS, 0, collect, layer, rows);
}

extern "C" int cg_fold_carry_back(void *stream, const struct cg_layer *layer, int64_t rows, int64_t out)
{
    return GPU_LAUNCH(stream, cg_blocks(rows * out), CG_THREADS, 0, carry_back, layer, rows);
}
