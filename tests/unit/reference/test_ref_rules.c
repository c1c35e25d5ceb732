/* SPDX-License-Identifier: Apache-2.0 */
/* What the recurrent layers of the reference must obey whatever their equations are: ranges, packing, masks,
 * expectations, accumulation, states, absent gradients. Differences alone do not see these. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ref_harness.h"

enum { H = 3, I = 2 };
static const int32_t mixed[3] = {5, 3, 2};

static union seqlstm_any_desc make(uint32_t cell, uint32_t mode)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, mode);
    d->cell = cell;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_INITIAL_STATE |
                 SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    d->layers = 1;
    d->input = I;
    d->hidden = H;
    d->stream_base = 64;
    for (int direction = 0; direction < 2; direction++) {
        d->activations[SEQLSTM_PLACE_GATE][direction].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][direction].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][direction].kind = SEQLSTM_ACT_TANH;
    }
    return any;
}

static void assert_close(const char *what, const double *a, const double *b, int64_t n, double tolerance)
{
    for (int64_t k = 0; k < n; k++)
        if (!(fabs(a[k] - b[k]) <= tolerance * fmax(1, fabs(b[k]))))
            fail_msg("%s[%lld] is %.15g, expected %.15g", what, (long long)k, a[k], b[k]);
}

static void copy_slot(struct rh *to, int32_t to_slot, const struct rh *from, int32_t from_slot)
{
    assert_int_equal(to->elems[to_slot], from->elems[from_slot]);
    memcpy(to->values[to_slot], from->values[from_slot], (size_t)to->elems[to_slot] * sizeof(double));
}

static int32_t state(int32_t n, int32_t which)
{
    return SEQLSTM_SLOT_RECURRENT_STATE(n, which);
}

static int32_t param(int32_t ld, int32_t n, int32_t which)
{
    return SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, which);
}

/* The whole range against [0, 2) and [2, 5), every option that has state or masks on. */
static void two_ranges_are_the_whole(void **unused)
{
    (void)unused;
    const uint32_t cells[3] = {SEQLSTM_CELL_LSTM, SEQLSTM_CELL_GRU, SEQLSTM_CELL_RNN};
    for (int c = 0; c < 3; c++) {
        union seqlstm_any_desc d = make(cells[c], SEQLSTM_MODE_TRAINING);
        const bool lstm = cells[c] == SEQLSTM_CELL_LSTM;
        d.recurrent.layers = 2;
        d.recurrent.dropout = 0.3f;
        d.recurrent.recurrent_dropout = 0.3f;
        d.recurrent.zoneout_hidden = 0.3f;
        d.recurrent.zoneout_cell = lstm ? 0.3f : 0;
        d.recurrent.weight_drop = 0.3f;
        struct rh whole, first, second;
        rh_open(&whole, &d, mixed, 3, 0, 5, 1);
        rh_open(&first, &d, mixed, 3, 0, 2, 2);
        rh_open(&second, &d, mixed, 3, 2, 5, 3);
        const int64_t rows0 = first.bind.rows;
        memcpy(first.values[0], whole.values[0], (size_t)first.elems[0] * sizeof(double));
        memcpy(second.values[0], (double *)whole.values[0] + rows0 * I, (size_t)second.elems[0] * sizeof(double));
        memcpy(first.grads[1], whole.grads[1], (size_t)first.elems[1] * sizeof(double));
        memcpy(second.grads[1], whole.grads[1] + rows0 * H, (size_t)second.elems[1] * sizeof(double));
        for (int32_t n = 0; n < 2; n++) {
            for (int32_t p = 0; p <= SEQLSTM_PARAM_BIAS; p++) {
                copy_slot(&first, param(2, n, p), &whole, param(2, n, p));
                copy_slot(&second, param(2, n, p), &whole, param(2, n, p));
            }
            copy_slot(&first, state(n, SEQLSTM_STATE_H0), &whole, state(n, SEQLSTM_STATE_H0));
            if (lstm)
                copy_slot(&first, state(n, SEQLSTM_STATE_C0), &whole, state(n, SEQLSTM_STATE_C0));
        }
        rh_forward(&whole);
        rh_forward(&first);
        /* sequences alive at t = 2: the first two of three */
        for (int32_t n = 0; n < 2; n++)
            for (int32_t s = 0; s < (lstm ? 2 : 1); s++)
                memcpy(second.values[state(n, s)], first.values[state(n, 2 + s)],
                       (size_t)second.elems[state(n, s)] * sizeof(double));
        rh_forward(&second);
        assert_close("y", first.values[1], whole.values[1], first.elems[1], 1e-14);
        assert_close("y", second.values[1], (double *)whole.values[1] + rows0 * H, second.elems[1], 1e-14);
        const int64_t alive = second.axis.batch_sizes[2];
        assert_int_equal(alive, 2);
        for (int32_t n = 0; n < 2; n++)
            for (int32_t s = 2; s < (lstm ? 4 : 3); s++) {
                const double *hn = whole.values[state(n, s)];
                assert_close("hn of those alive", second.values[state(n, s)], hn, alive * H, 1e-14);
                assert_close("hn of the others", (double *)first.values[state(n, s)] + alive * H, hn + alive * H, H,
                             1e-14);
                /* dhn: from the second segment's dh0 for those alive, as given for the others */
                memcpy(second.grads[state(n, s)], whole.grads[state(n, s)], (size_t)(alive * H) * sizeof(double));
            }
        rh_backward(&whole, RH_ALL);
        rh_backward(&second, RH_ALL);
        for (int32_t n = 0; n < 2; n++)
            for (int32_t s = 2; s < (lstm ? 4 : 3); s++) {
                memcpy(first.grads[state(n, s)], second.grads[state(n, s - 2)], (size_t)(alive * H) * sizeof(double));
                memcpy(first.grads[state(n, s)] + alive * H, whole.grads[state(n, s)] + alive * H, H * sizeof(double));
            }
        /* accumulate the first segment onto the second's gradients */
        for (int32_t n = 0; n < 2; n++)
            for (int32_t p = 0; p <= SEQLSTM_PARAM_BIAS; p++)
                memcpy(first.grads[param(2, n, p)], second.grads[param(2, n, p)],
                       (size_t)first.elems[param(2, n, p)] * sizeof(double));
        rh_backward(&first, RH_ALL | SEQLSTM_BIT_BACKWARD_ACCUMULATE);
        assert_close("dx", first.grads[0], whole.grads[0], first.elems[0], 1e-13);
        assert_close("dx", second.grads[0], whole.grads[0] + rows0 * I, second.elems[0], 1e-13);
        for (int32_t n = 0; n < 2; n++) {
            assert_close("dh0", first.grads[state(n, 0)], whole.grads[state(n, 0)], first.elems[state(n, 0)], 1e-13);
            for (int32_t p = 0; p <= SEQLSTM_PARAM_BIAS; p++)
                assert_close("dW", first.grads[param(2, n, p)], whole.grads[param(2, n, p)],
                             first.elems[param(2, n, p)], 1e-13);
        }
        rh_close(&whole);
        rh_close(&first);
        rh_close(&second);
    }
}

