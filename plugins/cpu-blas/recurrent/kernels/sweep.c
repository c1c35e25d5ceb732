/* SPDX-License-Identifier: Apache-2.0 */
/* Many steps of a few sequences of an LSTM in one call. With one or two rows, the work between two products would
 * otherwise take as long as the products.
 *
 * One row reads all of W_h at each step, more than the first-level cache holds, and sometimes more than the
 * second-level cache does. So every other step reads it in reverse order and begins with what the step before left in
 * the caches. Which step that is follows from its position in the sequence, so that it also holds for the steps of a
 * stream, each of which is a call of its own. */
#include <stddef.h>
#include <string.h>

#include "cpu-blas/recurrent/kernels/unit.h"

/* Copies n floats of x, times m if m is not NULL. */
INLINE void sweep_copy(int64_t n, const float *x, const float *m, float *y)
{
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        v_store(y + i, m ? v_mul(v_load(x + i), v_load(m + i)) : v_load(x + i));
    if (i < n) {
        vf last = v_load_first(x + i, (int)(n - i));
        v_store_first(y + i, m ? v_mul(last, v_load_first(m + i, (int)(n - i))) : last, (int)(n - i));
    }
}

#if VW >= 8
/* SWEEP_SUMS: sums computed at once, as many as the registers and the latency of multiply-adds suggest.
 * SWEEP_PANELS: the panels that they cover. SWEEP_K: the k of one iteration, within which each address is a pointer
 * plus a constant. A multiply-add and its load are then one operation. The more of them are in flight, the earlier
 * lines are requested from the second-level cache. A larger SWEEP_K would stride over 2 KiB, too far for the hardware
 * prefetcher. In reverse order, too, k ascends within a block of 16: 4 KiB of a panel, which the prefetcher follows
 * better upwards. */
enum { SWEEP_SUMS = VW, SWEEP_VECTORS = PANEL / VW, SWEEP_PANELS = SWEEP_SUMS / SWEEP_VECTORS, SWEEP_K = 4 };

/* c (with norm: zero) += sum over k of a[k] b[k], on np panels of 64 columns at once. With few panels, each has two
 * sums, for even and odd k. */
INLINE void sweep_row(const int np, const struct blas_sweep_forward *w, const float *a, const float *b, bool reverse,
                      float *c)
{
    const int sums = 2 * np <= SWEEP_PANELS ? 2 : 1;
    const int64_t stride = w->cell.gates_row, first = reverse ? w->k - GROUP : 0;
    const int64_t block_way = reverse ? SWEEP_K - 2 * GROUP : SWEEP_K; /* from the end of a block to the next one */
    const float *at[SWEEP_PANELS];
    vf acc[2][SWEEP_PANELS][SWEEP_VECTORS];
    UNROLL_FOR (int p = 0; p < np; p++) {
        at[p] = b + p * w->weights_panel + first * PANEL;
        __asm__("" : "+r"(at[p])); /* hides the pointer from the compiler, which would make it an offset again */
        UNROLL_FOR (int v = 0; v < SWEEP_VECTORS; v++) {
            acc[0][p][v] = w->norm ? v_zero() : v_load(c + p * stride + v * VW);
            acc[1][p][v] = v_zero();
        }
    }
    a += first;
    ROLLED_FOR (int32_t k = SWEEP_K; k <= w->k; k += SWEEP_K) {
        const int64_t way = k % GROUP == 0 ? block_way : SWEEP_K;
        UNROLL_FOR (int i = 0; i < SWEEP_K; i++) {
            const vf av = v_set(a[i]);
            UNROLL_FOR (int p = 0; p < np; p++) {
                UNROLL_FOR (int v = 0; v < SWEEP_VECTORS; v++)
                    acc[i % sums][p][v] = v_fma(av, v_load(at[p] + i * PANEL + v * VW), acc[i % sums][p][v]);
            }
        }
        UNROLL_FOR (int p = 0; p < np; p++)
            at[p] += way * PANEL;
        a += way;
    }
    UNROLL_FOR (int p = 0; p < np; p++) {
        UNROLL_FOR (int v = 0; v < SWEEP_VECTORS; v++)
            v_store(c + p * stride + v * VW, sums == 2 ? v_add(acc[0][p][v], acc[1][p][v]) : acc[0][p][v]);
    }
}

