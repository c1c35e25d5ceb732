/* SPDX-License-Identifier: Apache-2.0 */
/* The variants cluster_4, cluster_8 and cluster_16, for devices whose blocks can access each other's shared memory
 * (sm_90 and later): all steps of a layer and direction in one launch, by clusters of so many blocks. Clusters never
 * wait for each other.
 *
 * A cluster takes up to eight groups of up to eight sequences through all steps. A block owns 16 or 32 units, with a
 * lane per unit and sequence for their cells, and keeps its part of W_h in registers, as fragments of tensor cores.
 * Units that the layer lacks have weights of zero.
 *
 *   forward    a block multiplies the rows of its units' gates with the masked h of all units, computes its cells and
 *              sends its h to all blocks
 *   backward   a block computes its cells, multiplies the gradients of its gates with its rows of W_h, which gives
 *              a part of the gradient of every unit's h, and sends each part to the block that owns the unit. That
 *              adds them in order
 *
 * What is sent arrives in shared memory and counts on a barrier there (device/mbarrier.h), of which each group has two,
 * for even and for odd steps. A block sends for step t only after it has received all of step t - 1, which each warp
 * sent after it had read what was sent for t - 2. So a buffer is free when it is written again.
 *
 * Numbers. Float32 is multiplied as three products of float16 (device/split.h), with the error of float32. Narrower
 * types are multiplied as one product of float16, whose fraction is as long as that of tf32; the scales keep it from
 * overflowing. The weights of a warp have a scale; the gradients of a sequence in 16 units have one per step. h has
 * none where activations keep it small; where they do not (`wild`), float32 is sent and each block scales what it
 * receives. An infinity stays one: it has no influence on scales, and the product of its lower parts, which is NaN, is
 * left out.
 *
 * What a step costs (H200, µs, from runs of the prototype). Each store of 16 bytes to another block takes about 1.3 ns
 * of the block that receives it, whatever it contains: the bare exchange took 0.27, 0.40 and 0.74 with 128, 256 and 512
 * such stores. Forward there is a store for four units and a sequence, so H 256 with eight sequences has 512 of them,
 * for 8 blocks as for 16, and bfloat16 as many as float32; all four took 1.4. This is why 8 blocks were not faster than
 * 16: the time of the bare exchange follows from its stores, not from the number of blocks, and 8 blocks have two warps
 * instead of one for each scheduler (585 clocks of products instead of 316). Therefore only sequences that exist are
 * sent, and a batch is spread over as many clusters as run at the same time, each on multiprocessors of its own.
 * Expected, forward / backward, float32: H 256, B 32: 1.2 / 1.0 on 16 blocks (7 clusters of 5 sequences), 1.2 / 1.1 on
 * 8 (11 of 3); B 1: 0.9 / 0.8 on 16; H 512, B 32: 2.4 / 2.0.
 *
 * Layers whose units depend on each other through W_h only have kernels of their own. Those with LAYER_NORM or a late
 * GRU exchange more within a step: LAYER_NORM one or two times 16 bytes of each block and two sequences
 * (cluster_link.h), forward and backward; a late GRU r h before the product of its candidate, and backward the gradient
 * of r h. A projection is a part of W_h (../fold.h). */
#ifndef CG_CLUSTER_H
#define CG_CLUSTER_H

#include <stdbool.h>

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CG_CLUSTER_HIDDEN_LEAST = 65, /* fewer units fit into one block, but for a late GRU, which `small` does not have */
    CG_CLUSTER_HIDDEN_MOST = 512,
    CG_CLUSTER_COLUMNS = 8, /* sequences of a group */
    CG_CLUSTER_GROUPS_MOST = 8,
};

/* A layer on clusters. */
struct cg_cluster {
    int32_t hidden;      /* units with those that the layer lacks: 128, 256 or 512 */
    int32_t blocks;      /* of a cluster */
    int32_t parts;       /* float16 numbers of a factor */
    int32_t wild;        /* h may be of any size */
    int32_t linked;      /* units need sums of each other within a step: LAYER_NORM, a late GRU */
    int32_t room;        /* shared memory of a block, in bytes, at most */
    int32_t together[2]; /* forward, backward: clusters that run at the same time, each on its own multiprocessors */
};

/* h of this size needs no scale; as float16 it has room for sixteen times as much. */
#define CG_CLUSTER_TAME 1024.0f

/* May h grow beyond that, although it begins small? Kernels look at the initial h themselves. */
bool cg_cluster_is_wild(const struct seqlstm_recurrent_desc *desc);

/* Do its units need sums of each other within a step? */
bool cg_cluster_is_linked(const struct seqlstm_recurrent_desc *desc);

/* Returns false if there is no such kernel, or one block lacks shared memory. `room`: that of the device. */
bool cg_cluster_make(const struct seqlstm_recurrent_desc *desc, int32_t blocks, int32_t room,
                     struct cg_cluster *out_cluster);

/* Ask the current device how many clusters run at the same time. Return the code of the question. */
typedef int cg_cluster_count_fn(struct cg_cluster *cluster, int32_t multiprocessors);
cg_cluster_count_fn cg_cluster_count_forward, cg_cluster_count_backward;
cg_cluster_count_fn cg_cluster_count_linked_forward, cg_cluster_count_linked_backward;

/* Return the code of the launch. `layer`: the layers of the directions, one after another. Backward writes the
 * gradients of the initial states, too. With LAYER_NORM the inputs of all rows are normalised before, and their
 * gradients are computed after the steps (kernels/norm_inputs.h). */
typedef int cg_cluster_run_fn(void *stream, const struct cg_layer *layer, int64_t directions,
                              const struct cg_cluster *cluster, int64_t sequences);
cg_cluster_run_fn cg_cluster_forward, cg_cluster_backward;
cg_cluster_run_fn cg_cluster_linked_forward, cg_cluster_linked_backward;

#ifdef __cplusplus
}
#endif

#endif