/* A packed batch is its sequences one by one: same y, same dx, gradients of parameters summed. */
static void a_batch_is_its_sequences(void **unused)
{
    (void)unused;
    for (uint32_t direction = 0; direction < 3; direction++) {
        union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_TRAINING);
        d.recurrent.direction = direction;
        d.recurrent.dropout = 0.4f;
        d.recurrent.recurrent_dropout = 0.4f;
        d.recurrent.zoneout_cell = 0.2f;
        const int32_t ld = direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1, o = H * ld;
        struct rh whole, one;
        rh_open(&whole, &d, mixed, 3, 0, 5, 11);
        rh_forward(&whole);
        rh_backward(&whole, RH_ALL);
        double *dw = calloc((size_t)whole.elems[param(ld, 0, 0)], sizeof(double));
        for (int32_t b = 0; b < 3; b++) {
            rh_open(&one, &d, &mixed[b], 1, 0, mixed[b], 5);
            ((uint64_t *)(uintptr_t)one.axis.sequence_id)[0] = whole.axis.sequence_id[b];
            ((uint32_t *)(uintptr_t)one.axis.position0)[0] = whole.axis.position0[b];
            for (int32_t n = 0; n < ld; n++) {
                for (int32_t p = 0; p <= SEQLSTM_PARAM_BIAS; p++)
                    copy_slot(&one, param(ld, n, p), &whole, param(ld, n, p));
                for (int32_t s = 0; s < 2; s++) {
                    memcpy(one.values[state(n, s)], (double *)whole.values[state(n, s)] + b * H, H * sizeof(double));
                    memcpy(one.grads[state(n, 2 + s)], whole.grads[state(n, 2 + s)] + b * H, H * sizeof(double));
                }
            }
            for (int64_t t = 0; t < mixed[b]; t++) {
                const int64_t row = whole.axis.row_offsets[t] + b;
                memcpy((double *)one.values[0] + t * I, (double *)whole.values[0] + row * I, I * sizeof(double));
                memcpy(one.grads[1] + t * o, whole.grads[1] + row * o, (size_t)o * sizeof(double));
            }
            rh_forward(&one);
            rh_backward(&one, RH_ALL);
            for (int64_t t = 0; t < mixed[b]; t++) {
                const int64_t row = whole.axis.row_offsets[t] + b;
                assert_close("y", (double *)one.values[1] + t * o, (double *)whole.values[1] + row * o, o, 1e-14);
                assert_close("dx", one.grads[0] + t * I, whole.grads[0] + row * I, I, 1e-13);
            }
            for (int64_t k = 0; k < one.elems[param(ld, 0, 0)]; k++)
                dw[k] += one.grads[param(ld, 0, 0)][k];
            rh_close(&one);
        }
        assert_close("dw", dw, whole.grads[param(ld, 0, 0)], whole.elems[param(ld, 0, 0)], 1e-13);
        free(dw);
        rh_close(&whole);
    }
}

