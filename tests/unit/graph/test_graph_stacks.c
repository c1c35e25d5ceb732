/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a stack of layers are offered as one operation, by the depth of the stack; and in which precision each
 * of its layers runs. */
#include "graph/graph.h"
#include "model_fixture.h"
#include "oom.h"

enum { DEEPEST = 66 };

/* How many alternatives of the stack have so many layers: counts[0] of none. */
static void count_parts(int layers, int counts[DEEPEST + 1])
{
    static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                               .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                               .has_steps = true,
                                               .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_graph *graph = NULL;
    char text[400];
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: csv, train: {file: a.csv, inputs: [a, b, c], group: g, targets: [d, e]}}\n"
             "model: [{type: lstm, units: 2, layers: %d}, {type: dense, units: from_target}]\ntrain: {epochs: 1}\n",
             layers);
    struct loaded l = load_clean(text);
    const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    if (sl_graph_create(&request, &graph, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    memset(counts, 0, (DEEPEST + 1) * sizeof *counts);
    for (int32_t a = 0; a < graph->alternative_count; a++) {
        const struct sl_alternative *part = &graph->alternatives[a];
        if (part->node.desc.head.op != SEQLSTM_OP_RECURRENT)
            continue;
        assert_int_equal(part->node.desc.recurrent.layers, part->count);
        assert_in_range(part->count, 2, layers);
        counts[part->count]++;
    }
    sl_graph_destroy(graph);
    unload(&l);
}

/* All parts of up to 12 layers, the whole alone up to the most that an operation may have. */
static void parts_of_stacks_are_offered(void **state)
{
    (void)state;
    static const int depths[] = {1, 2, 3, 11, 12, 13, 63, 64, 65, 66};
    int counts[DEEPEST + 1];
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        count_parts(depths[i], counts);
        for (int layers = 0; layers <= DEEPEST; layers++) {
            int expected = 0;
            if (depths[i] <= 12 && layers > 1 && layers <= depths[i])
                expected = depths[i] - layers + 1;
            else if (depths[i] > 12 && depths[i] <= SEQLSTM_MAX_LAYERS)
                expected = layers == depths[i];
            if (counts[layers] != expected)
                fail_msg("%d parts of %d layers of %d, expected %d", counts[layers], layers, depths[i], expected);
        }
    }
}

/* Each layer that is named has its own precision, the others that of the model; then no stack hides a layer. */
static void named_layers_of_a_stack_have_their_own_precision(void **state)
{
    (void)state;
    static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                               .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                               .has_steps = true,
                                               .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    static const struct sl_quantized_layer layers[] = {{"lstm_1.l2", SEQLSTM_DTYPE_INT8, 0.5f, 0.25f},
                                                       {"lstm_1.l0", SEQLSTM_DTYPE_INT8, 2, -3},
                                                       {"lstm_1.l3", SEQLSTM_DTYPE_BFLOAT16, 0, 0}};
    static const struct sl_quantization quantization = {layers, 3};
    static const struct sl_quantized_layer expected[] = {{"lstm_1.l0", SEQLSTM_DTYPE_INT8, 2, -3},
                                                         {"lstm_1.l1", SEQLSTM_DTYPE_FLOAT32, 0, 0},
                                                         {"lstm_1.l2", SEQLSTM_DTYPE_INT8, 0.5f, 0.25f},
                                                         {"lstm_1.l3", SEQLSTM_DTYPE_BFLOAT16, 0, 0}};
    struct loaded l = load_clean(
        "seqlstm: 1\ndata: {type: csv, train: {file: a.csv, inputs: [a, b, c], group: g, targets: [d, e]}}\n"
        "model: [{type: lstm, units: 2, layers: 4}, {type: dense, units: from_target}]\ntrain: {epochs: 1}\n");
    const struct sl_graph_request request = {
        .model = l.model, .facts = &facts, .phase = SL_PHASE_PREDICT, .quantization = &quantization};
    struct sl_graph *graph = NULL;
    assert_int_equal(sl_graph_create(&request, &graph, NULL), SEQLSTM_OK);
    assert_int_equal(graph->alternative_count, 0);
    for (int32_t n = 0; n < 4; n++) {
        const struct sl_node *node = &graph->nodes[n];
        assert_string_equal(node->name, expected[n].node);
        assert_int_equal(node->desc.head.dtype_compute, expected[n].dtype);
        assert_true(node->desc.recurrent.data_scale == expected[n].scale);
        assert_true(node->desc.recurrent.data_shift == expected[n].shift);
    }
    sl_graph_destroy(graph);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_stacks_are_offered),
        cmocka_unit_test(named_layers_of_a_stack_have_their_own_precision),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
