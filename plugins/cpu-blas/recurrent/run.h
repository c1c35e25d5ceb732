/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by forward and backward while they run: one block of one (layer, direction) on one member. */
#ifndef BLAS_RECURRENT_RUN_H
#define BLAS_RECURRENT_RUN_H

#include <string.h>

#include "cpu-blas/recurrent/layout.h"

/* Rows of a packed tensor: feature i of row r is at base[r * row + i]. base NULL: there is no tensor. */
struct blas_rows_at {
    float *base;
    int64_t row;
};

/* Scratch memory of a block while it runs; NULL where the options do not need it. [rows]: those of the block. */
struct blas_scratch {
    float *h;               /* [rows][out_pad] h; in backward dh */
    float *c;               /* [group][rows][16] c; in backward dc */
    float *mask_x, *mask_h; /* [rows][input_pad], [rows][out_pad] */
    uint16_t *bits;         /* one row of mask bits */
    float *weights_x;       /* x_in_time: a panel of W_x */
    float *z;               /* norm: [panel][rows][64] */
    float *extra;           /* LSTM with norm: [group][rows][16] c^; GRU, reset before: [rows][out_pad] */
    float *product;         /* [rows][units_pad] */
    float *projected;       /* [rows][out_pad] */
    float *stats, *c_stats, *sums;
    float *xh, *raw; /* inference: for a chunk; training: in the reserve */
    float *gates,
        *gates_h; /* as xh; training where gates are put: for one step with norm, otherwise for one panel of a step */
    float *dq;    /* backward, LSTM with norm: [group][rows][16] */
    float *dm;    /* backward, projection: [rows][units_pad] */
    float *dprojected;  /* backward, projection: [chunk rows][out_pad] */
    float *dx;          /* backward: [chunk rows][input_pad] */
    float *strips;      /* backward: strips of x~ or h~, [strip][chunk rows][64] */
    float *gate_tiles;  /* backward, with strips: tiles of one panel of gates, [members that share the block] */
    float *tiles;       /* the tiles that products multiply by the weights (tiles.h) */
    float *tiles_gates; /* backward: tiles of one panel of gates, [members that share the block] */
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
    int32_t member, members;         /* of the members that share the block */
    int64_t panel_first, panel_last; /* the panels of this member */
    const struct blas_packed *packed;
    const struct blas_saved *saved; /* of the whole batch; training only */
    struct blas_scratch scratch;
    struct blas_tiles *tiles; /* those of this thread */
    void *const *slots;
};

/* The time step that is run as the s-th one. */
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

/* Returns true if a member's rows of this layer are many times larger than the second-level cache. */
static inline bool blas_leaves_cache(const struct blas_run *run)
{
    const struct blas_recurrent *op = run->op;
    const int64_t row = op->layers[run->layer].xh_row + (int64_t)op->panels * PANEL + op->units_pad;
    return run->binding->rows / run->binding->members * row * (int64_t)sizeof(float) > (8 << 20);
}

/* Fills mask_x and mask_h if the options need them. */
void blas_masks_fill(const struct blas_run *run);

/* A parameter, state or gradient slot, by name. */
static inline float *blas_state_slot(const struct blas_run *run, void *const *slots, int which)
{
    return slots[SEQLSTM_SLOT_RECURRENT_STATE(run->n, which)];
}

/* ---- forward ---- */

/* The workspace of calls on `rows` rows. It depends on no other part of the binding. */
uint64_t blas_forward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions);

struct blas_forward_run {
    struct blas_run r;
    int64_t chunk_steps; /* steps in a chunk */
    struct blas_rows_at x, y;
};

/* The first q of the chunk that contains step s, and the rows of the chunk. */
int64_t blas_chunk_q(const struct blas_forward_run *f, int64_t s, int64_t *out_rows);

/* The row of xh of the block's first sequence at the s-th step. */
float *blas_xh_at(const struct blas_forward_run *f, int64_t s);

/* The pre-activations of panel 0 at the s-th step, and the stride between panels. */
float *blas_gates_at(const struct blas_forward_run *f, int64_t s, int64_t *out_panel_stride);

/* Where h of the s-th step goes: directly into xh of the next step if every row continues and uses it unchanged. */
float *blas_h_target(const struct blas_forward_run *f, int64_t s, int64_t *out_row);

/* Runs products and cells of one step with at least one row. */
void blas_step_run(const struct blas_forward_run *f, int64_t s);

/* Draws the zoneout bits of `steps` steps with equal numbers of rows, from t on, if the options need them. Training
 * only. */
void blas_zoneout_bits(const struct blas_run *run, int64_t t, int64_t steps);

/* Returns true if the sweeps below may run the steps of this block. */
bool blas_sweep_fits(const struct blas_run *run);

/* Runs the products with h~ and the cells of steps s up to end, which are in one chunk. Also writes y, and h~ of the
 * next step. */
void blas_sweep_forward(const struct blas_forward_run *f, int64_t s, int64_t end);

/* ---- backward ---- */

uint64_t blas_backward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions);

struct blas_backward_run {
    struct blas_run r;
    struct blas_gradients gradients; /* those of this member for this (layer, direction) */
    struct blas_rows_at dy, dx;
    bool dx_add;         /* the other direction has already written dx */
    bool weights, fresh; /* dW is wanted; `w` does not hold anything yet */
    const float *x_back; /* W_x packed for dx; NULL: it is read in its canonical layout */
    bool direct;         /* dW is written directly to the canonical gradients */
    bool keep_sums;      /* an earlier block has added to the gradients of this region */
    void *const *grads;
    uint32_t parts;
    int64_t chunk_low, chunk_high; /* the q of the current chunk */
};

/* Both norms of `rows` rows from q of the block on, as training keeps them. The pointers for the gradients of gains
 * are not set. */
struct blas_norm blas_norm_at(const struct blas_run *run, int64_t q, int64_t rows);

/* Copies up to GROUP floats; with `fill`, zeros follow up to GROUP. A whole group takes one instruction or a few. */
static inline void blas_copy_group(float *to, const float *from, int64_t count, bool fill)
{
    if (count >= GROUP) {
        memcpy(to, from, GROUP * sizeof *to);
        return;
    }
    if (fill)
        memset(to, 0, GROUP * sizeof *to);
    for (int64_t u = 0; u < count; u++)
        to[u] = from[u];
}

/* The columns of h that belong to this member. */
void blas_own_columns(const struct blas_run *run, int64_t *low, int64_t *high);

/* C[.., low .. high) (+)= gradients of the groups (product->a: of whole panels) times W of `width` columns, packed
 * for backward at b. In a large layer, the sum takes `together` panels of gates at a time, as many as stay in the
 * cache with all their rows. Overwrites the fields of `product`. */
void blas_product_back(const struct blas_recurrent *op, struct blas_product *product, struct blas_groups groups,
                       const float *b, int64_t width, int64_t low, int64_t high, int32_t together);

/* Weight gradients of the member's own panels (+)= contribution of q in [low, high) of the block: gate gradients
 * times x~h~. */
void blas_chunk_weights(struct blas_backward_run *f, int64_t low, int64_t high);

/* Step t: computes the gradients of its pre-activations, then dh of the step before it. t_next: the step that is run
 * next. */
void blas_step_back(struct blas_backward_run *f, int64_t t, int64_t t_next);

/* The same for steps s up to end, in the order of backward. */
void blas_sweep_backward(const struct blas_backward_run *f, int64_t s, int64_t end);

#endif