/* Input dropout is the layer without dropout on inputs that were masked by hand, by philox.h. */
static void dropout_is_a_masked_input(void **unused)
{
    (void)unused;
    for (int stream = 0; stream < 2; stream++) {
        union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_TRAINING);
        struct rh masked, by_hand;
        rh_open(&by_hand, &d, mixed, 3, 0, 5, 21);
        d.recurrent.dropout = 0.5f;
        rh_open(&masked, &d, mixed, 3, 0, 5, 21);
        masked.axis.flags = stream ? SEQLSTM_BIT_AXIS_STREAM : 0;
        masked.step.seed = 44; /* this small mask then keeps some and drops some */
        const uint64_t key = seqlstm_mix64(masked.step.seed, 64 + SEQLSTM_MASK_INPUT, masked.step.epoch);
        double *x = by_hand.values[0];
        int zeros = 0;
        for (int64_t t = 0; t < 5; t++)
            for (int64_t b = 0; b < masked.axis.batch_sizes[t]; b++)
                for (int64_t k = 0; k < I; k++) {
                    const float m = seqlstm_mask(key, (uint64_t)k, stream ? masked.axis.position0[b] : 0,
                                                 masked.axis.sequence_id[b], 0.5f);
                    x[(masked.axis.row_offsets[t] + b) * I + k] *= (double)m;
                    zeros += m == 0.0f;
                }
        assert_true(zeros > 0 && zeros < by_hand.elems[0]);
        rh_forward(&masked);
        rh_forward(&by_hand);
        assert_close("y", masked.values[1], by_hand.values[1], masked.elems[1], 1e-14);
        rh_close(&masked);
        rh_close(&by_hand);
    }
}

/* Weight drop is the layer whose W_h was masked by hand. */
static void weight_drop_is_a_masked_matrix(void **unused)
{
    (void)unused;
    union seqlstm_any_desc d = make(SEQLSTM_CELL_GRU, SEQLSTM_MODE_TRAINING);
    struct rh masked, by_hand;
    rh_open(&by_hand, &d, mixed, 3, 0, 5, 31);
    d.recurrent.weight_drop = 0.5f;
    rh_open(&masked, &d, mixed, 3, 0, 5, 31);
    const int32_t w_h = param(1, 0, SEQLSTM_PARAM_W_H);
    const uint64_t key = seqlstm_mix64(masked.step.seed, 64 + SEQLSTM_MASK_WEIGHT, masked.step.epoch);
    for (int64_t k = 0; k < by_hand.elems[w_h]; k++)
        ((double *)by_hand.values[w_h])[k] *=
            (double)seqlstm_mask(key, (uint64_t)k, masked.step.weight_mask_step, SEQLSTM_WEIGHT_SEQUENCE, 0.5f);
    rh_forward(&masked);
    rh_forward(&by_hand);
    assert_close("y", masked.values[1], by_hand.values[1], masked.elems[1], 1e-14);
    rh_close(&masked);
    rh_close(&by_hand);
}

