/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: the slopes of recurrent cells where an activation has a kink or a clip has its limits, for each place of an
 * activation, against ops.h. One step whose weights are 0, so that biases and states alone say what is activated. */
#include "blas_fixture.h"

#include <seqlstm/ops/recurrent.h>

enum { UNITS = 21, MOST = 20, IN = 2, BIASES = 4 * UNITS };

enum cell { LSTM, GRU_AFTER, GRU_BEFORE, RNN, NORM };

/* What is activated, and by which place of an activation. */
struct place {
    const char *name;
    enum cell cell;
    int activation, gate; /* of the bias, or -1 */
};

static const struct place places[] = {
    {"i", LSTM, SEQLSTM_PLACE_GATE, 0},
    {"f", LSTM, SEQLSTM_PLACE_GATE, 1},
    {"g", LSTM, SEQLSTM_PLACE_CANDIDATE, 2},
    {"o", LSTM, SEQLSTM_PLACE_GATE, 3},
    {"the new c", LSTM, SEQLSTM_PLACE_OUTPUT, -1},
    {"the new c with layer norm", NORM, SEQLSTM_PLACE_OUTPUT, -1},
    {"r", GRU_AFTER, SEQLSTM_PLACE_GATE, 0},
    {"r of a reset before", GRU_BEFORE, SEQLSTM_PLACE_GATE, 0},
    {"z", GRU_AFTER, SEQLSTM_PLACE_GATE, 1},
    {"n", GRU_AFTER, SEQLSTM_PLACE_CANDIDATE, 2},
    {"h", RNN, SEQLSTM_PLACE_CANDIDATE, 0},
};

static const struct seqlstm_activation activations[] = {
    {SEQLSTM_ACT_RELU, 0, 0, 0},
    {SEQLSTM_ACT_LEAKY_RELU, 0.5f, 0, 0},
    {SEQLSTM_ACT_LEAKY_RELU, -0.5f, 0, 0}, /* its value does not tell its argument */
    {SEQLSTM_ACT_THRESHOLDED_RELU, 0.5f, 0, 0},
    {SEQLSTM_ACT_HARD_SIGMOID, 0.5f, 0.25f, 0},
    {SEQLSTM_ACT_ELU, 0.5f, 0, 0},
};

static const struct seqlstm_activation half = {SEQLSTM_ACT_HARD_SIGMOID, 0.25f, 0.5f, 0}; /* at 0 */

/* What unit u activates: the kinks, the limits of the clip, and both sides of them. */
static float get_argument(int u)
{
    static const float list[] = {0,       0.125f, -0.125f, 0.5f,   0.375f, 0.625f,  -0.5f,  -0.375f,
                                 -0.625f, 1.5f,   1.375f,  1.625f, -1.5f,  -1.375f, -1.625f};
    return list[u % (int)(sizeof list / sizeof *list)];
}

static double value(const struct seqlstm_activation *a, double x)
{
    const double alpha = (double)a->alpha;
    switch (a->kind) {
    case SEQLSTM_ACT_RELU:
        return x > 0 ? x : 0;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > alpha ? x : 0;
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    default:
        return fmin(fmax(alpha * x + (double)a->beta, 0), 1);
    }
}

static double slope(const struct seqlstm_activation *a, double x)
{
    const double alpha = (double)a->alpha, y = value(a, x);
    switch (a->kind) {
    case SEQLSTM_ACT_RELU:
        return x > 0;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? 1 : alpha;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > alpha;
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? 1 : y + alpha;
    default:
        return y > 0 && y < 1 ? alpha : 0;
    }
}

struct step {
    float x[MOST * IN], y[MOST * UNITS], h0[MOST * UNITS], c0[MOST * UNITS], hn[MOST * UNITS], cn[MOST * UNITS];
    float w_x[BIASES * IN], w_h[BIASES * UNITS], bias[BIASES], norm[2 * BIASES + 2 * UNITS];
};

static void fill(float *to, int count, float value_of_all)
{
    for (int i = 0; i < count; i++)
        to[i] = value_of_all;
}

/* The bias or norm that the place activates, as it is in `parameters` and in their gradients. */
static float *find_arguments(const struct place *p, struct step *parameters)
{
    if (p->cell == NORM)
        return parameters->norm + 2 * BIASES + UNITS;
    return parameters->bias + (p->gate < 0 ? 2 : p->gate) * UNITS;
}

/* Other gates than that of the place are a half, or where they have its activation, it at 0.25; other values are 1. */
static void set_values(const struct place *p, struct step *s)
{
    memset(s, 0, sizeof *s);
    fill(s->x, MOST * IN, 1);
    fill(s->h0, MOST * UNITS, p->cell == GRU_BEFORE || (p->cell == GRU_AFTER && p->gate == 1) ? 1 : 0);
    fill(s->c0, MOST * UNITS, p->cell == LSTM && p->activation == SEQLSTM_PLACE_GATE ? 1 : 0);
    for (int g = 0; g < 4; g++) {
        float *bias = s->bias + g * UNITS;
        if (p->activation == SEQLSTM_PLACE_GATE)
            fill(bias, UNITS, p->cell == LSTM ? (g == 2 ? 1 : 0.625f) : g == 3 ? 1 : g == 2 ? 0 : 0.25f);
    }
    if (p->cell == GRU_AFTER && p->gate == 1) { /* n is 1.25, and h was 1 */
        fill(s->bias + 2 * UNITS, UNITS, 1.25f);
        fill(s->bias + 3 * UNITS, UNITS, 0);
    }
    for (int u = 0; u < UNITS && p->cell == GRU_BEFORE; u++)
        s->w_h[(2 * UNITS + u) * UNITS + u] = 1;
    for (int u = 0; u < UNITS; u++) /* the new c is half of g */
        find_arguments(p, s)[u] = get_argument(u) * (p->cell == LSTM && p->gate < 0 ? 2 : 1);
}