static void sweep_product_row(const struct blas_sweep_forward *w, const float *h, float *gates, bool reverse)
{
    const int32_t parts = (w->panels + SWEEP_PANELS - 1) / SWEEP_PANELS;
    for (int32_t i = 0; i < parts; i++) {
        const int32_t p = (reverse ? parts - 1 - i : i) * SWEEP_PANELS;
        const float *b = w->weights + p * w->weights_panel;
        float *c = gates + p * w->cell.gates_row;
#if VW == 16
        const int32_t left = w->panels - p;
        if (left >= 4)
            sweep_row(4, w, h, b, reverse, c);
        else if (left == 3)
            sweep_row(3, w, h, b, reverse, c);
        else if (left == 2)
            sweep_row(2, w, h, b, reverse, c);
        else
#endif
            sweep_row(1, w, h, b, reverse, c);
    }
}

/* c = or += sum of a[k] b[k], nv vectors. k runs over panels, gates and units; in place, over gates, panels and
 * units. Each k of an iteration has its own sum, or several k share one, so that the chains of operations fill both
 * ports. */
INLINE void sweep_row_back(const int nv, const bool reverse, const struct blas_sweep_backward *w, const float *a,
                           const float *b, float *c)
{
    enum { GATES = PANEL / GROUP };
    const int sums = SWEEP_SUMS / nv < SWEEP_K ? SWEEP_SUMS / nv : SWEEP_K;
    const int64_t way = reverse ? -1 : 1, row = w->in_place ? w->width : nv * VW;
    const int32_t outer = w->in_place ? GATES : w->panels, inner = w->in_place ? w->panels : GATES;
    const int64_t outer_step = w->in_place ? GROUP : w->cell.gates_row;
    const int64_t inner_step = w->in_place ? w->cell.gates_row : GROUP;
    const float *at[SWEEP_K];
    vf acc[SWEEP_K][SWEEP_VECTORS];
    UNROLL_FOR (int v = 0; v < nv; v++) {
        acc[0][v] = w->carry && !w->mask ? v_load(c + v * VW) : v_zero();
        UNROLL_FOR (int i = 1; i < SWEEP_K; i++)
            acc[i][v] = v_zero();
    }
    if (reverse) {
        a += (outer - 1) * outer_step + (inner - 1) * inner_step + GROUP - SWEEP_K;
        b += ((int64_t)w->panels * PANEL - SWEEP_K) * row;
    }
    UNROLL_FOR (int i = 0; i < SWEEP_K; i++)
        at[i] = b + i * row;
    for (int32_t o = 0; o < outer; o++, a += way * outer_step) {
        const float *ai = a;
        if (w->in_place && w->cell.cell->coupled && (reverse ? outer - 1 - o : o) == 1) {
            UNROLL_FOR (int k = 0; k < SWEEP_K; k++)
                at[k] += way * inner * GROUP * row; /* skips the forget gate, which coupled gates do not use */
            continue;
        }
        for (int32_t i = 0; i < inner; i++, ai += way * inner_step) {
            const float *aj = ai;
            ROLLED_FOR (int j = 0; j < GROUP; j += SWEEP_K, aj += way * SWEEP_K) {
                UNROLL_FOR (int k = 0; k < SWEEP_K; k++) {
                    const vf av = v_set(aj[k]);
                    UNROLL_FOR (int v = 0; v < nv; v++)
                        acc[k % sums][v] = v_fma(av, v_load(at[k] + v * VW), acc[k % sums][v]);
                    at[k] += way * SWEEP_K * row;
                    __asm__("" : "+r"(at[k])); /* hides the pointer, as above */
                }
            }
        }
    }
    UNROLL_FOR (int v = 0; v < nv; v++) {
        const vf even = sums > 2 ? v_add(acc[0][v], acc[2][v]) : acc[0][v];
        const vf odd = sums > 3 ? v_add(acc[1][v], acc[3][v]) : acc[1][v];
        v_store(c + v * VW, sums > 1 ? v_add(even, odd) : even);
    }
}

INLINE void sweep_row_back_any(const int nv, const struct blas_sweep_backward *w, const float *a, const float *b,
                               bool reverse, float *c)
{
    if (reverse)
        sweep_row_back(nv, true, w, a, b, c);
    else
        sweep_row_back(nv, false, w, a, b, c);
}

static void sweep_product_row_back(const struct blas_sweep_backward *w, const float *gates, bool reverse, float *c)
{
    const int64_t k_all = (int64_t)w->panels * PANEL;
    const int32_t parts = (w->width + PANEL - 1) / PANEL;
    for (int32_t i = 0; i < parts; i++) {
        const int32_t n = (reverse ? parts - 1 - i : i) * PANEL, left = w->width - n;
        const float *b = w->weights + (w->in_place ? n : n * k_all);
        if (left >= PANEL)
            sweep_row_back_any(SWEEP_VECTORS, w, gates, b, reverse, c + n);
        else if (left == 3 * GROUP)
            sweep_row_back_any(3 * GROUP / VW, w, gates, b, reverse, c + n);
        else if (left == 2 * GROUP)
            sweep_row_back_any(2 * GROUP / VW, w, gates, b, reverse, c + n);
        else
            sweep_row_back_any(GROUP / VW, w, gates, b, reverse, c + n);
    }
}
#endif

