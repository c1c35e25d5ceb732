/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the time loop (prim_loop.h) that an author may replace: a matrix product, and the LSTM cell for some
 * rows at one step. This header has a plain version of each, which the loop uses if the author gives none.
 *
 * Everything is float32 and row-major. It is not part of the ABI: it is compiled into the plugin.
 */
#ifndef SEQLSTM_PRIM_LOOP_CELL_H
#define SEQLSTM_PRIM_LOOP_CELL_H

#include <math.h>
#include <stdint.h>

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* C = op(A) op(B), or C += with `accumulate`; in the terms of cblas_sgemm(CblasRowMajor, …) with alpha 1.
 * op(A) is [m, k], op(B) is [k, n]; A is stored [m, k], or [k, m] with transpose_a; B [k, n], or [n, k] with
 * transpose_b. The loop uses three forms: A B', A B and A' B. */
struct seqlstm_prim_gemm {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc; /* elements from one stored row to the next */
    int32_t transpose_a, transpose_b, accumulate;
};

/* The cell at one step, for all sequences that have not ended. `z` [rows, 4 H] in the order i f g o, `c_raw`, `c`
 * [rows, H]. */
struct seqlstm_prim_cell {
    const struct seqlstm_recurrent_desc *desc;
    const struct seqlstm_activation *gate, *candidate, *output; /* of this direction */
    const float *peephole;                                      /* [3 H]: i f o; NULL: none */
    int64_t hidden;                                             /* H */
    const float *c_before;                                      /* [rows, H] c' */
    float *z;          /* forward: in u + v + b, out with the peephole terms added; backward: in, as forward left it */
    float *c_raw;      /* forward: out f * c' + i * g; backward: in */
    float *c;          /* forward: out c^, which is c_raw within cell_clip; not read in backward */
    float *out;        /* forward: out o * output(c^), before the projection */
    const float *dout; /* backward: gradient of `out` */
    const float *dc;   /* backward: gradient of c^ from later steps */
    float *dz;         /* backward: out, of z (zero for f with COUPLED_GATES) */
    float *dc_before;  /* backward: out, of c' through this cell */
};

/* What the author provides. NULL: the plain version. All functions are [queue], allocate nothing, and give the same
 * bits each time. */
struct seqlstm_prim {
    const char *variant; /* the variant of the backend that uses these functions: "blocked" */
    /* May divide the work among the members of the queue (queue->services->parallel_for). */
    void (*gemm)(struct seqlstm_queue *queue, const struct seqlstm_prim_gemm *gemm);
    /* Compute rows [begin, end); the loop divides the rows of a step among the members. */
    void (*cell_forward)(const struct seqlstm_prim_cell *cell, int64_t begin, int64_t end);
    void (*cell_backward)(const struct seqlstm_prim_cell *cell, int64_t begin, int64_t end);
    /* Further refusals, after those of the loop: returns 1, or 0 with the answer filled by seqlstm_answer_no
     * (desc_check.h). A cell that ignores an option must refuse it here. */
    int32_t (*accepts)(const struct seqlstm_recurrent_desc *desc, struct seqlstm_answer *answer);
};

/* ---- activations: ops.h ---------------------------------------------------------------------------- */

