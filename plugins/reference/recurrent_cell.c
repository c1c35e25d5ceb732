/* SPDX-License-Identifier: Apache-2.0 */
/* The equations of ops.h for one sequence at one step, with the same names: z, u, v, i, f, g, o, c^, q, h^. */
#include "recurrent_cell.h"

#include <string.h>

#include "norm.h"

struct ref_work ref_work_make(const struct ref_layer *y)
{
    const int64_t gh = y->gates * y->hidden;
    struct ref_work w = {.x = y->scratch};
    w.dx = w.x + y->input;
    w.h = w.dx + y->input;
    w.dh = w.h + y->out;
    w.h_new = w.dh + y->out;
    w.u = w.h_new + y->out;
    w.v = w.u + gh;
    w.du = w.v + gh;
    w.dv = w.du + gh;
    w.dz = w.dv + gh;
    w.normal = w.dz + gh;
    w.q = w.normal + gh;
    w.out = w.q + y->hidden;
    w.a = w.out + y->hidden;
    w.b = w.a + y->hidden;
    w.e = w.b + y->hidden;
    return w;
}

double ref_clip(double z, float limit)
{
    const double most = (double)limit;
    return limit == 0 ? z : z > most ? most : z < -most ? -most : z;
}

double ref_clip_slope(double z, float limit)
{
    return limit > 0 && (z > (double)limit || z < -(double)limit) ? 0 : 1;
}

void ref_work_inputs(const struct ref_layer *y, struct ref_work *w, int64_t b, const double *x, const double *h_before)
{
    for (int64_t k = 0; k < y->input; k++)
        w->x[k] = x[k] * ref_or_one(y->mask_x, b * y->input + k);
    for (int64_t k = 0; k < y->out; k++)
        w->h[k] = ref_or_zero(h_before, k) * ref_or_one(y->mask_h, b * y->out + k);
}

double ref_normalise_gates(const struct ref_layer *y, const struct ref_work *w, const double *raw, double *out)
{
    int64_t n = 0;
    for (int64_t j = 0; j < y->gates * y->hidden; j++)
        if (!ref_gate_unused(y, j))
            w->normal[n++] = raw[j];
    const double scale = ref_normalise(w->normal, w->normal, n, (double)y->desc->layer_norm_epsilon);
    n = 0;
    for (int64_t j = 0; j < y->gates * y->hidden; j++)
        out[j] = ref_gate_unused(y, j) ? 0 : w->normal[n++];
    return scale;
}

/* u = W_x x~ and v = W_h~ h~; with LAYER_NORM normalised and weighted. In a GRU without reset_after, the candidate rows
 * of v are computed later, since they need r. */
