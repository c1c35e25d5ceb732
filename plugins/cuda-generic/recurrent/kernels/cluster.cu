/* SPDX-License-Identifier: Apache-2.0 */
/* All steps in one launch of clusters of blocks. See cluster.h. */
#include "cuda-generic/recurrent/kernels/cluster.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/recurrent/kernels/slice.h"

static const int WARPS = CG_GRID_WARPS, THREADS = 32 * WARPS, ROWS = 16;

/* The place of a block in its cluster, and its shared memory. */
struct place {
    int64_t unit0, b0;
    int units, rows, pitch; /* rows: sequences of the cluster */
    uint32_t *weights, *exchange, *partial;
};

static __device__ struct place find_place(const struct cg_layer &y, const struct cg_grid &g, uint32_t *shared)
{
    struct place p;
    const int64_t left = y.axis.sequences - (int64_t)(blockIdx.x / (unsigned)g.blocks) * ROWS;
    p.unit0 = (int64_t)(blockIdx.x % (unsigned)g.blocks) * g.units;
    p.b0 = y.axis.sequences - left;
    p.units = (int)(p.unit0 + g.units < y.hidden ? g.units : y.hidden - p.unit0);
    p.units = p.units < 0 ? 0 : p.units; /* the number of blocks is a power of two */
    p.rows = (int)(left < ROWS ? left : ROWS);
    p.pitch = g.words + 4;
    p.weights = shared;
    p.exchange = shared + g.columns * p.pitch;
    p.partial = p.exchange + 2 * ROWS * p.pitch;
    for (int e = (int)threadIdx.x; e < 2 * ROWS * p.pitch; e += THREADS)
        p.exchange[e] = 0;
    return p;
}

/* Writes into row `row` of half `half` of every block's exchange. */
template <typename NUMBER>
static __device__ void publish(const struct place &p, const struct cg_grid &g, int half, int row, int64_t d, float x)
{
    for (int rank = 0; rank < g.blocks; rank++)
        NUMBER::put(gpu_map_shared(p.exchange, rank) + (half * ROWS + row) * p.pitch, d, x);
}

template <typename NUMBER>
static __global__ void __launch_bounds__(THREADS, 1) forward(const struct cg_layer *layer, struct cg_grid g)
{
    GPU_SHARED(uint32_t, shared);
    const struct cg_layer y = layer[blockIdx.y];
    const struct place p = find_place(y, g, shared);
    const int64_t n = y.hidden, steps = y.axis.lengths[p.b0]; /* of the longest of these sequences */
    for (int e = (int)threadIdx.x; e < g.columns * g.words; e += THREADS) {
        const int column = e / g.words, word = e % g.words;
        p.weights[column * p.pitch + word] = cg_slice_word<NUMBER>(
            word, n, [&](int64_t d) { return cg_get_row_weight(y, p.unit0, g.units, column, d); });
    }
    gpu_barrier_cluster();
    for (int e = (int)threadIdx.x; e < p.rows * p.units; e += THREADS) {
        const int64_t b = p.b0 + e / p.units, k = p.unit0 + e % p.units;
        for (int half = 0; half < 2; half++)
            publish<NUMBER>(p, g, half, e / p.units, k, cg_or_zero(y.h0, b * n + k) * cg_or_one(y.mask_h, b * n + k));
    }
    gpu_barrier_cluster();
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = y.reverse ? steps - 1 - s : s, m = y.axis.batch_sizes[t] - p.b0;
        const int half = (int)(s % 2);
        cg_slice_product<NUMBER, WARPS>(g, p.exchange + half * ROWS * p.pitch, p.weights, p.partial);
        for (int e = (int)threadIdx.x; e < p.rows * p.units; e += THREADS) {
            const int row = e / p.units, u = e % p.units;
            const int64_t b = p.b0 + row, k = p.unit0 + u;
            if (row >= m)
                continue;
            float v[4] = {0, 0, 0, 0};
            for (int gate = 0; gate < (int)y.gates; gate++)
                v[gate] = cg_slice_sum<WARPS>(g, p.partial, row, gate * g.units + u);
            const int64_t at = cg_row(&y, t, b), before = cg_row_before(&y, t, b);
            const float h = cg_keep(&y, t, b, at, before, k, cg_cell_forward(&y, t, b, at, before, k, v));
            publish<NUMBER>(p, g, 1 - half, row, k, h);
        }
        gpu_barrier_cluster();
    }
}

