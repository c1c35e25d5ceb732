/* SPDX-License-Identifier: Apache-2.0 */
/* See pieces.h. */
#include "base/batch/pieces.h"

int32_t sl_steps_cut(const struct seqlstm_axis *axis, int32_t pieces, int64_t *out_bounds)
{
    const int64_t steps = axis->rows > 0 ? axis->steps : 0;
    const int32_t count = steps < pieces ? (int32_t)steps : pieces;
    out_bounds[0] = 0;
    for (int32_t p = 1; p <= count; p++) {
        int64_t t = out_bounds[p - 1] + 1;
        const int64_t last = steps - (count - p); /* each later piece has a step, too */
        while (t < last && (p == count || axis->row_offsets[t] * count < axis->rows * p))
            t++;
        out_bounds[p] = t;
    }
    return count;
}
