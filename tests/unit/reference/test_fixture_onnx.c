/* SPDX-License-Identifier: Apache-2.0 */
/* The reference against the ONNX operators LSTM, GRU and RNN as onnxruntime runs them: peepholes, clip,
 * input_forget, every activation with alpha and beta, per direction, sequence_lens, initial and final states.
 *
 * ONNX orders gates i o f c and z r h, peepholes i o f, and has two biases. onnxruntime computes in float32:
 * with K = I + H + 2 products per pre-activation and T steps the bound is 4 eps sqrt(K) T, relative to
 * max(1, |value|) (docs/numerics.md), eps = 2^-23. Gradients are those of the operators' equations in float64
 * (tests/fixtures/onnx_equations.py), stored with 13 digits: 1e-10. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

/* ONNX's names, in the order of SEQLSTM_ACT_…, and how many of alpha and beta each consumes. */
static const struct {
    const char *name;
    uint32_t kind;
    int alphas, betas;
} known[] = {{"Tanh", SEQLSTM_ACT_TANH, 0, 0},
             {"Sigmoid", SEQLSTM_ACT_SIGMOID, 0, 0},
             {"Relu", SEQLSTM_ACT_RELU, 0, 0},
             {"LeakyRelu", SEQLSTM_ACT_LEAKY_RELU, 1, 0},
             {"ThresholdedRelu", SEQLSTM_ACT_THRESHOLDED_RELU, 1, 0},
             {"ScaledTanh", SEQLSTM_ACT_SCALED_TANH, 1, 1},
             {"HardSigmoid", SEQLSTM_ACT_HARD_SIGMOID, 1, 1},
             {"Elu", SEQLSTM_ACT_ELU, 1, 0},
             {"Softsign", SEQLSTM_ACT_SOFTSIGN, 0, 0},
             {"Softplus", SEQLSTM_ACT_SOFTPLUS, 0, 0},
             {"Affine", SEQLSTM_ACT_AFFINE, 1, 1}};

struct shape {
    int64_t directions, input, hidden, gates, batch;
    bool lstm, gru, peephole;
    const int *order;
};

/* ONNX lists f g h (LSTM), f g (GRU) or f (RNN) per direction: gate, candidate, output. */
static void activations(struct fixture *f, const struct shape *s, struct seqlstm_recurrent_desc *d)
{
    const int per_direction = s->lstm ? 3 : s->gru ? 2 : 1;
    static const char *const defaults[3] = {"Sigmoid,Tanh,Tanh", "Sigmoid,Tanh", "Tanh"};
    double alphas[8] = {0}, betas[8] = {0};
    fixture_list(f, "activation_alpha", alphas, 8);
    fixture_list(f, "activation_beta", betas, 8);
    char text[256];
    const char *one = defaults[3 - per_direction];
    const char *given = fixture_text(f, "activations", NULL);
    if (given)
        snprintf(text, sizeof text, "%s", given);
    else
        snprintf(text, sizeof text, "%s,%s", one, one);
    char *rest = NULL, *word = strtok_r(text, ",", &rest);
    int alpha = 0, beta = 0;
    for (int n = 0; n < per_direction * s->directions; n++, word = strtok_r(NULL, ",", &rest)) {
        assert_non_null(word);
        const int place = per_direction == 1 ? SEQLSTM_PLACE_CANDIDATE : n % per_direction;
        struct seqlstm_activation *a = &d->activations[place][n / per_direction];
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (strcmp(known[k].name, word) == 0) {
                a->kind = known[k].kind;
                a->alpha = known[k].alphas ? (float)alphas[alpha] : 0;
                a->beta = known[k].betas ? (float)betas[beta] : 0;
                alpha += known[k].alphas;
                beta += known[k].betas;
            }
        assert_int_not_equal(a->kind, SEQLSTM_ACT_NONE);
    }
}

static union seqlstm_any_desc describe(struct fixture *f, struct shape *s)
{
    static const int lstm_order[4] = {0, 2, 3, 1}, gru_order[3] = {1, 0, 2};
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    const bool reverse = strcmp(fixture_text(f, "direction", ""), "reverse") == 0;
    const bool both = strcmp(fixture_text(f, "direction", ""), "bidirectional") == 0;
    *s = (struct shape){.directions = both ? 2 : 1,
                        .input = fixture_int(f, "input", 0),
                        .hidden = fixture_int(f, "hidden", 0),
                        .batch = fixture_int(f, "batch", 0),
                        .lstm = strcmp(fixture_text(f, "cell", ""), "lstm") == 0,
                        .gru = strcmp(fixture_text(f, "cell", ""), "gru") == 0,
                        .peephole = fixture_int(f, "peephole", 0)};
    s->gates = s->lstm ? 4 : s->gru ? 3 : 1;
    s->order = s->lstm ? lstm_order : s->gru ? gru_order : lstm_order;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING); /* without masks: the same outputs */
    d->cell = s->lstm ? SEQLSTM_CELL_LSTM : s->gru ? SEQLSTM_CELL_GRU : SEQLSTM_CELL_RNN;
    d->direction = both      ? SEQLSTM_DIRECTION_BIDIRECTIONAL
                   : reverse ? SEQLSTM_DIRECTION_BACKWARD
                             : SEQLSTM_DIRECTION_FORWARD;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_INITIAL_STATE |
                 SEQLSTM_BIT_RECURRENT_FINAL_STATE | (s->peephole ? SEQLSTM_BIT_RECURRENT_PEEPHOLE : 0) |
                 (fixture_int(f, "input_forget", 0) ? SEQLSTM_BIT_RECURRENT_COUPLED_GATES : 0) |
                 (fixture_int(f, "linear_before_reset", 0) ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0);
    double clip = 0;
    fixture_list(f, "clip", &clip, 1);
    d->gate_clip = (float)clip;
    d->layers = 1;
    d->input = s->input;
    d->hidden = s->hidden;
    activations(f, s, d);
    return any;
}

