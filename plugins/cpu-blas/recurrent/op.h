/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the recurrent operation: the operation and its bindings.
 *
 * A batch is cut into *blocks* of sequences. Each block runs through all its steps on its own: rows of different
 * sequences meet only in weight gradients. Within a block, rows are numbered q, step by step (all rows of step 0, then
 * of step 1 …), whatever the direction; `q_of[t]` is the first row of step t. For each (layer, direction) the reserve
 * holds
 *
 *   xh     [block][q][xh_row]       x~ (padded to 16), then h~ (padded to 16): operand of the forward product and of dW
 *   gates  [block][panel][q][64]    see recurrent/kernels/kernels.h
 *   state  [block][group][q][16]    c' (GRU: h')
 *
 * Invariants
 * 1. A block's region begins at (rows of the blocks before it) times the floats of a row. In gates, each block of a
 *    large layer has some more rows.
 * 2. Padding columns of xh are zero from the start of the step on. Padded units have zero state and zero gradient.
 * 3. Stepwise: every binding numbers blocks and rows q by the whole axis, and q_of begins at the binding's t0. The
 *    gradients of the members are in the reserve, behind the rest, and each segment adds to them.
 * 4. A call is shared in one of two ways. *Slices*: each member has its own blocks; there is no barrier except before
 *    the final reduction. *Units*: all members run each block together, each its own panels, with one barrier in each
 *    step. */
#ifndef BLAS_RECURRENT_OP_H
#define BLAS_RECURRENT_OP_H

#include <seqlstm/philox.h>

#include "common/cpu_device.h"
#include "cpu-blas/tiles/tiles_gemm.h"
#include "cpu-blas/recurrent/kernels/kernels.h"

enum { BLAS_LD_MAX = 2 * SEQLSTM_MAX_LAYERS };

struct blas_recurrent_layer {
    int64_t input; /* I of this layer */
    int64_t input_pad;
    int64_t xh_row; /* floats in a row of xh */
};

/* Groups of 16 columns of a panel, [first, end). */
struct blas_groups {
    int32_t first, end;
};

struct blas_recurrent {
    struct seqlstm_recurrent_desc desc;
    const struct seqlstm_host *host;
    const struct blas_recurrent_kernels *kernels;
    const struct blas_tile_kernels *tile_kernels; /* used for products on tiles; or NULL */
    int32_t bf16_parts;                           /* 3; 2 in tf32; 1 in bfloat16 and int8 */
    bool int8;                                    /* tiles hold int8 (int8.h) */
    bool tiled_steps; /* products of single steps also use tiles, not only those of many steps at once */
    int32_t members_max;
    int32_t directions, layer_count;
    bool training, peephole, coupled, norm, projection, gru_before, has_carry, lstm;
    bool norm_keeps;     /* layer norm keeps its gates for backward, which otherwise computes them again */
    bool stepwise;       /* segments of steps share one reserve; a separate call computes dW */
    bool merge_apart;    /* two directions whose outputs are merged afterwards */
    int32_t panels;      /* panels of 64 pre-activations */
    int32_t panel_units; /* 16, RNN: 64 */
    /* The groups that are multiplied by x (always from the first on) and by h: all but the two candidates of a GRU.
     * Tiles, and layer norm, which runs over whole panels, use all groups; the weights of the others are then zero. */
    struct blas_groups groups_x, groups_h;
    int64_t units, units_pad; /* H, and panels * panel_units */
    int64_t out, out_pad;     /* O, and padded to 16 */
    int64_t h_row;            /* floats from row to row of h in scratch */
    int64_t y_width;          /* of a merged output: O or 2 O */
    int64_t gate_rows;        /* rows of W_x: 4 H, 3 H, H */
    int64_t norm_count;       /* elements of the layer norm of the gates */
    int64_t block_rows_max;   /* rows in blocks of this shape */
    bool weights_large;       /* the weights of one direction do not fit the second-level cache */
    bool strips;              /* weights are packed in strips of 16 columns */
    struct blas_cell cell[2];
    struct blas_recurrent_layer layers[SEQLSTM_MAX_LAYERS];
    bool h_in_place; /* backward reads W_h in its canonical layout, not from a copy packed after each update */
    bool x_in_time;  /* forward packs W_x, panel by panel, into memory that stays in the cache */
    bool direct;     /* weight gradients may be written directly in the canonical layout */
    int32_t *rows_x, *rows_h, *rows_bias; /* [panel][64]: the canonical row of a column, or -1 */
};

struct blas_block {
    int64_t first, rows;          /* sequences [first, first + rows) */
    int64_t q_base, q_rows;       /* rows of the blocks before this one; its own rows */
    int64_t gate_base, gate_rows; /* the same in `gates`, where panels are further apart (blas_gate_rows) */
    const int64_t *q_of;          /* [T + 1] */
};

struct blas_recurrent_binding {
    const struct blas_recurrent *op;
    const struct seqlstm_axis *axis;
    int64_t t0, steps, rows, sequences; /* stepwise: rows and sequences are those of the whole axis */
    int32_t members;                    /* the members that take part */
    bool units;                         /* members share units instead of slices */
    bool fused;                         /* the product with x is part of the step */
    bool puts;                          /* gates (with norm: both products) are written past the caches */
    int64_t chunk_rows;                 /* rows of x multiplied at once if not fused */
    int32_t block_count;
    int32_t member_first[CPU_MEMBERS_MOST + 1]; /* slices: the blocks of member m are [m] up to [m + 1] */
    struct blas_block *blocks;
    int64_t *q_storage;
    uint64_t room; /* bytes from `blocks` on */
};