static void sweep_product(const struct blas_sweep_forward *w, const float *h, float *gates, bool reverse)
{
#if VW >= 8
    if (w->rows == 1) {
        sweep_product_row(w, h, gates, reverse);
        return;
    }
#endif
    struct blas_product product = {.rows = w->rows,
                                   .a = h,
                                   .a_row = w->xh_row,
                                   .k_blocks = 1,
                                   .k_inner = w->k,
                                   .b_row = PANEL,
                                   .groups = 4,
                                   .c_row = PANEL,
                                   .accumulate = !w->norm};
    for (int32_t i = 0; i < w->panels; i++) {
        const int32_t p = reverse ? w->panels - 1 - i : i;
        product.b = w->weights + p * w->weights_panel;
        product.c = gates + p * w->cell.gates_row;
        kernel_product(&product);
    }
}

/* Sets the cell's pointers to row i of the step that begins `q` rows after the first one. Each pointer is computed
 * from those in w. If a cell were copied after its pointers were updated, its wide loads would wait until all
 * earlier, narrower stores are complete. */
INLINE void sweep_cell_at(const struct blas_sweep_forward *w, int64_t q, int32_t i, struct blas_cell_forward *out_cell)
{
    const struct blas_cell_forward *first = &w->cell;
    out_cell->gates = first->gates + (q + i) * PANEL;
    out_cell->c = first->c + i * GROUP;
    out_cell->c_saved = first->c_saved ? first->c_saved + (q + i) * GROUP : NULL;
    out_cell->new_c = first->new_c ? first->new_c + (q + i) * w->bits_row : NULL;
    out_cell->new_h = first->new_h ? first->new_h + (q + i) * w->bits_row : NULL;
    if (w->norm) {
        out_cell->extra = first->extra + i * GROUP;
        out_cell->mean = w->c_mean + q + i;
        out_cell->rstd = w->c_rstd + q + i;
    }
}

/* Normalises both products, and c^, of the step that begins `q` rows after the first one. */
static void sweep_norm_forward(const struct blas_sweep_forward *w, int64_t q, struct blas_cell_forward *cell)
{
    struct blas_norm norm = *w->norm;
    norm.u += q * PANEL;
    norm.v += q * PANEL;
    norm.z += q * PANEL;
    norm.stats += 4 * q;
    kernel_norm_forward(&norm);
    for (int32_t i = 0; i < w->rows; i++) {
        sweep_cell_at(w, q, i, cell);
        kernel_lstm_norm_forward_1(cell);
    }
    kernel_row_stats(w->cell.extra, w->cell.extra_row, w->rows, w->cell.units, norm.epsilon, w->c_mean + q,
                     w->c_rstd + q);
}

/* Waits for the other members, then fetches h~ of the next step, most of which they have just written. */
static void sweep_meet(const struct blas_sweep_forward *w, const float *next)
{
    w->meet(w->meeting);
    for (int32_t i = 0; next && i < w->rows; i++, next += w->xh_row)
        for (int32_t k = 0; k < w->k; k += GROUP)
            __builtin_prefetch(next + k);
}

void kernel_sweep_forward(const struct blas_sweep_forward *w)
{
    struct blas_cell_forward cell = w->cell;
    const float *xh = w->xh;
    float *y = w->y;
    for (int64_t s = 0; s < w->steps; s++) {
        float *next = s + 1 < w->steps ? w->xh + (s + 1) * w->xh_step : w->xh_after;
        const bool straight = w->straight && next;
        const int64_t q = s * w->way * w->rows;
        sweep_product(w, xh, (w->norm ? w->norm->v : w->cell.gates) + q * PANEL, (w->position + s) & 1);
        if (w->norm)
            sweep_norm_forward(w, q, &cell);
        for (int32_t i = 0; i < w->rows; i++) {
            float *h = straight ? next + i * w->xh_row + w->low : w->h + i * w->h_row;
            sweep_cell_at(w, q, i, &cell);
            cell.h = h;
            if (w->norm)
                kernel_lstm_norm_forward_2(&cell);
            else
                kernel_lstm_forward(&cell);
            if (!straight && next)
                sweep_copy(w->width, h, w->mask ? w->mask + i * w->k : NULL, next + i * w->xh_row + w->low);
            if (y)
                sweep_copy(w->y_count, h, NULL, y + i * w->y_row);
        }
        if (y)
            y += w->y_step;
        if (w->meet)
            sweep_meet(w, next);
        xh = next;
    }
}

