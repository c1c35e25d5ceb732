/* SPDX-License-Identifier: Apache-2.0 */
/* One layer and direction of a recurrent call. Kernels read it from device memory, so that a capture stays valid when
 * pointers, keys and rates change.
 *
 * Records, each [rows of the segment, …], written by forward and read by backward:
 *   z [G H]  pre-activations before the gate clip          c_raw, c [H]  LSTM: before the cell clip; carried
 *   n [H]    GRU with reset_after: v_n + b_hn               h [O]         carried, after zoneout
 *   u, v [G H each]  LAYER_NORM: products before normalisation
 * They are the same as in the reference, except in the variant `small` (small.h). Backward computes everything else
 * again.
 *
 * Between steps, [sequences, …], row b is sequence b:
 *   hm[2] [O]   h of the step before times its mask, read from hm[parity] and written to hm[1 - parity]
 *   backward:   the gradient of h is direct + mask_h * product, the gradient of c is dc */
#ifndef CG_LAYER_H
#define CG_LAYER_H

#include "cuda-generic/device/axis.h"
#include "cuda-generic/device/element.h"
#include "cuda-generic/device/live.h"

struct cg_layer {
    uint32_t cell, options;
    int32_t training, reverse;
    int32_t late;   /* GRU without reset_after: W_hn multiplies r * h~ */
    int32_t normed; /* LAYER_NORM */
    struct seqlstm_activation gate, candidate, output;
    float gate_clip, cell_clip, zoneout_cell, zoneout_hidden, epsilon;
    int64_t input, hidden, out, gates, gh;         /* gh = gates * hidden */
    int64_t projection;                            /* P, 0: none */
    uint64_t zoneout_cell_key, zoneout_hidden_key; /* on the host: streams, from which keys are made */
    struct cg_axis axis;

    const float *w_h; /* with the weight mask applied */
    const float *bias, *peephole, *w_p, *norm;
    const float *h0, *c0;
    float *hn, *cn;

    float *z, *n, *c_raw, *c, *h, *u, *v;
    float *moments; /* [rows, 4] LAYER_NORM, all steps in one launch: mean and 1 / deviation of v, then of c^ */

    const float *mask_h; /* [sequences, O]; NULL: ones */
    float *hm[2];
    float *product;   /* [sequences, G H] product with W_h; forward without LAYER_NORM */
    float *raw;       /* [sequences, H] forward: o * output(q), before the projection */
    float *projected; /* [sequences, P] */
    float *reset;     /* [sequences, H] late: r * h~ */

    uint32_t *tile_weights, *tile_exchange; /* step_tile.h */

    const float *dy; /* [rows, dy_stride], its columns start at dy_offset; NULL: zero */
    int64_t dy_stride, dy_offset;
    const float *dy_mask; /* [sequences, dy_stride] factors of dy: the layer above masks its input; NULL: ones */
    const float *other_h; /* merge mul: h of the other direction */
    float dy_scale;       /* merge ave: 0.5, otherwise 1 */
    float reserved1;
    const float *dhn, *dcn;
    float *dh0, *dc0;
    float *direct, *back, *dc; /* [sequences, O], [sequences, O], [sequences, H] */
    float *dh_new;             /* [rows, O] projection: gradient of its output */
    float *dout;               /* [sequences, H] projection: gradient of its input */
    float *out_rows;           /* [rows, H] projection: its input, computed again */
    float *reset_rows;         /* [rows, H] late: r * h~, computed again */
    float *dreset;             /* [sequences, H] late */
    float *pre_u, *pre_v;      /* [rows, G H] gradients of the contributions of W_x and W_h to z; pre_v may be pre_u */
    float *du, *dv;         /* [rows, G H] gradients of the products; differ from pre_u, pre_v only with LAYER_NORM */
    float *h_rows;          /* [rows, O] masked h of the step before */
    float *gain_u, *gain_v; /* [rows, G H] LAYER_NORM: contributions of each row to d norm_x and d norm_h */
    float *gain_c, *bias_c; /* [rows, H] likewise for norm_c and norm_c_bias */
    float *peep;            /* [rows, 3 H] contributions of each row to d peephole */
};

