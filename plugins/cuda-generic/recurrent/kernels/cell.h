/* SPDX-License-Identifier: Apache-2.0 */
/* The equations of ops.h for one hidden unit of one sequence at one step, and their derivatives. All variants of the
 * recurrent kernels use them. Callers compute the sums (products with W_h, normalisation, projection). */
#ifndef CG_CELL_H
#define CG_CELL_H

#include "cuda-generic/recurrent/kernels/layer.h"

/* Forward of an LSTM up to c^. From the four sums u + v (weighted and normalised where the options say so) computes the
 * pre-activations, which it writes to the record (o's to *out_z_o too), and the carried cell. Returns c^ after the
 * clip. */
CG_HD float cg_lstm_inner(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                          const float sums[4], float *out_z_o)
{
    const int64_t n = y->hidden;
    const float *p = y->peephole;
    const float c_before = cg_c_before(y, before, b, k);
    float *z = y->z + row * y->gh;
    const float z_i = sums[0] + cg_or_zero(y->bias, k) + (p ? p[k] * c_before : 0.0f);
    const float z_f = cg_is_coupled(y) ? 0.0f : sums[1] + cg_or_zero(y->bias, n + k) + (p ? p[n + k] * c_before : 0.0f);
    const float z_g = sums[2] + cg_or_zero(y->bias, 2 * n + k);
    const float i = cg_gate(y, z_i), f = cg_is_coupled(y) ? 1.0f - i : cg_gate(y, z_f);
    const float c_raw = f * c_before + i * cg_candidate(y, z_g);
    const float c_new = cg_clip(c_raw, y->cell_clip);
    z[k] = z_i;
    z[n + k] = z_f;
    z[2 * n + k] = z_g;
    *out_z_o = sums[3] + cg_or_zero(y->bias, 3 * n + k) + (p ? p[2 * n + k] * c_new : 0.0f);
    z[3 * n + k] = *out_z_o;
    y->c_raw[row * n + k] = c_raw;
    y->c[row * n + k] = cg_carry(y, y->zoneout_cell_key, y->zoneout_cell, t, b, k, c_before, c_new);
    return c_new;
}

/* h^ before the projection, from the pre-activation of o and q (c^, or the normalised c^). */
CG_HD float cg_lstm_output(const struct cg_layer *y, float z_o, float q)
{
    return cg_gate(y, z_o) * cg_activate(y->output, q);
}

/* Stores the carried h; returns what the next step multiplies with W_h. */
CG_HD float cg_keep(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k, float h_new)
{
    const float h = cg_carry(y, y->zoneout_hidden_key, y->zoneout_hidden, t, b, k, cg_h_before(y, before, b, k), h_new);
    y->h[row * y->out + k] = h;
    return h * cg_or_one(y->mask_h, b * y->out + k);
}

CG_HD void cg_publish(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                      float h_new, int parity)
{
    y->hm[1 - parity][b * y->out + k] = cg_keep(y, t, b, row, before, k, h_new);
}

/* GRU: r from its sum, and the pre-activation of the update gate. */
CG_HD float cg_gru_reset(const struct cg_layer *y, int64_t row, int64_t k, float sum_r, float sum_z)
{
    const int64_t n = y->hidden;
    float *z = y->z + row * y->gh;
    z[k] = sum_r + cg_or_zero(y->bias, k);
    z[n + k] = sum_z + cg_or_zero(y->bias, n + k);
    return cg_gate(y, z[k]);
}

/* GRU: h^ when r is known. u_n and v_n are the candidate's two sums (if late, v_n is that of W_hn and r * h~). */
CG_HD float cg_gru_output(const struct cg_layer *y, int64_t row, int64_t k, float r, float u_n, float v_n,
                          float h_before)
{
    const int64_t n = y->hidden;
    float *z = y->z + row * y->gh;
    if (y->late) {
        z[2 * n + k] = u_n + cg_or_zero(y->bias, 2 * n + k) + v_n;
    } else {
        const float inner = v_n + cg_or_zero(y->bias, 3 * n + k);
        y->n[row * n + k] = inner;
        z[2 * n + k] = u_n + cg_or_zero(y->bias, 2 * n + k) + r * inner;
    }
    const float keep = cg_gate(y, z[n + k]);
    return (1.0f - keep) * cg_candidate(y, z[2 * n + k]) + keep * h_before;
}

