/* SPDX-License-Identifier: Apache-2.0 */
/* A forward step of many sequences in one kernel. See step_tile.h. */
#include "cuda-generic/recurrent/kernels/step_tile.h"
#include "cuda-generic/recurrent/kernels/cell.h"
#include "cuda-generic/gemm/copy_tile.h"
#include "cuda-generic/gemm/tile_map.h"

/* Packs W_h with its gates interleaved, and writes the masked h that the first step reads into both halves. */
template <typename NUMBER> static __global__ void begin(const struct cg_layer *layer)
{
    const struct cg_layer y = *layer;
    const int64_t n = y.hidden, words = cg_tile_words(n, NUMBER::PER_WORD);
    const int64_t half = y.axis.sequences * words;
    CG_FOR_EACH(e, cg_tile_places(y.gates, n) * words)
    {
        const int64_t unit = cg_tile_unit(y.gates, e / words), row = cg_tile_gate(y.gates, e / words) * n + unit;
        const bool used = unit < n && !cg_is_unused(&y, row);
        y.tile_weights[e] =
            cg_slice_word<NUMBER>((int)(e % words), used ? n : 0, [&](int64_t d) { return y.w_h[row * n + d]; });
    }
    CG_FOR_EACH(e, half)
    {
        const int64_t b = e / words;
        const uint32_t word = cg_slice_word<NUMBER>((int)(e % words), n, [&](int64_t d) {
            return cg_or_zero(y.h0, b * n + d) * cg_or_one(y.mask_h, b * n + d);
        });
        y.tile_exchange[e] = word;
        y.tile_exchange[half + e] = word;
    }
}

template <typename NUMBER, typename SHAPE>
static __global__ void __launch_bounds__(SHAPE::THREADS, 512 / SHAPE::THREADS)
    forward(const struct cg_layer *layer, int64_t turn)
{
    GPU_SHARED(uint32_t, shared);
    const struct cg_layer *y = layer + blockIdx.z;
    const int64_t t = cg_step_at(y, turn), m = y->axis.batch_sizes[t], half = turn % 2;
    const int64_t n = y->hidden, words = cg_tile_words(n, NUMBER::PER_WORD), places = cg_tile_places(y->gates, n);
    const int gates = (int)y->gates, units = (int)cg_tile_units(gates, SHAPE::N);
    const int64_t b0 = (int64_t)blockIdx.y * SHAPE::M, unit0 = (int64_t)blockIdx.x * units;
    const int64_t place0 = cg_tile_place(gates, 0, unit0), row0 = cg_row(y, t, b0);
    if (b0 >= m)
        return; /* so does the whole block */
    const uint32_t *from = y->tile_exchange + half * y->axis.sequences * words;
    uint32_t *to = y->tile_exchange + (1 - half) * y->axis.sequences * words;
    cg_copy_tile<NUMBER, SHAPE> tile;
    tile.begin([&](int row, int column) {
        const int64_t gate = cg_tile_gate(gates, column), unit = unit0 + cg_tile_unit(gates, column);
        return b0 + row < m && unit < n && !cg_is_apart(y, gate) ? y->u[(row0 + row) * y->gh + gate * n + unit] : 0.0f;
    });
    tile.add({from + b0 * words, y->tile_weights + place0 * words, m - b0, places - place0, words}, shared);
    float *sums = reinterpret_cast<float *>(shared);
    tile.keep(sums);
    for (int e = (int)threadIdx.x; e < SHAPE::M * units; e += SHAPE::THREADS) {
        const int64_t b = b0 + e / units, k = unit0 + e % units;
        if (b >= m || k >= n)
            continue;
        float sum[4] = {0, 0, 0, 0};
        CG_UNROLL
        for (int gate = 0; gate < 4; gate++)
            if (gate < gates)
                sum[gate] = tile.get(sums, e / units, (int)cg_tile_place(gates, gate, e % units));
        const int64_t row = cg_row(y, t, b), before = cg_row_before(y, t, b);
        const float h = cg_cell_output(y, t, b, row, before, k, sum);
        NUMBER::put(to + b * words, k, cg_keep(y, t, b, row, before, k, h));
    }
}

extern "C" int64_t cg_tile_weights_most(int64_t hidden, int64_t gates)
{
    const int64_t places = cg_tile_places(gates, hidden);
    const int64_t ahead = places * cg_tile_words(hidden, 1), back = hidden * cg_tile_words(places, 1);
    return ahead > back ? ahead : back;
}

extern "C" int64_t cg_tile_exchange_most(int64_t hidden, int64_t gates, int64_t sequences)
{
    return 2 * sequences * cg_tile_words(cg_tile_places(gates, hidden), 1);
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

namespace
{

/* With enough rows and columns: tiles which read each operand few times. Otherwise: many tiles, whose warps share the
 * depth. */
typedef cg_copy_shape<2, 4, 1, 4, 4> large;
typedef cg_copy_shape<1, 1, 4, 2, 4> small;

struct call {
    void *stream;
    const struct cg_layer *layer;
    int64_t directions, turn, most, hidden, gates;

    template <typename NUMBER, typename SHAPE> static int start(call c)
    {
        const int64_t units = cg_tile_units(c.gates, SHAPE::N);
        const dim3 grid((unsigned)((c.hidden + units - 1) / units), (unsigned)((c.most + SHAPE::M - 1) / SHAPE::M),
                        (unsigned)c.directions);
        return GPU_LAUNCH_LARGE(c.stream, grid, (unsigned)SHAPE::THREADS, (size_t)SHAPE::SHARED_BYTES,
                                (forward<NUMBER, SHAPE>), c.layer, c.turn);
    }
    template <typename NUMBER> static int run(call c)
    {
        return c.most > 64 && c.gates * c.hidden >= large::N ? start<NUMBER, large>(c) : start<NUMBER, small>(c);
    }
};

struct beginning {
    void *stream;
    const struct cg_layer *layer;
    int64_t sequences, hidden, gates;

    template <typename NUMBER> static int run(beginning b)
    {
        const int64_t rows = b.sequences > b.gates * b.hidden ? b.sequences : b.gates * b.hidden;
        return GPU_LAUNCH(b.stream, cg_blocks(rows * b.hidden), CG_THREADS, 0, begin<NUMBER>, b.layer);
    }
};

} // namespace

extern "C" int cg_tile_begin(void *stream, const struct cg_layer *layer, uint32_t compute, int64_t sequences,
                             int64_t hidden, int64_t gates)
{
    const struct beginning b = {stream, layer, sequences, hidden, gates};
    return cg_choose_number(compute, b);
}

extern "C" int cg_tile_forward(void *stream, const struct cg_layer *layer, int64_t directions, uint32_t compute,
                               int64_t turn, int64_t most, int64_t hidden, int64_t gates)
{
    const struct call c = {stream, layer, directions, turn, most, hidden, gates};
    return cg_choose_number(compute, c);
}
