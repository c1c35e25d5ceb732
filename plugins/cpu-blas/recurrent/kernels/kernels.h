/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of one instruction set for recurrent layers, and their arguments.
 *
 * Units come in groups of 16 (LSTM, GRU) or 64 (RNN): a *panel*. Each panel and row has 64 pre-activations
 *
 *   LSTM  [i 16][f 16][g 16][o 16]
 *   GRU   [n from x 16][r 16][z 16][n from h 16]
 *   RNN   [64 units]
 *
 * stored as [panel][row][64], so that products, cells and weight gradients read and write 256 contiguous bytes of each
 * row. In a GRU, products with x fill the first three groups and products with h the last three. Forward weights are
 * [panel][k][64], where k runs over the padded x, then over the padded h.
 *
 * Pointers may be unaligned; strides are in floats. No kernel allocates memory or shares state. */
#ifndef BLAS_RECURRENT_KERNELS_H
#define BLAS_RECURRENT_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/ops.h>

enum { PANEL = 64, GROUP = 16 };

enum { BLAS_TURN_K = 4 }; /* the k that a product multiplies in one iteration */

/* The cache lines that a product prefetches for every 4 of k. */
enum { BLAS_FETCH_SLOW = 2, BLAS_FETCH_FAST = 4 };

/* C[r][n] = init + sum_k A[r][k] B[k][n] for one panel of up to 64 columns. k runs over k_blocks blocks of k_inner,
 * a multiple of BLAS_TURN_K. Block i of row r of A begins at a + i a_block + r a_row. Rows of B are b_row floats
 * apart, and there are b_skip more floats between blocks. */
struct blas_product {
    int64_t rows;
    const float *a;
    int64_t a_row, a_block;
    int32_t k_blocks, k_inner;
    const float *b;
    int64_t b_row, b_skip;
    int64_t b_strip; /* 0, or the distance between strips of 16 columns of B; b_row is then 16 */
    int32_t groups;  /* columns / 16, 1 .. 4 */
    float *c;
    int64_t c_row;
    const float *init; /* [columns], or NULL: zero */
    bool accumulate;   /* add to C */
    bool descending;   /* with few rows: take the last block of k first */
    const float *next; /* the next panel, to be prefetched; or NULL */
    /* If `next` is NULL: places that will be read or written after this product. In block b of k, row tile i
     * prefetches lines from ahead[i k_blocks + b] on, at one of the two rates. There are ahead_count places. */
    const float *const *ahead;
    int32_t ahead_count, ahead_rate;
};

/* C[m][n] (+)= sum_q A[q][m] B[q][n], m < m_count <= 64, n < 16 groups <= 64. */
struct blas_outer {
    int64_t rows; /* the number of q */
    const float *a;
    int64_t a_row;
    int32_t m_count;
    const float *b;
    int64_t b_row;
    int64_t b_strip; /* 0, or the distance between strips of 16 columns of B; b_row is then 16 */
    int32_t groups;
    float *c;
    int64_t c_row;
    int64_t c_group;     /* 0, or: rows m come in groups of 16, and group i begins at c + i c_group */
    int32_t m_skip;      /* < 16: the last rows of each group, which are not wanted */
    int32_t n_skip;      /* columns of the last group, which are not wanted */
    bool accumulate;     /* add to C instead of overwriting it */
    const float *next;   /* b of the next sum, to be prefetched; or NULL */
    const float *beside; /* instead, as many other rows at the stride of b, to be prefetched; or NULL */
    bool a_tiled;        /* a is the output of outer_tile_a for the same rows and columns; a_row is not read */
};

/* The settings that all rows of one (layer, direction) share. */
struct blas_cell {
    uint32_t kind; /* SEQLSTM_CELL_… */
    bool plain;    /* LSTM with the default activations and none of the options below */
    bool usual;    /* the activations are sigmoid, tanh, tanh */
    /* LSTM whose gate derivatives can be computed from the gate values, as for sigmoid, tanh, relu and others.
     * Forward then leaves activated gates, and backward computes only the activation of the output. With gate_clip,
     * the last bit of each gate is set where its pre-activation is within the clip. */
    bool keeps_gates;
    bool coupled, peephole, training, reset_after, norm;
    struct seqlstm_activation gate, candidate, output;
    float gate_clip, cell_clip, zoneout_cell, zoneout_hidden;
};