/* RNN: h^. */
CG_HD float cg_rnn_output(const struct cg_layer *y, int64_t row, int64_t k, float sum)
{
    const float z = sum + cg_or_zero(y->bias, k);
    y->z[row * y->gh + k] = z;
    return cg_candidate(y, z);
}

/* Are the two sums of this gate kept apart? Those of a GRU's candidate are, because r multiplies one of them. */
CG_HD int cg_is_apart(const struct cg_layer *y, int64_t gate)
{
    return y->cell == SEQLSTM_CELL_GRU && gate == 2;
}

/* h^ of a whole cell whose unit depends on no other: no LAYER_NORM, no projection, not late. sums: u + v of each gate,
 * or only v if its sums are kept apart. */
CG_HD float cg_cell_output(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                           const float sums[4])
{
    const int64_t n = y->hidden;
    if (y->cell == SEQLSTM_CELL_LSTM) {
        float z_o;
        const float c_new = cg_lstm_inner(y, t, b, row, before, k, sums, &z_o);
        return cg_lstm_output(y, z_o, c_new);
    }
    if (y->cell == SEQLSTM_CELL_GRU) {
        const float u_n = y->u[row * y->gh + 2 * n + k], r = cg_gru_reset(y, row, k, sums[0], sums[1]);
        return cg_gru_output(y, row, k, r, u_n, sums[2], cg_h_before(y, before, b, k));
    }
    return cg_rnn_output(y, row, k, sums[0]);
}

/* The same from v, the contribution of W_h to each gate; that of W_x is in the record u. */
CG_HD float cg_cell_forward(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                            const float v[4])
{
    float sums[4] = {0, 0, 0, 0};
    for (int gate = 0; gate < 4; gate++)
        if (gate < (int)y->gates)
            sums[gate] = v[gate] + (cg_is_apart(y, gate) ? 0.0f : y->u[row * y->gh + gate * y->hidden + k]);
    return cg_cell_output(y, t, b, row, before, k, sums);
}

/* ---- backward ------------------------------------------------------------------------------------------------ */

/* The gradient of the carried h of (t, b) at k: from the later step, directly and through W_h (`back`), and from the
 * output. */
CG_HD float cg_dh(const struct cg_layer *y, int64_t row, int64_t b, int64_t k, float back)
{
    float dh = y->direct[b * y->out + k] + cg_or_one(y->mask_h, b * y->out + k) * back;
    if (y->dy) {
        float d = y->dy[row * y->dy_stride + y->dy_offset + k] * cg_dy_factor(y, b, k);
        dh += y->other_h ? d * y->other_h[row * y->out + k] : d;
    }
    return dh;
}

/* Splits it by zoneout: the part that skips the step goes to `direct`, the rest is the gradient of h^. */
CG_HD float cg_dh_new(const struct cg_layer *y, int64_t t, int64_t row, int64_t b, int64_t k, float back)
{
    const float dh = cg_dh(y, row, b, k, back);
    const int kept = cg_is_kept(y, y->zoneout_hidden_key, y->zoneout_hidden, t, b, k);
    y->direct[b * y->out + k] = kept ? dh : 0.0f;
    return kept ? 0.0f : dh;
}

