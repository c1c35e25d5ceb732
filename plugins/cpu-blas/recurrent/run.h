/* SPDX-License-Identifier: Apache-2.0 */
/* What forward and backward share while they run: one block of one (layer, direction) on one member. */
#ifndef BLAS_RECURRENT_RUN_H
#define BLAS_RECURRENT_RUN_H

#include "cpu-blas/recurrent/op.h"

/* Where rows of a packed tensor are: row r of feature i at base[r * row + i]. base NULL: absent. */
struct blas_rows_at {
    float *base;
    int64_t row;
};

/* Scratch of one block in flight; NULL where the options do not need it. [rows] is that of the block. */
struct blas_scratch {
    float *h;               /* [rows][out_pad] h (backward: dh) */
    float *c;               /* [group][rows][16] c (backward: dc) */
    float *mask_x, *mask_h; /* [rows][input_pad], [rows][out_pad] */
    uint16_t *bits;         /* one row of mask bits */
    float *weights_x;       /* x_in_time: a panel of W_x */
    float *z;               /* norm: [panel][rows][64] */
    float *extra;           /* LSTM with norm: [group][rows][16] c^; GRU, reset before: [rows][out_pad] */
    float *product;         /* [rows][units_pad] */
    float *projected;       /* [rows][out_pad] */
    float *stats, *c_stats, *sums;
    float *xh, *raw;        /* inference: of a chunk; training: in the reserve */
    float *gates, *gates_h; /* the same; where they are put, training: of a step, with norm, or of one panel of it */
    float *dq;              /* backward, LSTM with norm: [group][rows][16] */
    float *dm;              /* backward, projection: [rows][units_pad] */
    float *dprojected;      /* backward, projection: [chunk rows][out_pad] */
    float *dx;              /* backward: [chunk rows][input_pad] */
    float *strips;          /* backward: of x~ or h~, [strip][chunk rows][64] */
    float *gate_tiles;      /* backward, with strips: of a panel of gates, [members that share the block] */
    float *tiles;           /* of what products multiply weights by (tiles.h) */
    float *tiles_gates;     /* backward: of a panel of gates, [members that share the block] */
};

struct blas_run {
    const struct blas_recurrent *op;
    const struct blas_recurrent_binding *binding;
    const struct blas_block *block;
    struct seqlstm_queue *queue;
    const struct seqlstm_step *step;
    int32_t layer, direction, n; /* n = layer D + direction */
    bool reverse;
    bool barrier;                    /* other members work on the same block */
    int32_t member, members;         /* of those that share the block */
    int64_t panel_first, panel_last; /* this member's */
    const struct blas_packed *packed;
    const struct blas_saved *saved; /* of the whole batch; training */
    struct blas_scratch scratch;
    struct blas_tiles *tiles; /* of this thread */
    void *const *slots;
};

/* Step that is run as the s-th. */
static inline int64_t blas_step_at(const struct blas_run *run, int64_t s)
{
    return run->reverse ? run->binding->steps - 1 - s : s;
}

static inline void blas_run_barrier(const struct blas_run *run)
{
    if (run->barrier)
        run->queue->services->team_barrier(run->queue);
}

void blas_scratch_forward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows, struct blas_region *region,
                          struct blas_scratch *out);
void blas_scratch_backward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows,
                           struct blas_region *region, struct blas_scratch *out);

/* Are a member's rows of this layer many times what the second-level cache holds? */
static inline bool blas_leaves_cache(const struct blas_run *run)
{
    const struct blas_recurrent *op = run->op;
    const int64_t row = op->layers[run->layer].xh_row + (int64_t)op->panels * PANEL + op->units_pad;
    return run->binding->rows / run->binding->members * row * (int64_t)sizeof(float) > (8 << 20);
}

/* Fills mask_x and mask_h where the options want them. */
void blas_masks_fill(const struct blas_run *run);

/* A parameter, state or gradient slot by name. */
static inline float *blas_state_slot(const struct blas_run *run, void *const *slots, int which)
{
    return slots[SEQLSTM_SLOT_RECURRENT_STATE(run->n, which)];
}

enum { BLAS_AHEAD_REGIONS = 128, BLAS_AHEAD_PLACES = 256 };

/* What will be read or written next, for products to prefetch (blas_product.ahead): regions, which are cut into places
 * of as few lines as let the products have all of them. Memory keeps up with a steady stream, not with bursts. */
struct blas_ahead {
    struct {
        const float *from;
        int64_t lines;
    } regions[BLAS_AHEAD_REGIONS];
    int32_t region_count;
    const float *places[BLAS_AHEAD_PLACES];
    int32_t count, rate;
};