/* One panel of `rows` rows. LSTM with unit_step 16: all panels of one row; then everything that belongs to units
 * moves on by 16 units for each row. `gates`: in: pre-activations. In training they are left for backward: activated
 * if `plain` or `keeps_gates` is set, otherwise unchanged. The state (LSTM: c, in place; GRU, RNN: h) comes in as
 * [rows][16] (RNN: [rows][64]). h: in: h' (if zoneout or the cell needs it); out: h. */
struct blas_cell_forward {
    const struct blas_cell *cell;
    int64_t rows;
    int32_t units; /* real units of this panel; the others are set to zero */
    float *gates;  /* rows of 64 at stride gates_row */
    int64_t gates_row;
    float *gates_out; /* LSTM without norm, training: [rows][64], where the gates for backward are written; or NULL */
    float *c;         /* LSTM: rows of 16 at stride c_row; in: c', out: c */
    int64_t c_row;
    float *c_saved; /* training: rows of 16 at stride saved_row, where c' (GRU: h') is written; otherwise NULL */
    int64_t saved_row;
    float *h;
    int64_t h_row;
    const float *peephole; /* i, f, o at stride peephole_row */
    int64_t peephole_row;
    /* LSTM: units from one row to the next: 0, or 16 if the rows are panels of one sequence. Then mean, rstd and sums
     * exist once. */
    int64_t unit_step;
    const uint16_t *new_c; /* training with zoneout: bit set where c is new, [rows] at stride bits_row; or NULL */
    const uint16_t *new_h;
    int64_t bits_row;
    /* GRU, reset before: the product of r h~ with W_hn, at stride h_row. LSTM with norm: scratch [rows][16] for c^. */
    float *extra;
    int64_t extra_row;
    const float *h_masked; /* GRU, reset before: h~, at stride h_masked_row */
    int64_t h_masked_row;
    /* LSTM with norm, second phase: for each row. */
    const float *mean, *rstd;
    const float *norm_gain, *norm_bias; /* of this panel's units */
};

/* Backward of the same. gates: in: as forward left them; out: gradients of the pre-activations. */
struct blas_cell_backward {
    const struct blas_cell *cell;
    int64_t rows;
    int32_t units;
    float *gates;
    int64_t gates_row;
    const float *c_saved; /* c' (GRU: h') */
    int64_t saved_row;
    float *dc; /* in: dc, out: dc' */
    int64_t c_row;
    float *dh; /* in: dh; out: the part of dh' that does not come from the product */
    int64_t dh_row;
    const float *dy; /* LSTM: added to dh; or NULL */
    int64_t dy_row;
    int64_t unit_step;
    const float *peephole;
    int64_t peephole_row;
    float *dpeephole; /* added to, stride peephole_row; NULL: not wanted */
    float *dbias;     /* [64] added to */
    const uint16_t *new_c, *new_h;
    int64_t bits_row;
    float *extra; /* GRU, reset before: d(r h~) in; LSTM with norm: N(c^) between the phases */
    int64_t extra_row;
    const float *h_masked;
    int64_t h_masked_row;
    float *dq; /* LSTM with norm: rows of 16 at stride extra_row between the phases */
    const float *mean, *rstd;
    float *sums; /* first phase: [rows][2][16], added to; second: [rows][2], the means over all units */
    const float *norm_gain, *norm_bias;
    float *dnorm_gain, *dnorm_bias; /* added to */
};

/* Mask bits of `rows` rows at each of `steps` steps. Bit i mod 16 of word i / 16 is set if element i is kept
 * (philox.h). Writes whole runs of 64 elements: a row has 4 ceil(elements / 64) words. */
struct blas_keep {
    uint64_t key;
    int64_t steps, rows;
    const uint64_t *sequence;  /* [rows] */
    const uint32_t *position0; /* [rows], added to the step; NULL: zeros */
    uint32_t step;             /* the first step */
    int64_t elements;          /* of each row; > 0 */
    float rate;                /* 0 <= rate < 1 */
    uint16_t *bits;            /* [steps][rows] at stride bits_row */
    int64_t bits_row;
};

