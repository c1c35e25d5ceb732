/* SPDX-License-Identifier: Apache-2.0 */
/* For each option that a backend can name in a refusal: its key in the model file, and its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "model/yaml/diagnostics.h"
#include "oom.h"

static const char text[] = "seqlstm: 1\n"                             /* 1 */
                           "deterministic: true\n"                    /* 2 */
                           "precision: float32\n"                     /* 3 */
                           "data: {type: npy, train: {x: a, y: b}}\n" /* 4 */
                           "model:\n"                                 /* 5 */
                           "  - type: lstm\n"                         /* 6 */
                           "    units: 5\n"                           /* 7 */
                           "    recurrent_dropout: 0.1\n"             /* 8 */
                           "    peephole: true\n"                     /* 9 */
                           "    cell_clip: 3\n"                       /* 10 */
                           "    activation: relu\n"                   /* 11 */
                           "    direction: backward\n"                /* 12 */
                           "    zoneout: {cell: 0.1}\n"               /* 13 */
                           "    dropout: 0.2\n"                       /* 14 */
                           "    gate_clip: 5\n"                       /* 15 */
                           "    layer_norm: true\n"                   /* 16 */
                           "    projection: 4\n"                      /* 17 */
                           "    weight_drop: 0.1\n"                   /* 18 */
                           "  - type: dense\n"                        /* 19 */
                           "    units: 3\n"                           /* 20 */
                           "train:\n"                                 /* 21 */
                           "  loss: mse\n"                            /* 22 */
                           "  optimizer: {type: adam}\n"              /* 23 */
                           "  epochs: 1\n";                           /* 24 */

static struct sl_diagnostics *diagnostics;
static struct sl_model *model;
static struct sl_graph *graph;