/* Inference: no masks; zoneout is its expectation, checked for one step by hand from the plain layer. */
static void inference_has_no_masks(void **unused)
{
    (void)unused;
    const int32_t one_step[2] = {1, 1};
    union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_INFERENCE);
    struct rh plain, rates;
    rh_open(&plain, &d, one_step, 2, 0, 1, 41);
    d.recurrent.dropout = d.recurrent.recurrent_dropout = d.recurrent.weight_drop = 0.5f;
    d.recurrent.zoneout_cell = 0.25f;
    d.recurrent.zoneout_hidden = 0.75f;
    rh_open(&rates, &d, one_step, 2, 0, 1, 41);
    rh_forward(&plain);
    rh_forward(&rates);
    const double *h0 = plain.values[state(0, 0)], *c0 = plain.values[state(0, 1)];
    const double *hn = plain.values[state(0, 2)], *cn = plain.values[state(0, 3)];
    for (int64_t k = 0; k < 2 * H; k++) {
        const double h = 0.75 * h0[k] + 0.25 * hn[k], c = 0.25 * c0[k] + 0.75 * cn[k];
        assert_close("hn", (double *)rates.values[state(0, 2)] + k, &h, 1, 1e-14);
        assert_close("cn", (double *)rates.values[state(0, 3)] + k, &c, 1, 1e-14);
        assert_close("y", (double *)rates.values[1] + k, &h, 1, 1e-14);
    }
    rh_close(&plain);
    rh_close(&rates);
}

/* Zoneout in training keeps exactly the elements that philox.h says, and hands on the old values. */
static void zoneout_keeps_old_values(void **unused)
{
    (void)unused;
    const int32_t one_step[2] = {1, 1};
    union seqlstm_any_desc d = make(SEQLSTM_CELL_RNN, SEQLSTM_MODE_TRAINING);
    d.recurrent.zoneout_hidden = 0.5f;
    struct rh rh;
    rh_open(&rh, &d, one_step, 2, 0, 1, 51);
    rh_forward(&rh);
    const uint64_t key = seqlstm_mix64(rh.step.seed, 64 + SEQLSTM_MASK_ZONEOUT_HIDDEN, rh.step.epoch);
    int kept = 0;
    for (int64_t b = 0; b < 2; b++)
        for (int64_t k = 0; k < H; k++) {
            const bool keep = seqlstm_mask_drops(key, (uint64_t)k, rh.axis.position0[b], rh.axis.sequence_id[b], 0.5f);
            const double h0 = ((double *)rh.values[state(0, 0)])[b * H + k], y = ((double *)rh.values[1])[b * H + k];
            assert_int_equal(keep, y == h0);
            kept += keep;
        }
    assert_true(kept > 0 && kept < 2 * H);
    rh_close(&rh);
}

/* Both directions together are a forward layer and a backward layer side by side, masks apart. */
static void bidirectional_is_two_layers(void **unused)
{
    (void)unused;
    union seqlstm_any_desc d = make(SEQLSTM_CELL_GRU, SEQLSTM_MODE_TRAINING);
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    struct rh both, each[2];
    d.recurrent.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    rh_open(&both, &d, mixed, 3, 0, 5, 61);
    rh_forward(&both);
    for (uint32_t direction = 0; direction < 2; direction++) {
        d.recurrent.direction = direction;
        rh_open(&each[direction], &d, mixed, 3, 0, 5, 62);
        copy_slot(&each[direction], 0, &both, 0);
        copy_slot(&each[direction], state(0, 0), &both, state((int32_t)direction, 0));
        for (int32_t p = 0; p <= SEQLSTM_PARAM_BIAS; p++)
            copy_slot(&each[direction], param(1, 0, p), &both, param(2, (int32_t)direction, p));
        rh_forward(&each[direction]);
        for (int64_t row = 0; row < both.bind.rows; row++)
            assert_close("y", (double *)both.values[1] + row * 2 * H + direction * H,
                         (double *)each[direction].values[1] + row * H, H, 1e-15);
        assert_close("hn", both.values[state((int32_t)direction, 2)], each[direction].values[state(0, 2)], 3 * H,
                     1e-15);
    }
    /* the reverse direction's final state is its output at the first step */
    assert_close("hn is y at step 0", each[1].values[state(0, 2)], each[1].values[1], 3 * H, 1e-15);
    rh_close(&both);
    rh_close(&each[0]);
    rh_close(&each[1]);
}

