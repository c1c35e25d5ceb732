/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of all operations except matrix products and recurrent cells, on plain arrays. There is one table for
 * each instruction set. No function allocates, divides work or keeps state; all are [any].
 *
 * Within one table, every function gives the same bits for the same arguments. Reductions run in a fixed order that
 * depends only on n. */
#ifndef BLAS_ROWMATH_H
#define BLAS_ROWMATH_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/ops.h>

#include "cpu-blas/isa/isa.h"

/* One optimizer update, with everything computed beforehand that is constant over the vector (optimizer.c). */
struct blas_update {
    uint32_t kind; /* SEQLSTM_KIND_OPTIMIZER_… */
    uint32_t options;
    float learning_rate;
    float grad_scale;
    float decay; /* learning_rate * weight_decay */
    float momentum;
    float beta_1, rest_1; /* rest = 1 - beta */
    float beta_2, rest_2; /* RMSPROP, ADADELTA: rho */
    float correct_1;      /* ADAM: 1 / (1 - beta_1^t) */
    float correct_2;      /* ADAM: 1 / (1 - beta_2^t) */
    float epsilon;
};

/* Statistics of a row of logits, or of a part of it. */
struct blas_row_stats {
    float largest;
    float exp_sum; /* of exp(x - largest) */
    float sum;     /* of x */
};

struct blas_rowmath {
    int32_t lanes; /* floats of a vector */
    /* Elementwise kinds only. y may be x. */
    void (*act_forward)(const struct seqlstm_activation *act, int64_t n, const float *x, float *y);
    /* dx = dy * act'. x may be NULL for the kinds of blas_act_from_output, which read y. dx may be dy. */
    void (*act_backward)(const struct seqlstm_activation *act, int64_t n, const float *x, const float *y,
                         const float *dy, float *dx);
    /* One row. y may be x; dx may be dy. */
    void (*softmax)(int64_t n, const float *x, float *y, bool log);
    void (*softmax_backward)(int64_t n, const float *y, const float *dy, float *dx, bool log);
    /* y += b */
    void (*add)(int64_t n, const float *b, float *y);

    /* Returns the sum over n elements of an elementwise loss (all but CROSS_ENTROPY); dx = scale * its derivative. */
    double (*loss)(uint32_t kind, float delta, int64_t n, const float *x, const float *target);
    void (*loss_backward)(uint32_t kind, float delta, float scale, int64_t n, const float *x, const float *target,
                          float *dx);
    void (*row_stats)(int64_t n, const float *x, struct blas_row_stats *out);
    /* dx = scale * exp(x - log_sum) - shift; dx may be x. */
    void (*softmax_grad)(int64_t n, const float *x, float log_sum, float scale, float shift, float *dx);
    /* x += bias (unless NULL), then x = exp(x - largest) in place; stats are those of x + bias. */
    void (*exp_row)(int64_t n, const float *bias, float *x, struct blas_row_stats *out);
    /* e = factor * e - shift, in place. */
    void (*scale_shift)(int64_t n, float factor, float shift, float *e);

    /* out[j] += sum over rows of x[row * stride + j], j < n. */
    void (*column_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, float *out);
    /* stats: mean and 1 / sqrt(variance + epsilon). gain and bias may be NULL. */
    void (*norm_forward)(int64_t n, const float *x, const float *gain, const float *bias, float epsilon, float *y,
                         float stats[2]);
    void (*norm_backward)(int64_t n, const float *x, const float *gain, const float *dy, const float stats[2],
                          float *dx);
    /* dgain[j] += sum of dy xhat, over rows with stride `stride`; stats: 2 for each row. */
    void (*norm_gain_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, const float *dy, const float *stats,
                           float *dgain);
    /* y = x * mask for elements 0 .. n - 1 of one row (philox.h). x NULL: y = mask. y may be x. */
    void (*mask_row)(uint64_t key, uint32_t step, uint64_t sequence, float rate, int64_t n, const float *x, float *y);
    /* y = x m. y may be x. */
    void (*multiply)(int64_t n, const float *x, const float *m, float *y);
    /* y = max(x, y); NaN where one of them is. */
    void (*maximum)(int64_t n, const float *x, float *y);
    /* The first index, starting at `from`, whose x is above the limit or NaN; n if there is none. */
    int64_t (*find_above)(int64_t n, const float *x, int64_t from, float limit);

    /* C [m, n] = A B, or C += A B if `add` is set. dots: A [m, k], B stored as [n, k]. rows: B [k, n], element (r,
     * i) of A is at a[r * a_row + i * a_k]. */
    void (*product_dots)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                         bool add, float *c, int64_t ldc);
    void (*product_rows)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,
                         int64_t ldb, bool add, float *c, int64_t ldc);

    void (*vector)(uint32_t kind, float alpha, int64_t n, const float *x, float *y);
    void (*update)(const struct blas_update *update, int64_t n, float *param, const float *grad, float *state_1,
                   float *state_2, float *state_3);
    double (*squared_norm)(int64_t n, const float *x);
    bool (*finite)(int64_t n, const float *x);
    /* Converts between SEQLSTM_DTYPE_FLOAT32, _BFLOAT16, _FLOAT16 and _FLOAT64, to nearest even. */
    void (*cast)(uint32_t from, uint32_t to, int64_t n, const void *x, void *y);

    /* ATTENTION, additive: out[j] = score . tanh(query + keys[j]) for j < rows, with n features. The second function
     * computes from grads [rows]: dquery, and adds to dkeys and dscore. */
    void (*tanh_scores)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score, float *out);
    void (*tanh_scores_back)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score,
                             const float *grads, float *dquery, float *dkeys, float *dscore);
};

/* The table of the instruction set, or of the best one below it that was compiled. */
const struct blas_rowmath *blas_rowmath_get(enum blas_isa isa);

/* Returns true if the derivative of this activation is computed from its output. */
static inline bool blas_act_from_output(uint32_t kind)
{
    return kind == SEQLSTM_ACT_NONE || kind == SEQLSTM_ACT_TANH || kind == SEQLSTM_ACT_SIGMOID ||
           kind == SEQLSTM_ACT_RELU || kind == SEQLSTM_ACT_AFFINE || kind == SEQLSTM_ACT_SOFTMAX ||
           kind == SEQLSTM_ACT_LOG_SOFTMAX;
}

#endif
