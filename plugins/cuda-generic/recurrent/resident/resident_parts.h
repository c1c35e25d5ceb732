/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks send parts of the gradient of h to the owners of the units. See
 * resident.h.
 *
 * A block multiplies the gradients of its own gates, which lie in its shared memory, with its rows of W_h. The product
 * has a row for each unit of the layer, in tiles of 16 that the warps take in turn, and the depth of the block's gates.
 * It writes its sums to its part of the exchange, [columns][units] per block. In the next turn the owner of a unit adds
 * the sums of all blocks in order. */
#ifndef CG_RESIDENT_PARTS_H
#define CG_RESIDENT_PARTS_H

#include "cuda-generic/recurrent/resident/resident_gradient.h"
#include "cuda-generic/recurrent/resident/resident_launch.h"

/* Steps of 16 gates of the block, which are the depth of the product. */
template <int PARTS_, int STEPS_> struct cg_resident_steps {
    static constexpr int PARTS = PARTS_, STEPS = STEPS_, DEPTH = 16 * STEPS, PITCH = DEPTH / 2 + 4;
};

/* ---- before the steps ------------------------------------------------------------------------------------------ */

/* The weight of gate number `at` of the block for the gradient of `unit`. */
static __device__ __forceinline__ float cg_resident_get_weight(const struct cg_resident_place &p,
                                                               const struct cg_resident &r, int at, int unit)
{
    const struct cg_layer &y = *p.y;
    const int n = (int)y.hidden, gate = at / r.units, of = p.unit0 + at % r.units, j = gate * n + of;
    const bool there = gate < (int)y.gates && of < n && unit < n && !cg_is_unused(&y, j);
    return gpu_load_if(there, y.w_h + (int64_t)j * n + unit);
}

/* Tiles of weights in the order of fragments, each with a scale: [tiles][STEPS][parts][lanes][4]. */
template <class S>
static __device__ void cg_resident_load_tiles(const struct cg_resident_place &p, const struct cg_resident &r)
{
    for (int tile = p.warp; tile < r.rows / 16; tile += CG_RESIDENT_WARPS) {
        float x[S::STEPS][8];
        uint32_t most = 0;
        CG_UNROLL
        for (int e = 0; e < 8 * S::STEPS; e++) { /* word e / 2 % 4 of a fragment: rows g and g + 8, depth 0 and 8 */
            const int at = e / 8 * 16 + e / 4 % 2 * 8 + 2 * (p.lane % 4) + e % 2;
            const int unit = 16 * tile + p.lane / 4 + e / 2 % 2 * 8;
            x[e / 8][e % 8] = cg_resident_get_weight(p, r, at, unit);
            most = cg_cluster_greater(most, cg_cluster_magnitude(x[e / 8][e % 8]));
        }
        most = gpu_warp_max(most);
        if (p.lane == 0)
            p.unscales[tile] = cg_split_inverse(gpu_bits_float(most));
        const float scale = cg_split_scale(gpu_bits_float(most));
        uint32_t *to = (tile < r.kept ? p.weights + tile * S::STEPS * S::PARTS * 128
                                      : p.spill + (int64_t)(tile - r.kept) * S::STEPS * S::PARTS * 128) +
                       p.lane * 4;
        CG_UNROLL
        for (int e = 0; e < 4 * S::STEPS; e++) {
            const uint32_t a = cg_cluster_number<S::PARTS>::make_word(x[e / 4][e % 4 * 2] * scale);
            const uint32_t b = cg_cluster_number<S::PARTS>::make_word(x[e / 4][e % 4 * 2 + 1] * scale);
            to[e / 4 * S::PARTS * 128 + e % 4] = (a & 0xFFFFu) | b << 16;
            if (S::PARTS == 2)
                to[(e / 4 * S::PARTS + S::PARTS - 1) * 128 + e % 4] = a >> 16 | (b & 0xFFFF0000u);
        }
    }
}

/* ---- a turn ---------------------------------------------------------------------------------------------------- */

