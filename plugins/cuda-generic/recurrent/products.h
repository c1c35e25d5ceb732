/* SPDX-License-Identifier: Apache-2.0 */
/* The products of a recurrent stack that are not part of its steps (ops/product.h).
 *
 * Where cuBLASLt gets operands in 16 bits (cg_stack.narrow), each is converted once: the input of a layer and W_x by
 * forward, which keeps them for backward, the gradients of the gates before the products that read them. Directions
 * share their input, unless each has a mask of its own. */
#ifndef CG_RECURRENT_PRODUCTS_H
#define CG_RECURRENT_PRODUCTS_H

#include "cuda-generic/ops/product.h"
#include "cuda-generic/recurrent/recurrent.h"

/* u [rows, gh] = x W_x' of layer and direction n. [queue] */
seqlstm_status cg_recurrent_multiply_input(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                           const struct cg_layout *layout, const float *x, float *u,
                                           struct seqlstm_error *err);

/* Converts the gradients of the gates, as far as the products below read them in 16 bits. [queue] */
seqlstm_status cg_recurrent_convert_gradients(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                              const struct cg_layout *layout, const float *du, const float *dv,
                                              struct seqlstm_error *err);

/* dx [rows, width] (+)= du W_x of layer and direction n. Where gates are coupled, columns of du are undefined, and
 * skipped. [queue] */
seqlstm_status cg_recurrent_multiply_back(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                          const struct cg_layout *layout, const float *du, float *dx, bool add,
                                          struct seqlstm_error *err);

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
    int64_t n;    /* layer and direction */
};
seqlstm_status cg_recurrent_multiply_rows(const struct cg_call *call, const struct cg_stack *stack,
                                          const struct cg_layout *layout, const struct cg_rows_product *product,
                                          struct seqlstm_error *err);

#endif
