/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the recurrent operation: the operation, its bindings, and how its buffers are laid out.
 *
 * A batch is cut into *blocks* of sequences that run through all their steps on their own: rows of
 * different sequences never
 * meet but in weight gradients. Within a block, rows are numbered q, step by step (all the block's rows of step 0,
 * then step 1 …), whatever the direction; `q_of[t]` is the first of step t. Per (layer, direction) the reserve holds
 *
 *   xh     [block][q][xh_row]        x~ (padded to 16), then h~ (padded to 16): the operand of the
 * forward product and of dW
 *   gates  [block][panel][q][64]     recurrent/kernels/kernels.h
 *   state  [block][group][q][16]     c' (GRU: h')
 *
 * Invariants
 * 1. A block's region begins at (rows of the blocks before it) times the floats of a row; in gates
 * each block of a large
 *    layer has some rows more.
 * 2. Padding columns of xh are zero from the step's start on; padded units have zero state and zero gradient.
 * 3. Stepwise: blocks and rows q are those of the whole axis in every binding, q_of begins at the binding's t0, and the
 *    members' gradients stand in the reserve, behind the rest: sums of cells are added to part by part.
 * 4. Two ways to share one call: *slices* (each member has its own blocks, no barrier but before the final reduction)
 *    and *units* (all members run each block together, each with its own panels, one barrier a step).
 */
#ifndef BLAS_RECURRENT_OP_H
#define BLAS_RECURRENT_OP_H

#include "common/cpu_device.h"
#include "cpu-blas/recurrent/recurrent.h"
#include "cpu-blas/recurrent/kernels/kernels.h"

enum { BLAS_LD_MAX = 2 * SEQLSTM_MAX_LAYERS };

struct blas_recurrent_layer {
    int64_t input; /* I of this layer */
    int64_t input_pad;
    int64_t xh_row; /* floats of a row of xh */
};

/* Groups of 16 columns of a panel, [first, end). */
struct blas_groups {
    int32_t first, end;
};

struct blas_recurrent {
    struct seqlstm_recurrent_desc desc;
    const struct seqlstm_host *host;
    const struct blas_recurrent_kernels *kernels;
    const struct blas_tile_kernels *tile_kernels; /* of products on tiles, instead of those of `kernels`; or NULL */
    int32_t bf16_parts;                           /* 3, or 1: in bfloat16 and int8 */
    bool int8;                                    /* tiles are of int8 (int8.h) */
    bool tiled_steps; /* tiles also for the products of single steps, not only of those of many steps at once */
    int32_t members_max;
    int32_t directions, layer_count;
    bool training, peephole, coupled, norm, projection, gru_before, has_carry, lstm;
    bool norm_keeps;  /* layer norm keeps its gates for backward, which otherwise makes them of both products again */
    bool stepwise;    /* segments of steps share one reserve; dW comes from a call of its own */
    bool merge_apart; /* two directions whose outputs are joined after the fact */
    int32_t panels;   /* of 64 pre-activations */
    int32_t panel_units; /* 16, RNN: 64 */
    /* Those that x (always from the first on) and h have products with: all, but for the two candidates of a GRU.
     * With layer norm, which runs over whole panels, and on tiles, all there, too: the weights
     * of the others are zero. */
    struct blas_groups groups_x, groups_h;
    int64_t units, units_pad; /* H, and panels * panel_units */
    int64_t out, out_pad;     /* O, and padded to 16 */
    int64_t h_row;            /* floats between rows of h in scratch */
    int64_t y_width;          /* of a merged output: O or 2 O */
    int64_t gate_rows;        /* rows of W_x: 4 H, 3 H, H */
    int64_t norm_count;       /* elements that layer norm of the gates is over */
    int64_t block_rows_max;   /* of this shape's blocks */
    bool weights_large;       /* one direction's weights do not fit the second-level cache */
    bool strips;              /* weights are packed in strips of 16 columns */
    struct blas_cell cell[2];
    struct blas_recurrent_layer layers[64];
    bool h_in_place; /* backward reads W_h where it stands, instead of a copy packed anew for each update */
    bool x_in_time;  /* forward packs W_x, panel by panel, into a place that stays in the cache */
    bool direct;     /* the gradients of the weights may be made in the canonical layout at once */
    int32_t *rows_x, *rows_h, *rows_bias; /* [panel][64]: the canonical row of a column, or -1 */
};

/* A region that is measured first (base NULL) and laid out later by the same calls. */
struct blas_region {
    char *base;
    uint64_t used;
};
/* `count` floats, 64-byte aligned. NULL while measuring, or when count is 0. */
float *blas_region_take(struct blas_region *region, int64_t count);

/* Weights as the kernels want them, of one (layer, direction). NULL where the options do not need it. On tiles the
 * first three are as tiles.h has them. */