/* Layer norm of the products u [panel][row][64] and v of one step. */
struct blas_norm {
    int64_t rows;
    int32_t panels;
    float *u, *v;                   /* rows are 64 floats apart */
    int64_t panel_stride, v_stride; /* between panels of u and of v */
    float *z;                       /* [panel][row][64] at z_stride between panels */
    int64_t z_stride;
    bool whole;                          /* every column is an element of the norm */
    const float *valid_u, *valid_v;      /* [panel][64]: 1 if the column is an element of the norm, else 0 */
    const float *gain_u, *gain_v, *bias; /* [panel][64], zero where valid is 0 */
    float inverse_count;                 /* 1 / (G H) */
    float epsilon;
    float *stats; /* [rows][4]: mean u, 1/std u, mean v, 1/std v */
    float *u_out,
        *v_out; /* forward: where both products are written, like u and v, at out_stride between panels; or NULL */
    int64_t out_stride;
    float *dgain_u, *dgain_v; /* backward: [panel][64], added to */
};

/* Copies rows of x to rows of y. */
struct blas_rows {
    int64_t rows, n;
    const float *x;
    int64_t x_row;
    const float *m; /* or NULL */
    int64_t m_row;
    float *y;
    int64_t y_row;
};

/* 64 rows of a canonical matrix [.., width], to be packed for the panels of a product. */
struct blas_pack {
    const float *w;
    int64_t width, width_pad;
    const int32_t *map;   /* [64]: the row of w, or negative for zeros; the rows of a group of 16 are contiguous */
    const float *factors; /* int8: [64] the factors of the columns */
    int64_t k0, k_all;    /* pack_back */
    int64_t strip;        /* 0, or the distance between strips of 16 columns (pack_forward) */
    float *out;
    bool stream; /* the packed weights are larger than the caches */
};

/* The real rows of a group of 16 columns. */
static inline int64_t blas_group_rows(const int32_t *map)
{
    int64_t rows = 0;
    while (rows < GROUP && map[rows] >= 0)
        rows++;
    return rows;
}

/* Steps of a few sequences of an LSTM without projection, all of the same length. In: gates hold the product with x;
 * out: as after lstm_forward. Training with layer norm: `norm` has the products (u: with x) and z of the first step.
 * The panels of all three are gates_row apart, and the cell's gates are z.
 *
 * Members may share the steps: each has its own panels, and the pointers to what belongs to panels or units are those
 * of its first one. `meet` returns when all of them have called it. */
struct blas_sweep_forward {
    int64_t steps;
    int32_t rows, panels, k;       /* panels: own ones; k: rows of W_h, padded */
    int32_t low, width;            /* the own columns of h, padded: [low, low + width) */
    int32_t way;                   /* 1, or -1 where the rows of a step are stored behind those of the next step */
    int64_t position;              /* of the first step: odd ones pass over the weights in reverse order */
    struct blas_cell_forward cell; /* of the first row of the first step, all panels; h and bits_row for one row */
    int64_t bits_row;
    const float *weights; /* W_h of panel 0; the next panel is weights_panel further */
    int64_t weights_panel;
    float *xh; /* h~ of the first step, all columns: [rows][k] at stride xh_row; the next step is xh_step further */
    int64_t xh_row, xh_step;
    float *xh_after; /* h~ of the step after the last; NULL if there is none */
    bool straight;   /* h is used unchanged in the next step and nowhere else */
    float *h;        /* h of the last step; unless straight, h of each step, in place of h' */
    int64_t h_row;
    const float *mask; /* the mask of h~, [rows] at stride k; or NULL */
    const struct blas_norm *norm;
    float *c_mean, *c_rstd; /* norm: for the rows of the first step */
    float *y;               /* y_count floats of each row; or NULL */
    int64_t y_count, y_row, y_step;
    void (*meet)(const void *meeting); /* after each step, where members share them; otherwise NULL */
    const void *meeting;
};

/* Backward of the same, all panels. dh: in: of the step after the last one; out: of the step before the first one. */
struct blas_sweep_backward {
    int64_t steps;
    int32_t rows, panels, width; /* width: columns of h, padded */
    int32_t way;
    struct blas_cell_backward cell; /* of the step that runs first; dh is not read */
    int64_t bits_row, dy_row, dy_step;
    const float *weights; /* [width / 64][panel * 64][<= 64]; in_place: [4 units][width], units a multiple of 16 */
    bool in_place;
    float *dh; /* [rows] at stride dh_row */
    int64_t dh_row;
    bool carry;        /* the cell adds a part of dh' */
    const float *mask; /* the mask of h~; or NULL */
    float *product;    /* with a mask: same layout as dh */
    const struct blas_norm *norm;
};

/* Functions that *put* data write whole cache lines past the caches, to multiples of 64 bytes. Other threads see the
 * data after put_end. */
