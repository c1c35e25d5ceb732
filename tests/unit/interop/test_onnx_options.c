/* SPDX-License-Identifier: Apache-2.0 */
/* Each option of a layer that an ONNX file holds: what was exported comes back into its own model, number for number,
 * and into no model with another value of one option. */
#include <stdio.h>

#include "model_fixture.h"
#include "oom.h"
#include "scratch.h"

#include "graph/graph.h"
#include "interop/onnx.h"

enum { VARIANTS_MOST = 80 };

static struct variant {
    char layer[160], options[120];
    struct loaded loaded;
    struct sl_graph *graph;
    float **values;
} variants[VARIANTS_MOST];
static int variant_count;

static const char *const activations[] = {
    "relu",
    "sigmoid",
    "softsign",
    "softplus",
    "linear",
    "{type: leaky_relu, alpha: 0.25}",
    "{type: leaky_relu, alpha: 0.5}",
    "{type: thresholded_relu, alpha: 0.5}",
    "{type: hard_sigmoid, alpha: 0.25}",
    "{type: hard_sigmoid, beta: 0.25}",
    "{type: elu, alpha: 0.5}",
    "{type: affine, alpha: 2}",
    "{type: affine, alpha: 2, beta: 1}",
    "{type: scaled_tanh, alpha: 2, beta: 1}",
    "{type: scaled_tanh, alpha: 1, beta: 2}",
};
enum { ACTIVATIONS = sizeof activations / sizeof *activations };

static float **make_values(const struct sl_graph *graph, bool filled)
{
    float **values = calloc((size_t)graph->param_count + 1, sizeof *values);
    assert_non_null(values);
    for (int32_t p = 0; p < graph->param_count; p++) {
        const int64_t elems = graph->params[p].rows * graph->params[p].columns;
        values[p] = calloc((size_t)elems, sizeof **values);
        assert_non_null(values[p]);
        for (int64_t e = 0; filled && e < elems; e++)
            values[p][e] = (float)(1 + (7 * e + 5 * p) % 19) / 8; /* never 0, which may mean that there is none */
    }
    return values;
}

static void free_values(const struct sl_graph *graph, float **values)
{
    for (int32_t p = 0; p < graph->param_count; p++)
        free(values[p]);
    free(values);
}

static const char *file_of(int variant)
{
    char name[24];
    snprintf(name, sizeof name, "%d.onnx", variant);
    return scratch_path(name);
}

