/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives of the equations of ops.h for one sequence at one step, in the reverse order of recurrent_cell.c. `d`
 * before a name means the derivative of the objective with respect to it. */
#include "recurrent_cell.h"

#include <string.h>

#include "norm.h"

/* From the gradient of the normalised gates to that of the raw ones, in place, over the gates in use. */
static void normalise_gates_backward(const struct ref_layer *y, const double *normalised, double scale, double *d)
{
    const int64_t gh = y->gates * y->hidden;
    double mean_d = 0, mean_dn = 0, n = 0;
    for (int64_t j = 0; j < gh; j++)
        if (!ref_gate_unused(y, j)) {
            mean_d += d[j];
            mean_dn += d[j] * normalised[j];
            n += 1;
        }
    for (int64_t j = 0; j < gh; j++)
        d[j] = ref_gate_unused(y, j) ? 0 : scale * (d[j] - mean_d / n - normalised[j] * mean_dn / n);
}

/* For backward_moved: moves a value up or down, since backends know it only rounded. `size` is its order of magnitude.
 */
static double moved(const struct ref_layer *y, double value, double size)
{
    const struct ref_call *call = y->stack->call;
    if (call->slope_distance == 0 || size == 0)
        return value;
    *call->slope_draw = seqlstm_mix64(*call->slope_draw, 0, 0);
    return value + (*call->slope_draw & 1 ? size : -size) * call->slope_distance;
}

/* The derivative of an activation; moved for functions whose derivative backends compute from the value. */
static double slope(const struct ref_layer *y, const struct seqlstm_activation *f, double z)
{
    double largest = 0;
    if (f->kind == SEQLSTM_ACT_TANH || f->kind == SEQLSTM_ACT_SIGMOID || f->kind == SEQLSTM_ACT_SOFTSIGN ||
        f->kind == SEQLSTM_ACT_SOFTPLUS)
        largest = 1;
    else if (f->kind == SEQLSTM_ACT_SCALED_TANH)
        largest = (double)f->alpha * (double)f->beta;
    else if (f->kind == SEQLSTM_ACT_ELU && z < 0)
        largest = (double)f->alpha;
    return moved(y, ref_activation_slope(f, z), largest);
}

static double gate_slope(const struct ref_layer *y, double z)
{
    return slope(y, y->gate, ref_clip(z, y->desc->gate_clip)) * ref_clip_slope(z, y->desc->gate_clip);
}

static double candidate_slope(const struct ref_layer *y, double z)
{
    return slope(y, y->candidate, ref_clip(z, y->desc->gate_clip)) * ref_clip_slope(z, y->desc->gate_clip);
}

static double gate(const struct ref_layer *y, double z)
{
    return ref_activate(y->gate, ref_clip(z, y->desc->gate_clip));
}

static double candidate(const struct ref_layer *y, double z)
{
    return ref_activate(y->candidate, ref_clip(z, y->desc->gate_clip));
}

/* From dh^ through the projection and the output gate: dc^ in work.e (this path only), dz_o, d norm_c. */
static void lstm_output(const struct ref_layer *y, struct ref_work *w, const double *record, const double *dh_new)
{
    const struct seqlstm_recurrent_desc *d = y->desc;
    const int64_t n = y->hidden;
    const double *z_o = record + 3 * n;
    const bool norm = d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    const double *norm_c = norm ? y->norm + 8 * n : NULL, *norm_c_bias = norm ? norm_c + n : NULL;
    double *c_new = w->a, *normal = w->b, *dq = w->e, scale = 1;
    for (int64_t k = 0; k < n; k++)
        c_new[k] = ref_clip(record[y->layout->c_raw + k], d->cell_clip);
    if (norm)
        scale = ref_normalise(c_new, normal, n, (double)d->layer_norm_epsilon);
    for (int64_t k = 0; k < n; k++) {
        w->q[k] = norm ? normal[k] * norm_c[k] + norm_c_bias[k] : c_new[k];
        w->out[k] = gate(y, z_o[k]) * ref_activate(y->output, w->q[k]);
    }
    double *dout = w->du; /* free until the products need it */
    memset(dout, 0, (size_t)n * sizeof *dout);
    if (y->projection)
        ref_matvec_backward(y->out, n, y->projection, w->out, dh_new, dout, y->dprojection);
    else
        ref_axpy(n, 1, dh_new, dout);
    for (int64_t k = 0; k < n; k++) {
        w->dz[3 * n + k] = dout[k] * ref_activate(y->output, w->q[k]) * gate_slope(y, z_o[k]);
        dq[k] = dout[k] * gate(y, z_o[k]) * slope(y, y->output, w->q[k]);
    }
    if (norm) {
        for (int64_t k = 0; k < n; k++) {
            if (y->dnorm) {
                y->dnorm[8 * n + k] += dq[k] * normal[k];
                y->dnorm[9 * n + k] += dq[k];
            }
            dq[k] *= norm_c[k];
        }
        ref_normalise_backward(normal, scale, dq, dq, n);
    }
}