struct blas_recurrent_kernels {
    const char *name;
    /* Whether strips are faster for products of more than a few rows, and for outer products of copied rows. Without
     * strips, a tile of 16 columns reads every fourth line of a panel, so that only a quarter of the first-level
     * cache is of use. */
    bool strips;
    void (*product)(const struct blas_product *p);
    void (*outer)(const struct blas_outer *o);
    /* Writes A of `outer` row by row in the order in which tiles read it: rows times m_count floats. Worth it for
     * many columns. Otherwise a tile of six columns reads a line of each row, and there is no room in the cache for
     * the lines of B. */
    void (*outer_tile_a)(const struct blas_outer *o, float *out);
    void (*lstm_forward)(const struct blas_cell_forward *f);
    void (*lstm_backward)(const struct blas_cell_backward *b);
    void (*sweep_forward)(const struct blas_sweep_forward *w);
    void (*sweep_backward)(const struct blas_sweep_backward *w);
    /* LSTM with norm. Forward 1 writes c^ to `extra` and leaves o in gates; forward 2 computes h. Backward 1
     * replaces o by its gradient and writes extra (N(c^) before gain and bias), dq and the sums; backward 2 does the
     * rest. */
    void (*lstm_norm_forward_1)(const struct blas_cell_forward *f);
    void (*lstm_norm_forward_2)(const struct blas_cell_forward *f);
    void (*lstm_norm_backward_1)(const struct blas_cell_backward *b);
    void (*lstm_norm_backward_2)(const struct blas_cell_backward *b);
    void (*gru_forward)(const struct blas_cell_forward *f);
    void (*gru_backward)(const struct blas_cell_backward *b);
    /* GRU, reset before: forward 1 writes r h~ to `extra`. Backward 1 computes the gradients of n and z, backward 2
     * that of r. */
    void (*gru_before_forward_1)(const struct blas_cell_forward *f);
    void (*gru_before_backward_2)(const struct blas_cell_backward *b);
    void (*rnn_forward)(const struct blas_cell_forward *f);
    void (*rnn_backward)(const struct blas_cell_backward *b);
    void (*norm_forward)(const struct blas_norm *n);  /* stats and z */
    void (*norm_restore)(const struct blas_norm *n);  /* z from u, v and stats */
    void (*norm_backward)(const struct blas_norm *n); /* in: z holds dz; out: u and v hold du and dv */
    /* Mean and 1 / sqrt(var + epsilon) over `units` of [panel][rows][16] at panel stride. */
    void (*row_stats)(const float *x, int64_t panel_stride, int64_t rows, int64_t units, float epsilon, float *mean,
                      float *rstd);
    /* y[r] = scale times the sum of x[16 r .. 16 r + 15]; y may be x. */
    void (*fold)(int64_t rows, const float *x, float scale, float *y);
    void (*keep_bits)(const struct blas_keep *k);
    /* Draws the bits of one row at one step, and computes y = x times the mask. Reads one word beyond the last bits. */
    void (*keep_apply)(const struct blas_keep *k, const float *x, float *y);
    /* y[i] = x[i] scale if bit first + i is set, else 0; y may be x. Reads one word beyond the last bits. */
    void (*mask_apply)(const float *x, const uint16_t *bits, int64_t first, float scale, int64_t n, float *y);
    /* y = x (or y += x) over n floats of each row, times m unless m is NULL. */
    void (*copy)(const struct blas_rows *c);
    void (*add)(const struct blas_rows *c);
    void (*put_end)(void);
    /* out[k][c] = w[map[c]][k], k < width_pad; in strips: out[c / 16 strip + 16 k + c mod 16]. */
    void (*pack_forward)(const struct blas_pack *p);
    /* Writes the rows as k = k0 .. k0 + 63 of panels over n < width_pad, with k_all rows each; the last panel may be
     * narrower. In strips: out[n / 16][k][n mod 16]. */
    void (*pack_back)(const struct blas_pack *p);
    /* out[c][r] of a 16 x 16 block; see v_transpose16. */
    void (*transpose16)(const float *in, int64_t in_row, int rows, int columns, float *out, int64_t out_row);
};

extern const struct blas_recurrent_kernels blas_recurrent_kernels_portable;
extern const struct blas_recurrent_kernels blas_recurrent_kernels_avx2;
extern const struct blas_recurrent_kernels blas_recurrent_kernels_avx512;

#endif