static inline void blas_ahead_init(struct blas_ahead *ahead)
{
    ahead->region_count = ahead->count = 0;
    ahead->rate = BLAS_FETCH_SLOW;
}

static inline void blas_ahead_add(struct blas_ahead *ahead, const float *from, int64_t floats)
{
    if (ahead->region_count == BLAS_AHEAD_REGIONS)
        return;
    ahead->regions[ahead->region_count].from = from;
    ahead->regions[ahead->region_count++].lines = (floats + GROUP - 1) / GROUP;
}

/* `tiles`: row tiles of all products that will prefetch, each counted once for every block of `k` that it sums over. */
void blas_ahead_cut(struct blas_ahead *ahead, int64_t tiles, int64_t k);

/* The same for products on tiles over k blocks that have as many blas_tile_slots; `rate` is lines of each. */
void blas_ahead_spread(struct blas_ahead *ahead, int64_t slots, int64_t k);

/* ---- forward ---- */

/* Up to this many rows a step, the panels of a row run side by side instead of the rows of a panel. */
enum { NARROW_ROWS = 3 };

struct blas_forward_run {
    struct blas_run r;
    int64_t chunk_steps; /* steps of a chunk */
    struct blas_rows_at x, y;
};

/* First q of the chunk that step s belongs to, and the rows it has. */
int64_t blas_chunk_q(const struct blas_forward_run *f, int64_t s, int64_t *out_rows);

/* Row of xh of the block's first sequence at the s-th step. */
float *blas_xh_at(const struct blas_forward_run *f, int64_t s);

/* Pre-activations of panel 0 at the s-th step, and the stride between panels. */
float *blas_gates_at(const struct blas_forward_run *f, int64_t s, int64_t *out_panel_stride);

/* Where h of the s-th step goes: into the next step's xh if every row goes on and takes it as it is. */
float *blas_h_target(const struct blas_forward_run *f, int64_t s, int64_t *out_row);

/* Products and cells of one step with at least one row. */
void blas_step_run(const struct blas_forward_run *f, int64_t s);

/* Draws the bits of zoneout of `steps` steps of as many rows from t on, where the options want any. Training. */
void blas_zoneout_bits(const struct blas_run *run, int64_t t, int64_t steps);

/* May the steps of this block be run by the sweeps below? */
bool blas_sweep_fits(const struct blas_run *run);

/* Products with h~ and cells of the s-th to before the end-th step, of one chunk; y and h~ of the next step too. */
void blas_sweep_forward(const struct blas_forward_run *f, int64_t s, int64_t end);

/* ---- backward ---- */

struct blas_backward_run {
    struct blas_run r;
    struct blas_gradients gradients; /* this member's, of this (layer, direction) */
    struct blas_rows_at dy, dx;
    bool dx_add;         /* the other direction wrote it before */
    bool weights, fresh; /* dW is wanted; nothing has been added to `w` yet */
    const float *x_back; /* W_x packed for dx; NULL: it is read where it stands */
    bool direct;         /* dW goes straight into the canonical gradients */
    bool keep_sums;      /* an earlier block has added to this region's gradients */
    void *const *grads;
    uint32_t parts;
    int64_t chunk_low, chunk_high; /* q of the current chunk */
};

/* Both norms of `rows` rows from q of the block on, as training keeps them; without where their gains' gradients go. */
struct blas_norm blas_norm_at(const struct blas_run *run, int64_t q, int64_t rows);

/* Of the member's own columns of h. */
void blas_own_columns(const struct blas_run *run, int64_t *low, int64_t *high);

/* C[.., low .. high) (+)= gradients of the groups (product->a: of whole panels) times W of `width` columns, packed for
 * backward at b. Of a large layer `together` panels of gates are summed over before the next ones: as many as stay in
 * the cache with all their rows. What `product` says is used up. */
void blas_product_back(const struct blas_recurrent *op, struct blas_product *product, struct blas_groups groups,
                       const float *b, int64_t width, int64_t low, int64_t high, int32_t together);

/* Gradients of own panels' weights (+)= what q in [low, high) of the block gives: gates' gradients times x~h~. */
void blas_chunk_weights(struct blas_backward_run *f, int64_t low, int64_t high);

/* Step t: gradients of its pre-activations, then dh of the step before it; t_next is the step that comes next. */
void blas_step_back(struct blas_backward_run *f, int64_t t, int64_t t_next);

/* The same of the s-th to before the end-th step in the order of backward. */
void blas_sweep_backward(const struct blas_backward_run *f, int64_t s, int64_t end);

#endif