/* dh/dargument of a unit, but for the slope. */
static double get_factor(const struct place *p, const struct seqlstm_activation *a)
{
    const double one = value(a, 0.625), quarter = value(a, 0.25);
    if (p->cell == RNN)
        return 1;
    if (p->cell == GRU_AFTER || p->cell == GRU_BEFORE)
        return p->gate == 0 ? 1 - quarter : p->gate == 1 ? -0.25 : 0.5;
    if (p->cell == NORM)
        return 0.5;
    if (p->gate < 0 || p->gate == 2)
        return 0.25;
    return p->gate == 3 ? 2 * one : one; /* o times, or (f 1 + i 1) times */
}

static void try_place(struct blas_fixture *f, const struct place *p, const struct seqlstm_activation *a, int sequences,
                      float clip, const char *variant)
{
    static struct step values, grads;
    static int32_t lengths[MOST];
    const bool is_gru = p->cell == GRU_AFTER || p->cell == GRU_BEFORE, is_lstm = !is_gru && p->cell != RNN;
    struct seqlstm_recurrent_desc d = {.head = fixture_head(SEQLSTM_OP_RECURRENT, sizeof d, sequences),
                                       .cell = is_gru    ? SEQLSTM_CELL_GRU
                                               : is_lstm ? SEQLSTM_CELL_LSTM
                                                         : SEQLSTM_CELL_RNN,
                                       .options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT |
                                                  SEQLSTM_BIT_RECURRENT_INITIAL_STATE,
                                       .layers = 1,
                                       .input = IN,
                                       .hidden = UNITS,
                                       .layer_norm_epsilon = 1e-3f};
    d.head.max_steps = 1;
    d.options |= p->cell == GRU_AFTER ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0;
    d.options |= p->cell == NORM ? SEQLSTM_BIT_RECURRENT_LAYER_NORM : 0;
    *(p->cell == LSTM && p->gate < 0 ? &d.cell_clip : &d.gate_clip) = clip;
    d.activations[SEQLSTM_PLACE_GATE][0] = half;
    d.activations[p->activation][0] = *a;
    const bool is_clipped = clip > 0 && p->cell != NORM;
    set_values(p, &values);
    memset(&grads, 0, sizeof grads);
    double all = 0;
    for (int b = 0; b < sequences; b++) {
        lengths[b] = 1;
        fill(grads.y + b * UNITS, UNITS, 1 + 0.25f * (float)(b % 4));
        all += 1 + 0.25 * (b % 4);
    }
    struct fixture_axis axis;
    fixture_axis(&axis, sequences, lengths);
    struct fixture_run run = {
        .desc = &d.head,
        .rows = sequences,
        .axis = &axis.axis,
        .t1 = 1,
        .slots = {values.x, values.y, values.h0, is_lstm ? values.c0 : NULL, NULL, NULL, values.w_x, values.w_h,
                  values.bias, NULL, NULL, p->cell == NORM ? values.norm : NULL},
        .grads = {grads.x, grads.y, grads.h0, is_lstm ? grads.c0 : NULL, NULL, NULL, grads.w_x, grads.w_h, grads.bias,
                  NULL, NULL, p->cell == NORM ? grads.norm : NULL},
        .slot_count = SEQLSTM_SLOT_RECURRENT_COUNT(1),
        .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS,
        .variant = variant};
    fixture_run(f, sequences > 1 ? &f->queue : &f->alone, &run);
    for (int u = 0; u < UNITS; u++) {
        const double x = (double)get_argument(u), in = is_clipped ? fmin(fmax(x, -(double)clip), (double)clip) : x;
        const double right = is_clipped && in != x ? 0 : all * get_factor(p, a) * slope(a, in);
        const double got = (double)find_arguments(p, &grads)[u];
        if (!(fabs(got - right) <= 1e-6 * (1 + fabs(right))))
            fail_msg("%s, activation %u (%g): slope of %s at %g, clip %g, %d sequences: %.9g, not %.9g", variant,
                     a->kind, (double)a->alpha, p->name, x, (double)clip, sequences, got, right);
    }
}

static void try_all(struct blas_fixture *f, float clip)
{
    static const char *const variants[] = {"packed", "generic"};
    for (size_t v = 0; v < 2; v++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            for (size_t a = 0; a < sizeof activations / sizeof *activations; a++) {
                try_place(f, &places[p], &activations[a], 1, clip, variants[v]);
                try_place(f, &places[p], &activations[a], MOST, clip, variants[v]);
            }
}

static void slopes_at_kinks(void **state)
{
    try_all(*state, 0);
}

static void slopes_at_the_limits_of_a_clip(void **state)
{
    try_all(*state, 1.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_at_kinks),
        cmocka_unit_test(slopes_at_the_limits_of_a_clip),
    };
    return FIXTURE_RUN(tests);
}