/* Parts that are not asked for are not written; an output gradient that is NULL counts as zero. */
static void parts_and_absent_gradients(void **unused)
{
    (void)unused;
    union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_TRAINING);
    struct rh rh;
    rh_open(&rh, &d, mixed, 3, 0, 5, 71);
    rh_forward(&rh);
    const int32_t w_x = param(1, 0, 0), h0 = state(0, 0);
    rh.grads[0][0] = rh.grads[w_x][0] = rh.grads[h0][0] = 77;
    rh_backward(&rh, SEQLSTM_BIT_BACKWARD_INPUTS);
    assert_true(rh.grads[0][0] != 77 && rh.grads[w_x][0] == 77 && rh.grads[h0][0] == 77);
    rh_forward(&rh);
    rh_backward(&rh, SEQLSTM_BIT_BACKWARD_STATES);
    assert_true(rh.grads[w_x][0] == 77 && rh.grads[h0][0] != 77);
    rh_forward(&rh);
    rh_backward(&rh, SEQLSTM_BIT_BACKWARD_WEIGHTS);
    const double once = rh.grads[w_x][0];
    assert_true(once != 77);
    rh_forward(&rh);
    rh_backward(&rh, SEQLSTM_BIT_BACKWARD_WEIGHTS | SEQLSTM_BIT_BACKWARD_ACCUMULATE);
    assert_true(fabs(rh.grads[w_x][0] - 2 * once) < 1e-12);

    double *dy = rh.grads[1], *dhn = rh.grads[state(0, 2)], *dcn = rh.grads[state(0, 3)], *dx = rh.grads[0];
    memset(dy, 0, (size_t)rh.elems[1] * sizeof(double));
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    const double with_zeros = rh.grads[w_x][3];
    rh.grads[1] = NULL;
    rh.grads[0] = NULL; /* a first layer */
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    assert_true(rh.grads[w_x][3] == with_zeros);
    rh.grads[state(0, 2)] = rh.grads[state(0, 3)] = NULL;
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    assert_true(rh.grads[w_x][3] == 0 && with_zeros != 0);
    rh.grads[1] = dy;
    rh.grads[0] = dx;
    rh.grads[state(0, 2)] = dhn;
    rh.grads[state(0, 3)] = dcn;
    rh_close(&rh);
}

/* With coupled gates the f rows may hold anything, and get no gradient. */
static void unused_rows_do_not_matter(void **unused)
{
    (void)unused;
    union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_TRAINING);
    d.recurrent.options |=
        SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    d.recurrent.layer_norm_epsilon = 1e-3f;
    struct rh rh;
    rh_open(&rh, &d, mixed, 3, 0, 5, 81);
    double *w_x = rh.values[param(1, 0, SEQLSTM_PARAM_W_X)], *bias = rh.values[param(1, 0, SEQLSTM_PARAM_BIAS)];
    double *norm = rh.values[param(1, 0, SEQLSTM_PARAM_NORM)], *p = rh.values[param(1, 0, SEQLSTM_PARAM_PEEPHOLE)];
    for (int64_t k = 0; k < H; k++)
        w_x[(H + k) * I] = bias[H + k] = norm[H + k] = p[H + k] = NAN;
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    for (int32_t k = 0; k < rh.count; k++)
        for (int64_t j = 0; rh.grads[k] && j < rh.elems[k]; j++)
            if (!isfinite(rh.grads[k][j]) || !isfinite(((double *)rh.values[1])[0]))
                fail_msg("%s[%lld] is not finite", rh.slots[k].name, (long long)j);
    for (int64_t k = 0; k < H * I; k++)
        assert_true(rh.grads[param(1, 0, SEQLSTM_PARAM_W_X)][H * I + k] == 0);
    assert_true(rh.grads[param(1, 0, SEQLSTM_PARAM_NORM)][H] == 0);
    rh_close(&rh);
}

/* NULL hn and cn are simply not written. */
static void final_states_one_by_one(void **unused)
{
    (void)unused;
    union seqlstm_any_desc d = make(SEQLSTM_CELL_LSTM, SEQLSTM_MODE_TRAINING);
    struct rh rh;
    rh_open(&rh, &d, mixed, 3, 0, 5, 91);
    void *cn = rh.values[state(0, 3)];
    rh.values[state(0, 3)] = NULL;
    rh_forward(&rh);
    for (int32_t b = 0; b < 3; b++) {
        const int64_t row = rh.axis.row_offsets[mixed[b] - 1] + b;
        assert_close("hn", (double *)rh.values[state(0, 2)] + b * H, (double *)rh.values[1] + row * H, H, 0);
    }
    rh.values[state(0, 3)] = cn;
    rh_close(&rh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranges_are_the_whole),    cmocka_unit_test(a_batch_is_its_sequences),
        cmocka_unit_test(dropout_is_a_masked_input),   cmocka_unit_test(weight_drop_is_a_masked_matrix),
        cmocka_unit_test(inference_has_no_masks),      cmocka_unit_test(zoneout_keeps_old_values),
        cmocka_unit_test(bidirectional_is_two_layers), cmocka_unit_test(parts_and_absent_gradients),
        cmocka_unit_test(unused_rows_do_not_matter),   cmocka_unit_test(final_states_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
