/* SPDX-License-Identifier: Apache-2.0 */
/* The reference against PyTorch: LSTM, GRU and RNN, stacks, both directions, projection, states, packed
 * sequences of mixed lengths; outputs and all gradients. Gate orders are the same (i f g o and r z n);
 * PyTorch has two biases that are added, and for the GRU's candidate kept apart as in RESET_AFTER.
 *
 * Both sides compute in float64 from exact inputs and the file holds 13 digits: the tolerance is 1e-10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static const double tolerance = 1e-10;

struct shape {
    int64_t layers, directions, hidden, out, gates, batch;
    bool lstm, gru;
};

static union seqlstm_any_desc describe(struct fixture *f, struct shape *s)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING);
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_INITIAL_STATE |
                 SEQLSTM_BIT_RECURRENT_FINAL_STATE | (fixture_int(f, "bias", 0) ? SEQLSTM_BIT_RECURRENT_USE_BIAS : 0);
    s->lstm = strcmp(fixture_text(f, "cell", ""), "lstm") == 0;
    s->gru = strcmp(fixture_text(f, "cell", ""), "gru") == 0;
    d->cell = s->lstm ? SEQLSTM_CELL_LSTM : s->gru ? SEQLSTM_CELL_GRU : SEQLSTM_CELL_RNN;
    d->options |= s->gru ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0;
    d->layers = s->layers = fixture_int(f, "layers", 0);
    d->input = fixture_int(f, "input", 0);
    d->hidden = s->hidden = fixture_int(f, "hidden", 0);
    d->projection = fixture_int(f, "projection", 0);
    s->directions = fixture_int(f, "directions", 0);
    d->direction = s->directions == 2 ? SEQLSTM_DIRECTION_BIDIRECTIONAL : SEQLSTM_DIRECTION_FORWARD;
    s->out = d->projection ? d->projection : d->hidden;
    s->gates = s->lstm ? 4 : s->gru ? 3 : 1;
    s->batch = fixture_int(f, "batch", 0);
    for (int direction = 0; direction < 2; direction++) {
        d->activations[SEQLSTM_PLACE_GATE][direction].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][direction].kind =
            fixture_int(f, "relu", 0) ? SEQLSTM_ACT_RELU : SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][direction].kind = SEQLSTM_ACT_TANH;
    }
    return any;
}

static const double *parameter(const struct fixture *f, const char *prefix, const char *name, int64_t layer,
                               int64_t direction, int64_t elems)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s_l%d%s", prefix, name, (int)layer, direction ? "_reverse" : "");
    return fixture_get(f, text, elems);
}

/* bias_ih + bias_hh; for the GRU the candidate's stay apart: r z n_in n_hidden. */
static void join_biases(const struct shape *s, const double *in, const double *hidden, double *bias)
{
    const int64_t h = s->hidden, n = s->gates * h;
    for (int64_t k = 0; k < n; k++)
        bias[k] = in[k] + (s->gru && k >= 2 * h ? 0 : hidden[k]);
    for (int64_t k = 2 * h; s->gru && k < n; k++)
        bias[h + k] = hidden[k];
}

