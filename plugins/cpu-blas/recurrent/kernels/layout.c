/* SPDX-License-Identifier: Apache-2.0 */
/* Packs canonical weights into panels. If they are larger than the caches, they are written past the caches:
 * otherwise each line would be read from memory first and dropped before its use. */
#include <stdbool.h>
#include <stdint.h>

#include "cpu-blas/recurrent/kernels/unit.h"

enum { PACK_AHEAD = 128 }; /* floats: how far ahead the rows of a block are prefetched */

static bool pack_may_stream(const struct blas_pack *p)
{
    return p->stream && (uintptr_t)p->out % 64 == 0;
}

INLINE void pack_forward(const bool stream, const struct blas_pack *p)
{
    for (int32_t g = 0; g < PANEL; g += GROUP) {
        const int rows = (int)blas_group_rows(p->map + g);
        const float *from = p->w + (rows ? p->map[g] * p->width : 0);
        for (int64_t k = 0; k < p->width_pad; k += GROUP) {
            const int columns = (int)(p->width - k < GROUP ? p->width - k : GROUP);
            for (int i = 0; stream && i < rows; i++)
                __builtin_prefetch(from + i * p->width + k + PACK_AHEAD);
            float *to = p->strip ? p->out + g / GROUP * p->strip + k * GROUP : p->out + k * PANEL + g;
            v_transpose16(stream, from + (rows ? k : 0), p->width, rows, columns, to, p->strip ? GROUP : PANEL);
        }
    }
    if (stream)
        v_stream_end();
}

void kernel_pack_forward(const struct blas_pack *p)
{
    if (pack_may_stream(p))
        pack_forward(true, p);
    else
        pack_forward(false, p);
}

INLINE void pack_back(const bool stream, const struct blas_pack *p)
{
    const int64_t most = p->strip ? GROUP : PANEL;
    for (int64_t n = 0; n < p->width_pad; n += most) {
        const int64_t wide = p->width_pad - n < most ? p->width_pad - n : most;
        for (int32_t c = 0; c < PANEL; c++) {
            float *to = p->out + n * p->k_all + (p->k0 + c) * wide;
            const float *from = p->w + (p->map[c] < 0 ? 0 : p->map[c] * p->width + n);
            for (int64_t i = 0; i < wide; i += VW) {
                if (stream && i % GROUP == 0)
                    __builtin_prefetch(from + i + PACK_AHEAD);
                const int64_t left = p->map[c] < 0 ? 0 : p->width - n - i;
                v_put(stream, to + i, left >= VW ? v_load(from + i) : v_load_first(from + i, (int)left));
            }
        }
    }
    if (stream)
        v_stream_end();
}

void kernel_pack_back(const struct blas_pack *p)
{
    if (pack_may_stream(p))
        pack_back(true, p);
    else
        pack_back(false, p);
}

void kernel_put_end(void)
{
    v_stream_end();
}

void kernel_transpose16(const float *in, int64_t in_row, int rows, int columns, float *out, int64_t out_row)
{
    v_transpose16(false, in, in_row, rows, columns, out, out_row);
}