static void products(const struct ref_layer *y, struct ref_work *w, double *record)
{
    const int64_t gh = y->gates * y->hidden;
    const bool late = y->desc->cell == SEQLSTM_CELL_GRU && !(y->desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
    ref_matvec(gh, y->input, y->w_x, w->x, NULL, w->u);
    ref_matvec(late ? 2 * y->hidden : gh, y->out, y->w_h, w->h, NULL, w->v);
    if (!(y->desc->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM))
        return;
    memcpy(record + y->layout->u, w->u, (size_t)gh * sizeof *record);
    memcpy(record + y->layout->v, w->v, (size_t)gh * sizeof *record);
    ref_normalise_gates(y, w, w->u, w->u);
    ref_normalise_gates(y, w, w->v, w->v);
    for (int64_t j = 0; j < gh; j++) {
        w->u[j] *= y->norm[j];
        w->v[j] *= y->norm[gh + j];
    }
}

/* What is carried after zoneout: the value before or the new one; in inference their expectation. */
static double carry(const struct ref_layer *y, uint64_t key, float rate, int64_t b, int64_t t, int64_t k, double before,
                    double now)
{
    if (rate == 0)
        return now;
    if (y->training)
        return ref_zoneout_keeps(y, key, rate, b, t, k) ? before : now;
    const double kept = (double)seqlstm_mask_rate(rate);
    return kept * before + (1 - kept) * now;
}

static double gate(const struct ref_layer *y, double z)
{
    return ref_activate(y->gate, ref_clip(z, y->desc->gate_clip));
}

static double candidate(const struct ref_layer *y, double z)
{
    return ref_activate(y->candidate, ref_clip(z, y->desc->gate_clip));
}

/* Writes h^ to work.h_new and c to the record. */
static void lstm(const struct ref_layer *y, struct ref_work *w, int64_t b, int64_t t, const double *c_before,
                 double *record)
{
    const struct seqlstm_recurrent_desc *d = y->desc;
    const int64_t n = y->hidden;
    const bool coupled = d->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
    const double *p_i = y->peephole, *p_f = p_i ? p_i + n : NULL, *p_o = p_i ? p_i + 2 * n : NULL;
    double *z = record, *c_new = w->a;
    for (int64_t k = 0; k < n; k++) {
        const double c_prev = ref_or_zero(c_before, k);
        z[k] = w->u[k] + w->v[k] + ref_or_zero(y->bias, k) + ref_or_zero(p_i, k) * c_prev;
        z[n + k] = w->u[n + k] + w->v[n + k] + ref_or_zero(y->bias, n + k) + ref_or_zero(p_f, k) * c_prev;
        if (coupled)
            z[n + k] = 0; /* unused */
        z[2 * n + k] = w->u[2 * n + k] + w->v[2 * n + k] + ref_or_zero(y->bias, 2 * n + k);
        const double i = gate(y, z[k]), f = coupled ? 1 - i : gate(y, z[n + k]), g = candidate(y, z[2 * n + k]);
        record[y->layout->c_raw + k] = f * c_prev + i * g;
        c_new[k] = ref_clip(record[y->layout->c_raw + k], d->cell_clip);
        z[3 * n + k] =
            w->u[3 * n + k] + w->v[3 * n + k] + ref_or_zero(y->bias, 3 * n + k) + ref_or_zero(p_o, k) * c_new[k];
        record[y->layout->c + k] = carry(y, y->zoneout_cell_key, d->zoneout_cell, b, t, k, c_prev, c_new[k]);
    }
    memcpy(w->q, c_new, (size_t)n * sizeof *w->q);
    if (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) {
        const double *norm_c = y->norm + 8 * n, *norm_c_bias = norm_c + n;
        ref_normalise(c_new, w->q, n, (double)d->layer_norm_epsilon);
        for (int64_t k = 0; k < n; k++)
            w->q[k] = w->q[k] * norm_c[k] + norm_c_bias[k];
    }
    for (int64_t k = 0; k < n; k++)
        w->out[k] = gate(y, z[3 * n + k]) * ref_activate(y->output, w->q[k]);
    if (y->projection)
        ref_matvec(y->out, n, y->projection, w->out, NULL, w->h_new);
    else
        memcpy(w->h_new, w->out, (size_t)n * sizeof *w->h_new);
}

static void gru(const struct ref_layer *y, struct ref_work *w, const double *h_before, double *record)
{
    const int64_t n = y->hidden;
    const bool after = y->desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    double *z = record, *r = w->a;
    for (int64_t k = 0; k < 2 * n; k++)
        z[k] = w->u[k] + w->v[k] + ref_or_zero(y->bias, k);
    for (int64_t k = 0; k < n; k++)
        r[k] = gate(y, z[k]);
    if (after) {
        for (int64_t k = 0; k < n; k++) {
            record[y->layout->n + k] = w->v[2 * n + k] + ref_or_zero(y->bias, 3 * n + k);
            z[2 * n + k] = w->u[2 * n + k] + ref_or_zero(y->bias, 2 * n + k) + r[k] * record[y->layout->n + k];
        }
    } else {
        for (int64_t k = 0; k < n; k++)
            w->b[k] = r[k] * w->h[k];
        ref_matvec(n, n, y->w_h + 2 * n * n, w->b, NULL, w->v + 2 * n);
        for (int64_t k = 0; k < n; k++)
            z[2 * n + k] = w->u[2 * n + k] + ref_or_zero(y->bias, 2 * n + k) + w->v[2 * n + k];
    }
    for (int64_t k = 0; k < n; k++) {
        const double keep = gate(y, z[n + k]);
        w->h_new[k] = (1 - keep) * candidate(y, z[2 * n + k]) + keep * ref_or_zero(h_before, k);
    }
}

void ref_cell_forward(const struct ref_layer *y, int64_t b, int64_t t, const double *x, const double *h_before,
                      const double *c_before, double *record)
{
    struct ref_work w = ref_work_make(y);
    ref_work_inputs(y, &w, b, x, h_before);
    products(y, &w, record);
    switch (y->desc->cell) {
    case SEQLSTM_CELL_LSTM:
        lstm(y, &w, b, t, c_before, record);
        break;
    case SEQLSTM_CELL_GRU:
        gru(y, &w, h_before, record);
        break;
    default: /* SEQLSTM_CELL_RNN */
        for (int64_t k = 0; k < y->hidden; k++) {
            record[k] = w.u[k] + w.v[k] + ref_or_zero(y->bias, k);
            w.h_new[k] = candidate(y, record[k]);
        }
        break;
    }
    for (int64_t k = 0; k < y->out; k++)
        record[y->layout->h + k] =
            carry(y, y->zoneout_hidden_key, y->desc->zoneout_hidden, b, t, k, ref_or_zero(h_before, k), w.h_new[k]);
}
