/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a stack of layers are offered as one operation, by the depth of the stack. */
#include "graph/graph.h"
#include "model_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_stacks_are_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