static void parameters(const struct fixture *f, const struct shape *s, const struct seqlstm_recurrent_desc *d,
                       int64_t direction, void **param)
{
    static const int peephole_order[3] = {0, 2, 1};
    const int64_t h = s->hidden, gh = s->gates * h, directions = s->directions;
    double first[64], second[64];
    fixture_reorder(fixture_get(f, "W", directions * gh * s->input) + direction * gh * s->input, s->order,
                    (int)s->gates, h, s->input, param[SEQLSTM_PARAM_W_X]);
    fixture_reorder(fixture_get(f, "R", directions * gh * h) + direction * gh * h, s->order, (int)s->gates, h, h,
                    param[SEQLSTM_PARAM_W_H]);
    const double *b = fixture_get(f, "B", directions * 2 * gh) + direction * 2 * gh;
    double *bias = param[SEQLSTM_PARAM_BIAS];
    fixture_reorder(b, s->order, (int)s->gates, h, 1, first);
    fixture_reorder(b + gh, s->order, (int)s->gates, h, 1, second);
    const bool apart = d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    for (int64_t k = 0; k < gh; k++)
        bias[k] = first[k] + (apart && k >= 2 * h ? 0 : second[k]);
    for (int64_t k = 2 * h; apart && k < gh; k++)
        bias[h + k] = second[k];
    if (s->peephole)
        fixture_reorder(fixture_get(f, "P", directions * 3 * h) + direction * 3 * h, peephole_order, 3, h, 1,
                        param[SEQLSTM_PARAM_PEEPHOLE]);
}

static const double gradient_tolerance = 1e-10;

/* Gradients of the outputs, Y's [T, D, B, H] as rows of [D H]. */
static void upstream(const struct fixture *f, const struct shape *s, struct rh *rh, int64_t steps)
{
    const int64_t h = s->hidden, n = s->directions, state_elems = s->batch * h;
    const double *dy = fixture_get(f, "dY", steps * n * state_elems);
    for (int64_t t = 0; t < steps; t++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t b = 0; b < rh->axis.batch_sizes[t]; b++)
                memcpy(rh->grads[1] + ((rh->axis.row_offsets[t] + b) * n + k) * h,
                       dy + ((t * n + k) * s->batch + b) * h, (size_t)h * sizeof(double));
    for (int64_t k = 0; k < n; k++) {
        double **dstate = &rh->grads[SEQLSTM_SLOT_RECURRENT_STATE(k, 0)];
        memcpy(dstate[2], fixture_get(f, "dY_h", n * state_elems) + k * state_elems,
               (size_t)state_elems * sizeof(double));
        if (s->lstm)
            memcpy(dstate[3], fixture_get(f, "dY_c", n * state_elems) + k * state_elems,
                   (size_t)state_elems * sizeof(double));
    }
}

/* The two biases have one gradient, but for the candidate of a GRU with linear_before_reset. */
static void compare_bias(const struct fixture *f, const struct shape *s, bool apart, int64_t direction,
                         const double *got)
{
    const int64_t h = s->hidden, gh = s->gates * h;
    double first[64], second[64];
    const double *b = fixture_get(f, "dB", s->directions * 2 * gh) + direction * 2 * gh;
    fixture_reorder(b, s->order, (int)s->gates, h, 1, first);
    fixture_reorder(b + gh, s->order, (int)s->gates, h, 1, second);
    fixture_compare(f, "dbias", got, first, gh, gradient_tolerance);
    fixture_compare(f, "dbias of R", got, second, apart ? 2 * h : gh, gradient_tolerance);
    if (apart)
        fixture_compare(f, "dbias of R's candidate", got + gh, second + 2 * h, h, gradient_tolerance);
}

