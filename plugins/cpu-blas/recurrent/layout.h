/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the buffers of the recurrent operation: packed weights, what forward saves for backward, gradients. */
#ifndef BLAS_RECURRENT_LAYOUT_H
#define BLAS_RECURRENT_LAYOUT_H

#include "cpu-blas/recurrent/op.h"

/* A region of memory. The same calls first measure it (base NULL) and later lay it out. */
struct blas_region {
    char *base;
    uint64_t used;
};
/* Takes `count` floats, 64-byte aligned. NULL while measuring, or if count is 0. */
float *blas_region_take(struct blas_region *region, int64_t count);

/* Weights of one (layer, direction) in the layout of the kernels. NULL where the options do not need them. On tiles,
 * the first three have the layout in tiles.h. */
struct blas_packed {
    /* In strips: forward [panel][4][input_pad + out_pad][16]; h_back and x_back
     * [out_pad or input_pad / 16][panel * 64][16]. */
    float *forward;                      /* [panel][input_pad + out_pad][64]; x_in_time: [panel][out_pad][64] */
    float *h_back;                       /* [out_pad / 64][panel * 64][<= 64]: a narrower last panel has no padding */
    float *x_back;                       /* [input_pad / 64][panel * 64][<= 64] */
    float *bias;                         /* [panel][64] */
    float *peephole;                     /* [3][units_pad]; zero without the option */
    float *scale, *offset, *offset_h;    /* int8: [panel][64], see int8.h */
    float *projection, *projection_back; /* N = out_pad, K = units_pad, and the reverse */
    float *rh, *rh_back;                 /* GRU, reset before: W_hn: N = units_pad, K = out_pad, and the reverse */
    float *valid_u, *valid_v, *gain_u, *gain_v, *gain_c, *bias_c;
    float *masked;       /* weight drop: W_h times its mask, in the canonical layout */
    uint16_t *drop_bits; /* its mask */
};

struct blas_saved {
    float *xh, *gates, *state;
    float *gates_h;          /* norm: the second product */
    float *z;                /* norm_keeps: i, f, g, o, then their gradients; layout of gates */
    float *raw;              /* projection: [q][units_pad] h before the projection */
    float *rh;               /* GRU, reset before: [q][out_pad] r h~ */
    float *stats;            /* norm: [q][4] */
    float *c_stats;          /* LSTM with norm: mean [q], then 1/std [q] */
    uint16_t *new_c, *new_h; /* zoneout: [q][bits_row] */
    float *merged;           /* MUL: output of this direction, [R][O] */
    float *dprojected;       /* stepwise with projection: [q][out_pad] dh^ */
};

/* Gradients of one (layer, direction) of one member, in the layout of the kernels. */
struct blas_gradients {
    float *w; /* [panel][64][input_pad + out_pad]; on tiles: [panel][input_pad + out_pad][64] */
    float *bias, *peephole, *projection, *norm_u, *norm_v, *norm_c, *rh;
    float *sums; /* where the small gradients begin, which are cleared at the start */
    int64_t sums_count;
};

/* Is W_x packed for dx with the other weights? dx of layer 0 is often not wanted; backward then packs them when it is.
 * A stepwise operation runs backward many times for one packing. */
bool blas_keeps_x_back(const struct blas_recurrent *op, int32_t layer);

void blas_packed_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                        struct blas_packed *out);

/* In a small layer each member packs a copy of its own. Then no cache line of weights moves from one core to
 * another, which takes longer than packing. The buffer begins with the number of copies. */
struct blas_packed_all {
    int32_t copies;
    char *base;               /* the first copy */
    uint64_t bytes;           /* of each copy */
    uint64_t at[BLAS_LD_MAX]; /* where in a copy a (layer, direction) begins */
};

/* The most sequences in a block that sweeps (sweep.c); 0 if none may sweep. */
int64_t blas_sweep_rows(const struct blas_recurrent *op);

/* The members worth waking for so many rows of all steps: one for each thousand products of 16 lanes. In training,
 * summing the members' weight gradients takes as long as computing those of some rows, so each member also needs
 * some rows. */
int64_t blas_members_worth(const struct blas_recurrent *op, int64_t rows);

/* The copies of the weights that `members` members need; 0: any number of members. */
int32_t blas_packed_copies(const struct blas_recurrent *op, int32_t members);
/* Opens the buffer, with the number of copies that it states; NULL measures one copy. Returns the bytes in front of
 * the copies plus those of one copy. */
uint64_t blas_packed_open(const struct blas_recurrent *op, const void *buffer, struct blas_packed_all *out);
/* The weights of one (layer, direction) for member `member`. */
struct blas_packed blas_packed_own(const struct blas_recurrent *op, const struct blas_packed_all *all, int32_t n,
                                   int32_t member);
/* `blocks`: the most blocks that the rows are cut into. */
void blas_saved_layout(const struct blas_recurrent *op, int32_t layer, int64_t rows, int64_t blocks,
                       struct blas_region *region, struct blas_saved *out);
void blas_gradients_layout(const struct blas_recurrent *op, int32_t layer, struct blas_region *region,
                           struct blas_gradients *out);

/* The gradients of all layers for `members`: fills those of member 0 and returns the floats to the next member's. */
int64_t blas_gradients_all(const struct blas_recurrent *op, int32_t members, struct blas_region *region,
                           struct blas_gradients out[BLAS_LD_MAX]);

/* Moves every pointer by `floats` floats. */
void blas_gradients_move(struct blas_gradients *gradients, int64_t floats);

/* The uint16 words of a row's zoneout bits. */
int64_t blas_bits_row(const struct blas_recurrent *op);

/* The most rows of a chunk of steps of a block in backward. */
int64_t blas_chunk_rows_max(const struct blas_recurrent *op);

#endif
