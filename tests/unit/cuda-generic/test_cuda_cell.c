/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of cuda-generic (cell.h, for host and device) on the processor, against the reference: every cell and every
 * option of a unit's own, forward and backward, in both directions, over mixed lengths. What kernels do around them
 * (products with W_x and W_h) is a plain loop here.
 *
 * Tolerance: the error model of docs/numerics.md, c = 8 forward and 16 backward, float32, K of the longest sum.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cuda-generic/recurrent/kernels/cell.h"
#include "ref_harness.h"

enum { STEPS = 5, SEQUENCES = 4, INPUT = 3, HIDDEN = 6, ROWS = 12, GH = 4 * HIDDEN };

static const int32_t lengths[SEQUENCES] = {5, 3, 3, 1};

/* A layer on the host. */
struct world {
    struct rh rh;
    struct cg_layer y;
    float x[ROWS * INPUT], w_x[GH * INPUT], w_h[GH * HIDDEN], bias[GH], peephole[3 * HIDDEN], mask_x[SEQUENCES * INPUT];
    float mask_h[SEQUENCES * HIDDEN], h0[SEQUENCES * HIDDEN], c0[SEQUENCES * HIDDEN], dy[ROWS * HIDDEN];
    float dhn[SEQUENCES * HIDDEN], dcn[SEQUENCES * HIDDEN];
    float z[ROWS * GH], n[ROWS * HIDDEN], c_raw[ROWS * HIDDEN], c[ROWS * HIDDEN], h[ROWS * HIDDEN];
    float hm[SEQUENCES * HIDDEN], direct[SEQUENCES * HIDDEN], back[SEQUENCES * HIDDEN], dc[SEQUENCES * HIDDEN];
    float pre_u[ROWS * GH], pre_v[ROWS * GH], peep[ROWS * 3 * HIDDEN];
};

static int32_t slot_of_state(int32_t which)
{
    return SEQLSTM_SLOT_RECURRENT_STATE(0, which);
}

static int32_t slot_of_parameter(int32_t which)
{
    return SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, which);
}

/* The float32 of a slot, which the reference then has, too. NULL: it is absent. */
static const float *copy(struct world *w, int32_t slot, bool gradient, float *to)
{
    double *values = gradient ? w->rh.grads[slot] : w->rh.values[slot];
    for (int64_t k = 0; values && k < w->rh.elems[slot]; k++)
        values[k] = (double)(to[k] = (float)values[k]);
    return values ? to : NULL;
}

static uint64_t get_key(const struct world *w, uint32_t which)
{
    return seqlstm_mix64(w->rh.step.seed, w->rh.desc.recurrent.stream_base + which, w->rh.step.epoch);
}

static void draw_mask(const struct world *w, uint32_t which, float rate, int64_t width, float *mask)
{
    for (int64_t e = 0; e < SEQUENCES * width; e++)
        mask[e] = rate > 0 ? seqlstm_mask(get_key(w, which), (uint64_t)(e % width), 0,
                                          w->rh.axis.sequence_id[e / width], rate)
                           : 1.0f;
}

