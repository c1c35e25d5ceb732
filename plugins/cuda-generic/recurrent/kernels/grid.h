/* SPDX-License-Identifier: Apache-2.0 */
/* The variant grid: all steps of a layer and direction in one launch, one block per multiprocessor, all running at
 * once.
 *
 * A block owns `units` hidden units and keeps their part of W_h in shared memory: in forward the rows of their gates,
 * in backward their columns. In each step it multiplies this slice with what all blocks have published (forward: masked
 * h [B, H]; backward: the gradients of the gates' sums [B, G H]), computes the cells of its units, publishes the result
 * for the next step and waits for the other blocks. That is one barrier per step; it consists of one flag per block,
 * which counts steps.
 *
 *   exchange    2 x [B][words]: a step reads one half and writes the other; in the number type of the products
 *   shared      weights [columns][words + 4] | published rows [16 tiles][chunk + 4], then partial sums
 *   warps       WARPS = tiles x splits: a tile has 16 sequences, a split every splits-th 16 words of the depth
 *
 * For cells whose units depend on each other through W_h only: no LAYER_NORM, no late GRU, no projection but as a part
 * of W_h (../fold.h). */
#ifndef CG_GRID_H
#define CG_GRID_H

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CG_GRID_WARPS = 8, CG_GRID_GROUPS_MOST = 8, CG_GRID_CHUNK_MOST = 512, CG_GRID_SMALL = 256 };

/* With more sequences, ordinary products fill the device; with more units, W_h fits no device. */
enum { CG_GRID_SEQUENCES_MOST = 512, CG_GRID_HIDDEN_MOST = 4096 };

struct cg_grid {
    int32_t blocks, units; /* units: of one block; the last block may have fewer */
    int32_t columns;       /* of its slice, a multiple of 8 */
    int32_t words;         /* of the depth, a multiple of 16 */
    int32_t chunk;         /* words of the depth that are loaded at once */
    int32_t tiles;
    int32_t shared_bytes;
    uint32_t compute; /* SEQLSTM_DTYPE_FLOAT32, TF32, BFLOAT16 or FLOAT16 */
};

static inline int32_t cg_round_up(int32_t x, int32_t unit)
{
    return (x + unit - 1) / unit * unit;
}

/* Lays a layer out over a device; `sequences`: the largest number. Returns 0 if its slices do not fit. */
static inline int cg_grid_make(int64_t hidden, int64_t gates, int backward, int64_t sequences, uint32_t compute,
                               int32_t multiprocessors, int64_t shared_most, struct cg_grid *out_grid)
{
    const int32_t per_word = compute >= SEQLSTM_DTYPE_BFLOAT16 ? 2 : 1, n = (int32_t)hidden, g = (int32_t)gates;
    struct cg_grid s;
    s.compute = compute;
    s.units = (n + multiprocessors - 1) / multiprocessors;
    if (s.units < 8 && n <= CG_GRID_SMALL) /* small layers wait for the barrier, not for their products */
        s.units = 8;
    s.blocks = (n + s.units - 1) / s.units;
    s.columns = cg_round_up(backward ? s.units : g * s.units, 8);
    s.words = cg_round_up(((backward ? g : 1) * n + per_word - 1) / per_word, 16);
    s.chunk = s.words < CG_GRID_CHUNK_MOST ? s.words : CG_GRID_CHUNK_MOST;
    if (s.columns > 8 * CG_GRID_GROUPS_MOST)
        return 0;
    const int64_t weights = (int64_t)s.columns * (s.words + 4) * 4, partial = CG_GRID_WARPS * 16 * 4 * s.columns;
    for (s.tiles = sequences <= 16 ? 1 : sequences <= 32 ? 2 : 4; s.tiles > 0; s.tiles /= 2) {
        const int64_t rows = (int64_t)s.tiles * 16 * (s.chunk + 4) * 4, room = rows > partial ? rows : partial;
        if (weights + room <= shared_most) {
            s.shared_bytes = (int32_t)(weights + room);
            *out_grid = s;
            return 1;
        }
    }
    return 0;
}

/* Words of `exchange`: both halves, then the flags, one a block. All zero before each launch. */
static inline int64_t cg_grid_exchange_words(const struct cg_grid *grid, int64_t sequences)
{
    return 2 * sequences * grid->words + grid->blocks;
}

/* The largest such number for any device and number type, in either direction. */
static inline int64_t cg_grid_exchange_most(int64_t hidden, int64_t gates, int64_t sequences)
{
    return 2 * sequences * cg_round_up((int32_t)(gates * hidden), 16) + hidden;
}

/* Return the code of the launch. backward: call cg_step_begin_back before. */
int cg_grid_forward(void *stream, const struct cg_layer *layer, const struct cg_grid *grid, uint32_t *exchange,
                    int64_t sequences);
int cg_grid_backward(void *stream, const struct cg_layer *layer, const struct cg_grid *grid, uint32_t *exchange,
                     int64_t sequences);

#ifdef __cplusplus
}
#endif

#endif