template <typename NUMBER>
static __global__ void __launch_bounds__(THREADS, 1) backward(const struct cg_layer *layer, struct cg_grid g)
{
    GPU_SHARED(uint32_t, shared);
    const struct cg_layer y = layer[blockIdx.y];
    const struct place p = find_place(y, g, shared);
    const int64_t n = y.hidden, steps = y.axis.lengths[p.b0];
    for (int e = (int)threadIdx.x; e < g.columns * g.words; e += THREADS) {
        const int word = e / g.columns, column = e % g.columns;
        p.weights[column * p.pitch + word] = cg_slice_word<NUMBER>(
            word, y.gh, [&](int64_t j) { return cg_get_column_weight(y, p.unit0, p.units, column, j); });
    }
    gpu_barrier_cluster();
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = y.reverse ? s : steps - 1 - s, m = y.axis.batch_sizes[t] - p.b0;
        const int half = (int)(s % 2);
        for (int e = (int)threadIdx.x; e < p.rows * p.units; e += THREADS) {
            const int row = e / p.units;
            const int64_t b = p.b0 + row, k = p.unit0 + e % p.units;
            if (row >= m)
                continue;
            const int64_t at = cg_row(&y, t, b);
            float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
            const float dh_new = cg_dh_new(&y, t, at, b, k, y.back[b * n + k]);
            cg_cell_backward(&y, t, b, at, cg_row_before(&y, t, b), k, dh_new, u, v);
            for (int gate = 0; gate < (int)y.gates; gate++) {
                cg_set_pre(&y, at, gate * n + k, u[gate], v[gate]);
                publish<NUMBER>(p, g, half, row, gate * n + k, v[gate]);
            }
        }
        gpu_barrier_cluster();
        cg_slice_product<NUMBER, WARPS>(g, p.exchange + half * ROWS * p.pitch, p.weights, p.partial);
        for (int e = (int)threadIdx.x; e < p.rows * p.units; e += THREADS)
            if (e / p.units < m)
                y.back[(p.b0 + e / p.units) * n + p.unit0 + e % p.units] =
                    cg_slice_sum<WARPS>(g, p.partial, e / p.units, e % p.units);
        __syncthreads(); /* now all threads have read the partial sums, and `back` is complete */
    }
}

template <typename NUMBER>
static int launch(void *stream, bool back, const struct cg_layer *layer, int64_t directions, const struct cg_grid *g,
                  int64_t sequences)
{
    const struct cg_grid grid = *g;
    const dim3 blocks((unsigned)((sequences + ROWS - 1) / ROWS) * (unsigned)grid.blocks, (unsigned)directions);
    const size_t shared = (size_t)grid.shared_bytes;
    return back ? GPU_LAUNCH_CLUSTER(stream, blocks, grid.blocks, THREADS, shared, backward<NUMBER>, layer, grid)
                : GPU_LAUNCH_CLUSTER(stream, blocks, grid.blocks, THREADS, shared, forward<NUMBER>, layer, grid);
}

static int choose(void *stream, bool back, const struct cg_layer *layer, int64_t directions, const struct cg_grid *grid,
                  int64_t sequences)
{
    switch (grid->compute) {
    case SEQLSTM_DTYPE_TF32:
        return launch<cg_wide<cg_tf32>>(stream, back, layer, directions, grid, sequences);
    case SEQLSTM_DTYPE_BFLOAT16:
        return launch<cg_wide<cg_bf16>>(stream, back, layer, directions, grid, sequences);
    case SEQLSTM_DTYPE_FLOAT16:
        return launch<cg_wide<cg_f16>>(stream, back, layer, directions, grid, sequences);
    default:
        return launch<cg_f32>(stream, back, layer, directions, grid, sequences);
    }
}

extern "C" int cg_cluster_forward(void *stream, const struct cg_layer *layer, int64_t directions,
                                  const struct cg_grid *grid, int64_t sequences)
{
    return choose(stream, false, layer, directions, grid, sequences);
}

extern "C" int cg_cluster_backward(void *stream, const struct cg_layer *layer, int64_t directions,
                                   const struct cg_grid *grid, int64_t sequences)
{
    return choose(stream, true, layer, directions, grid, sequences);
}