/* Fills work.dz and dc_before. */
static void lstm(const struct ref_layer *y, struct ref_work *w, int64_t b, int64_t t, const double *c_before,
                 const double *record, const double *dh_new, const double *dc, double *dc_before)
{
    const struct seqlstm_recurrent_desc *d = y->desc;
    const int64_t n = y->hidden;
    const bool coupled = d->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
    const double *p_i = y->peephole, *p_f = p_i ? p_i + n : NULL, *p_o = p_i ? p_i + 2 * n : NULL, *z = record;
    lstm_output(y, w, record, dh_new);
    for (int64_t k = 0; k < n; k++) {
        const bool kept = d->zoneout_cell > 0 && ref_zoneout_keeps(y, y->zoneout_cell_key, d->zoneout_cell, b, t, k);
        const double c_prev = ref_or_zero(c_before, k), i = gate(y, z[k]);
        const double f = coupled ? 1 - i : gate(y, z[n + k]), g = candidate(y, z[2 * n + k]);
        const double dc_new = w->e[k] + (kept ? 0 : dc[k]) + ref_or_zero(p_o, k) * w->dz[3 * n + k];
        const double dc_raw = dc_new * ref_clip_slope(record[y->layout->c_raw + k], d->cell_clip);
        const double df = dc_raw * c_prev, di = dc_raw * g - (coupled ? df : 0);
        w->dz[k] = di * gate_slope(y, z[k]);
        w->dz[n + k] = coupled ? 0 : df * gate_slope(y, z[n + k]);
        w->dz[2 * n + k] = dc_raw * i * candidate_slope(y, z[2 * n + k]);
        dc_before[k] = (kept ? dc[k] : 0) + dc_raw * f + ref_or_zero(p_i, k) * w->dz[k];
        if (!coupled)
            dc_before[k] += ref_or_zero(p_f, k) * w->dz[n + k];
        if (y->dpeephole) {
            y->dpeephole[k] += w->dz[k] * c_prev;
            y->dpeephole[n + k] += w->dz[n + k] * c_prev;
            y->dpeephole[2 * n + k] += w->dz[3 * n + k] * w->a[k];
        }
    }
    if (y->dbias)
        ref_axpy(4 * n, 1, w->dz, y->dbias);
    memcpy(w->du, w->dz, (size_t)(4 * n) * sizeof *w->du);
    memcpy(w->dv, w->dz, (size_t)(4 * n) * sizeof *w->dv);
}

/* Fills work.du and work.dv. Without reset_after, the candidate rows of dv are those of W_hn~ (r * h~), and work.dh
 * receives what flows through r * h~. Adds to dh_before what flows through z * h'. */
static void gru(const struct ref_layer *y, struct ref_work *w, const double *h_before, const double *record,
                const double *dh_new, double *dh_before)
{
    const int64_t n = y->hidden;
    const bool after = y->desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    const double *z = record;
    double *dz = w->dz, *drh = w->b, *rh = w->e, *r = w->a;
    for (int64_t k = 0; k < n; k++) {
        const double keep = gate(y, z[n + k]);
        r[k] = gate(y, z[k]);
        dz[n + k] = dh_new[k] * (ref_or_zero(h_before, k) - candidate(y, z[2 * n + k])) * gate_slope(y, z[n + k]);
        dz[2 * n + k] = dh_new[k] * (1 - keep) * candidate_slope(y, z[2 * n + k]);
        dh_before[k] += dh_new[k] * keep;
    }
    memcpy(w->dv + 2 * n, dz + 2 * n, (size_t)n * sizeof *dz);
    if (after) {
        for (int64_t k = 0; k < n; k++) {
            dz[k] = dz[2 * n + k] * record[y->layout->n + k] * gate_slope(y, z[k]);
            w->dv[2 * n + k] = dz[2 * n + k] * r[k];
        }
    } else {
        memset(drh, 0, (size_t)n * sizeof *drh);
        for (int64_t k = 0; k < n; k++)
            rh[k] = r[k] * w->h[k];
        ref_matvec_backward(n, n, y->w_h + 2 * n * n, rh, dz + 2 * n, drh, y->dw_h ? y->dw_h + 2 * n * n : NULL);
        for (int64_t k = 0; k < n; k++) {
            dz[k] = drh[k] * w->h[k] * gate_slope(y, z[k]);
            w->dh[k] += drh[k] * r[k];
        }
    }
    memcpy(w->dv, dz, (size_t)(2 * n) * sizeof *dz);
    memcpy(w->du, dz, (size_t)(3 * n) * sizeof *dz);
    if (y->dbias) {
        ref_axpy(3 * n, 1, dz, y->dbias);
        if (after)
            ref_axpy(n, 1, w->dv + 2 * n, y->dbias + 3 * n);
    }
}

