/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors, losses and choices: the functions that host code calls. Each returns the code of its launches. */
#ifndef CG_FLAT_H
#define CG_FLAT_H

#include <stdint.h>

#include <seqlstm/ops.h>

#include "cuda-generic/device/axis.h"
#include "cuda-generic/device/live.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_PARTIALS = 512 }; /* the largest number of sums that a reduction leaves for its second step */

int cg_finite_check(void *stream, int64_t elems, const float *x, int32_t *flag);
/* `partials` has room for CG_PARTIALS float64. */
int cg_squared_norm(void *stream, int64_t elems, const float *x, double *partials, unsigned *counter, double *sum);

int cg_vector(void *stream, uint32_t kind, int64_t elems, float alpha, const float *x, float *y);

struct cg_optimizer {
    uint32_t kind, options;
    float beta_1, beta_2, rho, momentum, epsilon, weight_decay, clip_norm;
};

/* What one update does, computed on the device: a capture of the step computes it anew at each launch. */
struct cg_update {
    float learning_rate, grad_scale;
    float correction_1, correction_2; /* 1 - beta^t */
    int32_t skip;                     /* leave everything as it is */
    int32_t reserved0;
};
/* A state is NULL where the rule has none. */
int cg_optimize(void *stream, const struct cg_optimizer *rule, const struct cg_live *live, int64_t elems, float *param,
                const float *grad, float *const states[3], const double *sums, const double *squares);

struct cg_loss {
    uint32_t kind;
    int32_t reserved0;
    int64_t classes;
    float label_smoothing, delta;
    const int32_t *target_class; /* [rows], CROSS_ENTROPY */
    const float *target;         /* [rows, classes], other losses */
    const float *weight;         /* [rows]; NULL: 1 */
    const float *class_weight;   /* [classes]; NULL: 1 */
};
enum { CG_LOSS_BLOCKS = 1024 };
/* losses [rows]: the loss of each row; NULL: not wanted. totals [rows]: what cg_loss_backward needs; NULL: not wanted.
 * partials: room for 2 CG_LOSS_BLOCKS float64. counter: 0, before and after. sums[0..1] += the sums of weighted losses
 * and of weights over the rows, in a fixed order. */
int cg_loss_forward(void *stream, const struct cg_loss *loss, int64_t rows, const float *x, float *losses,
                    float *totals, double *partials, unsigned *counter, double *sums);
/* The same, and then x = scale * w * d loss / dx with the scale of the step block: a value is read from memory once. */
int cg_loss_both(void *stream, const struct cg_loss *loss, int64_t rows, const struct cg_live *live, float *x,
                 float *losses, double *partials, unsigned *counter, double *sums);
/* dx = scale * w * d loss / dx with the scale of the step block and the totals of cg_loss_forward; dx may be x. */
int cg_loss_backward(void *stream, const struct cg_loss *loss, int64_t rows, const struct cg_live *live,
                     const float *totals, const float *x, float *dx);

struct cg_top_k {
    uint32_t kind, limit; /* limit: the number of elements that may be drawn */
    int64_t features, k;
    struct cg_live live;
    uint64_t stream;
    float temperature, top_p;
    int32_t on_sequences;
    int32_t reserved0;
};
int cg_top_k_forward(void *stream, const struct cg_top_k *rule, const struct cg_axis *axis, int64_t rows,
                     const float *x, int32_t *index, float *value);

#ifdef __cplusplus
}
#endif

#endif