static void compare_gradients(const struct fixture *f, const struct shape *s, const struct seqlstm_recurrent_desc *d,
                              const struct rh *rh, int64_t steps)
{
    static const int peephole_order[3] = {0, 2, 1};
    const int64_t h = s->hidden, gh = s->gates * h, n = s->directions, state_elems = s->batch * h;
    double rows[512], canonical[256];
    fixture_pack(rh, fixture_get(f, "dX", steps * s->batch * s->input), s->input, false, false, rows);
    fixture_compare(f, "dx", rh->grads[0], rows, rh->elems[0], gradient_tolerance);
    for (int64_t k = 0; k < n; k++) {
        double *const *dstate = &rh->grads[SEQLSTM_SLOT_RECURRENT_STATE(k, 0)];
        double *const *dparam = &rh->grads[SEQLSTM_SLOT_RECURRENT_PARAM(n, k, 0)];
        fixture_compare(f, "dh0", dstate[0], fixture_get(f, "dinitial_h", n * state_elems) + k * state_elems,
                        state_elems, gradient_tolerance);
        if (s->lstm)
            fixture_compare(f, "dc0", dstate[1], fixture_get(f, "dinitial_c", n * state_elems) + k * state_elems,
                            state_elems, gradient_tolerance);
        fixture_reorder(fixture_get(f, "dW", n * gh * s->input) + k * gh * s->input, s->order, (int)s->gates, h,
                        s->input, canonical);
        fixture_compare(f, "dw_x", dparam[SEQLSTM_PARAM_W_X], canonical, gh * s->input, gradient_tolerance);
        fixture_reorder(fixture_get(f, "dR", n * gh * h) + k * gh * h, s->order, (int)s->gates, h, h, canonical);
        fixture_compare(f, "dw_h", dparam[SEQLSTM_PARAM_W_H], canonical, gh * h, gradient_tolerance);
        compare_bias(f, s, d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER, k, dparam[SEQLSTM_PARAM_BIAS]);
        if (s->peephole) {
            fixture_reorder(fixture_get(f, "dP", n * 3 * h) + k * 3 * h, peephole_order, 3, h, 1, canonical);
            fixture_compare(f, "dpeephole", dparam[SEQLSTM_PARAM_PEEPHOLE], canonical, 3 * h, gradient_tolerance);
        }
    }
}

static void one_case(struct fixture *f)
{
    struct shape s;
    const union seqlstm_any_desc d = describe(f, &s);
    double list[8], rows[512];
    int32_t lengths[8];
    for (int k = 0; k < fixture_list(f, "lengths", list, 8); k++)
        lengths[k] = (int32_t)list[k];
    struct rh rh;
    rh_open(&rh, &d, lengths, s.batch, 0, lengths[0], 1);
    const int64_t h = s.hidden, state_elems = s.batch * h, steps = lengths[0], n = s.directions;
    const double tolerance = 4 * (double)FLT_EPSILON * sqrt((double)(s.input + h + 2)) * (double)steps;
    fixture_pack(&rh, fixture_get(f, "X", steps * s.batch * s.input), s.input, false, false, rh.values[0]);
    for (int64_t k = 0; k < n; k++) {
        void **state = &rh.values[SEQLSTM_SLOT_RECURRENT_STATE(k, 0)];
        parameters(f, &s, &d.recurrent, k, &rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(n, k, 0)]);
        memcpy(state[0], fixture_get(f, "initial_h", n * state_elems) + k * state_elems,
               (size_t)state_elems * sizeof(double));
        if (s.lstm)
            memcpy(state[1], fixture_get(f, "initial_c", n * state_elems) + k * state_elems,
                   (size_t)state_elems * sizeof(double));
    }
    rh_forward(&rh);
    upstream(f, &s, &rh, steps);
    rh_backward(&rh, RH_ALL);
    /* Y [T, D, B, H] -> rows of [D H] */
    const double *y = fixture_get(f, "Y", steps * n * state_elems);
    for (int64_t t = 0; t < steps; t++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t b = 0; b < rh.axis.batch_sizes[t]; b++)
                memcpy(rows + ((rh.axis.row_offsets[t] + b) * n + k) * h, y + ((t * n + k) * s.batch + b) * h,
                       (size_t)h * sizeof(double));
    fixture_compare(f, "y", rh.values[1], rows, rh.elems[1], tolerance);
    for (int64_t k = 0; k < n; k++) {
        void **state = &rh.values[SEQLSTM_SLOT_RECURRENT_STATE(k, 0)];
        fixture_compare(f, "hn", state[2], fixture_get(f, "Y_h", n * state_elems) + k * state_elems, state_elems,
                        tolerance);
        if (s.lstm)
            fixture_compare(f, "cn", state[3], fixture_get(f, "Y_c", n * state_elems) + k * state_elems, state_elems,
                            tolerance);
    }
    compare_gradients(f, &s, &d.recurrent, &rh, steps);
    rh_close(&rh);
}

static void reference_equals_onnx(void **state)
{
    (void)state;
    fixture_run("onnx", one_case, 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reference_equals_onnx)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
