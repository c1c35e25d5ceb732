/* SPDX-License-Identifier: Apache-2.0 */
/* The variant resident: all steps of a layer in one cooperative launch, products on tensor cores, W_h in shared memory.
 * For layers that are too large for one cluster, and for large batches.
 *
 * The sequences of a batch are dealt out to groups (sequence b to group b % groups, so that long and short ones are
 * mixed), which never wait for each other. The blocks of a group divide the hidden units: a block keeps the part of W_h
 * for its units in shared memory, as float16. In each step it multiplies this part by what the blocks of its group have
 * published, computes the cells of its units for all sequences of the group, and publishes the result:
 *
 *   forward    the masked h; the product has a row for each gate of each unit, and the depth of all units
 *   backward   the gradients of the gates; the product has a row for each unit, and the depth of all gates
 *   scatter    or, in backward, each block multiplies the gradients of its own gates with its rows of W_h, which gives
 * a part of the gradient of every unit's h, and publishes these parts; in the next turn the owner of a unit adds them
 * in order. Less is read in float32, and it takes less shared memory, but the parts of large batches exceed L2
 *
 * There is one barrier per step: a counter per group, to which every block adds one once it has published.
 *
 * More groups need more blocks, or more units and therefore more shared memory per block, but each block then reads
 * fewer published values, which is what limits a step: every block reads all of its group's. Weights that shared memory
 * has no room for are written to the exchange once, as float16, and read from there in every step together with the
 * published values: so any layer runs whose units have enough blocks, and large batches can have many units per block.
 * cg_resident_make tries what the device can run and takes what should be fastest, for forward and backward separately.
 *
 * Numbers are those of clusters (cluster.h): float32 as three products of float16, narrower types as one. A row of the
 * weights has a power of two as its scale. What a block publishes of a sequence in a step has one, too: always in
 * backward, in forward if h may be large. The sums over what one block has published are scaled before they are added
 * to the others. An infinity stays one.
 *
 * Cells whose units need something of each other within a step (LAYER_NORM, late GRUs) have kernels of their own, with
 * one or two more barriers per step: resident_link.h. A projection is a part of W_h (../fold.h). */
#ifndef CG_RESIDENT_H
#define CG_RESIDENT_H

#include <stdbool.h>

#include "cuda-generic/recurrent/kernels/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CG_RESIDENT_THREADS = 256,
    CG_RESIDENT_WARPS = 8,
    CG_RESIDENT_STAGES = 3,        /* slices of published values in shared memory */
    CG_RESIDENT_COUNTER_WORDS = 32 /* counters of groups lie so far apart */
};

/* One pass of a layer on a device. */
struct cg_resident {
    int32_t groups;    /* at most */
    int32_t blocks;    /* of a group */
    int32_t units;     /* of a block: 8, 16 or 32 */
    int32_t scatter;   /* backward: blocks publish parts of the gradient of h */
    int32_t segment;   /* depth of what a block publishes of a sequence; scatter: of its product */
    int32_t words;     /* of the depth, two values each */
    int32_t parts;     /* float16 numbers of a value */
    int32_t wild;      /* forward: h may be of any size */
    int32_t linked;    /* barriers within a step, since units need something of each other */
    int32_t rows;      /* of the block's part of W_h, whole tiles */
    int32_t row_tiles; /* of 16 rows, of a warp: 1 or 2 */
    int32_t row_warps, column_warps, splits; /* how the warps divide a product; a split has a part of the depth */
    int32_t columns;                         /* sequences that are multiplied at once, a multiple of 16 */
    int32_t chunk;                           /* words of the depth in a slice: a power of two */
    int32_t kept;                            /* of the weights in shared memory: words of the depth; scatter: tiles */
    int32_t pitch;                           /* words of a row of weights there */
    int32_t shared_bytes;                    /* of a block */
    int32_t together;                        /* directions that run at the same time */
    float clocks;                            /* expected for a step */
};

/* Chooses how to run `back` or forward on a device with so many multiprocessors, whose blocks have `room` bytes of
 * shared memory. Returns false if the units need more blocks, or a block more shared memory. */
bool cg_resident_make(const struct seqlstm_recurrent_desc *desc, bool back, int32_t multiprocessors, int64_t room,
                      struct cg_resident *out_resident);

enum cg_resident_pass { CG_RESIDENT_FORWARD, CG_RESIDENT_BACKWARD, CG_RESIDENT_SCATTER };

/* The same for blocks of so many units (8, 16 or 32) and so many directions at the same time. */
bool cg_resident_divide(const struct seqlstm_recurrent_desc *desc, enum cg_resident_pass pass, int32_t units,
                        int32_t together, int32_t multiprocessors, int64_t room, struct cg_resident *out_resident);

/* Sequences of the largest group. */
CG_HD int32_t cg_resident_count_columns(int64_t sequences, int32_t groups)
{
    return (int32_t)((sequences + groups - 1) / groups);
}

/* What the blocks of one direction exchange, in words: counters, which are zero before each launch, two halves of
 * published values [columns][parts][words] per group, two halves of scales [blocks][columns] per group. scatter: two
 * halves of [blocks][columns][units of all blocks] per group. Then per group links [2][blocks][columns][2] and the
 * weights that shared memory lacks room for, of each block. */
CG_HD int64_t cg_resident_counter_words(const struct cg_resident *r)
{
    return (int64_t)CG_RESIDENT_COUNTER_WORDS * r->groups;
}

CG_HD int64_t cg_resident_group_words(const struct cg_resident *r, int32_t columns)
{
    return r->scatter ? (int64_t)columns * r->blocks * r->blocks * r->units
                      : (int64_t)columns * ((int64_t)r->parts * r->words + (r->blocks + 3) / 4 * 4);
}

CG_HD int64_t cg_resident_link_words(const struct cg_resident *r, int32_t columns)
{
    return r->linked ? 4 * (int64_t)r->blocks * columns : 0;
}

/* Words of the depth in whole slices. */
CG_HD int32_t cg_resident_depth(const struct cg_resident *r)
{
    return (r->words + r->chunk - 1) / r->chunk * r->chunk;
}

/* Weights of a block that are read from L2 in every step, in words. */
CG_HD int64_t cg_resident_spill_words(const struct cg_resident *r)
{
    return r->scatter ? (int64_t)r->parts * (r->rows - 16 * r->kept) * r->pitch
                      : (int64_t)r->parts * r->rows * (cg_resident_depth(r) - r->kept);
}

/* For at most so many sequences, and all directions that run at the same time. */
CG_HD int64_t cg_resident_exchange_words(const struct cg_resident *r, int64_t sequences)
{
    const int32_t groups = sequences < r->groups ? (int32_t)sequences : r->groups;
    const int32_t columns = cg_resident_count_columns(sequences, groups);
    const int64_t words = 2 * cg_resident_group_words(r, columns) + cg_resident_link_words(r, columns) +
                          r->blocks * cg_resident_spill_words(r);
    return r->together * (cg_resident_counter_words(r) + groups * words);
}

/* Asks the current device how many such blocks run at the same time. Returns the code of the question. */
int cg_resident_count_forward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks);
int cg_resident_count_backward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks);

/* Return the code of the launch. `layer`: the layers of resident->together directions, one after another. Backward:
 * call cg_step_begin_back before and cg_step_finish_back afterwards. */
int cg_resident_forward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                        uint32_t *exchange, int64_t sequences);
int cg_resident_backward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                         uint32_t *exchange, int64_t sequences);

#ifdef __cplusplus
}
#endif

#endif
