/* SPDX-License-Identifier: Apache-2.0 */
/* The reference against Keras: activations in both places, merge modes, GRU with reset_after and without,
 * a stack, go_backwards, masks (mixed lengths); outputs and all gradients.
 *
 * Keras stores kernels transposed, gates as i f c o and z r h, and for reset_after a bias [2, 3 H] of which
 * r and z are added. go_backwards hands on its outputs in the order of its steps: turned around here.
 *
 * Float64 on both sides: the tolerance is 1e-10; 1e-6 with hard_sigmoid, whose slope 1/6 is rounded to float32
 * in a descriptor (relative 2^-25, times a chain of gates). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

static struct seqlstm_activation activation(const char *name)
{
    static const struct {
        const char *name;
        struct seqlstm_activation is;
    } known[] = {{"tanh", {SEQLSTM_ACT_TANH, 0, 0, 0}},
                 {"sigmoid", {SEQLSTM_ACT_SIGMOID, 0, 0, 0}},
                 {"softsign", {SEQLSTM_ACT_SOFTSIGN, 0, 0, 0}},
                 {"softplus", {SEQLSTM_ACT_SOFTPLUS, 0, 0, 0}},
                 {"hard_sigmoid", {SEQLSTM_ACT_HARD_SIGMOID, 1.0f / 6, 0.5f, 0}},
                 {"leaky_relu", {SEQLSTM_ACT_LEAKY_RELU, 0.125f, 0, 0}},
                 {"elu", {SEQLSTM_ACT_ELU, 1, 0, 0}}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].name, name) == 0)
            return known[k].is;
    fail_msg("activation %s", name);
    return known[0].is;
}

struct shape {
    int64_t layers, directions, input, hidden, gates, merged;
    bool gru, reset_after, backward;
    const int *order; /* canonical gate -> Keras's gate */
    double tolerance;
};

static union seqlstm_any_desc describe(struct fixture *f, struct shape *s)
{
    static const int lstm_order[4] = {0, 1, 2, 3}, gru_order[3] = {1, 0, 2};
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    const bool lstm = strcmp(fixture_text(f, "cell", ""), "lstm") == 0;
    *s = (struct shape){.layers = fixture_int(f, "layers", 0),
                        .input = fixture_int(f, "input", 0),
                        .hidden = fixture_int(f, "hidden", 0),
                        .gru = strcmp(fixture_text(f, "cell", ""), "gru") == 0,
                        .reset_after = fixture_int(f, "reset_after", 0),
                        .backward = fixture_int(f, "backward", 0),
                        .tolerance = 1e-10};
    s->gates = lstm ? 4 : s->gru ? 3 : 1;
    s->order = s->gru ? gru_order : lstm_order;
    static const char *const merges[4] = {"concat", "sum", "mul", "ave"};
    const char *merge = fixture_text(f, "merge", NULL);
    s->directions = merge ? 2 : 1;
    for (uint32_t k = 0; merge && k < 4; k++)
        if (strcmp(merges[k], merge) == 0)
            d->merge = k;
    s->merged = merge && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * s->hidden : s->hidden;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING);
    d->cell = lstm ? SEQLSTM_CELL_LSTM : s->gru ? SEQLSTM_CELL_GRU : SEQLSTM_CELL_RNN;
    d->direction = s->directions == 2 ? SEQLSTM_DIRECTION_BIDIRECTIONAL
                   : s->backward      ? SEQLSTM_DIRECTION_BACKWARD
                                      : SEQLSTM_DIRECTION_FORWARD;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT | (fixture_int(f, "bias", 0) ? SEQLSTM_BIT_RECURRENT_USE_BIAS : 0) |
                 (s->reset_after ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0);
    d->layers = s->layers;
    d->input = s->input;
    d->hidden = s->hidden;
    const struct seqlstm_activation gate = activation(fixture_text(f, "gate", "sigmoid"));
    const struct seqlstm_activation candidate = activation(fixture_text(f, "activation", "tanh"));
    if (gate.kind == SEQLSTM_ACT_HARD_SIGMOID)
        s->tolerance = 1e-6;
    for (int direction = 0; direction < 2; direction++) {
        d->activations[SEQLSTM_PLACE_GATE][direction] = gate;
        d->activations[SEQLSTM_PLACE_CANDIDATE][direction] = candidate;
        d->activations[SEQLSTM_PLACE_OUTPUT][direction] = candidate;
    }
    return any;
}