/* In shared memory: gradients of gates [columns][parts][PITCH], their inverse scales, sums of threads. */
template <class S>
static __device__ __forceinline__ float *cg_resident_get_inverses(const struct cg_resident_place &p,
                                                                  const struct cg_resident &r)
{
    return reinterpret_cast<float *>(p.slices + r.columns * S::PARTS * S::PITCH);
}

/* Where block `block` has put its sums for a column. */
static __device__ __forceinline__ float *cg_resident_get_part(const struct cg_resident_call &call, uint32_t *half,
                                                              int block, int column)
{
    const struct cg_resident &r = call.r;
    return reinterpret_cast<float *>(half) + ((int64_t)block * call.columns + column) * r.blocks * r.units;
}

/* Adds what all blocks have sent for cell `e` of the columns from `from` on; `width` threads have cells, and `shares`
 * threads share the sum of each. The first `width` threads receive it. All threads call. */
static __device__ __forceinline__ float cg_resident_gather(const struct cg_resident_place &p,
                                                           const struct cg_resident_call &call, uint32_t *half,
                                                           int from, int multiplied, int e0, int width, float *room)
{
    const struct cg_resident &r = call.r;
    const int shares = CG_RESIDENT_THREADS / width, share = p.thread / width, e = e0 + p.thread % width;
    const int column = from + e / r.units;
    const bool wanted = share < shares && column < from + multiplied;
    float sum = 0.0f;
    CG_UNROLL_8
    for (int block = share; block < r.blocks; block += shares)
        sum += gpu_load_fresh(wanted, cg_resident_get_part(call, half, block, column) + p.unit0 + e % r.units);
    if (shares == 1)
        return sum;
    room[p.thread] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int k = 0; k < shares && p.thread < width; k++)
        sum += room[k * width + p.thread];
    __syncthreads(); /* the room is free again */
    return sum;
}

/* Puts the scaled gradients of a cell's gates where all warps find them. All lanes of a warp call. */
template <class S>
static __device__ __forceinline__ void cg_resident_put_gates(const struct cg_resident_place &p,
                                                             const struct cg_resident &r, int column, int own,
                                                             bool there, const float (&v)[4])
{
    const float most = gpu_bits_float(cg_resident_max_units(cg_cluster_most(v), r.units));
    if (!there)
        return;
    uint16_t *to = reinterpret_cast<uint16_t *>(p.slices) + column * S::PARTS * 2 * S::PITCH;
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        const uint32_t word = cg_cluster_number<S::PARTS>::make_word(v[j] * cg_split_scale(most));
        if (j * r.units >= S::DEPTH)
            continue; /* a gate that the layer lacks */
        to[j * r.units + own] = (uint16_t)word;
        if (S::PARTS == 2)
            to[2 * S::PITCH + j * r.units + own] = (uint16_t)(word >> 16);
    }
    if (own == 0)
        cg_resident_get_inverses<S>(p, r)[column] = cg_split_inverse(most);
}

/* Sums of a tile for 16 columns, of which lanes have those of mma. */
template <class S> struct cg_resident_tile {
    float large[2][4], cross[2][4];

    __device__ __forceinline__ void multiply(const uint32_t *weights, const uint32_t (&b)[S::STEPS][S::PARTS][4])
    {
        CG_UNROLL
        for (int e = 0; e < 8; e++)
            large[e / 4][e % 4] = cross[e / 4][e % 4] = 0.0f;
        CG_UNROLL
        for (int s = 0; s < S::STEPS; s++) {
            uint32_t a[S::PARTS][4];
            CG_UNROLL
            for (int part = 0; part < S::PARTS; part++)
                cg_cluster_read(weights + (s * S::PARTS + part) * 128, a[part]);
            CG_UNROLL
            for (int j = 0; j < 2; j++) {
                cg_f16::multiply(large[j], a[0], b[s][0] + 2 * j);
                if (S::PARTS == 2) {
                    cg_f16::multiply(cross[j], a[0], b[s][S::PARTS - 1] + 2 * j);
                    cg_f16::multiply(cross[j], a[S::PARTS - 1], b[s][0] + 2 * j);
                }
            }
        }
    }
    __device__ __forceinline__ float get(int j, int e) const
    {
        const float x = large[j][e];
        return S::PARTS == 2 && fabsf(x) <= FLT_MAX ? cg_split_fold(x, cross[j][e]) : x;
    }
};

