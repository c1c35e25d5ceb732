/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: C = A B (+ bias) (+ C) with any strides, operands and sums in float32, in a fixed order. Products
 * are float32, or run on tensor cores with operands rounded to a narrower type. */
#ifndef CG_GEMM_H
#define CG_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C[i, j] = sum over k of A[i, k] B[k, j], i < m, j < n, k < depth. Strides count elements. */
struct cg_gemm {
    int64_t m, n, depth;
    const float *a;
    int64_t a_row, a_column;
    const float *b;
    int64_t b_row, b_column;
    float *c;
    int64_t c_row;
    const float *bias; /* [n], added to each row; NULL: no bias */
    int32_t add;       /* add to the contents of C */
    uint32_t compute;  /* SEQLSTM_DTYPE_FLOAT32, TF32, BFLOAT16 or FLOAT16 */
};

/* Launches the product on the stream and returns the code of the launch. Does nothing if m or n is 0. */
int cg_gemm_launch(void *stream, const struct cg_gemm *product);

#ifdef __cplusplus
}
#endif

#endif
