/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the kernels: C = A B (+ bias) (+ C), any strides, operands and sums in float32, in a fixed order;
 * the products in float32 or, on tensor cores, of operands rounded to a narrower type. */
#ifndef CG_GEMM_H
#define CG_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C[i, j] = sum over k of A[i, k] B[k, j], i < m, j < n, k < depth. Strides in elements. */
struct cg_gemm {
    int64_t m, n, depth;
    const float *a;
    int64_t a_row, a_column;
    const float *b;
    int64_t b_row, b_column;
    float *c;
    int64_t c_row;
    const float *bias; /* [n], added to each row; NULL: none */
    int32_t add;       /* to what stands in C */
    uint32_t compute;  /* SEQLSTM_DTYPE_FLOAT32, TF32, BFLOAT16 or FLOAT16 */
};

/* Starts the product on the stream; the code of the launch. Nothing for m or n of 0. */
int cg_gemm_launch(void *stream, const struct cg_gemm *product);

#ifdef __cplusplus
}
#endif

#endif
