/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values of parameters. */
#include "exec_cases.h"
#include "oom.h"

/* 1 is added to what the initializer gives the forget gate, and to nothing else. */
static void forget_gates_begin_one_higher(void **state)
{
    (void)state;
    for (int ones = 0; ones < 2; ones++) {
        struct sl_data_facts facts = values_facts(3, true, 2);
        struct world w;
        open_world(&w, data_values,
                   ones ? "model: [{type: lstm, units: 2, bias_initializer: ones, return_sequences: true}]\n"
                          "train: {loss: mse, epochs: 1}"
                        : "model: [{type: lstm, units: 2, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}",
                   &facts, true);
        const struct sl_param_view *view = sl_params_find(w.params, "lstm_1.l0.forward.bias");
        assert_non_null(view);
        assert_int_equal(view->elems, 8);
        for (int e = 0; e < 8; e++)
            assert_true(w.params->values[view->offset_elems + e] == (float)(ones + (e / 2 == 1)));
        close_world(&w);
    }
}

/* The range of glorot_uniform is sqrt(6 / (in + out)), with all gates counted among what comes out. */
static void ranges_of_glorot(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double in, out;
    } wanted[] = {{"lstm_1.l0.forward.w_x", 3, 256},
                  {"lstm_1.l0.forward.w_h", 64, 256},
                  {"lstm_1.l0.forward.bias", 3, 256},
                  {"dense_1.w", 64, 40},
                  {"dense_1.bias", 64, 40}};
    struct sl_data_facts facts = values_facts(3, true, 40);
    struct world w;
    open_world(
        &w, data_values,
        "init: glorot_uniform\nmodel: [{type: lstm, units: 64, return_sequences: true}, {type: dense, units: 40}]\n"
        "train: {loss: mse, epochs: 1}",
        &facts, true);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct sl_param_view *view = sl_params_find(w.params, wanted[i].name);
        if (view == NULL)
            fail_msg("no parameter %s", wanted[i].name);
        double most = 0, range = sqrt(6 / (wanted[i].in + wanted[i].out));
        for (int64_t e = 0; e < view->elems; e++)
            most = fmax(most, fabs((double)w.params->values[view->offset_elems + e]));
        if (!(most <= range * (1 + 1e-6) && most > range * (view->elems > 100 ? 0.97 : 0.85)))
            fail_msg("%s: up to %g, expected up to %g", wanted[i].name, most, range);
    }
    close_world(&w);
}

/* Mean, deviation and largest magnitude of each initializer, of a matrix with 60 inputs and 90 outputs. */
static void initializers_have_their_moments(void **state)
{
    (void)state;
    const double in = 60, out = 90, cut = 2 / 0.87962566103423978; /* of a normal that is cut at two deviations */
    const struct {
        const char *said;
        double mean, deviation, most; /* most INFINITY: there is none */
    } rules[] = {{"zeros", 0, 0, 0},
                 {"ones", 1, 0, 1},
                 {"{type: constant, value: -0.5}", -0.5, 0, 0.5},
                 {"{type: uniform, range: 0.3}", 0, 0.6 / sqrt(12), 0.3},
                 {"{type: normal, mean: 2, stddev: 0.5}", 2, 0.5, INFINITY},
                 {"{type: truncated_normal, mean: -1, stddev: 0.5}", -1, 0.5 * 0.87962566103423978, 2},
                 {"glorot_uniform", 0, sqrt(2 / (in + out)), sqrt(6 / (in + out))},
                 {"glorot_normal", 0, sqrt(2 / (in + out)), cut * sqrt(2 / (in + out))},
                 {"he_uniform", 0, sqrt(2 / in), sqrt(6 / in)},
                 {"he_normal", 0, sqrt(2 / in), cut * sqrt(2 / in)},
                 {"lecun_uniform", 0, sqrt(1 / in), sqrt(3 / in)},
                 {"lecun_normal", 0, sqrt(1 / in), cut * sqrt(1 / in)},
                 {"fan_uniform", 0, sqrt(1 / (3 * in)), sqrt(1 / in)}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char layers[256];
        struct sl_data_facts facts = values_facts((int64_t)in, true, (int64_t)out);
        struct world w;
        snprintf(layers, sizeof layers,
                 "model: [{type: dense, units: from_target, kernel_initializer: %s}]\ntrain: {loss: mse, epochs: 1}",
                 rules[i].said);
        open_world(&w, data_values, layers, &facts, true);
        const struct sl_param_view *view = sl_params_find(w.params, "dense_1.w");
        const float *values = w.params->values + view->offset_elems;
        double sum = 0, squares = 0, most = 0;
        for (int64_t e = 0; e < view->elems; e++) {
            sum += (double)values[e];
            most = fmax(most, fabs((double)values[e]));
        }
        const double mean = sum / (double)view->elems;
        for (int64_t e = 0; e < view->elems; e++)
            squares += ((double)values[e] - mean) * ((double)values[e] - mean);
        const double deviation = sqrt(squares / (double)view->elems), noise = 4 * rules[i].deviation / sqrt(in * out);
        const bool reaches = isinf(rules[i].most) ? most > rules[i].mean + 3 * rules[i].deviation
                                                  : most <= rules[i].most * (1 + 1e-6) && most >= 0.98 * rules[i].most;
        if (!(fabs(mean - rules[i].mean) <= noise && fabs(deviation - rules[i].deviation) <= noise && reaches))
            fail_msg("%s: mean %g, deviation %g, up to %g; expected %g, %g, %g", rules[i].said, mean, deviation, most,
                     rules[i].mean, rules[i].deviation, rules[i].most);
        close_world(&w);
    }
}

