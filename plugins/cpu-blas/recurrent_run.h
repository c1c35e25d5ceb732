/* SPDX-License-Identifier: Apache-2.0 */
/* What forward and backward share while they run: one block of one (layer, direction) on one member. */
#ifndef BLAS_RECURRENT_RUN_H
#define BLAS_RECURRENT_RUN_H

#include "recurrent_op.h"

/* Where rows of a packed tensor are: row r of feature i at base[r * row + i]. base NULL: absent. */
struct blas_rows_at {
    float *base;
    int64_t row;
};

/* Scratch of one block in flight; NULL where the options do not need it. [rows] is that of the block. */
struct blas_scratch {
    float *h;        /* [rows][out_pad] h (backward: dh) */
    float *c;        /* [group][rows][16] c (backward: dc) */
    float *mask_x, *mask_h; /* [rows][input_pad], [rows][out_pad] */
    uint16_t *bits;  /* one row of mask bits */
    float *z;        /* norm: [panel][rows][64] */
    float *extra;    /* LSTM with norm: [group][rows][16] c^; GRU, reset before: [rows][out_pad] */
    float *product;  /* [rows][units_pad] */
    float *projected; /* [rows][out_pad] */
    float *stats, *c_stats, *sums;
    float *xh, *gates, *gates_h, *raw; /* inference: of a chunk; training: in the reserve */
    uint16_t *new_c, *new_h; /* forward in inference: never; here for symmetry of the layouts */
    float *dq;         /* backward, LSTM with norm: [group][rows][16] */
    float *dm;         /* backward, projection: [rows][units_pad] */
    float *dprojected; /* backward, projection: [chunk rows][out_pad] */
    float *dx;         /* backward: [chunk rows][input_pad] */
};

struct blas_run {
    const struct blas_recurrent *op;
    const struct blas_recurrent_binding *binding;
    const struct blas_block *block;
    struct seqlstm_queue *queue;
    const struct seqlstm_step *step;
    int32_t layer, direction, n; /* n = layer D + direction */
    bool reverse;
    bool barrier;           /* other members work on the same block */
    int32_t member, members; /* of those that share the block */
    int64_t panel_first, panel_last; /* this member's */
    const struct blas_packed *packed;
    const struct blas_saved *saved; /* of the whole batch; training */
    struct blas_scratch scratch;
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

void blas_scratch_forward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows,
                          struct blas_region *region, struct blas_scratch *out);
void blas_scratch_backward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows,
                           struct blas_region *region, struct blas_scratch *out);

/* Fills mask_x and mask_h where the options want them. */
void blas_masks_fill(const struct blas_run *run);

/* Where a layer's direction writes its h and where its input is read. `merged` says that another pass joins it. */
int64_t blas_layer_input(const struct blas_recurrent *op, int32_t layer);

/* A parameter, state or gradient slot by name. */
static inline float *blas_state_slot(const struct blas_run *run, void *const *slots, int which)
{
    return slots[SEQLSTM_RECURRENT_STATE(run->n, which)];
}

/* Copies [groups][rows][16] state of row r to or from a dense row of `units`. */
void blas_state_store(const struct blas_recurrent *op, const float *state, int64_t rows, int64_t r,
                      float *out);
void blas_state_load(const struct blas_recurrent *op, const float *in, float *state, int64_t rows,
                     int64_t r);

#endif