/* A kernel [n, G H] in canonical layout [G H, n]. */
static void kernel(const struct fixture *f, const struct shape *s, const char *name, int64_t n, double *out)
{
    double transposed[512];
    const int64_t gh = s->gates * s->hidden;
    fixture_transpose(fixture_get(f, name, n * gh), n, gh, transposed);
    fixture_reorder(transposed, s->order, (int)s->gates, s->hidden, n, out);
}

/* A bias in canonical order: [G H], or for reset_after r z n_in n_hidden. `gradient`: those of the two
 * biases of r and z are equal and are not added. */
static void bias(const struct fixture *f, const struct shape *s, const char *name, bool gradient, double *out)
{
    const int64_t gh = s->gates * s->hidden;
    const double *in = fixture_get(f, name, s->reset_after ? 2 * gh : gh);
    double second[64];
    fixture_reorder(in, s->order, (int)s->gates, s->hidden, 1, out);
    if (!s->reset_after)
        return;
    fixture_reorder(in + gh, s->order, (int)s->gates, s->hidden, 1, second);
    for (int64_t k = 0; !gradient && k < 2 * s->hidden; k++)
        out[k] += second[k];
    memcpy(out + gh, second + 2 * s->hidden, (size_t)s->hidden * sizeof *out);
}

static const char *weight_name(char text[64], const char *prefix, const struct shape *s, int64_t layer,
                               int64_t direction, const char *name)
{
    const char *side = s->directions == 1 ? "" : direction ? "backward." : "forward.";
    snprintf(text, 64, "%sl%d.%s%s", prefix, (int)layer, side, name);
    return text;
}

static void one_case(struct fixture *f)
{
    struct shape s;
    const union seqlstm_any_desc d = describe(f, &s);
    double list[8], rows[512];
    int32_t lengths[8];
    const int batch = fixture_list(f, "lengths", list, 8);
    for (int k = 0; k < batch; k++)
        lengths[k] = (int32_t)list[k];
    struct rh rh;
    char name[64];
    rh_open(&rh, &d, lengths, batch, 0, lengths[0], 1);
    const int64_t ld = s.layers * s.directions, padded = lengths[0] * batch;
    fixture_pack(&rh, fixture_get(f, "x", padded * s.input), s.input, true, false, rh.values[0]);
    fixture_pack(&rh, fixture_get(f, "dy", padded * s.merged), s.merged, true, s.backward, rh.grads[1]);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t layer = n / s.directions, direction = n % s.directions;
        void **param = &rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
        kernel(f, &s, weight_name(name, "", &s, layer, direction, "kernel"), layer ? s.merged : s.input, param[0]);
        kernel(f, &s, weight_name(name, "", &s, layer, direction, "recurrent_kernel"), s.hidden, param[1]);
        if (param[2])
            bias(f, &s, weight_name(name, "", &s, layer, direction, "bias"), false, param[2]);
    }
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    fixture_pack(&rh, fixture_get(f, "y", padded * s.merged), s.merged, true, s.backward, rows);
    fixture_compare(f, "y", rh.values[1], rows, rh.elems[1], s.tolerance);
    fixture_pack(&rh, fixture_get(f, "dx", padded * s.input), s.input, true, false, rows);
    fixture_compare(f, "dx", rh.grads[0], rows, rh.elems[0], s.tolerance);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t layer = n / s.directions, direction = n % s.directions;
        const int32_t param = (int32_t)SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0);
        kernel(f, &s, weight_name(name, "d", &s, layer, direction, "kernel"), layer ? s.merged : s.input, rows);
        fixture_compare(f, "dw_x", rh.grads[param], rows, rh.elems[param], s.tolerance);
        kernel(f, &s, weight_name(name, "d", &s, layer, direction, "recurrent_kernel"), s.hidden, rows);
        fixture_compare(f, "dw_h", rh.grads[param + 1], rows, rh.elems[param + 1], s.tolerance);
        if (rh.grads[param + 2]) {
            bias(f, &s, weight_name(name, "d", &s, layer, direction, "bias"), true, rows);
            fixture_compare(f, "dbias", rh.grads[param + 2], rows, rh.elems[param + 2], s.tolerance);
        }
    }
    rh_close(&rh);
}

static void reference_equals_keras(void **state)
{
    (void)state;
    fixture_run("keras", one_case, 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_equals_keras)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