static void one_case(struct fixture *f)
{
    struct shape s;
    const union seqlstm_any_desc d = describe(f, &s);
    double list[8];
    int32_t lengths[8];
    const int count = fixture_list(f, "lengths", list, 8);
    assert_int_equal(count, s.batch);
    for (int k = 0; k < count; k++)
        lengths[k] = (int32_t)list[k];
    struct rh rh;
    rh_open(&rh, &d, lengths, s.batch, 0, lengths[0], 1);
    const int64_t merged = s.out * s.directions, ld = s.layers * s.directions, padded = lengths[0] * s.batch;
    double rows[512];
    fixture_pack(&rh, fixture_get(f, "x", padded * d.recurrent.input), d.recurrent.input, false, false, rh.values[0]);
    fixture_pack(&rh, fixture_get(f, "dy", padded * merged), merged, false, false, rh.grads[1]);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t layer = n / s.directions, direction = n % s.directions, gh = s.gates * s.hidden;
        const int64_t input = layer ? merged : d.recurrent.input;
        void **state = &rh.values[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
        void **param = &rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
        double **dstate = &rh.grads[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
        const int64_t h_elems = s.batch * s.out, c_elems = s.batch * s.hidden;
        memcpy(state[0], fixture_get(f, "h0", ld * h_elems) + n * h_elems, (size_t)h_elems * sizeof(double));
        memcpy(dstate[2], fixture_get(f, "dhn", ld * h_elems) + n * h_elems, (size_t)h_elems * sizeof(double));
        if (s.lstm) {
            memcpy(state[1], fixture_get(f, "c0", ld * c_elems) + n * c_elems, (size_t)c_elems * sizeof(double));
            memcpy(dstate[3], fixture_get(f, "dcn", ld * c_elems) + n * c_elems, (size_t)c_elems * sizeof(double));
        }
        memcpy(param[0], parameter(f, "", "weight_ih", layer, direction, gh * input),
               (size_t)(gh * input) * sizeof(double));
        memcpy(param[1], parameter(f, "", "weight_hh", layer, direction, gh * s.out),
               (size_t)(gh * s.out) * sizeof(double));
        if (param[2])
            join_biases(&s, parameter(f, "", "bias_ih", layer, direction, gh),
                        parameter(f, "", "bias_hh", layer, direction, gh), param[2]);
        if (param[4])
            memcpy(param[4], parameter(f, "", "weight_hr", layer, direction, s.out * s.hidden),
                   (size_t)(s.out * s.hidden) * sizeof(double));
    }
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    fixture_pack(&rh, fixture_get(f, "y", padded * merged), merged, false, false, rows);
    fixture_compare(f, "y", rh.values[1], rows, rh.elems[1], tolerance);
    fixture_pack(&rh, fixture_get(f, "dx", padded * d.recurrent.input), d.recurrent.input, false, false, rows);
    fixture_compare(f, "dx", rh.grads[0], rows, rh.elems[0], tolerance);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t layer = n / s.directions, direction = n % s.directions, gh = s.gates * s.hidden;
        const int64_t input = layer ? merged : d.recurrent.input;
        const int32_t state = (int32_t)SEQLSTM_SLOT_RECURRENT_STATE(n, 0);
        const int32_t param = (int32_t)SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0);
        static const char *const values[4] = {NULL, NULL, "hn", "cn"}, *const grads[2] = {"dh0", "dc0"};
        for (int which = 0; which < 4; which++) {
            const int64_t elems = rh.elems[state + which];
            if (elems && values[which])
                fixture_compare(f, values[which], rh.values[state + which],
                                fixture_get(f, values[which], ld * elems) + n * elems, elems, tolerance);
            if (elems && which < 2)
                fixture_compare(f, grads[which], rh.grads[state + which],
                                fixture_get(f, grads[which], ld * elems) + n * elems, elems, tolerance);
        }
        fixture_compare(f, "dw_x", rh.grads[param], parameter(f, "d", "weight_ih", layer, direction, gh * input),
                        gh * input, tolerance);
        fixture_compare(f, "dw_h", rh.grads[param + 1], parameter(f, "d", "weight_hh", layer, direction, gh * s.out),
                        gh * s.out, tolerance);
        if (rh.grads[param + 2]) {
            /* the gradients of the two biases are those of their sum; of n apart */
            const double *in = parameter(f, "d", "bias_ih", layer, direction, gh);
            const double *hidden = parameter(f, "d", "bias_hh", layer, direction, gh);
            fixture_compare(f, "dbias", rh.grads[param + 2], in, gh, tolerance);
            if (s.gru)
                fixture_compare(f, "dbias_hn", rh.grads[param + 2] + gh, hidden + 2 * s.hidden, s.hidden, tolerance);
        }
        if (rh.grads[param + 4])
            fixture_compare(f, "dprojection", rh.grads[param + 4],
                            parameter(f, "d", "weight_hr", layer, direction, s.out * s.hidden), s.out * s.hidden,
                            tolerance);
    }
    rh_close(&rh);
}

static void reference_equals_pytorch(void **state)
{
    (void)state;
    fixture_run("torch", one_case, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_equals_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