/* From d(N(z) * weight) to dz, for u and for v; also d norm_x and d norm_h. */
static void layer_norm(const struct ref_layer *y, struct ref_work *w, const double *record)
{
    const int64_t gh = y->gates * y->hidden;
    w->u_scale = ref_normalise_gates(y, w, record + y->layout->u, w->u);
    w->v_scale = ref_normalise_gates(y, w, record + y->layout->v, w->v);
    for (int64_t j = 0; j < gh; j++) {
        w->u[j] = moved(y, w->u[j], 1);
        w->v[j] = moved(y, w->v[j], 1);
        if (y->dnorm) {
            y->dnorm[j] += w->du[j] * w->u[j];
            y->dnorm[gh + j] += w->dv[j] * w->v[j];
        }
        w->du[j] *= y->norm[j];
        w->dv[j] *= y->norm[gh + j];
    }
    normalise_gates_backward(y, w->u, w->u_scale, w->du);
    normalise_gates_backward(y, w->v, w->v_scale, w->dv);
}

void ref_cell_backward(const struct ref_layer *y, int64_t b, int64_t t, const double *x, const double *h_before,
                       const double *c_before, const double *record, const double *dh, const double *dc, double *dx,
                       double *dh_before, double *dc_before)
{
    const struct seqlstm_recurrent_desc *d = y->desc;
    const int64_t gh = y->gates * y->hidden;
    const bool late = d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
    struct ref_work w = ref_work_make(y);
    ref_work_inputs(y, &w, b, x, h_before);
    memset(w.dx, 0, (size_t)y->input * sizeof *w.dx);
    memset(w.dh, 0, (size_t)y->out * sizeof *w.dh);
    memset(dc_before, 0, (size_t)y->hidden * sizeof *dc_before);
    for (int64_t k = 0; k < y->out; k++) {
        const bool kept =
            d->zoneout_hidden > 0 && ref_zoneout_keeps(y, y->zoneout_hidden_key, d->zoneout_hidden, b, t, k);
        w.h_new[k] = kept ? 0 : dh[k];
        dh_before[k] = kept ? dh[k] : 0;
    }
    const double *dh_new = w.h_new;
    if (d->cell == SEQLSTM_CELL_LSTM) {
        lstm(y, &w, b, t, c_before, record, dh_new, dc, dc_before);
    } else if (d->cell == SEQLSTM_CELL_GRU) {
        gru(y, &w, h_before, record, dh_new, dh_before);
    } else {
        for (int64_t k = 0; k < gh; k++)
            w.du[k] = w.dv[k] = dh_new[k] * candidate_slope(y, record[k]);
        if (y->dbias)
            ref_axpy(gh, 1, w.du, y->dbias);
    }
    if (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM)
        layer_norm(y, &w, record);
    ref_matvec_backward(gh, y->input, y->w_x, w.x, w.du, dx ? w.dx : NULL, y->dw_x);
    ref_matvec_backward(late ? 2 * y->hidden : gh, y->out, y->w_h, w.h, w.dv, w.dh, y->dw_h);
    for (int64_t k = 0; dx && k < y->input; k++)
        dx[k] += w.dx[k] * ref_or_one(y->mask_x, b * y->input + k);
    for (int64_t k = 0; k < y->out; k++)
        dh_before[k] += w.dh[k] * ref_or_one(y->mask_h, b * y->out + k);
}
