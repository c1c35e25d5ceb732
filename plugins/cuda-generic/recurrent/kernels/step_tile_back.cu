/* SPDX-License-Identifier: Apache-2.0 */
/* One backward step of many sequences in one kernel. See step_tile.h. */
#include "cuda-generic/recurrent/kernels/step_tile.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/gemm/copy_tile.h"
#include "cuda-generic/gemm/tile_map.h"

/* Packs the columns of W_h with their gates interleaved, and clears the gradients in both halves. */
template <typename NUMBER> static __global__ void begin(const struct cg_layer *layer)
{
    const struct cg_layer y = *layer;
    const int64_t n = y.hidden, places = cg_tile_places(y.gates, n), words = cg_tile_words(places, NUMBER::PER_WORD);
    CG_FOR_EACH(e, n * words)
    { /* neighbouring threads read neighbouring elements */
        const int64_t unit = e % n, word = e / n;
        y.tile_weights[unit * words + word] = cg_slice_word<NUMBER>((int)word, places, [&](int64_t place) {
            const int64_t of = cg_tile_unit(y.gates, place), row = cg_tile_gate(y.gates, place) * n + of;
            return of < n && !cg_is_unused(&y, row) ? y.w_h[row * n + unit] : 0.0f;
        });
    }
    CG_FOR_EACH(e, 2 * y.axis.sequences * words)
    y.tile_exchange[e] = 0;
}

/* Fetches what the cells of a tile will read, while the product is computed. */
static __device__ __forceinline__ void prefetch(const float *from, int64_t elems)
{
    if (from == nullptr || elems <= 0)
        return;
    for (int64_t e = 0; e < elems; e += 32)
        gpu_prefetch(from + e);
    gpu_prefetch(from + elems - 1);
}

template <typename NUMBER, typename SHAPE>
static __global__ void __launch_bounds__(SHAPE::THREADS, 512 / SHAPE::THREADS)
    backward(const struct cg_layer *layer, int64_t turn)
{
    GPU_SHARED(uint32_t, shared);
    const struct cg_layer *y = layer + blockIdx.z;
    const int64_t last = y->axis.steps - 1, t = cg_step_at(y, turn <= last ? last - turn : 0);
    const int64_t m = turn <= last ? y->axis.batch_sizes[t] : 0;
    const int64_t before = turn > 0 ? y->axis.batch_sizes[cg_step_at(y, last - (turn - 1))] : 0;
    const int64_t rows = m > before ? m : before;
    const int64_t n = y->hidden, words = cg_tile_words(cg_tile_places(y->gates, n), NUMBER::PER_WORD);
    const int64_t b0 = (int64_t)blockIdx.y * SHAPE::M, unit0 = (int64_t)blockIdx.x * SHAPE::N;
    const int64_t units = n - unit0 < SHAPE::N ? n - unit0 : (int64_t)SHAPE::N;
    if (b0 >= rows)
        return; /* so does the whole block */
    const uint32_t *from = y->tile_exchange + turn % 2 * y->axis.sequences * words;
    uint32_t *to = y->tile_exchange + (1 - turn % 2) * y->axis.sequences * words;
    for (int64_t r = threadIdx.x; r < SHAPE::M && b0 + r < m; r += SHAPE::THREADS) {
        const int64_t row = cg_row(y, t, b0 + r), before = cg_row_before(y, t, b0 + r);
        for (int64_t gate = 0; gate < y->gates; gate++)
            prefetch(y->z + row * y->gh + gate * n + unit0, units);
        if (y->cell == SEQLSTM_CELL_LSTM) {
            prefetch(y->c_raw + row * n + unit0, units);
            prefetch(before >= 0 ? y->c + before * n + unit0 : nullptr, units);
        }
        prefetch(y->dy ? y->dy + row * y->dy_stride + y->dy_offset + unit0 : nullptr, units);
    }
    cg_copy_tile<NUMBER, SHAPE> tile;
    tile.begin([](int, int) { return 0.0f; });
    tile.add({from + b0 * words, y->tile_weights + unit0 * words, rows - b0, units, turn > 0 ? words : 0}, shared);
    float *sums = reinterpret_cast<float *>(shared);
    tile.keep(sums);
    for (int e = (int)threadIdx.x; e < SHAPE::M * SHAPE::N; e += SHAPE::THREADS) {
        const int64_t b = b0 + e / SHAPE::N, k = unit0 + e % SHAPE::N;
        if (b >= rows || k >= n)
            continue;
        const float back = tile.get(sums, e / SHAPE::N, e % SHAPE::N);
        if (b >= m) { /* the sequence has no earlier step */
            y->back[b * n + k] = back;
            continue;
        }
        const int64_t row = cg_row(y, t, b);
        float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
        cg_cell_backward(y, t, b, row, cg_row_before(y, t, b), k, cg_dh_new(y, t, row, b, k, back), u, v);
        CG_UNROLL
        for (int gate = 0; gate < 4; gate++)
            if (gate < (int)y->gates) {
                cg_set_pre(y, row, gate * n + k, u[gate], v[gate]);
                NUMBER::put(to + b * words, cg_tile_place(y->gates, gate, k), v[gate]);
            }
    }
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

namespace
{

/* As in forward, but the depth is longer and there are fewer columns. */
typedef cg_copy_shape<4, 2, 1, 2, 4> large;
typedef cg_copy_shape<1, 1, 4, 2, 2> small;

struct call {
    void *stream;
    const struct cg_layer *layer;
    int64_t directions, turn, most, hidden;

    template <typename NUMBER, typename SHAPE> static int start(call c)
    {
        const dim3 grid((unsigned)((c.hidden + SHAPE::N - 1) / SHAPE::N),
                        (unsigned)((c.most + SHAPE::M - 1) / SHAPE::M), (unsigned)c.directions);
        return GPU_LAUNCH_LARGE(c.stream, grid, (unsigned)SHAPE::THREADS, (size_t)SHAPE::SHARED_BYTES,
                                (backward<NUMBER, SHAPE>), c.layer, c.turn);
    }
    template <typename NUMBER> static int run(call c)
    {
        return c.most > 64 && c.hidden >= large::N ? start<NUMBER, large>(c) : start<NUMBER, small>(c);
    }
};

struct beginning {
    void *stream;
    const struct cg_layer *layer;
    int64_t sequences, hidden, gates;

    template <typename NUMBER> static int run(beginning b)
    {
        const int64_t rows = b.sequences > b.hidden ? b.sequences : b.hidden;
        return GPU_LAUNCH(b.stream, cg_blocks(rows * b.gates * b.hidden), CG_THREADS, 0, begin<NUMBER>, b.layer);
    }
};

} // namespace

extern "C" int cg_tile_begin_back(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences,
                                  int64_t hidden, int64_t gates)
{
    const struct beginning b = {stream, layer, sequences, hidden, gates};
    return cg_choose_number(compute, b);
}

extern "C" int cg_tile_backward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute,
                                int64_t turn, int64_t most, int64_t hidden)
{
    const struct call c = {stream, layer, directions, turn, most, hidden};
    return cg_choose_number(compute, c);
}
