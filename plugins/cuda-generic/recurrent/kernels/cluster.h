/* SPDX-License-Identifier: Apache-2.0 */
/* The variant cluster, for devices whose blocks can access each other's shared memory (sm_90 and later): all steps of a
 * layer and direction in one launch, sixteen sequences per cluster. Clusters never wait for each other.
 *
 * A block of a cluster owns `units` hidden units and its slice of W_h, as in grid.h. It publishes its results in the
 * shared memory of every block of its cluster, so each block reads only its own shared memory. One barrier of the
 * cluster per step.
 *
 *   shared      weights [columns][words + 4] | exchange 2 x [16][words + 4] | partial sums [WARPS][16][columns]
 *
 * The options are those of grid.h. In struct cg_grid, `blocks` are those of one cluster, `tiles` is 1, and a chunk is
 * all words. */
#ifndef CG_CLUSTER_H
#define CG_CLUSTER_H

#include "cuda-generic/recurrent/kernels/grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shared memory of a block; all devices with such clusters have it. */
enum { CG_CLUSTER_SHARED_MOST = 227 * 1024, CG_CLUSTER_BLOCKS_MOST = 16 };

/* Lays a layer out over the fewest blocks that hold it. Returns 0 if even the largest number does not. */
static inline int cg_cluster_make(int64_t hidden, int64_t gates, int backward, uint32_t compute,
                                  struct cg_grid *out_grid)
{
    const int32_t per_word = compute >= SEQLSTM_DTYPE_BFLOAT16 ? 2 : 1, n = (int32_t)hidden, g = (int32_t)gates;
    struct cg_grid s;
    if (hidden > CG_GRID_HIDDEN_MOST)
        return 0;
    s.compute = compute;
    s.tiles = 1;
    s.words = s.chunk = cg_round_up(((backward ? g : 1) * n + per_word - 1) / per_word, 16);
    for (s.blocks = 1; s.blocks <= CG_CLUSTER_BLOCKS_MOST; s.blocks *= 2) {
        s.units = (n + s.blocks - 1) / s.blocks;
        s.columns = cg_round_up(backward ? s.units : g * s.units, 8);
        const int64_t bytes = 4 * ((int64_t)(s.columns + 2 * 16) * (s.words + 4) + CG_GRID_WARPS * 16 * s.columns);
        if (s.columns <= 8 * CG_GRID_GROUPS_MOST && bytes <= CG_CLUSTER_SHARED_MOST) {
            s.shared_bytes = (int32_t)bytes;
            *out_grid = s;
            return 1;
        }
    }
    return 0;
}

/* Return the code of the launch. `layer`: the layers of the directions, one after another. backward: call
 * cg_step_begin_back before. */
int cg_cluster_forward(void *stream, const struct cg_layer *layer, int64_t directions, const struct cg_grid *grid,
                       int64_t sequences);
int cg_cluster_backward(void *stream, const struct cg_layer *layer, int64_t directions, const struct cg_grid *grid,
                        int64_t sequences);

#ifdef __cplusplus
}
#endif

#endif