static void open_world(struct world *w, const struct seqlstm_recurrent_desc *d, uint64_t seed)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    any.recurrent = *d;
    memset(w, 0, sizeof *w);
    rh_open(&w->rh, &any, lengths, SEQUENCES, 0, STEPS, seed);
    const struct seqlstm_axis *axis = &w->rh.axis;
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    struct cg_layer *y = &w->y;
    *y = (struct cg_layer){.cell = d->cell,
                           .options = d->options,
                           .training = training,
                           .reverse = d->direction == SEQLSTM_DIRECTION_BACKWARD,
                           .gate = d->activations[SEQLSTM_PLACE_GATE][0],
                           .candidate = d->activations[SEQLSTM_PLACE_CANDIDATE][0],
                           .output = d->activations[SEQLSTM_PLACE_OUTPUT][0],
                           .gate_clip = d->gate_clip,
                           .cell_clip = d->cell_clip,
                           .zoneout_cell = seqlstm_mask_rate(d->zoneout_cell),
                           .zoneout_hidden = seqlstm_mask_rate(d->zoneout_hidden),
                           .input = INPUT,
                           .hidden = HIDDEN,
                           .out = HIDDEN,
                           .gates = d->cell == SEQLSTM_CELL_LSTM  ? 4
                                    : d->cell == SEQLSTM_CELL_GRU ? 3
                                                                  : 1,
                           .zoneout_cell_key = get_key(w, SEQLSTM_MASK_ZONEOUT_CELL),
                           .zoneout_hidden_key = get_key(w, SEQLSTM_MASK_ZONEOUT_HIDDEN),
                           .axis = {.sequences = SEQUENCES,
                                    .steps = STEPS,
                                    .rows = ROWS,
                                    .lengths = axis->lengths,
                                    .batch_sizes = axis->batch_sizes,
                                    .row_offsets = axis->row_offsets,
                                    .sequence_id = axis->sequence_id,
                                    .position0 = axis->position0},
                           .z = w->z,
                           .u = w->z,
                           .n = w->n,
                           .c_raw = w->c_raw,
                           .c = w->c,
                           .h = w->h,
                           .mask_h = w->mask_h,
                           .direct = w->direct,
                           .back = w->back,
                           .dc = w->dc,
                           .pre_u = w->pre_u,
                           .pre_v = w->pre_v,
                           .peep = w->peep,
                           .dy_stride = HIDDEN,
                           .dy_scale = 1};
    y->gh = y->gates * HIDDEN;
    copy(w, SEQLSTM_SLOT_RECURRENT_X, false, w->x);
    copy(w, slot_of_parameter(SEQLSTM_PARAM_W_X), false, w->w_x);
    y->w_h = copy(w, slot_of_parameter(SEQLSTM_PARAM_W_H), false, w->w_h);
    y->bias = copy(w, slot_of_parameter(SEQLSTM_PARAM_BIAS), false, w->bias);
    y->peephole = copy(w, slot_of_parameter(SEQLSTM_PARAM_PEEPHOLE), false, w->peephole);
    y->h0 = copy(w, slot_of_state(SEQLSTM_STATE_H0), false, w->h0);
    y->c0 = copy(w, slot_of_state(SEQLSTM_STATE_C0), false, w->c0);
    y->dy = copy(w, SEQLSTM_SLOT_RECURRENT_Y, true, w->dy);
    y->dhn = copy(w, slot_of_state(SEQLSTM_STATE_HN), true, w->dhn);
    y->dcn = copy(w, slot_of_state(SEQLSTM_STATE_CN), true, w->dcn);
    draw_mask(w, SEQLSTM_MASK_INPUT, training ? d->dropout : 0, INPUT, w->mask_x);
    draw_mask(w, SEQLSTM_MASK_RECURRENT, training ? d->recurrent_dropout : 0, HIDDEN, w->mask_h);
}

/* ---- the loops around the cells --------------------------------------------------------------------------------- */

static void run_forward(struct world *w)
{
    const struct cg_layer *y = &w->y;
    for (int64_t t = 0; t < STEPS; t++)
        for (int64_t b = 0; b < y->axis.batch_sizes[t]; b++)
            for (int64_t j = 0; j < y->gh; j++) {
                float *u = &w->z[cg_row(y, t, b) * y->gh + j];
                *u = 0;
                for (int64_t e = 0; e < INPUT; e++)
                    *u += w->w_x[j * INPUT + e] * w->x[cg_row(y, t, b) * INPUT + e] * w->mask_x[b * INPUT + e];
            }
    for (int64_t e = 0; e < SEQUENCES * HIDDEN; e++)
        w->hm[e] = cg_or_zero(y->h0, e) * w->mask_h[e];
    for (int64_t turn = 0; turn < STEPS; turn++) {
        const int64_t t = cg_step_at(y, turn);
        for (int64_t b = 0; b < y->axis.batch_sizes[t]; b++) {
            const int64_t row = cg_row(y, t, b), before = cg_row_before(y, t, b);
            float next[HIDDEN];
            for (int64_t k = 0; k < HIDDEN; k++) {
                float v[4] = {0, 0, 0, 0};
                for (int64_t g = 0; g < y->gates; g++)
                    for (int64_t e = 0; e < HIDDEN; e++)
                        v[g] += y->w_h[(g * HIDDEN + k) * HIDDEN + e] * w->hm[b * HIDDEN + e];
                next[k] = cg_keep(y, t, b, row, before, k, cg_cell_forward(y, t, b, row, before, k, v));
            }
            memcpy(&w->hm[b * HIDDEN], next, sizeof next);
        }
    }
}

