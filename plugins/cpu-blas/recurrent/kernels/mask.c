/* SPDX-License-Identifier: Apache-2.0 */
/* Draws mask bits of rows and applies masks to rows. */
#include <string.h>

#include <seqlstm/philox.h>

#include "cpu-blas/isa/keep.h"
#include "cpu-blas/recurrent/kernels/unit.h"

void kernel_keep_bits(const struct blas_keep *k)
{
    const uint32_t least = seqlstm_mask_count(k->rate);
    struct keep_keys keys;
    struct keep_run run[KEEP_RUNS];
    uint16_t *to[KEEP_RUNS], *row_bits = k->bits;
    uint64_t bits[KEEP_RUNS];
    int waiting = 0;
    keep_schedule(k->key, &keys);
    for (int64_t n = 0; n < k->steps * k->rows; n++, row_bits += k->bits_row) {
        const int64_t row = n % k->rows;
        const uint32_t step = k->step + (uint32_t)(n / k->rows) + (k->position0 ? k->position0[row] : 0);
        for (int64_t first = 0; first < k->elements; first += KEEP_RUN) {
            run[waiting] = (struct keep_run){(uint32_t)(first / 8), step, k->sequence[row]};
            to[waiting++] = row_bits + first / GROUP;
            if (waiting < KEEP_RUNS)
                continue;
            keep_draw(KEEP_RUNS, &keys, least, run, bits);
            for (int i = 0; i < KEEP_RUNS; i++)
                memcpy(to[i], &bits[i], sizeof bits[i]);
            waiting = 0;
        }
    }
    if (waiting == 0)
        return;
    keep_draw_some(waiting, &keys, least, run, bits);
    for (int i = 0; i < waiting; i++)
        memcpy(to[i], &bits[i], sizeof bits[i]);
}

/* See mask_apply in kernels.h. */
INLINE void mask_apply(const float *x, const uint16_t *bits, int64_t first, float scale, int64_t n, float *y)
{
    const vf s = v_set(scale);
    int64_t i = 0;
    for (; first % GROUP == 0 && i + GROUP <= n; i += GROUP)
        for (int v = 0; v < GROUP; v += VW) {
            vm keep = v_bits((uint32_t)bits[(first + i) / GROUP] >> v);
            v_store(y + i + v, v_select(keep, v_mul(v_load(x + i + v), s), v_zero()));
        }
    for (; i < n; i += VW) {
        int64_t e = first + i;
        uint32_t word = ((uint32_t)bits[e / 16] | (uint32_t)bits[e / 16 + 1] << 16) >> (e % 16);
        int left = n - i < VW ? (int)(n - i) : VW;
        vf a = v_mul(v_load_first(x + i, left), s);
        v_store_first(y + i, v_select(v_bits(word), a, v_zero()), left);
    }
}

void kernel_mask_apply(const float *x, const uint16_t *bits, int64_t first, float scale, int64_t n, float *y)
{
    mask_apply(x, bits, first, scale, n, y);
}

void kernel_keep_apply(const struct blas_keep *k, const float *x, float *y)
{
    const uint32_t least = seqlstm_mask_count(k->rate);
    const float scale = seqlstm_mask_scale(k->rate);
    const int64_t at_once = KEEP_RUNS * KEEP_RUN;
    struct keep_keys keys;
    struct keep_run run[KEEP_RUNS];
    uint64_t bits[KEEP_RUNS];
    keep_schedule(k->key, &keys);
    for (int64_t first = 0; first < k->elements; first += at_once) {
        const int64_t left = k->elements - first, count = left < at_once ? left : at_once;
        const int runs = (int)((count + KEEP_RUN - 1) / KEEP_RUN);
        uint16_t *to = k->bits + first / GROUP;
        for (int i = 0; i < KEEP_RUNS; i++)
            run[i] = (struct keep_run){(uint32_t)(first / 8 + 8 * i), k->step, k->sequence[0]};
        keep_draw(KEEP_RUNS, &keys, least, run, bits);
        memcpy(to, bits, (size_t)runs * sizeof *bits);
        mask_apply(x + first, to, 0, scale, count, y + first);
    }
}
