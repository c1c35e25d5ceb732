/* SPDX-License-Identifier: Apache-2.0 */
/* The products of one matrix W [output, input] with x [rows, input] and dz [rows, output] by cuBLASLt, for one number
 * of rows: those of a dense layer, of a recurrent layer's input, and of its recurrent weights' gradient. Descriptors
 * and algorithms are chosen once per shape, so the same call gives the same bits. Everything is float32 in memory,
 * and cuBLASLt rounds operands as `compute` says; or x, W and dz already have 16 bits. Depths of many rows are split as
 * cuBLASLt recommends, in the call's workspace.
 *
 * The functions that run a product return false if cuBLASLt has no algorithm for it, or if the buffers are aligned less
 * than the chosen algorithm requires. Our own kernels then compute it. */
#ifndef CG_LT_PRODUCT_H
#define CG_LT_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "cuda-generic/cublaslt/library.h"

struct cg_call;
struct cg_lt_layer;

struct cg_lt_shape {
    int64_t rows, input, output;
    uint32_t compute;              /* SEQLSTM_DTYPE_FLOAT32, TF32, BFLOAT16 or FLOAT16 */
    bool narrow;                   /* x, W and dz are in memory as `compute` says: BFLOAT16 or FLOAT16 */
    bool bias, relu;               /* y = relu(x W' + b) */
    bool forward, inputs, weights; /* which products are wanted */
    bool sums;                     /* with the weights' gradient those of dz over the rows */
};

/* Errors: UNSUPPORTED if cuBLASLt does not start or has no algorithm for the forward product; NO_MEMORY, DEVICE.
 * [queue] */
seqlstm_status cg_lt_layer_create(const struct seqlstm_op *op, const struct cg_lt_shape *shape,
                                  struct cg_lt_layer **out_layer, struct seqlstm_error *err);
/* Does it read operands in 16 bits? Not without a layer. */
bool cg_lt_layer_is_narrow(const struct cg_lt_layer *layer);
void cg_lt_layer_destroy(const struct seqlstm_host *host, struct cg_lt_layer *layer); /* may be NULL */

/* y = x W' (+ b), followed by the relu if the shape says so. [queue] */
seqlstm_status cg_lt_forward(const struct cg_lt_layer *layer, const struct cg_call *call, const void *x, const void *w,
                             const float *bias, float *y, bool *out_done, struct seqlstm_error *err);
/* dx (+)= dz W. [queue] */
seqlstm_status cg_lt_inputs(const struct cg_lt_layer *layer, const struct cg_call *call, const void *dz, const void *w,
                            float *dx, bool add, bool *out_done, struct seqlstm_error *err);
/* dW (+)= dz' x. If db is not NULL, the same pass writes the sums of dz over the rows to it (not with `add`).
 * [queue] */
seqlstm_status cg_lt_weights(const struct cg_lt_layer *layer, const struct cg_call *call, const void *dz, const void *x,
                             float *dw, float *db, bool add, bool *out_done, struct seqlstm_error *err);

#endif