/* A model of a layer, and its file. `steps`: records are sequences; `targets`: each step has one. */
static void add_variant(const char *layer, bool steps, bool targets)
{
    assert_true(variant_count < VARIANTS_MOST);
    struct variant *v = &variants[variant_count];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = steps, .features = 2},
                                  .target = {.kind = SL_FIELD_VALUES, .on_steps = targets, .features = 2},
                                  .has_steps = steps,
                                  .envelope = {.sequences = 4, .steps = steps ? 6 : 1, .rows = steps ? 19 : 4}};
    char text[400];
    snprintf(v->layer, sizeof v->layer, "%s", layer);
    snprintf(v->options, sizeof v->options, "of a row");
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel: [%s, {type: dense, name: out, units: 2}]\n"
             "train: {loss: mse, epochs: 1}\n",
             layer);
    v->loaded = load(text);
    if (v->loaded.model == NULL)
        fail_msg("%s: %s", layer, sl_buf_text(&v->loaded.text));
    struct sl_graph_request request = {
        .model = v->loaded.model, .facts = &facts, .phase = SL_PHASE_PREDICT, .need_output = true};
    if (sl_graph_create(&request, &v->graph, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", layer, err.message);
    v->values = make_values(v->graph, true);
    if (sl_onnx_write(v->graph, (const float *const *)v->values, file_of(variant_count), &err) != SEQLSTM_OK)
        fail_msg("%s: %s", layer, err.message);
    variant_count++;
}

static void add_cell(const char *cell, const char *options, bool targets)
{
    char layer[160];
    snprintf(layer, sizeof layer, "{type: %s, name: a, units: 2%s%s%s}", cell,
             targets ? ", return_sequences: true" : "", *options ? ", " : "", options);
    add_variant(layer, true, targets);
    snprintf(variants[variant_count - 1].options, sizeof variants->options, "%s", options);
}

/* A place of the cell with each activation, in both directions or in one. */
static void add_activations(const char *cell, const char *place, bool two_ways)
{
    for (int a = 0; a < ACTIVATIONS; a++) {
        char options[120];
        if (strcmp(place, "recurrent_activation") == 0 && strcmp(activations[a], "sigmoid") == 0)
            continue; /* the default */
        snprintf(options, sizeof options,
                 two_ways ? "direction: bidirectional, %s: {forward: %s, backward: tanh}" : "%s: %s", place,
                 activations[a]);
        add_cell(cell, options, false);
    }
}

/* Biases and peepholes that a file does not have are 0. */
static bool adds_zeros(const struct variant *from, const struct variant *into)
{
    const bool plain = from->options[0] == '\0', bare = strcmp(from->options, "use_bias: false") == 0;
    return (bare && into->options[0] == '\0') || ((plain || bare) && strcmp(into->options, "peephole: true") == 0);
}

/* What was read into `into` is what `from` holds, and 0 where that has no such parameter. */
static void compare_values(const struct variant *from, const struct variant *into, float *const *got)
{
    for (int32_t p = 0; p < into->graph->param_count; p++) {
        const struct sl_param *param = &into->graph->params[p];
        const int64_t elems = param->rows * param->columns;
        const float *wanted = NULL;
        for (int32_t q = 0; q < from->graph->param_count; q++)
            if (strcmp(from->graph->params[q].name, param->name) == 0)
                wanted = from->values[q];
        for (int64_t e = 0; e < elems; e++)
            if (got[p][e] != (wanted ? wanted[e] : 0))
                fail_msg("%s read as %s: %s[%d] is %g", from->layer, into->layer, param->name, (int)e,
                         (double)got[p][e]);
    }
}

static void compare_all(void)
{
    for (int from = 0; from < variant_count; from++)
        for (int into = 0; into < variant_count; into++) {
            const struct variant *source = &variants[from], *v = &variants[into];
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_buf notes = {0};
            float **got = make_values(v->graph, false);
            const seqlstm_status status = sl_onnx_read(v->graph, file_of(from), got, &notes, &err);
            const bool fits = from == into || adds_zeros(source, v);
            if ((status == SEQLSTM_OK) != fits)
                fail_msg("%s read as %s: %s", source->layer, v->layer, fits ? err.message : "it fits");
            if (fits)
                compare_values(source, v, got);
            sl_buf_deinit(&notes);
            free_values(v->graph, got);
        }
    for (; variant_count > 0; variant_count--) {
        struct variant *v = &variants[variant_count - 1];
        free_values(v->graph, v->values);
        sl_graph_destroy(v->graph);
        unload(&v->loaded);
    }
}

static void lstm(void **state)
{
    (void)state;
    static const char *const options[] = {"",
                                          "direction: backward",
                                          "direction: bidirectional",
                                          "direction: bidirectional, merge: sum",
                                          "direction: bidirectional, merge: ave",
                                          "direction: bidirectional, merge: mul",
                                          "layers: 2",
                                          "use_bias: false",
                                          "peephole: true",
                                          "coupled_gates: true",
                                          "gate_clip: 3",
                                          "gate_clip: 2.5"};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        add_cell("lstm", options[k], false);
    add_activations("lstm", "activation", false);
    add_activations("lstm", "recurrent_activation", false);
    add_activations("lstm", "output_activation", false);
    compare_all();
}

static void gru(void **state)
{
    (void)state;
    static const char *const options[] = {
        "", "direction: backward", "reset_after: false", "use_bias: false", "gate_clip: 3", "layers: 2"};
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        add_cell("gru", options[k], k == 1);
    add_activations("gru", "activation", false);
    add_activations("gru", "recurrent_activation", false);
    add_activations("gru", "activation", true);
    compare_all();
}

static void rnn(void **state)
{
    (void)state;
    add_cell("rnn", "", false);
    add_activations("rnn", "activation", false);
    add_activations("rnn", "activation", true);
    compare_all();
}

static void rows(void **state)
{
    (void)state;
    char layer[160];
    for (int a = 0; a < ACTIVATIONS; a++) {
        snprintf(layer, sizeof layer, "{type: dense, name: a, units: 2, activation: %s}", activations[a]);
        add_variant(layer, false, false);
    }
    add_variant("{type: dense, name: a, units: 2, activation: tanh, use_bias: false}", false, false);
    add_variant("{type: dense, name: a, units: 3}", false, false);
    add_variant("{type: layer_norm, name: a}", false, false);
    add_variant("{type: layer_norm, name: a, epsilon: 0.01}", false, false);
    compare_all();
}

static void pools(void **state)
{
    (void)state;
    static const char *const modes[] = {"first", "last", "mean", "max", "sum"};
    char layer[160];
    for (int k = 0; k < 5; k++) {
        snprintf(layer, sizeof layer, "{type: gru, name: a, units: 2, return_sequences: true}, {type: pool, mode: %s}",
                 modes[k]);
        add_variant(layer, true, false);
    }
    compare_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lstm), cmocka_unit_test(gru),   cmocka_unit_test(rnn),
        cmocka_unit_test(rows), cmocka_unit_test(pools),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