struct blas_packed {
    /* In strips: forward [panel][4][input_pad + out_pad][16]; h_back and x_back [out_pad or input_pad / 16][panel * 64]
     * [16]. */
    float *forward;  /* [panel][input_pad + out_pad][64]; x_in_time: [panel][out_pad][64] */
    float *h_back;   /* [out_pad / 64][panel * 64][<= 64]: columns of a last narrower panel are dense */
    float *x_back;   /* [input_pad / 64][panel * 64][<= 64] */
    float *bias;     /* [panel][64] */
    float *peephole; /* [3][units_pad], zero without the option */
    float *scale, *offset, *offset_h;    /* int8: [panel][64], int8.h */
    float *projection, *projection_back; /* N = out_pad, K = units_pad, and the reverse */
    float *rh, *rh_back;                 /* GRU, reset before: W_hn: N = units_pad, K = out_pad, and the reverse */
    float *valid_u, *valid_v, *gain_u, *gain_v, *gain_c, *bias_c;
    float *masked;       /* weight drop: W_h with its mask, canonical */
    uint16_t *drop_bits; /* its mask */
};

struct blas_saved {
    float *xh, *gates, *state;
    float *gates_h;          /* norm: the second product */
    float *z;                /* norm_keeps: i, f, g, o, then their gradients; as gates */
    float *raw;              /* projection: [q][units_pad] before it */
    float *rh;               /* GRU, reset before: [q][out_pad] r h~ */
    float *stats;            /* norm: [q][4] */
    float *c_stats;          /* LSTM with norm: mean [q], then 1/std [q] */
    uint16_t *new_c, *new_h; /* zoneout: [q][bits_row] */
    float *merged;           /* MUL: this direction's output, [R][O] */
    float *dprojected;       /* stepwise with projection: [q][out_pad] dh^ */
};

/* Gradients of one (layer, direction) as the kernels make them, of one member. */
struct blas_gradients {
    float *w; /* [panel][64][input_pad + out_pad]; on tiles: [panel][input_pad + out_pad][64] */
    float *bias, *peephole, *projection, *norm_u, *norm_v, *norm_c, *rh;
    float *sums; /* where the small ones begin: they are zeroed at the start */
    int64_t sums_count;
};

struct blas_block {
    int64_t first, rows;          /* sequences [first, first + rows) */
    int64_t q_base, q_rows;       /* rows of the blocks before, and its own */
    int64_t gate_base, gate_rows; /* the same of `gates`, whose panels are set apart (blas_gate_rows) */
    const int64_t *q_of;          /* [T + 1] */
};

struct blas_recurrent_binding {
    const struct blas_recurrent *op;
    const struct seqlstm_axis *axis;
    int64_t t0, steps, rows, sequences; /* stepwise: rows and sequences of the whole axis */
    int32_t members;                    /* that take part */
    bool units;                         /* sharing by units instead of slices */
    bool fused;                         /* x's product within the step */
    bool puts;                          /* gates, or with norm both products, are kept past the caches */
    int64_t chunk_rows;                 /* rows of x projected at once when not fused */
    int32_t block_count;
    int32_t member_first[CPU_MEMBERS_MOST + 1]; /* slices: blocks of member m: [m], [m + 1] */
    struct blas_block *blocks;
    int64_t *q_storage;
};

void blas_packed_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                        struct blas_packed *out);
/* Of a small layer each member has a copy of its own, which it packs itself: no line of weights goes from one core's
 * cache to another's, which takes longer than packing. The buffer begins with how many there are. */
struct blas_packed_all {
    int32_t copies;
    char *base;               /* of the first copy */
    uint64_t bytes;           /* of each */
    uint64_t at[BLAS_LD_MAX]; /* where in it a (layer, direction) begins */
};
/* Sequences of a block that sweeps take (sweep.c); 0: none. */
int64_t blas_sweep_rows(const struct blas_recurrent *op);

/* Members that so many rows of all steps are worth waking: each for some thousand products of 16 lanes; in training,
 * where gradients of the weights are summed, which takes as long as some rows of theirs, each for some rows, too. */
int64_t blas_members_worth(const struct blas_recurrent *op, int64_t rows);

/* How many `members` members want; 0: any number. */
int32_t blas_packed_copies(const struct blas_recurrent *op, int32_t members);
/* The buffer, with as many copies as it says; NULL measures one. Bytes of what stands before the copies and of one. */
uint64_t blas_packed_open(const struct blas_recurrent *op, const void *buffer, struct blas_packed_all *out);
/* Member `member`'s weights of one (layer, direction). */
struct blas_packed blas_packed_own(const struct blas_recurrent *op, const struct blas_packed_all *all, int32_t n,
                                   int32_t member);
/* `blocks`: into how many the rows are cut, at most. */
void blas_saved_layout(const struct blas_recurrent *op, int32_t layer, int64_t rows, int64_t blocks,
                       struct blas_region *region, struct blas_saved *out);
void blas_gradients_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                           struct blas_gradients *out);

