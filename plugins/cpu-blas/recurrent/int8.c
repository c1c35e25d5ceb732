/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-blas/recurrent/int8.h"

#include <math.h>
#include <string.h>

#include "cpu-blas/recurrent/tiles.h"

void blas_int8_factors(const struct blas_recurrent *op, int64_t panel, int64_t input, const float *w_x,
                       const float *w_h, float factors[PANEL])
{
    for (int32_t c = 0; c < PANEL; c++) {
        const int32_t x = op->rows_x[panel * PANEL + c], row = x < 0 ? op->rows_h[panel * PANEL + c] : x;
        float most = 0.0f;
        if (row >= 0) {
            const uint32_t of_x = op->tile_kernels->largest(w_x + row * input, input);
            const uint32_t of_h = op->tile_kernels->largest(w_h + row * op->out, op->out);
            memcpy(&most, of_x > of_h ? &of_x : &of_h, sizeof most);
        }
        factors[c] = !isfinite(most) ? NAN : most > 0x1p-120f ? 127.0f / most : 0.0f;
    }
}

/* Sums of the columns of B, over `blocks` tiles of k. */
static void column_sums(const float *b, int64_t blocks, int32_t sums[PANEL])
{
    const int8_t *bytes = (const int8_t *)b;
    memset(sums, 0, PANEL * sizeof *sums);
    for (int64_t k = 0; k < blocks; k++)
        for (int32_t g = 0; g < PANEL; g += GROUP)
            for (int32_t j = 0; j < BLAS_TILE_ROWS; j++)
                for (int32_t n = g; n < g + GROUP; n++, bytes += 4)
                    sums[n] += bytes[0] + bytes[1] + bytes[2] + bytes[3];
}

void blas_int8_offsets(const struct blas_recurrent *op, const struct blas_packed *packed, int64_t input, int64_t panel,
                       const float factors[PANEL], const float *bias)
{
    const int64_t x_floats = blas_x_floats(op, input), at = panel * PANEL;
    const float *weights = packed->forward + panel * (x_floats + blas_h_floats(op));
    const double shift = (double)op->desc.data_shift;
    int32_t x[PANEL], h[PANEL];
    column_sums(weights, blas_tiles_blocks(op, input), x);
    column_sums(weights + x_floats, blas_tiles_blocks(op, op->out_pad), h);
    for (int32_t c = 0; c < PANEL; c++) {
        const double factor = (double)factors[c] * (double)op->desc.data_scale;
        const double scale = factor == 0.0 ? 0.0 : 1.0 / factor;
        const int32_t row = op->rows_bias[at + c];
        packed->scale[at + c] = (float)scale;
        if (op->norm) {
            packed->offset[at + c] = (float)(-shift * x[c] * scale);
            packed->offset_h[at + c] = (float)(-shift * h[c] * scale);
        } else {
            const double added = bias && row >= 0 ? (double)bias[row] : 0.0;
            packed->offset[at + c] = (float)(added - shift * (x[c] + h[c]) * scale);
        }
    }
}
