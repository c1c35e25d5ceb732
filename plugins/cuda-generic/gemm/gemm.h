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
    const float *bias;   /* [n], added to each row; NULL: no bias */
    int32_t add;         /* add to the contents of C */
    uint32_t compute;    /* SEQLSTM_DTYPE_FLOAT32, TF32, BFLOAT16 or FLOAT16 */
    float *parts;        /* room of cg_gemm_count_room floats, to split the depth; NULL: it is not split */
    int64_t part_depth;  /* set by cg_gemm_launch: depth of one part */
    int64_t shared_most; /* f16x3: the most shared memory of one block */
    int32_t f16x3;       /* FLOAT32: by three float16 products (split_tile.h) */
    int32_t reserved0;
};

/* A product with few tiles and a large depth, such as a gradient of weights over all rows, is split along the depth, so
 * that its blocks fill the device. Each part has a C of its own; then the parts are added in order. The number of parts
 * depends on the sizes alone, and does not fall when the depth grows. */
#ifndef CG_PART_DEPTH
#define CG_PART_DEPTH 512 /* of a part, at least; tests set it so that small products have parts */
#endif
enum { CG_PARTS_TILE = 64, CG_PARTS_BLOCKS = 264, CG_PARTS_MOST = 64 }; /* two blocks for each multiprocessor */

static inline int64_t cg_gemm_count_parts(int64_t m, int64_t n, int64_t depth)
{
    const int64_t blocks = CG_PARTS_BLOCKS, most = CG_PARTS_MOST, fit = depth / CG_PART_DEPTH;
    const int64_t tiles = (m + CG_PARTS_TILE - 1) / CG_PARTS_TILE * ((n + CG_PARTS_TILE - 1) / CG_PARTS_TILE);
    int64_t parts = tiles > 0 ? blocks / tiles : 1;
    parts = parts < fit ? parts : fit;
    parts = parts < most ? parts : most;
    return parts > 1 ? parts : 1;
}

/* Floats that `parts` holds for depths up to `depth`. */
static inline int64_t cg_gemm_count_room(int64_t m, int64_t n, int64_t depth)
{
    const int64_t parts = cg_gemm_count_parts(m, n, depth);
    return parts > 1 ? parts * m * n : 0;
}

/* Launches the product on the stream and returns the code of the launch. Does nothing if m or n is 0. */
int cg_gemm_launch(void *stream, const struct cg_gemm *product);
/* split.cu: with f16x3, for cg_gemm_launch, which has set part_depth. With several parts it leaves them in `parts`. */
int cg_split_launch(void *stream, const struct cg_gemm *product, int64_t parts);

#ifdef __cplusplus
}
#endif

#endif