static void run_backward(struct world *w)
{
    const struct cg_layer *y = &w->y;
    for (int64_t e = 0; e < SEQUENCES * HIDDEN; e++) {
        w->direct[e] = cg_or_zero(y->dhn, e);
        w->dc[e] = cg_or_zero(y->dcn, e);
        w->back[e] = 0;
    }
    for (int64_t turn = STEPS - 1; turn >= 0; turn--) {
        const int64_t t = cg_step_at(y, turn);
        for (int64_t b = 0; b < y->axis.batch_sizes[t]; b++) {
            const int64_t row = cg_row(y, t, b), before = cg_row_before(y, t, b);
            for (int64_t k = 0; k < HIDDEN; k++) {
                float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
                const float dh_new = cg_dh_new(y, t, row, b, k, w->back[b * HIDDEN + k]);
                cg_cell_backward(y, t, b, row, before, k, dh_new, u, v);
                for (int64_t g = 0; g < y->gates; g++)
                    cg_set_pre(y, row, g * HIDDEN + k, u[g], v[g]);
            }
            for (int64_t e = 0; e < HIDDEN; e++) {
                w->back[b * HIDDEN + e] = 0;
                for (int64_t j = 0; j < y->gh; j++)
                    w->back[b * HIDDEN + e] += w->pre_v[row * y->gh + j] * y->w_h[j * HIDDEN + e];
            }
        }
    }
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static void compare(const char *name, const char *what, const float *got, const double *expected, int64_t elems,
                    double c, double terms)
{
    double squares = 0;
    for (int64_t k = 0; k < elems; k++)
        squares += expected[k] * expected[k] / (double)elems;
    for (int64_t k = 0; k < elems; k++) {
        const double size = fabs(expected[k]) + sqrt(squares) + 0.05;
        if (!(fabs((double)got[k] - expected[k]) <= c * 0x1p-24 * sqrt(terms) * sqrt(STEPS) * size))
            fail_msg("%s: %s[%d] is %.9g, expected %.9g", name, what, (int)k, (double)got[k], expected[k]);
    }
}

static void compare_forward(struct world *w, const char *name)
{
    const struct cg_layer *y = &w->y;
    const double *hn = w->rh.values[slot_of_state(SEQLSTM_STATE_HN)];
    const double *cn = w->rh.values[slot_of_state(SEQLSTM_STATE_CN)];
    const int64_t n = HIDDEN;
    compare(name, "y", w->h, w->rh.values[SEQLSTM_SLOT_RECURRENT_Y], ROWS * n, 8, INPUT + n);
    for (int64_t b = 0; b < SEQUENCES; b++) {
        const int64_t last = cg_row(y, y->reverse ? 0 : lengths[b] - 1, b);
        compare(name, "hn", w->h + last * n, hn + b * n, n, 8, INPUT + n);
        if (cn)
            compare(name, "cn", w->c + last * n, cn + b * n, n, 8, INPUT + n);
    }
}

static double *gradient_of_parameter(struct world *w, int32_t which)
{
    return w->rh.values[slot_of_parameter(which)] ? w->rh.grads[slot_of_parameter(which)] : NULL;
}

static void compare_backward(struct world *w, const char *name)
{
    const struct cg_layer *y = &w->y;
    const double terms = ROWS + 4 * (INPUT + HIDDEN);
    float dx[ROWS * INPUT] = {0}, dw_x[GH * INPUT] = {0}, dw_h[GH * HIDDEN] = {0}, dbias[GH] = {0};
    float dpeep[3 * HIDDEN] = {0}, dh0[SEQUENCES * HIDDEN];
    for (int64_t t = 0; t < STEPS; t++)
        for (int64_t b = 0; b < y->axis.batch_sizes[t]; b++) {
            const int64_t row = cg_row(y, t, b), before = cg_row_before(y, t, b);
            for (int64_t j = 0; j < y->gh; j++) {
                const float du = w->pre_u[row * y->gh + j], dv = w->pre_v[row * y->gh + j];
                dbias[j] += du;
                if (y->cell == SEQLSTM_CELL_GRU && j >= 2 * HIDDEN)
                    dbias[HIDDEN + j] += dv;
                for (int64_t e = 0; e < INPUT; e++) {
                    const float mask = w->mask_x[b * INPUT + e];
                    dx[row * INPUT + e] += du * w->w_x[j * INPUT + e] * mask;
                    dw_x[j * INPUT + e] += du * w->x[row * INPUT + e] * mask;
                }
                for (int64_t e = 0; e < HIDDEN; e++)
                    dw_h[j * HIDDEN + e] += dv * cg_h_before(y, before, b, e) * w->mask_h[b * HIDDEN + e];
            }
            for (int64_t k = 0; k < 3 * HIDDEN; k++)
                dpeep[k] += w->peep[row * 3 * HIDDEN + k];
        }
    for (int64_t e = 0; e < SEQUENCES * HIDDEN; e++)
        dh0[e] = w->direct[e] + w->mask_h[e] * w->back[e];
    compare(name, "dx", dx, w->rh.grads[SEQLSTM_SLOT_RECURRENT_X], ROWS * INPUT, 16, terms);
    compare(name, "dh0", dh0, w->rh.grads[slot_of_state(SEQLSTM_STATE_H0)], SEQUENCES * HIDDEN, 16, terms);
    if (y->cell == SEQLSTM_CELL_LSTM)
        compare(name, "dc0", w->dc, w->rh.grads[slot_of_state(SEQLSTM_STATE_C0)], SEQUENCES * HIDDEN, 16, terms);
    compare(name, "dw_x", dw_x, gradient_of_parameter(w, SEQLSTM_PARAM_W_X), y->gh * INPUT, 16, terms);
    compare(name, "dw_h", dw_h, gradient_of_parameter(w, SEQLSTM_PARAM_W_H), y->gh * HIDDEN, 16, terms);
    if (y->bias)
        compare(name, "dbias", dbias, gradient_of_parameter(w, SEQLSTM_PARAM_BIAS),
                y->cell == SEQLSTM_CELL_GRU ? GH : y->gh, 16, terms);
    if (y->peephole)
        compare(name, "dpeephole", dpeep, gradient_of_parameter(w, SEQLSTM_PARAM_PEEPHOLE), 3 * HIDDEN, 16, terms);
}

/* ---- the lattice ------------------------------------------------------------------------------------------------ */

static struct seqlstm_recurrent_desc make(uint32_t cell, uint32_t mode)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head = rh_head(SEQLSTM_OP_RECURRENT, mode);
    d.cell = cell;
    d.options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE |
                SEQLSTM_BIT_RECURRENT_USE_BIAS | (cell == SEQLSTM_CELL_GRU ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0);
    d.layers = 1;
    d.input = INPUT;
    d.hidden = HIDDEN;
    d.stream_base = 700;
    for (int k = 0; k < 2; k++) {
        d.activations[SEQLSTM_PLACE_GATE][k].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][k].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][k].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

