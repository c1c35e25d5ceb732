/* SPDX-License-Identifier: Apache-2.0 */
/* The products of one time step. Kernels read the operands' addresses from the layer in device memory. See step.h. */
#include "cuda-generic/gemm/mma_tile.h"
#include "cuda-generic/recurrent/kernels/step.h"

static __device__ struct cg_gemm make(const float *a, int64_t a_row, const float *b, int64_t b_row, int64_t b_column,
                                      float *c, int64_t c_row, int64_t m, int64_t n, int64_t depth)
{
    struct cg_gemm g = {m, n, depth, a, a_row, 1, b, b_row, b_column, c, c_row, nullptr, 0, 0, nullptr, 0, 0, 0, 0};
    return g;
}

static __device__ struct cg_gemm find(const struct cg_layer *y, int which, int64_t t, int parity, int64_t m, int64_t n)
{
    const int64_t h = y->hidden, out = y->out, gh = y->gh, row = y->axis.row_offsets[t];
    switch (which) {
    case CG_PRODUCT_H:
        return make(y->hm[parity], out, y->w_h, 1, out, y->normed ? y->v + row * gh : y->product, gh, m, n, out);
    case CG_PRODUCT_RESET:
        return make(y->reset, h, y->w_h + 2 * h * h, 1, h, y->product + 2 * h, gh, m, n, h);
    case CG_PRODUCT_OUTPUT:
        return make(y->raw, h, y->w_p, 1, h, y->projected, out, m, n, h);
    case CG_PRODUCT_BACK:
        return make(y->dv + row * gh, gh, y->w_h, out, 1, y->back, out, m, n, y->late ? 2 * h : gh);
    case CG_PRODUCT_BACK_RESET:
        return make(y->pre_u + row * gh + 2 * h, gh, y->w_h + 2 * h * h, h, 1, y->dreset, h, m, n, h);
    default: /* CG_PRODUCT_BACK_OUTPUT */
        return make(y->dh_new + row * out, out, y->w_p, h, 1, y->dout, h, m, n, out);
    }
}

template <typename TILE>
static __global__ void __launch_bounds__(TILE::THREADS)
    product(const struct cg_layer *y, int which, int64_t t, int parity, int64_t m, int64_t n)
{
    struct cg_gemm g = find(y, which, t, parity, m, n);
    if (which == CG_PRODUCT_BACK && y->late)
        g.add = 1;
    if (which == CG_PRODUCT_BACK && cg_is_coupled(y)) { /* skips the rows of f, whose contents are undefined */
        const int64_t h = y->hidden;
        g.depth = h;
        TILE::run(g, blockIdx.y, blockIdx.x);
        g.a += 2 * h;
        g.b += 2 * h * g.b_row;
        g.depth = 2 * h;
        g.add = 1;
    }
    TILE::run(g, blockIdx.y, blockIdx.x);
}

template <typename TILE>
static int launch(void *stream, const struct cg_layer *layer, int which, int64_t t, int parity, int64_t m, int64_t n)
{
    const dim3 grid((unsigned)((n + TILE::N - 1) / TILE::N), (unsigned)((m + TILE::M - 1) / TILE::M));
    return GPU_LAUNCH(stream, grid, TILE::THREADS, TILE::SHARED_BYTES, product<TILE>, layer, which, t, parity, m, n);
}

template <typename SMALL, typename LARGE>
static int launch_fitting(void *stream, const struct cg_layer *layer, int which, int64_t t, int parity, int64_t m,
                          int64_t n)
{
    return m * n < 64 * 1024 ? launch<SMALL>(stream, layer, which, t, parity, m, n)
                             : launch<LARGE>(stream, layer, which, t, parity, m, n);
}

extern "C" int cg_step_product(void *stream, const struct cg_layer *layer, enum cg_step_product which, uint32_t compute,
                               int64_t t, int32_t parity, int64_t m, int64_t n)
{
    switch (compute) {
    case SEQLSTM_DTYPE_TF32:
        return launch_fitting<cg_mma_small<cg_tf32>, cg_mma_large<cg_tf32>>(stream, layer, which, t, parity, m, n);
    case SEQLSTM_DTYPE_BFLOAT16:
        return launch_fitting<cg_mma_small<cg_bf16>, cg_mma_large<cg_bf16>>(stream, layer, which, t, parity, m, n);
    case SEQLSTM_DTYPE_FLOAT16:
        return launch_fitting<cg_mma_small<cg_f16>, cg_mma_large<cg_f16>>(stream, layer, which, t, parity, m, n);
    default:
        return launch_fitting<cg_tile_small, cg_tile_large>(stream, layer, which, t, parity, m, n);
    }
}
