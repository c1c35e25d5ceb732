/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a block's part of W_h with what its group has published. See resident.h.
 *
 * Asynchronous copies bring slices of the depth into shared memory, STAGES - 1 slices ahead. The warps divide rows,
 * columns and the depth of each slice. A warp keeps the sums over what one block has published apart until it has
 * scaled them; without scales, the sums over its part of a slice. */
#ifndef CG_RESIDENT_PRODUCT_H
#define CG_RESIDENT_PRODUCT_H

#include "cuda-generic/recurrent/resident/resident_block.h"

/* GROUPS: of 8 columns. AHEAD: scales are loaded before the products that they belong to, which takes registers;
 * otherwise after them. */
template <int PARTS, int TILES, int GROUPS, bool AHEAD> struct cg_resident_product {
    const struct cg_resident_place &p;
    const struct cg_resident_call &call;
    const struct cg_resident &r;
    const uint32_t *half; /* what has been published */
    int column0, columns; /* of the group: those which are multiplied */
    float total[TILES][GROUPS][4], large[TILES][GROUPS][4], cross[PARTS == 2 ? TILES : 1][PARTS == 2 ? GROUPS : 1][4];
    float scales[GROUPS][2];

    __device__ __forceinline__ cg_resident_product(const struct cg_resident_place &place,
                                                   const struct cg_resident_call &of, const uint32_t *published)
        : p(place), call(of), r(of.r), half(published), column0(0), columns(0)
    {
    }
    /* The part of the warp. */
    __device__ __forceinline__ int row() const
    {
        return p.warp % r.row_warps * 16 * TILES;
    }
    __device__ __forceinline__ int column() const
    {
        return p.warp / r.row_warps % r.column_warps * 8 * GROUPS;
    }
    __device__ __forceinline__ int split() const
    {
        return p.warp / (r.row_warps * r.column_warps);
    }
    __device__ __forceinline__ int pitch() const /* words of a part of a column in a slice */
    {
        return r.chunk + 4;
    }

    template <int A, int B> static __device__ __forceinline__ void clear(float (&x)[A][B][4])
    {
        CG_UNROLL
        for (int e = 0; e < A * B * 4; e++)
            x[e / 4 / B][e / 4 % B][e % 4] = 0.0f;
    }

    __device__ __forceinline__ void fetch(int number)
    {
        const int word0 = number * r.chunk, fours = r.chunk / 4;
        uint32_t *slice = p.slices + number % CG_RESIDENT_STAGES * cg_resident_slice_words(&r);
        const uint32_t *from = half + (int64_t)column0 * PARTS * r.words;
        for (int e = p.thread; e < columns * PARTS * fours; e += CG_RESIDENT_THREADS) {
            const int line = e / fours, word = e % fours * 4; /* a line: a part of a column */
            const bool inside = word0 + word < r.words;
            gpu_copy_async(slice + line * pitch() + word, inside ? from + (int64_t)line * r.words + word0 + word : from,
                           inside);
        }
        if (word0 >= r.kept)
            fetch_weights(slice + columns_words(), word0);
    }
    /* Where the weights of a slice begin. */
    __device__ __forceinline__ int columns_words() const
    {
        return r.columns * PARTS * pitch();
    }
    __device__ __forceinline__ void fetch_weights(uint32_t *to, int word0) const
    {
        const int fours = r.chunk / 4, left = cg_resident_depth(&r) - r.kept;
        for (int e = p.thread; e < r.rows * PARTS * fours; e += CG_RESIDENT_THREADS) {
            const int line = e / fours, word = e % fours * 4; /* a line: a part of a row */
            gpu_copy_async(to + line * pitch() + word, p.spill + (int64_t)line * left + word0 - r.kept + word, true);
        }
    }

    /* Loads the scales of what block `block` has published. */
    __device__ __forceinline__ void load_scales(int block)
    {
        const float *from = reinterpret_cast<const float *>(half + (int64_t)call.columns * PARTS * r.words) +
                            (int64_t)block * call.columns + column0;
        CG_UNROLL
        for (int e = 0; e < 2 * GROUPS; e++) {
            const int at = column() + e / 2 * 8 + 2 * (p.lane % 4) + e % 2;
            scales[e / 2][e % 2] = gpu_load_fresh(block < r.blocks && at < columns, from + at);
        }
    }

    /* Adds what has been summed to the total. */
    __device__ __forceinline__ void fold(bool scaled)
    {
        CG_UNROLL
        for (int e = 0; e < TILES * GROUPS * 4; e++) {
            const int i = e / 4 / GROUPS, j = e / 4 % GROUPS;
            float x = large[i][j][e % 4];
            if (PARTS == 2 && fabsf(x) <= FLT_MAX) /* the lower parts of an infinity would make it NaN */
                x = cg_split_fold(x, cross[PARTS == 2 ? i : 0][PARTS == 2 ? j : 0][e % 4]);
            total[i][j][e % 4] += scaled ? x * scales[j][e % 2] : x;
        }
        clear(large);
        clear(cross);
    }

    /* Multiplies 16 values of the depth, of which `lower` and `upper` keep the first and the last eight. */
    __device__ __forceinline__ void step(int word, const uint32_t *slice, uint32_t lower, uint32_t upper)
    {
        uint32_t a[PARTS][TILES][4];
        const bool kept = word < r.kept;
        const int wide = kept ? r.pitch : pitch();
        const uint32_t *weights = kept ? p.weights + word : slice + columns_words() + word % r.chunk;
        CG_UNROLL
        for (int e = 0; e < PARTS * TILES; e++)
            cg_load_fragments(a[e / TILES][e % TILES],
                              weights + (e / TILES * r.rows + row() + e % TILES * 16 + p.lane % 16) * wide +
                                  p.lane / 16 * 4);
        CG_UNROLL
        for (int e = 0; e < PARTS * TILES * 4; e++) /* an infinity there times 0 would be NaN */
            a[e / 4 / TILES][e / 4 % TILES][e % 4] &= e % 4 / 2 ? upper : lower;
        CG_UNROLL
        for (int pair = 0; pair < GROUPS / 2; pair++) {
            if (column() + 16 * pair >= columns)
                continue; /* so do all lanes */
            uint32_t b[PARTS][4];
            CG_UNROLL
            for (int part = 0; part < PARTS; part++) {
                const int line = (column() + 16 * pair + p.lane / 16 * 8 + p.lane % 8) * PARTS + part;
                cg_load_fragments(b[part], slice + line * pitch() + word % r.chunk + p.lane / 8 % 2 * 4);
                CG_UNROLL
                for (int k = 0; k < 4; k++)
                    b[part][k] &= k % 2 ? upper : lower;
            }
            CG_UNROLL
            for (int e = 0; e < 2 * TILES; e++) {
                const int i = e / 2, j = 2 * pair + e % 2;
                cg_f16::multiply(large[i][j], a[0][i], b[0] + e % 2 * 2);
                if (PARTS == 2) {
                    cg_f16::multiply(cross[PARTS == 2 ? i : 0][PARTS == 2 ? j : 0], a[0][i], b[PARTS - 1] + e % 2 * 2);
                    cg_f16::multiply(cross[PARTS == 2 ? i : 0][PARTS == 2 ? j : 0], a[PARTS - 1][i], b[0] + e % 2 * 2);
                }
            }
        }
    }

    /* Segments of 8 values, two in a step, with scales of their own. */
    __device__ __forceinline__ void add_halves(int first, int end, const uint32_t *slice)
    {
        for (int s = first; s < end; s++)
            for (int k = 0; k < 2; k++) {
                if (AHEAD)
                    load_scales(2 * s + k);
                step(8 * s, slice, k == 0 ? ~0u : 0u, k == 0 ? 0u : ~0u);
                if (!AHEAD)
                    load_scales(2 * s + k);
                fold(true);
            }
    }

    /* Multiplies the warp's part of a slice. */
    __device__ __forceinline__ void add(int number)
    {
        const uint32_t *slice = p.slices + number % CG_RESIDENT_STAGES * cg_resident_slice_words(&r);
        const int each = r.chunk / 8 / r.splits, first = number * (r.chunk / 8) + split() * each;
        const int all = (r.words + 7) / 8, end = first + each < all ? first + each : all;
        const int most = r.segment / 16; /* steps of a segment */
        if (p.scaled && most == 0) {
            add_halves(first, end, slice);
            return;
        }
        int block = p.scaled ? first / most : 0, left = p.scaled ? most - first % most : INT32_MAX;
        if (AHEAD && p.scaled)
            load_scales(block);
        for (int s = first; s < end; s++) {
            step(8 * s, slice, ~0u, ~0u);
            if (--left > 0 && s + 1 < end)
                continue;
            if (!AHEAD && p.scaled)
                load_scales(block);
            fold(p.scaled);
            left = p.scaled ? most : left;
            block++;
            if (AHEAD && p.scaled && s + 1 < end)
                load_scales(block);
        }
    }

    /* Writes the warp's sums. */
    __device__ __forceinline__ void keep() const
    {
        float *to = p.sums + (split() * r.rows + row()) * (r.columns + 1) + column();
        CG_UNROLL
        for (int e = 0; e < TILES * GROUPS * 4; e++) {
            const int i = e / 4 / GROUPS, j = e / 4 % GROUPS, at = j * 8 + p.lane % 4 * 2 + e % 2;
            if (column() + at < columns)
                to[(i * 16 + p.lane / 4 + e % 4 / 2 * 8) * (r.columns + 1) + at] = total[i][j][e % 4];
        }
    }

    /* Multiplies columns [from, from + count) of the group; their sums are complete when it returns. All threads
     * call, and have read the sums before. */
    __device__ __forceinline__ void run(int from, int count)
    {
        const int slices = (r.words + r.chunk - 1) / r.chunk;
        column0 = from;
        columns = count;
        clear(total);
        clear(large);
        clear(cross);
        const bool works = split() < r.splits && column() < columns;
        for (int s = 0; s < CG_RESIDENT_STAGES - 1; s++) {
            if (s < slices)
                fetch(s);
            gpu_copy_close();
        }
        for (int s = 0; s < slices; s++) {
            gpu_copy_wait<CG_RESIDENT_STAGES - 2>();
            __syncthreads(); /* now all have slice s, and have read slice s - 1 */
            if (s + CG_RESIDENT_STAGES - 1 < slices)
                fetch(s + CG_RESIDENT_STAGES - 1);
            gpu_copy_close();
            if (works)
                add(s);
        }
        gpu_copy_wait<0>();
        __syncthreads();
        if (works)
            keep();
        __syncthreads();
    }

    /* The sum of a row for a column of the last run. */
    __device__ __forceinline__ float get(int of_row, int of_column) const
    {
        float sum = 0.0f;
        for (int s = 0; s < r.splits; s++)
            sum += p.sums[(s * r.rows + of_row) * (r.columns + 1) + of_column];
        return sum * p.unscales[of_row];
    }
};

#endif
