/* SPDX-License-Identifier: Apache-2.0 */
/* All steps in one launch of blocks that wait for each other. See grid.h. */
#include "cuda-generic/recurrent/kernels/grid.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/recurrent/kernels/slice.h"

static const int WARPS = CG_GRID_WARPS, THREADS = 32 * WARPS;

/* Waits until all blocks have published step `epoch`. All threads call. */
static __device__ void wait_for_all(unsigned *flags, unsigned epoch)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        gpu_store_release(&flags[blockIdx.x], epoch);
    }
    for (unsigned block = threadIdx.x; block < gridDim.x; block += blockDim.x)
        gpu_wait_for(&flags[block], epoch);
    __syncthreads();
}

template <typename NUMBER>
static __global__ void __launch_bounds__(THREADS, 1)
    forward(const struct cg_layer *layer, struct cg_grid g, uint32_t *exchange, int64_t sequences)
{
    GPU_SHARED(uint32_t, weights);
    const struct cg_layer y = *layer;
    const int64_t n = y.hidden, unit0 = (int64_t)blockIdx.x * g.units, half = sequences * g.words;
    const int units = (int)(unit0 + g.units < n ? g.units : n - unit0), gates = (int)y.gates;
    uint32_t *rows = weights + g.columns * (g.words + 4);
    unsigned *flags = exchange + 2 * half, epoch = 0;
    for (int e = (int)threadIdx.x; e < g.columns * g.words; e += THREADS) {
        const int column = e / g.words, word = e % g.words;
        weights[column * (g.words + 4) + word] =
            cg_slice_word<NUMBER>(word, n, [&](int64_t d) { return cg_get_row_weight(y, unit0, g.units, column, d); });
    }
    for (int64_t e = threadIdx.x; e < sequences * units; e += THREADS) {
        const int64_t b = e / units, k = unit0 + e % units;
        const float h = cg_or_zero(y.h0, b * n + k) * cg_or_one(y.mask_h, b * n + k);
        NUMBER::put(exchange + b * g.words, k, h);
        NUMBER::put(exchange + half + b * g.words, k, h);
    }
    wait_for_all(flags, ++epoch);
    for (int64_t s = 0; s < y.axis.steps; s++) {
        const int64_t t = y.reverse ? y.axis.steps - 1 - s : s, m = y.axis.batch_sizes[t];
        const uint32_t *from = exchange + s % 2 * half;
        uint32_t *to = exchange + (1 - s % 2) * half;
        for (int64_t b0 = 0; b0 < m; b0 += 16 * g.tiles) {
            cg_slice_multiply<NUMBER, WARPS>(g, from, b0, m, weights, rows);
            for (int e = (int)threadIdx.x; e < 16 * g.tiles * units; e += THREADS) {
                const int64_t b = b0 + e / units, k = unit0 + e % units;
                if (b >= m)
                    continue;
                float v[4] = {0, 0, 0, 0};
                for (int gate = 0; gate < gates; gate++)
                    v[gate] = cg_slice_sum<WARPS>(g, rows, e / units, gate * g.units + e % units);
                const int64_t row = cg_row(&y, t, b), before = cg_row_before(&y, t, b);
                const float h = cg_cell_forward(&y, t, b, row, before, k, v);
                NUMBER::put(to + b * g.words, k, cg_keep(&y, t, b, row, before, k, h));
            }
            __syncthreads(); /* now all threads have read the partial sums */
        }
        if (s + 1 < y.axis.steps)
            wait_for_all(flags, ++epoch);
    }
}