static int open_graph(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                               .target = {.kind = SL_FIELD_VALUES, .features = 3},
                                               .has_steps = true,
                                               .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    const struct sl_model_request request = {.path = "m.yaml"};
    oom_group_begin(state);
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    if (sl_model_load_text("m.yaml", text, strlen(text), &request, diagnostics, &model, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct sl_graph_request wanted = {.model = model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    if (sl_graph_create(&wanted, &graph, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int close_graph(void **state)
{
    sl_graph_destroy(graph);
    sl_model_destroy(model);
    sl_diagnostics_destroy(diagnostics);
    return oom_group_end(state);
}

static const struct sl_node *find_node(uint32_t op)
{
    for (int32_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].desc.head.op == op)
            return &graph->nodes[n];
    fail_msg("the graph has no such node");
    return NULL;
}

static void an_option_is_found_at_its_line(void **state)
{
    (void)state;
    static const struct {
        uint32_t op, option;
        const char *key;
        int line;
        const char *value;
    } cases[] = {
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_DETERMINISM, "deterministic", 2, "true"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_DTYPE, "precision", 3, "float32"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_UNITS, "units", 7, "5"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_RECURRENT_DROPOUT, "recurrent_dropout", 8, "0.1"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_PEEPHOLE, "peephole", 9, "true"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_CELL_CLIP, "cell_clip", 10, "3"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_ACTIVATION, "activation", 11, "relu"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_DIRECTION, "direction", 12, "backward"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_ZONEOUT, "zoneout", 13, NULL},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_DROPOUT, "dropout", 14, "0.2"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_GATE_CLIP, "gate_clip", 15, "5"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_LAYER_NORM, "layer_norm", 16, "true"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_PROJECTION, "projection", 17, "4"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_WEIGHT_DROP, "weight_drop", 18, "0.1"},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_OPTION_NONE, "type", 6, "lstm"},
        {SEQLSTM_OP_DENSE, SEQLSTM_OPTION_UNITS, "units", 20, "3"},
        {SEQLSTM_OP_DENSE, SEQLSTM_OPTION_DETERMINISM, "deterministic", 2, "true"},
        {SEQLSTM_OP_LOSS, SEQLSTM_OPTION_LOSS, "loss", 22, "mse"},
        {SEQLSTM_OP_LOSS, SEQLSTM_OPTION_KIND, "type", 22, "mse"}, /* no layer: it belongs to train.loss */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_option_place found = sl_graph_find_option(graph, find_node(cases[i].op), cases[i].option);
        if (strcmp(found.key, cases[i].key) != 0 || found.place.line != cases[i].line)
            fail_msg("option %d: `%s` in line %d, expected `%s` in line %d", (int)cases[i].option, found.key,
                     found.place.line, cases[i].key, cases[i].line);
        if ((found.value == NULL) != (cases[i].value == NULL) ||
            (found.value && strcmp(found.value, cases[i].value) != 0))
            fail_msg("option %d: `%s`", (int)cases[i].option, found.value ? found.value : "no value");
    }
    assert_int_equal(sl_graph_find_option(graph, NULL, SEQLSTM_OPTION_OPTIMIZER).place.line, 23);
    assert_int_equal(sl_graph_find_option(graph, NULL, SEQLSTM_OPTION_KIND).place.line, 23);
    assert_string_equal(sl_graph_find_option(graph, NULL, SEQLSTM_OPTION_COUNT + 5).key, "type");
}

/* Of several layers each option is found in that layer from which the operation comes. */
static void an_option_is_found_in_its_layer(void **state)
{
    (void)state;
    static const char layers[] = "seqlstm: 1\n"                             /* 1 */
                                 "data: {type: npy, train: {x: a, y: b}}\n" /* 2 */
                                 "model:\n"                                 /* 3 */
                                 "  - type: lstm\n"                         /* 4 */
                                 "    name: a\n"                            /* 5 */
                                 "    units: 5\n"                           /* 6 */
                                 "    layers: 2\n"                          /* 7 */
                                 "    direction: bidirectional\n"           /* 8 */
                                 "    merge: sum\n"                         /* 9 */
                                 "    recurrent_activation: hard_sigmoid\n" /* 10 */
                                 "    output_activation: relu\n"            /* 11 */
                                 "    use_bias: false\n"                    /* 12 */
                                 "    coupled_gates: true\n"                /* 13 */
                                 "    return_sequences: true\n"             /* 14 */
                                 "  - type: gru\n"                          /* 15 */
                                 "    units: 4\n"                           /* 16 */
                                 "    reset_after: false\n"                 /* 17 */
                                 "    return_sequences: true\n"             /* 18 */
                                 "    from: input\n"                        /* 19 */
                                 "  - type: concat\n"                       /* 20 */
                                 "    from: [a, gru_1]\n"                   /* 21 */
                                 "  - type: dropout\n"                      /* 22 */
                                 "    rate: 0.25\n"                         /* 23 */
                                 "    mask: sequence\n"                     /* 24 */
                                 "  - type: pool\n"                         /* 25 */
                                 "    mode: max\n"                          /* 26 */
                                 "  - type: dense\n"                        /* 27 */
                                 "    units: 3\n"                           /* 28 */
                                 "train: {loss: mse, epochs: 1}\n";         /* 29 */
    static const struct {
        int layer;
        uint32_t option;
        const char *key;
        int line;
        const char *value;
    } cases[] = {
        {0, SEQLSTM_OPTION_UNITS, "units", 6, "5"},
        {0, SEQLSTM_OPTION_LAYERS, "layers", 7, "2"},
        {0, SEQLSTM_OPTION_DIRECTION, "direction", 8, "bidirectional"},
        {0, SEQLSTM_OPTION_MERGE, "merge", 9, "sum"},
        {0, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "recurrent_activation", 10, "hard_sigmoid"},
        {0, SEQLSTM_OPTION_OUTPUT_ACTIVATION, "output_activation", 11, "relu"},
        {0, SEQLSTM_OPTION_USE_BIAS, "use_bias", 12, "false"},
        {0, SEQLSTM_OPTION_COUPLED_GATES, "coupled_gates", 13, "true"},
        {0, SEQLSTM_OPTION_STATES, "return_sequences", 14, "true"},
        {0, SEQLSTM_OPTION_RESET_AFTER, "reset_after", 4, NULL}, /* not said: the line of the layer */
        {1, SEQLSTM_OPTION_CELL, "type", 15, "gru"},
        {1, SEQLSTM_OPTION_UNITS, "units", 16, "4"},
        {1, SEQLSTM_OPTION_RESET_AFTER, "reset_after", 17, "false"},
        {1, SEQLSTM_OPTION_LENGTHS, "type", 15, "gru"},
        {2, SEQLSTM_OPTION_MERGE, "type", 20, "concat"},
        {3, SEQLSTM_OPTION_RATE, "rate", 23, "0.25"},
        {3, SEQLSTM_OPTION_MASK, "mask", 24, "sequence"},
        {4, SEQLSTM_OPTION_KIND, "mode", 26, "max"},
        {5, SEQLSTM_OPTION_UNITS, "units", 28, "3"},
        {5, SEQLSTM_OPTION_KIND, "type", 27, "dense"},
    };
    static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                               .target = {.kind = SL_FIELD_VALUES, .features = 3},
                                               .has_steps = true,
                                               .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    const struct sl_model_request request = {.path = "m.yaml"};
    struct sl_diagnostics *notes;
    struct sl_model *several;
    struct sl_graph *made;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_diagnostics_create(&notes, &err), SEQLSTM_OK);
    if (sl_model_load_text("m.yaml", layers, strlen(layers), &request, notes, &several, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    const struct sl_graph_request wanted = {.model = several, .facts = &facts, .phase = SL_PHASE_TRAIN};
    if (sl_graph_create(&wanted, &made, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t n = 0;
        while (n < made->node_count && made->nodes[n].layer != cases[i].layer)
            n++;
        assert_true(n < made->node_count);
        const struct sl_option_place found = sl_graph_find_option(made, &made->nodes[n], cases[i].option);
        if (strcmp(found.key, cases[i].key) != 0 || found.place.line != cases[i].line ||
            (found.value == NULL) != (cases[i].value == NULL) ||
            (found.value && strcmp(found.value, cases[i].value) != 0))
            fail_msg("layer %d, option %d: `%s: %s` in line %d, expected `%s: %s` in line %d", cases[i].layer,
                     (int)cases[i].option, found.key, found.value ? found.value : "", found.place.line, cases[i].key,
                     cases[i].value ? cases[i].value : "", cases[i].line);
    }
    sl_graph_destroy(made);
    sl_model_destroy(several);
    sl_diagnostics_destroy(notes);
}

/* The value as the model file has it; else what was refused, in the words of the file. */
static void a_refused_value_is_named_as_the_file_says_it(void **state)
{
    (void)state;
    static const struct {
        const char *written;
        uint32_t option;
        const char *said, *named;
    } cases[] = {
        {"relu", SEQLSTM_OPTION_ACTIVATION, "3", "relu"},
        {NULL, SEQLSTM_OPTION_ACTIVATION, "3", "relu"},
        {NULL, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "2", "sigmoid"},
        {NULL, SEQLSTM_OPTION_OUTPUT_ACTIVATION, "1", "tanh"},
        {NULL, SEQLSTM_OPTION_ACTIVATION, "x", "x"},
        {NULL, SEQLSTM_OPTION_UNITS, "3", "3"},
        {NULL, SEQLSTM_OPTION_DROPOUT, "0.10000000000000001", "0.1"},
        {NULL, SEQLSTM_OPTION_DROPOUT, "0.5", "0.5"},
        {"1e-1", SEQLSTM_OPTION_DROPOUT, "0.10000000000000001", "1e-1"},
        {NULL, SEQLSTM_OPTION_DTYPE, "a.b", "a.b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_option_place place = {.key = "k", .value = cases[i].written};
        char out[SL_OPTION_VALUE_BYTES];
        sl_option_place_name_value(&place, cases[i].option, cases[i].said, out);
        assert_string_equal(out, cases[i].named);
    }
}

/* Input feeding runs the layers from the first reader of the fed value to its giver step by step, and no other. */
static void what_input_feeding_runs_by_steps_is_its_own(void **state)
{
    (void)state;
    static const char fed[] = "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace}\n"
                              "model:\n"
                              "  encoder: [{type: embedding, dim: 3}, {type: lstm, units: 4, return_sequences: true}]\n"
                              "  decoder:\n"
                              "    - {type: embedding, dim: 3}\n"
                              "    - {type: lstm, units: 4, return_sequences: true}\n"
                              "    - {type: attention, score: general}\n"
                              "    - {type: attention, score: general, input_feeding: true}\n"
                              "    - {type: dense, units: 6}\n"
                              "    - {type: output, activation: softmax}\n"
                              "train: {epochs: 1}\n";
    static const struct sl_field_facts tokens = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7};
    const struct sl_data_facts facts = {
        .input = tokens,
        .target = tokens,
        .source = tokens,
        .has_steps = true,
        .envelope = {.sequences = 2, .steps = 3, .rows = 6, .source_steps = 4, .source_rows = 8}};
    const struct sl_model_request request = {.path = "m.yaml"};
    struct sl_diagnostics *notes;
    struct sl_model *pairs;
    struct sl_graph *made;
    int inside = 0, outside = 0;
    assert_int_equal(sl_diagnostics_create(&notes, NULL), SEQLSTM_OK);
    assert_int_equal(sl_model_load_text("m.yaml", fed, strlen(fed), &request, notes, &pairs, NULL), SEQLSTM_OK);
    const struct sl_graph_request wanted = {.model = pairs, .facts = &facts, .phase = SL_PHASE_TRAIN};
    assert_int_equal(sl_graph_create(&wanted, &made, NULL), SEQLSTM_OK);
    for (int32_t n = 0; n < made->node_count; n++) {
        const struct sl_node *node = &made->nodes[n];
        const struct sl_option_place found = sl_graph_find_option(made, node, SEQLSTM_OPTION_LENGTHS);
        const bool is_fed = node->layer >= pairs->feeding.reader && node->layer <= pairs->feeding.giver;
        assert_string_equal(found.key, is_fed ? "input_feeding" : "type");
        inside += is_fed && node->layer == pairs->feeding.giver;
        outside += !is_fed;
        if (is_fed)
            assert_int_equal(found.place.line, 9);
        if (is_fed)
            assert_string_equal(found.value, "true");
    }
    assert_true(inside > 0 && outside > 0);
    sl_graph_destroy(made);
    sl_model_destroy(pairs);
    sl_diagnostics_destroy(notes);
}

/* Larger than memory can be, though no product overflows. */
static void a_batch_that_no_memory_holds_is_refused(void **state)
{
    (void)state;
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                  .target = {.kind = SL_FIELD_VALUES, .features = 3},
                                  .has_steps = true,
                                  .envelope = {.sequences = 1, .steps = INT32_MAX, .rows = INT64_C(1) << 56}};
    const struct sl_graph_request wanted = {.model = model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_graph *none = NULL;
    assert_int_not_equal(sl_graph_create(&wanted, &none, &err), SEQLSTM_OK);
    assert_non_null(strstr(err.message, "larger than memory can be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_is_found_at_its_line),
        cmocka_unit_test(an_option_is_found_in_its_layer),
        cmocka_unit_test(a_refused_value_is_named_as_the_file_says_it),
        cmocka_unit_test(what_input_feeding_runs_by_steps_is_its_own),
        cmocka_unit_test(a_batch_that_no_memory_holds_is_refused),
    };
    return cmocka_run_group_tests(tests, open_graph, close_graph);
}
