/* SPDX-License-Identifier: Apache-2.0 */
/* The cell: one sequence at one step. */
#ifndef REF_RECURRENT_CELL_H
#define REF_RECURRENT_CELL_H

#include "recurrent_stack.h"

/* C(z) and its derivative. */
double ref_clip(double z, float limit);
double ref_clip_slope(double z, float limit);

/* One sequence at one step. x [input]; h_before [out], c_before [hidden] or NULL for zeros. Fills the record. */
void ref_cell_forward(const struct ref_layer *y, int64_t b, int64_t t, const double *x, const double *h_before,
                      const double *c_before, double *record);

/* dh [out] and dc [hidden]: gradients of the carried h and c of this step. Adds to dx [input] (NULL: not
 * wanted) and to the gradients of parameters; writes dh_before [out], dc_before [hidden]. */
void ref_cell_backward(const struct ref_layer *y, int64_t b, int64_t t, const double *x, const double *h_before,
                       const double *c_before, const double *record, const double *dh, const double *dc, double *dx,
                       double *dh_before, double *dc_before);

/* ---- shared by forward and backward of the cell ---- */

/* All lie in the layer's scratch. u and v: the products; with LAYER_NORM normalised (N(u), not yet times its
 * weight). */
struct ref_work {
    double *x, *h;           /* x~ [input], h~ [out] */
    double *u, *v;           /* [G H] */
    double *du, *dv, *dz;    /* [G H] */
    double *dx, *dh;         /* of x~ and h~ */
    double *q, *out;         /* [hidden]: argument of the output activation, h^ before projection */
    double *a, *b, *e;       /* [hidden]: temporary, for any function */
    double *normal;          /* [G H]: gates without gaps, for the normalisation */
    double *h_new;           /* [out] */
    double u_scale, v_scale; /* 1 / sqrt(var + epsilon) */
};

struct ref_work ref_work_make(const struct ref_layer *y);

/* Element k of a vector that may be absent; an absent one counts as all zeros, or as all ones. */
static inline double ref_or_zero(const double *x, int64_t k)
{
    return x ? x[k] : 0;
}

static inline double ref_or_one(const double *x, int64_t k)
{
    return x ? x[k] : 1;
}

/* Fills work.x and work.h. */
void ref_work_inputs(const struct ref_layer *y, struct ref_work *w, int64_t b, const double *x, const double *h_before);

/* Normalises the gates in use of raw [G H] into out; f is skipped with COUPLED_GATES. Returns the scale. */
double ref_normalise_gates(const struct ref_layer *y, const struct ref_work *w, const double *raw, double *out);

/* Is row j of the gates unused (f with COUPLED_GATES)? */
static inline bool ref_gate_unused(const struct ref_layer *y, int64_t j)
{
    return (y->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) && j >= y->hidden && j < 2 * y->hidden;
}

#endif
