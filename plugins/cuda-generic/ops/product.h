/* SPDX-License-Identifier: Apache-2.0 */
/* The products of one matrix W [output, input] with all rows at once: those of dense layers, and those of recurrent
 * layers outside of their steps. cuBLASLt computes them where it is present and has an algorithm, otherwise our own
 * kernels do (gemm/gemm.h); so do these with the variant f16x3. For large ones in bfloat16 or float16, cuBLASLt gets
 * operands in 16 bits. */
#ifndef CG_OPS_PRODUCT_H
#define CG_OPS_PRODUCT_H

#include "cuda-generic/plugin.h"

struct cg_product {
    const struct cg_lt_layer *lt; /* ops/lt_product.h; NULL: our own kernels */
    int64_t rows, input, output;
    int64_t stride; /* elements between rows of dz, if there are more than `output`; 0: `output` */
    float *parts;   /* of dW, as in struct cg_gemm; NULL: its depth is not split */
    /* With operands in 16 bits (lt_product.h), room for them; otherwise NULL. Each is converted once: x and W in the
     * first forward, unless they are ready, dz by cg_product_convert_gradient. */
    uint16_t *x16, *w16, *dz16;
    bool x_ready, w_ready;
};

/* Is it worth converting the operands of a product of so many rows? `compute`: the type of products. */
bool cg_product_is_narrow(uint32_t compute, int64_t rows, int64_t input, int64_t output);

/* y [rows, output] = x W' (+ b, if bias is not NULL). *out_lt: cuBLASLt has computed it, with its relu. [queue] */
seqlstm_status cg_product_forward(const struct cg_call *call, const struct cg_product *product, const float *x,
                                  const float *w, const float *bias, float *y, bool *out_lt, struct seqlstm_error *err);
/* Call it before the next two, with the same dz. [queue] */
seqlstm_status cg_product_convert_gradient(const struct cg_call *call, const struct cg_product *product,
                                           const float *dz, struct seqlstm_error *err);
/* dx [rows, input] (+)= dz W. [queue] */
seqlstm_status cg_product_inputs(const struct cg_call *call, const struct cg_product *product, const float *dz,
                                 const float *w, float *dx, bool add, struct seqlstm_error *err);
/* dW (+)= dz' x, db [output] (+)= the sums of dz over the rows; dW or db may be NULL. [queue] */
seqlstm_status cg_product_weights(const struct cg_call *call, const struct cg_product *product, const float *dz,
                                  const float *x, float *dw, float *db, bool add, struct seqlstm_error *err);

#endif