static void sweep_product_back(const struct blas_sweep_backward *w, const float *gates, bool reverse, float *c)
{
#if VW >= 8
    if (w->rows == 1) {
        sweep_product_row_back(w, gates, reverse, c);
        return;
    }
#endif
    struct blas_product product = {.rows = w->rows,
                                   .a = gates,
                                   .a_row = PANEL,
                                   .a_block = w->cell.gates_row,
                                   .k_blocks = w->panels,
                                   .k_inner = PANEL,
                                   .c_row = w->dh_row,
                                   .descending = reverse,
                                   .accumulate = w->carry && !w->mask};
    for (int32_t n = 0; n < w->width; n += PANEL) {
        const int32_t wide = w->width - n < PANEL ? w->width - n : PANEL;
        product.groups = wide / GROUP;
        product.c = c + n;
        if (w->in_place) {
            const int64_t gate = (int64_t)w->panels * GROUP * w->width;
            struct blas_product part = product;
            part.k_inner = GROUP;
            part.b_row = w->width;
            part.descending = false;
            for (int g = 0; g < PANEL / GROUP; g++, part.accumulate = true) {
                if (g == 1 && w->cell.cell->coupled)
                    continue;
                part.a = gates + g * GROUP;
                part.b = w->weights + g * gate + n;
                kernel_product(&part);
            }
            continue;
        }
        product.b = w->weights + (int64_t)n * w->panels * PANEL;
        product.b_row = wide;
        kernel_product(&product);
    }
}

/* Sets the cell's pointers to row i of step s, as sweep_cell_at does. */
INLINE void sweep_cell_back_at(const struct blas_sweep_backward *w, int64_t s, int32_t i,
                               struct blas_cell_backward *out_cell)
{
    const struct blas_cell_backward *first = &w->cell;
    const int64_t q = s * w->way * w->rows + i;
    out_cell->gates = first->gates + q * PANEL;
    out_cell->c_saved = first->c_saved + q * GROUP;
    out_cell->dc = first->dc + i * GROUP;
    out_cell->dh = w->dh + i * w->dh_row;
    out_cell->dy = first->dy ? first->dy + s * w->dy_step + i * w->dy_row : NULL;
    out_cell->new_c = first->new_c ? first->new_c + q * w->bits_row : NULL;
    out_cell->new_h = first->new_h ? first->new_h + q * w->bits_row : NULL;
    if (w->norm) {
        out_cell->extra = first->extra + i * GROUP;
        out_cell->dq = first->dq + i * GROUP;
        out_cell->mean = first->mean + q;
        out_cell->rstd = first->rstd + q;
    }
}

/* Runs the cells and norms of step s. */
static void sweep_norm_back(const struct blas_sweep_backward *w, int64_t s, struct blas_cell_backward *cell)
{
    struct blas_norm norm = *w->norm;
    const int64_t q = s * w->way * w->rows;
    float *sums = w->cell.sums;
    memset(sums, 0, (size_t)w->rows * 2 * GROUP * sizeof *sums);
    for (int phase = 1; phase <= 2; phase++) {
        if (phase == 2)
            kernel_fold(2 * w->rows, sums, 1.0f / (float)w->cell.units, sums);
        for (int32_t i = 0; i < w->rows; i++) {
            sweep_cell_back_at(w, s, i, cell);
            cell->sums = sums + (phase == 1 ? 2 * GROUP : 2) * i;
            (phase == 1 ? kernel_lstm_norm_backward_1 : kernel_lstm_norm_backward_2)(cell);
        }
    }
    norm.u += q * PANEL;
    norm.v += q * PANEL;
    norm.z += q * PANEL;
    norm.stats += 4 * q;
    kernel_norm_backward(&norm);
}

void kernel_sweep_backward(const struct blas_sweep_backward *w)
{
    struct blas_cell_backward cell = w->cell;
    for (int64_t s = 0; s < w->steps; s++) {
        const int64_t q = s * w->way * w->rows;
        if (w->norm)
            sweep_norm_back(w, s, &cell);
        for (int32_t i = 0; !w->norm && i < w->rows; i++) {
            sweep_cell_back_at(w, s, i, &cell);
            kernel_lstm_backward(&cell);
        }
        sweep_product_back(w, (w->norm ? w->norm->v : w->cell.gates) + q * PANEL, s & 1, w->mask ? w->product : w->dh);
        for (int32_t i = 0; w->mask && i < w->rows; i++) {
            const float *from = w->product + i * w->dh_row, *m = w->mask + i * w->width;
            float *dh = w->dh + i * w->dh_row;
            for (int32_t n = 0; n < w->width; n += VW) {
                vf d = v_mul(v_load(from + n), v_load(m + n));
                v_store(dh + n, w->carry ? v_add(v_load(dh + n), d) : d);
            }
        }
    }
}