/* Those of all layers for `members`: member 0's, and the floats to the next one's. */
int64_t blas_gradients_all(const struct blas_recurrent *op, int32_t members, struct blas_region *region,
                           struct blas_gradients out[BLAS_LD_MAX]);

/* Moves every pointer by `floats`. */
void blas_gradients_move(struct blas_gradients *gradients, int64_t floats);

/* Words (uint16) that a row's zoneout bits take. */
int64_t blas_bits_row(const struct blas_recurrent *op);

/* Workspaces of calls on `rows` rows; in bounds that depend on no other part of the binding. */
uint64_t blas_forward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions);
uint64_t blas_backward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions);
/* Do the members of a queue share the units of a batch of so many sequences? */
bool blas_shares_units(const struct blas_recurrent *op, int64_t sequences, int32_t members);

static inline int64_t blas_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Rows of which weight gradients are made at once: those of a large layer are read and written once for each. */
static inline int64_t blas_chunk_rows(const struct blas_recurrent *op)
{
    return op->weights_large ? 768 : 256;
}

/* Are rows of x~h~ so far apart, most of a page of 4 KiB or more, that 128 of them lie on more pages than a processor's
 * first-level table has entries (64 to 96)? Where kernels want strips of 16 columns, a little more than half of a page
 * is enough. */
static inline bool blas_copies_strips(const struct blas_recurrent *op, const struct blas_recurrent_layer *layer)
{
    return layer->xh_row >= (op->kernels->strips ? 560 : 768);
}

/* Are products of `rows` rows shared by rows, where members share a block? Each reads all weights then. */
static inline bool blas_shares_rows(int32_t members, int64_t rows)
{
    return members > 1 && rows >= 64 * (int64_t)members;
}

/* Are the gates of `rows` rows more than caches keep until backward? */
static inline bool blas_gates_leave(const struct blas_recurrent *op, int64_t rows)
{
    return rows * op->panels * PANEL * (int64_t)sizeof(float) > 12 << 20;
}

/* May members share the units of few sequences? */
static inline bool blas_may_share_units(const struct blas_recurrent *op)
{
    return op->members_max > 1 && (op->weights_large || op->units >= 128);
}

/* Rows that a block of the longest batch has, padded to its widest step. */
static inline int64_t blas_block_rows_all(const struct blas_recurrent *op)
{
    return op->block_rows_max * op->desc.head.max_steps;
}

/* Rows of x that the forward pass projects at once, where its step does not do it; more if one step has more. */
static inline int64_t blas_forward_rows(const struct blas_recurrent *op)
{
    return blas_min(op->weights_large ? 256 : 96, blas_block_rows_all(op));
}

/* Most rows that a chunk of steps of a block can have, backward. */
int64_t blas_chunk_rows_max(const struct blas_recurrent *op);

/* mix64 key of a mask stream. */
uint64_t blas_mask_key(const struct blas_recurrent *op, const struct seqlstm_step *step, int32_t layer,
                       int32_t direction, uint32_t purpose);

/* Rows of block `block` alive at step t. */
static inline int64_t blas_block_rows(const struct blas_block *block, int64_t t)
{
    return block->q_of[t + 1] - block->q_of[t];
}

static inline int64_t blas_round(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* k of a product with `width` rows of weights, behind which more may stand that are zero. */
static inline int32_t blas_product_k(int64_t width)
{
    return (int32_t)blas_round(width, BLAS_TURN_K);
}

/* Rows from one panel of gates to the next. Of large layers all panels of a few rows are read again and again: their
 * distance spreads them over the sets of the second-level cache. */
static inline int64_t blas_gate_rows(const struct blas_recurrent *op, int64_t q_rows)
{
    return op->weights_large ? q_rows + ((65 - q_rows) % 256 + 256) % 256 : q_rows;
}

/* An odd number of cache lines, so that one column of many rows spreads over all sets of the first-level cache. */
static inline int64_t blas_stride(int64_t n)
{
    return n / GROUP % 2 == 0 ? n + GROUP : n;
}

/* Row of packed tensors (X, Y) of the block's first sequence at step t. */
static inline int64_t blas_packed_row(const struct blas_recurrent_binding *binding, const struct blas_block *block,
                                      int64_t t)
{
    const int64_t *offsets = binding->axis->row_offsets;
    return offsets[binding->t0 + t] - offsets[binding->t0] + block->first;
}

/* Floats from one strip of 16 columns of a forward panel to the next, of a layer of so many padded inputs; 0: there are
 * no strips. */
static inline int64_t blas_strip_floats(const struct blas_recurrent *op, int64_t input_pad)
{
    return op->strips ? (input_pad + op->out_pad) * GROUP : 0;
}

/* Panels [first, last) of a member when sharing by units. */
static inline void blas_share(int64_t count, int32_t member, int32_t members, int64_t *first, int64_t *last)
{
    *first = count * member / members;
    *last = count * (member + 1) / members;
}

#endif