/* LSTM: from the output's part of dc^ and dz_o computes the gradients of the other three gates; updates dc. */
CG_HD void cg_lstm_backward(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                            float dc_output, float dz_o, float dz[4])
{
    const int64_t n = y->hidden;
    const float *z = y->z + row * y->gh, *p = y->peephole;
    const float c_before = cg_c_before(y, before, b, k), dc = y->dc[b * n + k];
    const int kept = cg_is_kept(y, y->zoneout_cell_key, y->zoneout_cell, t, b, k), coupled = cg_is_coupled(y);
    const float i = cg_gate(y, z[k]), f = coupled ? 1.0f - i : cg_gate(y, z[n + k]), g = cg_candidate(y, z[2 * n + k]);
    const float c_raw = y->c_raw[row * n + k];
    const float dc_new = dc_output + (kept ? 0.0f : dc) + (p ? p[2 * n + k] * dz_o : 0.0f);
    const float dc_raw = dc_new * cg_clip_slope(c_raw, y->cell_clip);
    const float df = dc_raw * c_before, di = dc_raw * g - (coupled ? df : 0.0f);
    dz[0] = di * cg_gate_slope(y, z[k]);
    dz[1] = coupled ? 0.0f : df * cg_gate_slope(y, z[n + k]);
    dz[2] = dc_raw * i * cg_candidate_slope(y, z[2 * n + k]);
    dz[3] = dz_o;
    float dc_before = (kept ? dc : 0.0f) + dc_raw * f;
    if (p)
        dc_before += p[k] * dz[0] + (coupled ? 0.0f : p[n + k] * dz[1]);
    y->dc[b * n + k] = dc_before;
    if (p && y->peep) {
        float *peep = y->peep + row * 3 * n;
        peep[k] = dz[0] * c_before;
        peep[n + k] = dz[1] * c_before;
        peep[2 * n + k] = dz_o * cg_clip(c_raw, y->cell_clip);
    }
}

/* GRU: dz of the update gate and of the candidate; adds to `direct` what flows through z * h'. */
CG_HD void cg_gru_backward(const struct cg_layer *y, int64_t row, int64_t b, int64_t before, int64_t k, float dh_new,
                           float *dz_z, float *dz_n)
{
    const int64_t n = y->hidden;
    const float *z = y->z + row * y->gh;
    const float keep = cg_gate(y, z[n + k]), h_before = cg_h_before(y, before, b, k);
    *dz_z = dh_new * (h_before - cg_candidate(y, z[2 * n + k])) * cg_gate_slope(y, z[n + k]);
    *dz_n = dh_new * (1.0f - keep) * cg_candidate_slope(y, z[2 * n + k]);
    y->direct[b * y->out + k] += dh_new * keep;
}

/* A whole cell whose unit depends on no other: no LAYER_NORM, no projection, not late. u and v receive the gradients of
 * the two sums of each gate. */
CG_HD void cg_cell_backward(const struct cg_layer *y, int64_t t, int64_t b, int64_t row, int64_t before, int64_t k,
                            float dh_new, float u[4], float v[4])
{
    const int64_t n = y->hidden;
    const float *z = y->z + row * y->gh;
    if (y->cell == SEQLSTM_CELL_LSTM) {
        const float c_new = cg_clip(y->c_raw[row * n + k], y->cell_clip), o = cg_gate(y, z[3 * n + k]);
        const float dz_o = dh_new * cg_activate(y->output, c_new) * cg_gate_slope(y, z[3 * n + k]);
        cg_lstm_backward(y, t, b, row, before, k, dh_new * o * cg_slope(y->output, c_new), dz_o, u);
        for (int g = 0; g < 4; g++)
            v[g] = u[g];
    } else if (y->cell == SEQLSTM_CELL_GRU) {
        const float r = cg_gate(y, z[k]);
        cg_gru_backward(y, row, b, before, k, dh_new, &u[1], &u[2]);
        u[0] = u[2] * y->n[row * n + k] * cg_gate_slope(y, z[k]);
        v[0] = u[0];
        v[1] = u[1];
        v[2] = u[2] * r;
    } else {
        u[0] = v[0] = dh_new * cg_candidate_slope(y, z[k]);
    }
}

CG_HD void cg_set_pre(const struct cg_layer *y, int64_t row, int64_t j, float u, float v)
{
    y->pre_u[row * y->gh + j] = u;
    if (y->pre_v != y->pre_u)
        y->pre_v[row * y->gh + j] = v;
}

#endif
