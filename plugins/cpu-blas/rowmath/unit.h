/* SPDX-License-Identifier: Apache-2.0 */
/* Included by every unit of rowmath: the names of the functions of one instruction set's table. */
#ifndef BLAS_ROWMATH_UNIT_H
#define BLAS_ROWMATH_UNIT_H

#include "cpu-blas/isa/unit.h"
#include "cpu-blas/isa/lanes.h"
#include "cpu-blas/rowmath/rowmath.h"

/* For every vector of [0, n), and for a shorter rest: `body` reads x (or x, y and dy) and sets r. */
#define MAP1(body)                                                                                                     \
    do {                                                                                                               \
        int64_t map_i = 0;                                                                                             \
        vf x, r;                                                                                                       \
        for (; map_i + BLAS_LANES <= n; map_i += BLAS_LANES) {                                                         \
            x = v_load(in + map_i);                                                                                    \
            body;                                                                                                      \
            v_store(out + map_i, r);                                                                                   \
        }                                                                                                              \
        if (map_i < n) {                                                                                               \
            x = v_load_tail(in + map_i, (int)(n - map_i), 0.0f);                                                       \
            body;                                                                                                      \
            v_store_tail(out + map_i, (int)(n - map_i), r);                                                            \
        }                                                                                                              \
    } while (0)

#define MAP2(source, body)                                                                                             \
    do {                                                                                                               \
        int64_t map_i = 0;                                                                                             \
        vf x, d, r;                                                                                                    \
        for (; map_i + BLAS_LANES <= n; map_i += BLAS_LANES) {                                                         \
            x = v_load((source) + map_i);                                                                              \
            d = v_load(dy + map_i);                                                                                    \
            body;                                                                                                      \
            v_store(dx + map_i, r);                                                                                    \
        }                                                                                                              \
        if (map_i < n) {                                                                                               \
            x = v_load_tail((source) + map_i, (int)(n - map_i), 0.0f);                                                 \
            d = v_load_tail(dy + map_i, (int)(n - map_i), 0.0f);                                                       \
            body;                                                                                                      \
            v_store_tail(dx + map_i, (int)(n - map_i), r);                                                             \
        }                                                                                                              \
    } while (0)

extern const struct blas_rowmath BLAS_NAME(rowmath);

void BLAS_NAME(act_forward)(const struct seqlstm_activation *act, int64_t n, const float *x, float *y);
void BLAS_NAME(act_backward)(const struct seqlstm_activation *act, int64_t n, const float *x, const float *y,
                             const float *dy, float *dx);
void BLAS_NAME(softmax)(int64_t n, const float *x, float *y, bool log);
void BLAS_NAME(softmax_backward)(int64_t n, const float *y, const float *dy, float *dx, bool log);
void BLAS_NAME(add)(int64_t n, const float *b, float *y);
double BLAS_NAME(loss)(uint32_t kind, float delta, int64_t n, const float *x, const float *target);
void BLAS_NAME(loss_backward)(uint32_t kind, float delta, float scale, int64_t n, const float *x, const float *target,
                              float *dx);
void BLAS_NAME(row_stats)(int64_t n, const float *x, struct blas_row_stats *out);
void BLAS_NAME(softmax_grad)(int64_t n, const float *x, float log_sum, float scale, float shift, float *dx);
void BLAS_NAME(exp_row)(int64_t n, const float *bias, float *x, struct blas_row_stats *out);
void BLAS_NAME(scale_shift)(int64_t n, float factor, float shift, float *e);
void BLAS_NAME(column_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, float *out);
void BLAS_NAME(norm_forward)(int64_t n, const float *x, const float *gain, const float *bias, float epsilon, float *y,
                             float stats[2]);
void BLAS_NAME(norm_backward)(int64_t n, const float *x, const float *gain, const float *dy, const float stats[2],
                              float *dx);
void BLAS_NAME(norm_gain_sums)(int64_t rows, int64_t n, int64_t stride, const float *x, const float *dy,
                               const float *stats, float *dgain);
void BLAS_NAME(mask_row)(uint64_t key, uint32_t step, uint64_t sequence, float rate, int64_t n, const float *x,
                         float *y);
void BLAS_NAME(multiply)(int64_t n, const float *x, const float *m, float *y);
void BLAS_NAME(maximum)(int64_t n, const float *x, float *y);
int64_t BLAS_NAME(find_above)(int64_t n, const float *x, int64_t from, float limit);
void BLAS_NAME(product_dots)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
                             bool add, float *c, int64_t ldc);
void BLAS_NAME(product_rows)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_k,
                             const float *b, int64_t ldb, bool add, float *c, int64_t ldc);
void BLAS_NAME(vector)(uint32_t kind, float alpha, int64_t n, const float *x, float *y);
void BLAS_NAME(update)(const struct blas_update *u, int64_t n, float *param, const float *grad, float *state_1,
                       float *state_2, float *state_3);
double BLAS_NAME(squared_norm)(int64_t n, const float *x);
bool BLAS_NAME(finite)(int64_t n, const float *x);
void BLAS_NAME(cast)(uint32_t from, uint32_t to, int64_t n, const void *x, void *y);
void BLAS_NAME(tanh_scores)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score,
                            float *out);
void BLAS_NAME(tanh_scores_back)(int64_t rows, int64_t n, const float *query, const float *keys, const float *score,
                                 const float *grads, float *dquery, float *dkeys, float *dscore);

#endif