enum {
    PLAIN,
    NO_BIAS,
    REVERSE,
    GATE_CLIP,
    DROPOUT,
    RECURRENT_DROPOUT,
    ZONEOUT_HIDDEN,
    LEAKY,
    FUNCTIONS,
    CELL_CLIP,
    ZONEOUT_CELL,
    PEEPHOLE,
    COUPLED,
    OPTIONS
};
static const char *const names[OPTIONS] = {
    "plain",      "no bias",         "reverse",   "gate clip",    "dropout",  "recurrent dropout", "zoneout hidden",
    "leaky relu", "other functions", "cell clip", "zoneout cell", "peephole", "coupled gates"};

static void set_option(struct seqlstm_recurrent_desc *d, int option)
{
    switch (option) {
    case NO_BIAS:
        d->options &= ~(uint32_t)SEQLSTM_BIT_RECURRENT_USE_BIAS;
        break;
    case REVERSE:
        d->direction = SEQLSTM_DIRECTION_BACKWARD;
        break;
    case GATE_CLIP:
        d->gate_clip = 0.5f;
        break;
    case DROPOUT:
        d->dropout = 0.4f;
        break;
    case RECURRENT_DROPOUT:
        d->recurrent_dropout = 0.4f;
        break;
    case ZONEOUT_HIDDEN:
        d->zoneout_hidden = 0.4f;
        break;
    case LEAKY:
        d->activations[SEQLSTM_PLACE_CANDIDATE][0] =
            (struct seqlstm_activation){.kind = SEQLSTM_ACT_LEAKY_RELU, .alpha = 0.05f};
        break;
    case FUNCTIONS:
        d->activations[SEQLSTM_PLACE_GATE][0] =
            (struct seqlstm_activation){.kind = SEQLSTM_ACT_HARD_SIGMOID, .alpha = 0.2f, .beta = 0.5f};
        d->activations[SEQLSTM_PLACE_OUTPUT][0].kind = SEQLSTM_ACT_SOFTSIGN;
        break;
    case CELL_CLIP:
        d->cell_clip = 0.25f;
        break;
    case ZONEOUT_CELL:
        d->zoneout_cell = 0.4f;
        break;
    case PEEPHOLE:
        d->options |= SEQLSTM_BIT_RECURRENT_PEEPHOLE;
        break;
    case COUPLED:
        d->options |= SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
        break;
    default:
        break;
    }
}