template <typename NUMBER>
static __global__ void __launch_bounds__(THREADS, 1)
    backward(const struct cg_layer *layer, struct cg_grid g, uint32_t *exchange, int64_t sequences)
{
    GPU_SHARED(uint32_t, weights);
    const struct cg_layer y = *layer;
    const int64_t n = y.hidden, unit0 = (int64_t)blockIdx.x * g.units, half = sequences * g.words;
    const int units = (int)(unit0 + g.units < n ? g.units : n - unit0), gates = (int)y.gates;
    uint32_t *rows = weights + g.columns * (g.words + 4);
    unsigned *flags = exchange + 2 * half, epoch = 0;
    for (int e = (int)threadIdx.x; e < g.columns * g.words; e += THREADS) {
        const int word = e / g.columns, column = e % g.columns;
        weights[column * (g.words + 4) + word] = cg_slice_word<NUMBER>(
            word, y.gh, [&](int64_t j) { return cg_get_column_weight(y, unit0, units, column, j); });
    }
    for (int64_t s = 0; s < y.axis.steps; s++) {
        const int64_t t = y.reverse ? s : y.axis.steps - 1 - s, m = y.axis.batch_sizes[t];
        uint32_t *published = exchange + s % 2 * half;
        for (int64_t e = threadIdx.x; e < m * units; e += THREADS) {
            const int64_t b = e / units, k = unit0 + e % units, row = cg_row(&y, t, b);
            float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
            const float dh_new = cg_dh_new(&y, t, row, b, k, y.back[b * n + k]);
            cg_cell_backward(&y, t, b, row, cg_row_before(&y, t, b), k, dh_new, u, v);
            for (int gate = 0; gate < gates; gate++) {
                cg_set_pre(&y, row, gate * n + k, u[gate], v[gate]);
                NUMBER::put(published + b * g.words, gate * n + k, v[gate]);
            }
        }
        wait_for_all(flags, ++epoch);
        for (int64_t b0 = 0; b0 < m; b0 += 16 * g.tiles) {
            cg_slice_multiply<NUMBER, WARPS>(g, published, b0, m, weights, rows);
            for (int e = (int)threadIdx.x; e < 16 * g.tiles * units; e += THREADS)
                if (b0 + e / units < m)
                    y.back[(b0 + e / units) * n + unit0 + e % units] =
                        cg_slice_sum<WARPS>(g, rows, e / units, e % units);
            __syncthreads(); /* now all threads have read the partial sums, and `back` is complete */
        }
    }
}

template <typename NUMBER>
static int launch(void *stream, bool back, const struct cg_layer *layer, const struct cg_grid *g, uint32_t *exchange,
                  int64_t sequences)
{
    const struct cg_grid grid = *g;
    return back ? GPU_LAUNCH_GRID(stream, (unsigned)grid.blocks, THREADS, (size_t)grid.shared_bytes, backward<NUMBER>,
                                  layer, grid, exchange, sequences)
                : GPU_LAUNCH_GRID(stream, (unsigned)grid.blocks, THREADS, (size_t)grid.shared_bytes, forward<NUMBER>,
                                  layer, grid, exchange, sequences);
}

static int choose(void *stream, bool back, const struct cg_layer *layer, const struct cg_grid *grid, uint32_t *exchange,
                  int64_t sequences)
{
    switch (grid->compute) {
    case SEQLSTM_DTYPE_TF32:
        return launch<cg_wide<cg_tf32>>(stream, back, layer, grid, exchange, sequences);
    case SEQLSTM_DTYPE_BFLOAT16:
        return launch<cg_wide<cg_bf16>>(stream, back, layer, grid, exchange, sequences);
    case SEQLSTM_DTYPE_FLOAT16:
        return launch<cg_wide<cg_f16>>(stream, back, layer, grid, exchange, sequences);
    default:
        return launch<cg_f32>(stream, back, layer, grid, exchange, sequences);
    }
}

extern "C" int cg_grid_forward(void *stream, const struct cg_layer *layer, const struct cg_grid *grid,
                               uint32_t *exchange, int64_t sequences)
{
    return choose(stream, false, layer, grid, exchange, sequences);
}

extern "C" int cg_grid_backward(void *stream, const struct cg_layer *layer, const struct cg_grid *grid,
                                uint32_t *exchange, int64_t sequences)
{
    return choose(stream, true, layer, grid, exchange, sequences);
}