static inline float seqlstm_prim_sigmoid(float x)
{
    const float e = expf(-fabsf(x)); /* never overflows */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static inline float seqlstm_prim_activate(const struct seqlstm_activation *a, float x)
{
    switch (a->kind) {
    case SEQLSTM_ACT_TANH:
        return tanhf(x);
    case SEQLSTM_ACT_SIGMOID:
        return seqlstm_prim_sigmoid(x);
    case SEQLSTM_ACT_RELU:
        return fmaxf(0, x);
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? x : a->alpha * x;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > a->alpha ? x : 0;
    case SEQLSTM_ACT_SCALED_TANH:
        return a->alpha * tanhf(a->beta * x);
    case SEQLSTM_ACT_HARD_SIGMOID:
        return fminf(fmaxf(a->alpha * x + a->beta, 0), 1);
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : a->alpha * expm1f(x);
    case SEQLSTM_ACT_SOFTSIGN:
        return x / (1 + fabsf(x));
    case SEQLSTM_ACT_SOFTPLUS:
        return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    case SEQLSTM_ACT_AFFINE:
        return a->alpha * x + a->beta;
    default:
        return x; /* SEQLSTM_ACT_NONE */
    }
}

/* s (1 - s) for s = sigmoid(x), also for large |x|, where 1 - s loses its digits. The slope of tanh at x is 4 times
 * this at 2 x. */
static inline float seqlstm_prim_bell(float x)
{
    const float e = expf(-fabsf(x));
    return e / ((1 + e) * (1 + e));
}

/* The derivative at x. */
static inline float seqlstm_prim_slope(const struct seqlstm_activation *a, float x)
{
    const float y = a->alpha * x + a->beta;
    switch (a->kind) {
    case SEQLSTM_ACT_TANH:
        return 4 * seqlstm_prim_bell(2 * x);
    case SEQLSTM_ACT_SIGMOID:
        return seqlstm_prim_bell(x);
    case SEQLSTM_ACT_RELU:
        return x > 0 ? 1 : 0;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? 1 : a->alpha;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > a->alpha ? 1 : 0;
    case SEQLSTM_ACT_SCALED_TANH:
        return a->alpha * a->beta * 4 * seqlstm_prim_bell(2 * a->beta * x);
    case SEQLSTM_ACT_HARD_SIGMOID:
        return y > 0 && y < 1 ? a->alpha : 0;
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? 1 : a->alpha * expf(x);
    case SEQLSTM_ACT_SOFTSIGN:
        return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
    case SEQLSTM_ACT_SOFTPLUS:
        return seqlstm_prim_sigmoid(x);
    case SEQLSTM_ACT_AFFINE:
        return a->alpha;
    default:
        return 1; /* SEQLSTM_ACT_NONE */
    }
}

/* C(z) of ops/recurrent.h, and the limit of the cell. `limit` 0: off. */
static inline float seqlstm_prim_clip(float z, float limit)
{
    return limit > 0 ? fminf(fmaxf(z, -limit), limit) : z;
}

static inline float seqlstm_prim_clip_slope(float z, float limit)
{
    return limit > 0 && (z > limit || z < -limit) ? 0 : 1;
}

/* An activation after the gate clip, and its derivative. */
static inline float seqlstm_prim_gate(const struct seqlstm_prim_cell *cell, const struct seqlstm_activation *a, float z)
{
    return seqlstm_prim_activate(a, seqlstm_prim_clip(z, cell->desc->gate_clip));
}

static inline float seqlstm_prim_gate_slope(const struct seqlstm_prim_cell *cell, const struct seqlstm_activation *a,
                                            float z)
{
    const float limit = cell->desc->gate_clip;
    return seqlstm_prim_slope(a, seqlstm_prim_clip(z, limit)) * seqlstm_prim_clip_slope(z, limit);
}

/* ---- the plain cell: the equations of ops/recurrent.h, element by element ------------------------------ */

static inline void seqlstm_prim_cell_forward(const struct seqlstm_prim_cell *cell, int64_t begin, int64_t end)
{
    const int64_t n = cell->hidden;
    const float *p = cell->peephole;
    const int32_t coupled = (cell->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0;
    for (int64_t row = begin; row < end; row++) {
        float *z = cell->z + row * 4 * n;
        for (int64_t k = 0; k < n; k++) {
            const float before = cell->c_before[row * n + k];
            if (p) {
                z[k] += p[k] * before;
                z[n + k] += p[n + k] * before;
            }
            const float i = seqlstm_prim_gate(cell, cell->gate, z[k]);
            const float f = coupled ? 1 - i : seqlstm_prim_gate(cell, cell->gate, z[n + k]);
            const float g = seqlstm_prim_gate(cell, cell->candidate, z[2 * n + k]);
            const float raw = f * before + i * g, c = seqlstm_prim_clip(raw, cell->desc->cell_clip);
            if (p)
                z[3 * n + k] += p[2 * n + k] * c;
            cell->c_raw[row * n + k] = raw;
            cell->c[row * n + k] = c;
            cell->out[row * n + k] =
                seqlstm_prim_gate(cell, cell->gate, z[3 * n + k]) * seqlstm_prim_activate(cell->output, c);
        }
    }
}

static inline void seqlstm_prim_cell_backward(const struct seqlstm_prim_cell *cell, int64_t begin, int64_t end)
{
    const int64_t n = cell->hidden;
    const float *p = cell->peephole;
    const int32_t coupled = (cell->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0;
    for (int64_t row = begin; row < end; row++) {
        const float *z = cell->z + row * 4 * n;
        float *dz = cell->dz + row * 4 * n;
        for (int64_t k = 0; k < n; k++) {
            const float before = cell->c_before[row * n + k], raw = cell->c_raw[row * n + k];
            const float c = seqlstm_prim_clip(raw, cell->desc->cell_clip), dout = cell->dout[row * n + k];
            const float i = seqlstm_prim_gate(cell, cell->gate, z[k]);
            const float f = coupled ? 1 - i : seqlstm_prim_gate(cell, cell->gate, z[n + k]);
            const float g = seqlstm_prim_gate(cell, cell->candidate, z[2 * n + k]);
            const float o = seqlstm_prim_gate(cell, cell->gate, z[3 * n + k]);
            dz[3 * n + k] =
                dout * seqlstm_prim_activate(cell->output, c) * seqlstm_prim_gate_slope(cell, cell->gate, z[3 * n + k]);
            float dc = cell->dc[row * n + k] + dout * o * seqlstm_prim_slope(cell->output, c);
            if (p)
                dc += p[2 * n + k] * dz[3 * n + k];
            dc *= seqlstm_prim_clip_slope(raw, cell->desc->cell_clip);
            const float df = dc * before, di = dc * g - (coupled ? df : 0);
            dz[k] = di * seqlstm_prim_gate_slope(cell, cell->gate, z[k]);
            dz[n + k] = coupled ? 0 : df * seqlstm_prim_gate_slope(cell, cell->gate, z[n + k]);
            dz[2 * n + k] = dc * i * seqlstm_prim_gate_slope(cell, cell->candidate, z[2 * n + k]);
            cell->dc_before[row * n + k] = dc * f + (p ? p[k] * dz[k] + p[n + k] * dz[n + k] : 0);
        }
    }
}

/* ---- the plain product --------------------------------------------------------------------------------- */

/* Rows [begin, end) of C. It sums in the order of k, so that the bits do not depend on how the rows are divided. */
static inline void seqlstm_prim_gemm_rows(void *argument, int64_t begin, int64_t end)
{
    const struct seqlstm_prim_gemm *g = (const struct seqlstm_prim_gemm *)argument;
    for (int64_t i = begin; i < end; i++) {
        float *c = g->c + i * g->ldc;
        for (int64_t j = 0; j < g->n && (!g->accumulate || g->transpose_b); j++) {
            double sum = g->accumulate ? (double)c[j] : 0;
            for (int64_t p = 0; p < g->k && g->transpose_b; p++)
                sum += (double)g->a[g->transpose_a ? p * g->lda + i : i * g->lda + p] * (double)g->b[j * g->ldb + p];
            c[j] = (float)sum;
        }
        for (int64_t p = 0; p < g->k && !g->transpose_b; p++) {
            const float a = g->a[g->transpose_a ? p * g->lda + i : i * g->lda + p], *b = g->b + p * g->ldb;
            for (int64_t j = 0; j < g->n; j++)
                c[j] += a * b[j];
        }
    }
}

static inline void seqlstm_prim_gemm_plain(struct seqlstm_queue *queue, const struct seqlstm_prim_gemm *gemm)
{
    queue->services->parallel_for(queue, gemm->m, 4, seqlstm_prim_gemm_rows, (void *)gemm);
}

#ifdef __cplusplus
}
#endif

#endif
