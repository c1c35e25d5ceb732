/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers of the reference against central differences: every option alone for every cell that
 * has it, every activation in every place, and random combinations.
 *
 * Bound: step 2^-18 gives a truncation of about 2^-36/6 f''' and a rounding of 2^-53/2^-18 |f|, together
 * near 1e-10 for objectives of order 1 to 10; 1e-7 leaves room for long chains, not for a wrong term. Gates
 * of combinations are bounded, so that no chain of products makes f large. Kinks (relu, clips) are hit within
 * the step with a probability near 1e-5 per element; seeds are fixed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ref_harness.h"

static const double tolerance = 1e-7;
static const int32_t mixed[4] = {4, 2, 2, 1};

static struct seqlstm_activation act(uint32_t kind, double alpha, double beta)
{
    return (struct seqlstm_activation){.kind = kind, .alpha = (float)alpha, .beta = (float)beta};
}

static union seqlstm_any_desc plain(uint32_t cell)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING);
    d->cell = cell;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_USE_BIAS;
    d->layers = 1;
    d->input = 3;
    d->hidden = 4;
    d->stream_base = 500;
    for (int direction = 0; direction < 2; direction++) {
        d->activations[SEQLSTM_PLACE_GATE][direction] = act(SEQLSTM_ACT_SIGMOID, 0, 0);
        d->activations[SEQLSTM_PLACE_CANDIDATE][direction] = act(SEQLSTM_ACT_TANH, 0, 0);
        d->activations[SEQLSTM_PLACE_OUTPUT][direction] = act(SEQLSTM_ACT_TANH, 0, 0);
    }
    return any;
}

static double check(const union seqlstm_any_desc *d, const char *name, uint64_t seed)
{
    struct rh rh;
    rh_open(&rh, d, mixed, 4, 0, 4, seed);
    const double worst = rh_check_gradients(&rh, name, tolerance);
    rh_check_float32(&rh, name);
    rh_close(&rh);
    return worst;
}

static const uint32_t cells[3] = {SEQLSTM_CELL_LSTM, SEQLSTM_CELL_GRU, SEQLSTM_CELL_RNN};
static const char *const cell_names[3] = {"lstm", "gru", "rnn"};

enum {
    OPT_PLAIN,
    OPT_NO_BIAS,
    OPT_PEEPHOLE,
    OPT_COUPLED,
    OPT_COUPLED_PEEPHOLE,
    OPT_LAYER_NORM,
    OPT_COUPLED_NORM,
    OPT_RESET_AFTER,
    OPT_RESET_AFTER_NORM,
    OPT_PROJECTION,
    OPT_CELL_CLIP,
    OPT_GATE_CLIP,
    OPT_DROPOUT,
    OPT_RECURRENT_DROPOUT,
    OPT_ZONEOUT_CELL,
    OPT_ZONEOUT_HIDDEN,
    OPT_WEIGHT_DROP,
    OPT_STATES,
    OPT_FINAL_ONLY,
    OPT_BACKWARD,
    OPT_CONCAT,
    OPT_SUM,
    OPT_MUL,
    OPT_AVE,
    OPT_STACK,
    OPT_STACK_CONCAT,
    OPT_STACK_MUL,
    OPT_COUNT
};

static const char *const option_names[OPT_COUNT] = {"plain",
                                                    "no bias",
                                                    "peephole",
                                                    "coupled",
                                                    "coupled, peephole",
                                                    "layer norm",
                                                    "coupled, layer norm",
                                                    "reset after",
                                                    "reset after, layer norm",
                                                    "projection",
                                                    "cell clip",
                                                    "gate clip",
                                                    "dropout",
                                                    "recurrent dropout",
                                                    "zoneout cell",
                                                    "zoneout hidden",
                                                    "weight drop",
                                                    "states",
                                                    "final state only",
                                                    "backward",
                                                    "concat",
                                                    "sum",
                                                    "mul",
                                                    "ave",
                                                    "stack",
                                                    "stack, concat",
                                                    "stack, mul"};

static void bidirectional(struct seqlstm_recurrent_desc *d, uint32_t merge)
{
    d->direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    d->merge = merge;
}

static void layer_norm(struct seqlstm_recurrent_desc *d)
{
    d->options |= SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    d->layer_norm_epsilon = 0.01f;
}

/* False where the cell does not have the option. */
static bool apply(struct seqlstm_recurrent_desc *d, int option)
{
    const bool lstm = d->cell == SEQLSTM_CELL_LSTM, gru = d->cell == SEQLSTM_CELL_GRU;
    const uint32_t initial = SEQLSTM_BIT_RECURRENT_INITIAL_STATE, final = SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    switch (option) {
    case OPT_PLAIN:
        return true;
    case OPT_NO_BIAS:
        d->options &= ~(uint32_t)SEQLSTM_BIT_RECURRENT_USE_BIAS;
        return true;
    case OPT_PEEPHOLE:
        d->options |= SEQLSTM_BIT_RECURRENT_PEEPHOLE;
        return lstm;
    case OPT_COUPLED:
        d->options |= SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
        return lstm;
    case OPT_COUPLED_PEEPHOLE:
        d->options |= SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_PEEPHOLE;
        return lstm;
    case OPT_LAYER_NORM:
        layer_norm(d);
        return !gru;
    case OPT_COUPLED_NORM:
        layer_norm(d);
        d->options |= SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
        return lstm;
    case OPT_RESET_AFTER:
        d->options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
        return gru;
    case OPT_RESET_AFTER_NORM:
        layer_norm(d);
        d->options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
        return gru;
    case OPT_PROJECTION:
        d->projection = 2;
        return lstm;
    case OPT_CELL_CLIP:
        d->cell_clip = 0.25f;
        return lstm;
    case OPT_GATE_CLIP:
        d->gate_clip = 0.5f;
        return true;
    case OPT_DROPOUT:
        d->dropout = 0.4f;
        return true;
    case OPT_RECURRENT_DROPOUT:
        d->recurrent_dropout = 0.4f;
        return true;
    case OPT_ZONEOUT_CELL:
        d->zoneout_cell = 0.4f;
        return lstm;
    case OPT_ZONEOUT_HIDDEN:
        d->zoneout_hidden = 0.4f;
        return true;
    case OPT_WEIGHT_DROP:
        d->weight_drop = 0.4f;
        return true;
    case OPT_STATES:
        d->options |= initial | final;
        return true;
    case OPT_FINAL_ONLY:
        d->options = (d->options & ~(uint32_t)SEQLSTM_BIT_RECURRENT_OUTPUT) | final;
        return true;
    case OPT_BACKWARD:
        d->direction = SEQLSTM_DIRECTION_BACKWARD;
        d->options |= initial | final;
        return true;
    case OPT_CONCAT:
        bidirectional(d, SEQLSTM_KIND_MERGE_CONCAT);
        return true;
    case OPT_SUM:
        bidirectional(d, SEQLSTM_KIND_MERGE_SUM);
        return true;
    case OPT_MUL:
        bidirectional(d, SEQLSTM_KIND_MERGE_MUL);
        return true;
    case OPT_AVE:
        bidirectional(d, SEQLSTM_KIND_MERGE_AVE);
        return true;
    case OPT_STACK:
        d->layers = 3;
        d->options |= initial | final;
        return true;
    case OPT_STACK_CONCAT:
        d->layers = 2;
        bidirectional(d, SEQLSTM_KIND_MERGE_CONCAT);
        return true;
    default:
        d->layers = 2;
        bidirectional(d, SEQLSTM_KIND_MERGE_MUL);
        d->options |= initial | final;
        return true;
    }
}

static void each_option_alone(void **state)
{
    (void)state;
    double worst = 0;
    for (int c = 0; c < 3; c++)
        for (int option = 0; option < OPT_COUNT; option++) {
            union seqlstm_any_desc d = plain(cells[c]);
            if (!apply(&d.recurrent, option))
                continue;
            char name[64];
            snprintf(name, sizeof name, "%s, %s", cell_names[c], option_names[option]);
            worst = fmax(worst, check(&d, name, (uint64_t)(100 * c + option)));
        }
    print_message("# largest error %.1e\n", worst);
}

static const struct {
    uint32_t kind;
    double alpha, beta;
} kinds[] = {{SEQLSTM_ACT_NONE, 0, 0},
             {SEQLSTM_ACT_TANH, 0, 0},
             {SEQLSTM_ACT_SIGMOID, 0, 0},
             {SEQLSTM_ACT_RELU, 0, 0},
             {SEQLSTM_ACT_LEAKY_RELU, 0.05, 0},
             {SEQLSTM_ACT_THRESHOLDED_RELU, 0.3, 0},
             {SEQLSTM_ACT_SCALED_TANH, 1.7, 0.6},
             {SEQLSTM_ACT_HARD_SIGMOID, 0.2, 0.5},
             {SEQLSTM_ACT_ELU, 0.8, 0},
             {SEQLSTM_ACT_SOFTSIGN, 0, 0},
             {SEQLSTM_ACT_SOFTPLUS, 0, 0},
             {SEQLSTM_ACT_AFFINE, 0.5, 0.25}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void each_activation_in_each_place(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++)
        for (int place = 0; place < 3; place++)
            for (int k = 0; k < KINDS; k++) {
                union seqlstm_any_desc d = plain(cells[c]);
                /* the other direction keeps its own: a mix-up of directions shows */
                bidirectional(&d.recurrent, SEQLSTM_KIND_MERGE_CONCAT);
                d.recurrent.activations[place][k % 2] = act(kinds[k].kind, kinds[k].alpha, kinds[k].beta);
                char name[64];
                snprintf(name, sizeof name, "%s, place %d, activation %u", cell_names[c], place, kinds[k].kind);
                check(&d, name, (uint64_t)(k + 20 * place));
            }
}

static void random_combinations(void **state)
{
    (void)state;
    double worst = 0;
    struct rh dice = {.random = 2026};
    for (int n = 0; n < 300; n++) {
        union seqlstm_any_desc d = plain(cells[n % 3]);
        struct seqlstm_recurrent_desc *r = &d.recurrent;
        for (int draws = 0; draws < 5; draws++) {
            struct seqlstm_recurrent_desc trial = *r;
            const int option = (int)rh_uniform(&dice, 0, OPT_COUNT);
            if (apply(&trial, option) &&
                !(trial.cell == SEQLSTM_CELL_GRU && (trial.options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) &&
                  !(trial.options & SEQLSTM_BIT_RECURRENT_RESET_AFTER)))
                *r = trial;
        }
        for (int place = 0; place < 3; place++)
            for (int direction = 0; direction < 2; direction++) {
                const int k = (int)rh_uniform(&dice, 0, KINDS);
                const bool bounded = kinds[k].kind == SEQLSTM_ACT_TANH || kinds[k].kind == SEQLSTM_ACT_SOFTSIGN ||
                                     kinds[k].kind == SEQLSTM_ACT_HARD_SIGMOID;
                if (rh_uniform(&dice, 0, 1) < 0.4 && (bounded || place != SEQLSTM_PLACE_GATE))
                    r->activations[place][direction] = act(kinds[k].kind, kinds[k].alpha, kinds[k].beta);
            }
        r->input = 1 + (int64_t)rh_uniform(&dice, 0, 4);
        r->hidden = 1 + (int64_t)rh_uniform(&dice, 0, 5);
        int32_t lengths[3] = {1 + (int32_t)rh_uniform(&dice, 0, 5), 1, 1};
        lengths[1] = 1 + (int32_t)rh_uniform(&dice, 0, lengths[0]);
        lengths[2] = 1 + (int32_t)rh_uniform(&dice, 0, lengths[1]);
        char name[64];
        snprintf(name, sizeof name, "combination %d", n);
        struct rh rh;
        rh_open(&rh, &d, lengths, 3, 0, lengths[0], (uint64_t)n);
        rh.axis.flags = n % 4 == 0 ? SEQLSTM_BIT_AXIS_STREAM : 0;
        worst = fmax(worst, rh_check_gradients(&rh, name, tolerance));
        rh_check_float32(&rh, name);
        rh_close(&rh);
    }
    print_message("# largest error %.1e\n", worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_alone),
        cmocka_unit_test(each_activation_in_each_place),
        cmocka_unit_test(random_combinations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