/* Multiplies the gradients of 16 columns from `column0` of the pass on, with all tiles, and sends the sums. */
template <class S>
static __device__ __forceinline__ void cg_resident_send_parts(const struct cg_resident_place &p,
                                                              const struct cg_resident_call &call, uint32_t *half,
                                                              int from, int column0, int count)
{
    const struct cg_resident &r = call.r;
    uint32_t b[S::STEPS][S::PARTS][4];
    float inverses[2][2];
    CG_UNROLL
    for (int e = 0; e < S::STEPS * S::PARTS; e++) {
        const int line = (column0 + p.lane / 16 * 8 + p.lane % 8) * S::PARTS + e % S::PARTS;
        cg_load_fragments(b[e / S::PARTS][e % S::PARTS],
                          p.slices + line * S::PITCH + e / S::PARTS * 8 + p.lane / 8 % 2 * 4);
    }
    CG_UNROLL
    for (int e = 0; e < 4; e++)
        inverses[e / 2][e % 2] = cg_resident_get_inverses<S>(p, r)[column0 + e / 2 * 8 + 2 * (p.lane % 4) + e % 2];
    for (int k = p.warp; k < r.rows / 16; k += CG_RESIDENT_WARPS) {
        const int tile = (k + p.block) % (r.rows / 16); /* blocks do not all begin with the same */
        cg_resident_tile<S> sums;
        if (tile < r.kept)
            sums.multiply(p.weights + tile * S::STEPS * S::PARTS * 128 + p.lane * 4, b);
        else
            sums.multiply(p.spill + (int64_t)(tile - r.kept) * S::STEPS * S::PARTS * 128 + p.lane * 4, b);
        const float unscale = p.unscales[tile];
        CG_UNROLL
        for (int e = 0; e < 8; e++) {
            const int column = column0 + e / 4 * 8 + 2 * (p.lane % 4) + e % 2;
            const int unit = 16 * tile + p.lane / 4 + e % 4 / 2 * 8;
            if (column < count && unit < r.blocks * r.units)
                cg_resident_get_part(call, half, p.block, from + column)[unit] =
                    sums.get(e / 4, e % 4) * unscale * inverses[e / 4][e % 2];
        }
    }
}

template <int PARTS, int STEPS> struct cg_resident_parts_pass {
    typedef cg_resident_steps<PARTS, STEPS> S;

    const struct cg_resident_place &p;
    const struct cg_resident_call &call;

    __device__ __forceinline__ cg_resident_parts_pass(const struct cg_resident_place &place,
                                                      const struct cg_resident_call &of)
        : p(place), call(of)
    {
    }
    static __device__ __forceinline__ void load(const struct cg_resident_place &place, const struct cg_resident &r)
    {
        cg_resident_load_tiles<S>(place, r);
    }
    __device__ __forceinline__ void begin(int, int) const
    {
    }
    __device__ __forceinline__ float receive(const struct cg_resident_cell &, int from, int received, int e0,
                                             int cells) const
    {
        const int left = (cells - e0 + 31) / 32 * 32, width = left < CG_RESIDENT_THREADS ? left : CG_RESIDENT_THREADS;
        float *room = cg_resident_get_inverses<S>(p, call.r) + call.r.columns;
        return received > 0
                   ? cg_resident_gather(p, call, cg_resident_half(p, p.published), from, received, e0, width, room)
                   : 0.0f;
    }
    __device__ __forceinline__ void put(const struct cg_resident_cell &cell, int from, bool there,
                                        const float (&v)[4]) const
    {
        cg_resident_put_gates<S>(p, call.r, cell.column - from, cell.own, there, v);
    }
    __device__ __forceinline__ void finish(int from, int sent) const
    {
        __syncthreads(); /* now the gradients of all cells are there */
        for (int column0 = 0; column0 < sent; column0 += 16)
            cg_resident_send_parts<S>(p, call, cg_resident_half(p, p.published + 1), from, column0, sent);
    }
};

#endif