static double get_normal_share(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: of so many values the shares below any number are those of the distribution within 0.3 %,
 * also of the few that are drawn again. */
static void values_are_distributed_as_they_say(void **state)
{
    (void)state;
    enum { WIDTH = 600, ELEMS = WIDTH * WIDTH };
    static const struct {
        const char *said;
        double deviation, cut; /* cut 0: of a uniform distribution the deviation is the range */
    } rules[] = {{"{type: normal, stddev: 0.5}", 0.5, INFINITY},
                 {"{type: truncated_normal, stddev: 0.5}", 0.5, 2},
                 {"{type: uniform, range: 0.5}", 0.5, 0}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char layers[256];
        struct sl_data_facts facts = values_facts(WIDTH, true, WIDTH);
        struct world w;
        double worst = 0;
        snprintf(layers, sizeof layers,
                 "model: [{type: dense, units: from_target, kernel_initializer: %s}]\ntrain: {loss: mse, epochs: 1}",
                 rules[i].said);
        open_world(&w, data_values, layers, &facts, true);
        const struct sl_param_view *view = sl_params_find(w.params, "dense_1.w");
        assert_int_equal(view->elems, ELEMS);
        float *values = w.params->values + view->offset_elems;
        qsort(values, ELEMS, sizeof *values, compare_floats);
        const double below = get_normal_share(-rules[i].cut);
        for (int e = 0; e < ELEMS; e++) {
            const double z = (double)values[e] / rules[i].deviation;
            const double share = rules[i].cut == 0 ? (z + 1) / 2 : (get_normal_share(z) - below) / (1 - 2 * below);
            worst = fmax(worst, fabs(share - (e + 0.5) / ELEMS));
        }
        if (!(worst <= 0.003))
            fail_msg("%s: a share is wrong by %g", rules[i].said, worst);
        close_world(&w);
    }
}

/* Each gate has a matrix of its own, whose rows (or columns, if there are fewer) are as long as the gain says. */
static void orthogonal_matrices_are_drawn_for_each_gate(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t gates, rows, columns; /* of a gate */
    } matrices[] = {{"cell.l0.forward.w_x", 4, 6, 9}, {"cell.l0.forward.w_h", 4, 6, 6}, {"out.w", 1, 7, 6}};
    struct sl_data_facts facts = values_facts(9, false, 7);
    struct world w;
    open_world(&w, data_values,
               "model:\n  - {type: lstm, name: cell, units: 6, kernel_initializer: {type: orthogonal, gain: 3},"
               " recurrent_initializer: {type: orthogonal, gain: 3}}\n"
               "  - {type: dense, name: out, units: 7, kernel_initializer: {type: orthogonal, gain: 3}}\n"
               "train: {loss: mse, epochs: 1}",
               &facts, true);
    for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
        const float *first = w.params->values + sl_params_find(w.params, matrices[m].name)->offset_elems;
        const int64_t rows = matrices[m].rows, columns = matrices[m].columns;
        const bool wide = columns >= rows;
        for (int64_t g = 0; g < matrices[m].gates; g++) {
            const float *gate = first + g * rows * columns;
            assert_true(g == 0 || memcmp(gate, first, (size_t)(rows * columns) * sizeof *gate) != 0);
            for (int64_t a = 0; a < (wide ? rows : columns); a++)
                for (int64_t b = 0; b <= a; b++) {
                    double sum = 0;
                    for (int64_t k = 0; k < (wide ? columns : rows); k++)
                        sum += (double)(wide ? gate[a * columns + k] : gate[k * columns + a]) *
                               (double)(wide ? gate[b * columns + k] : gate[k * columns + b]);
                    assert_true(fabs(sum - (a == b ? 9 : 0)) <= 1e-5);
                }
        }
    }
    close_world(&w);
}

/* Packed weights and copies on devices are of older values then. */
static void redrawn_values_are_new_ones(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    const uint64_t version = w.params->version;
    ok(sl_params_init(w.params, w.graph, 8, NULL, &err), &err);
    assert_true(w.params->version > version);
    close_world(&w);
}

/* As many threads as there are, the values are the same, and a redrawn set is, too. */
static void initial_values_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    open_world(&w, data_values,
               "model:\n  - {type: lstm, units: 61, return_sequences: true}\n"
               "  - {type: lstm, units: 5, kernel_initializer: he_normal, recurrent_initializer: uniform}\n"
               "train: {loss: mse, epochs: 1}",
               &facts, true);
    size_t bytes = (size_t)w.params->elems * sizeof(float);
    float *alone = malloc(bytes);
    assert_true(w.params->elems > 4 * 4096); /* more than a thread takes at a time */
    memcpy(alone, w.params->values, bytes);
    for (int32_t members = 1; members <= 5; members += 2) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_pool *pool;
        ok(sl_pool_create(members, &pool, &err), &err);
        memset(w.params->values, 0x7f, bytes);
        ok(sl_params_init(w.params, w.graph, 7, pool, &err), &err);
        assert_memory_equal(w.params->values, alone, bytes);
        ok(sl_params_init(w.params, w.graph, 8, pool, &err), &err);
        assert_memory_not_equal(w.params->values, alone, bytes);
        sl_pool_destroy(pool);
    }
    free(alone);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forget_gates_begin_one_higher),
        cmocka_unit_test(ranges_of_glorot),
        cmocka_unit_test(initializers_have_their_moments),
        cmocka_unit_test(values_are_distributed_as_they_say),
        cmocka_unit_test(orthogonal_matrices_are_drawn_for_each_gate),
        cmocka_unit_test(redrawn_values_are_new_ones),
        cmocka_unit_test(initial_values_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