/* Each option alone and each pair, in training and in inference. */
static void check_cell(uint32_t cell)
{
    const int options = cell == SEQLSTM_CELL_LSTM ? OPTIONS : CELL_CLIP;
    for (int first = 0; first < options; first++)
        for (int second = first; second < options; second++)
            for (uint32_t mode = 0; mode < 2; mode++) {
                const uint32_t modes[] = {SEQLSTM_MODE_INFERENCE, SEQLSTM_MODE_TRAINING};
                struct seqlstm_recurrent_desc d = make(cell, modes[mode]);
                struct world w;
                char name[80];
                set_option(&d, first);
                set_option(&d, second);
                snprintf(name, sizeof name, "%s, %s%s", names[first], names[second], mode ? "" : ", inference");
                open_world(&w, &d, (uint64_t)(100 * first + second + 1));
                rh_forward(&w.rh);
                run_forward(&w);
                compare_forward(&w, name);
                if (modes[mode] == SEQLSTM_MODE_TRAINING) {
                    rh_backward(&w.rh, RH_ALL);
                    run_backward(&w);
                    compare_backward(&w, name);
                }
                rh_close(&w.rh);
            }
}

static void lstm_cells_match_the_reference(void **state)
{
    (void)state;
    check_cell(SEQLSTM_CELL_LSTM);
}

static void gru_cells_match_the_reference(void **state)
{
    (void)state;
    check_cell(SEQLSTM_CELL_GRU);
}

static void rnn_cells_match_the_reference(void **state)
{
    (void)state;
    check_cell(SEQLSTM_CELL_RNN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lstm_cells_match_the_reference),
                                       cmocka_unit_test(gru_cells_match_the_reference),
                                       cmocka_unit_test(rnn_cells_match_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