/* The most sequences of a block that sweeps. With eight, steps that multiply x and h in one product are as fast. */
enum { SWEEP_ROWS = 4 };

/* Up to this many rows in a step, the panels of a row are run side by side instead of the rows of a panel. */
enum { NARROW_ROWS = 3 };

static inline int64_t blas_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t blas_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The rows from which weight gradients are computed at once. In a large layer, the gradients are read and written
 * once for each chunk. */
static inline int64_t blas_chunk_rows(const struct blas_recurrent *op)
{
    return op->weights_large ? 768 : 256;
}

/* Returns true if the rows of x~h~ are so far apart that 128 of them lie on more pages than the first-level TLB has
 * entries (64 to 96): at least most of a page of 4 KiB. Where the kernels use strips of 16 columns, a little more
 * than half a page is enough. */
static inline bool blas_copies_strips(const struct blas_recurrent *op, const struct blas_recurrent_layer *layer)
{
    return layer->xh_row >= (op->kernels->strips ? 560 : 768);
}

/* Returns true if members that share a block divide the rows of products of `rows` rows. Each member then reads all
 * weights. */
static inline bool blas_shares_rows(int32_t members, int64_t rows)
{
    return members > 1 && rows >= 64 * (int64_t)members;
}

/* Returns true if the gates of `rows` rows are larger than what caches keep until backward. */
static inline bool blas_gates_leave(const struct blas_recurrent *op, int64_t rows)
{
    return rows * op->panels * PANEL * (int64_t)sizeof(float) > 12 << 20;
}

/* Returns true if members may share the units of a few sequences. */
static inline bool blas_may_share_units(const struct blas_recurrent *op)
{
    return op->members_max > 1 && (op->weights_large || op->units >= 128);
}

/* The rows of a block of the longest batch, if every step had the rows of its widest one. */
static inline int64_t blas_block_rows_all(const struct blas_recurrent *op)
{
    return op->block_rows_max * op->desc.head.max_steps;
}

/* The rows of x that forward multiplies at once, outside the step. At least the rows of one step. */
static inline int64_t blas_forward_rows(const struct blas_recurrent *op)
{
    return blas_min(op->weights_large ? 256 : 96, blas_block_rows_all(op));
}

/* The mix64 key of a mask stream. */
static inline uint64_t blas_mask_key(const struct blas_recurrent *op, const struct seqlstm_step *step, int32_t layer,
                                     int32_t direction, uint32_t purpose)
{
    uint64_t stream =
        op->desc.stream_base + SEQLSTM_STREAMS_PER_LAYER * (uint64_t)layer + 16 * (uint64_t)direction + purpose;
    return seqlstm_mix64(step->seed, stream, step->epoch);
}

/* The rows of block `block` at step t. */
static inline int64_t blas_block_rows(const struct blas_block *block, int64_t t)
{
    return block->q_of[t + 1] - block->q_of[t];
}

static inline int64_t blas_round(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* k of a product with `width` rows of weights. Rows behind these may be included, since they are zero. */
static inline int32_t blas_product_k(int64_t width)
{
    return (int32_t)blas_round(width, BLAS_TURN_K);
}

/* The rows from one panel of gates to the next. In large layers the panels of a few rows are read many times; the
 * extra distance spreads them over the sets of the second-level cache. */
static inline int64_t blas_gate_rows(const struct blas_recurrent *op, int64_t q_rows)
{
    return op->weights_large ? q_rows + ((65 - q_rows) % 256 + 256) % 256 : q_rows;
}

/* Rounds up to an odd number of cache lines, so that a column of many rows spreads over all sets of the first-level
 * cache. */
static inline int64_t blas_stride(int64_t n)
{
    return n / GROUP % 2 == 0 ? n + GROUP : n;
}

/* The row in packed tensors (X, Y) of the block's first sequence at step t. */
static inline int64_t blas_packed_row(const struct blas_recurrent_binding *binding, const struct blas_block *block,
                                      int64_t t)
{
    const int64_t *offsets = binding->axis->row_offsets;
    return offsets[binding->t0 + t] - offsets[binding->t0] + block->first;
}

/* The floats from one strip of 16 columns of a forward panel to the next, in a layer with so many padded inputs; 0
 * without strips. */
static inline int64_t blas_strip_floats(const struct blas_recurrent *op, int64_t input_pad)
{
    return op->strips ? (input_pad + op->out_pad) * GROUP : 0;
}

/* The panels [first, last) of a member when units are shared. */
static inline void blas_share(int64_t count, int32_t member, int32_t members, int64_t *first, int64_t *last)
{
    *first = count * member / members;
    *last = count * (member + 1) / members;
}

/* The begin and the end of a part of a call, as profiles show it. They nest. [any] */
static inline void blas_trace_begin(const struct blas_recurrent *op, const char *name)
{
    if (op->host->trace_begin)
        op->host->trace_begin(op->host->context, name);
}

static inline void blas_trace_end(const struct blas_recurrent *op)
{
    if (op->host->trace_end)
        op->host->trace_end(op->host->context);
}

#endif