/* The step that forward computes in turn `turn`. Backward takes the steps in the opposite order. */
CG_HD int64_t cg_step_at(const struct cg_layer *y, int64_t turn)
{
    return y->reverse ? y->axis.steps - 1 - turn : turn;
}

#ifdef __cplusplus
extern "C"
#endif
    /* Copies `count` layers to device memory, with keys made from their streams. Returns the code of its launches. */
    int
    cg_layer_store(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                   struct cg_layer *to);

/* The row of (step t of the segment, sequence b). */
CG_HD int64_t cg_row(const struct cg_layer *y, int64_t t, int64_t b)
{
    return y->axis.row_offsets[t] + b;
}

/* The row that was computed before (t, b), or -1 at the beginning of the sequence. */
CG_HD int64_t cg_row_before(const struct cg_layer *y, int64_t t, int64_t b)
{
    if (y->reverse)
        return t + 1 < y->axis.steps && b < y->axis.batch_sizes[t + 1] ? cg_row(y, t + 1, b) : -1;
    return t > 0 ? cg_row(y, t - 1, b) : -1;
}

CG_HD float cg_h_before(const struct cg_layer *y, int64_t before, int64_t b, int64_t k)
{
    return before >= 0 ? y->h[before * y->out + k] : y->h0 ? y->h0[b * y->out + k] : 0.0f;
}

CG_HD float cg_c_before(const struct cg_layer *y, int64_t before, int64_t b, int64_t k)
{
    return before >= 0 ? y->c[before * y->hidden + k] : y->c0 ? y->c0[b * y->hidden + k] : 0.0f;
}

/* An element of a vector; 0 if there is no vector. */
CG_HD float cg_or_zero(const float *x, int64_t k)
{
    return x ? x[k] : 0.0f;
}

CG_HD float cg_or_one(const float *x, int64_t k)
{
    return x ? x[k] : 1.0f;
}

/* The factor of element k of dy in the steps of sequence b. */
CG_HD float cg_dy_factor(const struct cg_layer *y, int64_t b, int64_t k)
{
    return y->dy_scale * cg_or_one(y->dy_mask, b * y->dy_stride + y->dy_offset + k);
}

/* Does zoneout keep element k of (t, b) from the step before? */
CG_HD int cg_is_kept(const struct cg_layer *y, uint64_t key, float rate, int64_t t, int64_t b, int64_t k)
{
    return rate > 0 && seqlstm_mask_drops(key, (uint64_t)k, y->axis.position0[b] + y->axis.t0 + (uint32_t)t,
                                          y->axis.sequence_id[b], rate);
}

/* Zoneout: the value before or the new one; in inference their expectation. */
CG_HD float cg_carry(const struct cg_layer *y, uint64_t key, float rate, int64_t t, int64_t b, int64_t k, float before,
                     float now)
{
    if (rate == 0)
        return now;
    if (y->training)
        return cg_is_kept(y, key, rate, t, b, k) ? before : now;
    return rate * before + (1.0f - rate) * now;
}

CG_HD float cg_gate(const struct cg_layer *y, float z)
{
    return cg_activate(y->gate, cg_clip(z, y->gate_clip));
}

CG_HD float cg_gate_slope(const struct cg_layer *y, float z)
{
    return cg_slope(y->gate, cg_clip(z, y->gate_clip)) * cg_clip_slope(z, y->gate_clip);
}

CG_HD float cg_candidate(const struct cg_layer *y, float z)
{
    return cg_activate(y->candidate, cg_clip(z, y->gate_clip));
}

CG_HD float cg_candidate_slope(const struct cg_layer *y, float z)
{
    return cg_slope(y->candidate, cg_clip(z, y->gate_clip)) * cg_clip_slope(z, y->gate_clip);
}

CG_HD int cg_is_coupled(const struct cg_layer *y)
{
    return (y->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0;
}

/* Rows of parameters that an option leaves unused: those of f with coupled gates. */
CG_HD int cg_is_unused(const struct cg_layer *y, int64_t j)
{
    return cg_is_coupled(y) && j >= y->hidden && j < 2 * y->hidden;
}

/* The others: over so many sums LAYER_NORM normalises. */
CG_HD float cg_count_used(const struct cg_layer *y)
{
    return (float)(cg_is_coupled(y) ? y->gh - y->hidden : y->gh);
}

#endif
