/* SPDX-License-Identifier: Apache-2.0 */
/* The products of a recurrent stack that are not part of its steps (ops/product.h). */
#ifndef CG_RECURRENT_PRODUCTS_H
#define CG_RECURRENT_PRODUCTS_H

#include "cuda-generic/ops/product.h"
#include "cuda-generic/recurrent/recurrent.h"

/* u [rows, gh] = x W_x' of layer and direction n. [queue] */
seqlstm_status cg_recurrent_multiply_input(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                           const float *x, float *u, struct seqlstm_error *err);

/* dx [rows, width] (+)= du W_x of layer and direction n. Where gates are coupled, columns of du are undefined, and
 * skipped. [queue] */
seqlstm_status cg_recurrent_multiply_back(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                          const float *du, float *dx, bool add, struct seqlstm_error *err);

/* dx (+)= dz w, where the rows of w belong to gates, likewise. [queue] */
seqlstm_status cg_recurrent_multiply_gates(const struct cg_call *call, const struct cg_stack *stack,
                                           struct cg_product *product, const float *dz, const float *w, float *dx,
                                           bool add, struct seqlstm_error *err);

/* dW [m, columns] (+)= a' b over all rows; rows of a are `stride` elements apart. `which`: CG_LT_…, whose products have
 * stride m; otherwise -1. [queue] */
struct cg_rows_product {
    int which;
    const float *a;
    int64_t stride, m;
    const float *b;
    int64_t columns;
    float *dw;
    bool add;
    float *parts; /* as in struct cg_gemm */
    float *sums;  /* [m] (+)= the sums of a over the rows; NULL: not wanted */
};
seqlstm_status cg_recurrent_multiply_rows(const struct cg_call *call, const struct cg_rows_product *product,
                                          struct seqlstm_error *err);

#endif
