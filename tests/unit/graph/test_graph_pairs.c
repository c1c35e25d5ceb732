/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for graphs of an encoder and a decoder, in each part of them: alternatives stand where their layers do,
 * states that input feeding carries have the widths of their layers, a bridge has gradients where it is needed; and
 * what a batch at most has, where one side is larger than the other. */
#include "graph/graph.h"
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"

enum { SEQUENCES = 4 };

static struct sl_data_facts make_facts(int64_t rows, int64_t source_rows)
{
    const struct sl_field_facts words = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8};
    return (struct sl_data_facts){
        .input = words,
        .target = words,
        .source = words,
        .has_steps = true,
        .envelope = {.sequences = SEQUENCES, .steps = 6, .rows = rows, .source_steps = 5, .source_rows = source_rows}};
}

static struct loaded load_pairs(const char *encoder, const char *decoder)
{
    char text[1200];
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {train: {source: a.txt, target: b.txt, type: lines}}\nmodel:\n  encoder: [%s]\n"
             "  decoder: [%s, {type: output, activation: softmax}]\ntrain: {epochs: 1}\n",
             encoder, decoder);
    return load_clean(text);
}

static struct sl_graph *make(const struct sl_graph_request *request)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_graph *graph = NULL;
    ok(sl_graph_create(request, &graph, &err), &err);
    return graph;
}

/* In the whole model and in each part, an alternative reads what the first of its operations reads, and writes what the
 * last one writes. */
static void alternatives_stand_where_their_operations_do(void **state)
{
    (void)state;
    static const enum sl_part parts[] = {SL_PART_WHOLE, SL_PART_ENCODER, SL_PART_DECODER};
    static const int counts[] = {4, 1, 3}; /* of two layers; of three layers, and each two of these */
    const struct sl_data_facts facts = make_facts(19, 17);
    struct loaded l =
        load_pairs("{type: embedding, dim: 3}, {type: lstm, name: up, units: 5, layers: 2, return_sequences: true}",
                   "{type: embedding, dim: 3}, {type: lstm, name: down, units: 5, layers: 3, return_sequences: true, "
                   "initial_state: none}, {type: attention}");
    for (int p = 0; p < 3; p++) {
        const struct sl_graph_request request = {
            .model = l.model, .facts = &facts, .phase = SL_PHASE_PREDICT, .part = parts[p]};
        struct sl_graph *graph = make(&request);
        int stacks = 0;
        for (int32_t a = 0; a < graph->alternative_count; a++) {
            const struct sl_alternative *stack = &graph->alternatives[a];
            if (stack->node.desc.head.op != SEQLSTM_OP_RECURRENT)
                continue;
            stacks++;
            assert_true(stack->first >= 0 && stack->first + stack->count <= graph->node_count);
            const struct sl_node *first = &graph->nodes[stack->first], *last = first + stack->count - 1;
            assert_int_equal(stack->node.layer, first->layer);
            assert_int_equal(stack->node.slots[SEQLSTM_SLOT_RECURRENT_X], first->slots[SEQLSTM_SLOT_RECURRENT_X]);
            assert_int_equal(stack->node.slots[SEQLSTM_SLOT_RECURRENT_Y], last->slots[SEQLSTM_SLOT_RECURRENT_Y]);
        }
        assert_int_equal(stacks, counts[p]);
        sl_graph_destroy(graph);
    }
    unload(&l);
}

static const struct sl_tensor *find_tensor(const struct sl_graph *graph, const char *name)
{
    for (int32_t t = 0; t < graph->tensor_count; t++)
        if (strcmp(graph->tensors[t].name, name) == 0)
            return &graph->tensors[t];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* h is as wide as the projection, c as the layer has units. */
static void fed_layers_carry_states_of_their_widths(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t features;
    } expected[] = {{"down.l0.h", 3}, {"down.l0.h.before", 3}, {"down.l0.c", 5}, {"down.l0.c.before", 5}};
    const struct sl_data_facts facts = make_facts(19, 17);
    struct loaded l =
        load_pairs("{type: embedding, dim: 3}, {type: lstm, units: 5, projection: 3, return_sequences: true}",
                   "{type: embedding, dim: 3}, {type: lstm, name: down, units: 5, projection: 3, return_sequences: "
                   "true}, {type: attention, input_feeding: true}");
    const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    struct sl_graph *graph = make(&request);
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
        assert_int_equal(find_tensor(graph, expected[k].name)->features, expected[k].features);
    sl_graph_destroy(graph);
    unload(&l);
}

/* The states that a bridge makes of a vector need a gradient if the bridge or what is before it is trained. */
static void bridges_have_gradients_where_something_is_trained(void **state)
{
    (void)state;
    static const char *const words[] = {"false", "true"};
    const struct sl_data_facts facts = make_facts(19, 17);
    for (int encoder = 0; encoder < 2; encoder++)
        for (int decoder = 0; decoder < 2; decoder++) {
            char above[200], below[300];
            snprintf(above, sizeof above,
                     "{type: embedding, dim: 3, trainable: %s}, {type: pool, name: up, mode: mean}", words[encoder]);
            snprintf(below, sizeof below,
                     "{type: embedding, dim: 3}, {type: gru, name: down, units: 4, return_sequences: true, trainable: "
                     "%s, initial_state: {from: up, bridge: dense}}",
                     words[decoder]);
            struct loaded l = load_pairs(above, below);
            const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
            struct sl_graph *graph = make(&request);
            assert_int_equal(find_tensor(graph, "down.l0.forward.bridge_h")->needs_grad, encoder || decoder);
            assert_int_equal(find_tensor(graph, "down.l0.forward.h0")->needs_grad, encoder || decoder);
            sl_graph_destroy(graph);
            unload(&l);
        }
}

/* What is gathered fits into the larger of both sides. */
static void gathers_have_room_for_both_sides(void **state)
{
    (void)state;
    static const int64_t rows[][2] = {{19, 17}, {11, 23}, {3, 3}};
    struct loaded l =
        load_pairs("{type: embedding, dim: 3}, {type: gru, name: up, units: 5, return_sequences: true}",
                   "{type: embedding, dim: 3}, {type: gru, units: 5, return_sequences: true}, {type: attention}");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_data_facts facts = make_facts(rows[k][0], rows[k][1]);
        const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
        struct sl_graph *graph = make(&request);
        int gathers = 0;
        for (int32_t n = 0; n < graph->node_count; n++) {
            const struct sl_node *node = &graph->nodes[n];
            if (node->desc.head.op != SEQLSTM_OP_GATHER)
                continue;
            const int64_t from = sl_graph_get_rows(graph, &graph->tensors[node->slots[SEQLSTM_SLOT_GATHER_X]]);
            const int64_t to = sl_graph_get_rows(graph, &graph->tensors[node->slots[SEQLSTM_SLOT_GATHER_Y]]);
            assert_int_equal(node->desc.head.max_rows, from > to ? from : to);
            gathers++;
        }
        assert_true(gathers >= 2); /* of the memory, and of the states */
        sl_graph_destroy(graph);
    }
    unload(&l);
}

/* ---- one sequence ------------------------------------------------------------------------------------------------ */

/* Equal lengths are promised where every batch has them, steps are there at all, and no second side has others; flat
 * vectors have none. */
static void equal_lengths_are_promised_to_operations_on_steps(void **state)
{
    (void)state;
    struct loaded l = load_clean("seqlstm: 1\ndata: {train: {type: npy, x: a.npy, y: b.npy}}\nmodel:\n"
                                 "  - {type: dense, name: a, units: 3}\n  - {type: dense, units: from_target}\n"
                                 "train: {epochs: 1}\n");
    for (int row = 0; row < 4; row++) {
        const bool steps = row & 1, uniform = row & 2;
        const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = steps, .features = 3},
                                            .target = {.kind = SL_FIELD_VALUES, .on_steps = steps, .features = 2},
                                            .has_steps = steps,
                                            .envelope = {.sequences = 2, .steps = 4, .rows = 8, .uniform = uniform}};
        const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
        struct sl_graph *graph = make(&request);
        for (int32_t n = 0; n < graph->node_count; n++)
            assert_int_equal((graph->nodes[n].desc.head.flags & SEQLSTM_BIT_DESC_UNIFORM) != 0, steps && uniform);
        assert_true(graph->vector_op_count > 2);
        for (int32_t v = 0; v < graph->vector_op_count; v++) {
            assert_int_equal(graph->vector_ops[v].head.flags & SEQLSTM_BIT_DESC_UNIFORM, 0);
            assert_int_equal(graph->vector_ops[v].head.max_sequences, 0);
            assert_int_equal(graph->vector_ops[v].head.max_steps, 0);
            assert_int_equal(graph->vector_ops[v].head.max_rows, graph->vector_ops[0].head.max_rows);
        }
        sl_graph_destroy(graph);
    }
    unload(&l);
}

/* Only training cuts batches into pieces. */
static void pieces_are_for_training(void **state)
{
    (void)state;
    static const enum sl_phase phases[] = {SL_PHASE_TRAIN, SL_PHASE_EVALUATE, SL_PHASE_PREDICT};
    const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                        .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                        .has_steps = true,
                                        .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    struct loaded l = load_clean("seqlstm: 1\ndata: {train: {type: npy, x: a.npy, y: b.npy}}\nmodel:\n"
                                 "  - {type: lstm, units: 3, return_sequences: true}\n"
                                 "  - {type: dense, units: from_target}\ntrain: {epochs: 1}\n");
    for (int p = 0; p < 3; p++) {
        const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = phases[p], .pieces = 3};
        struct sl_graph *graph = make(&request);
        assert_int_equal(graph->pieces, p == 0 ? 3 : 0);
        sl_graph_destroy(graph);
    }
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alternatives_stand_where_their_operations_do),
        cmocka_unit_test(fed_layers_carry_states_of_their_widths),
        cmocka_unit_test(bridges_have_gradients_where_something_is_trained),
        cmocka_unit_test(gathers_have_room_for_both_sides),
        cmocka_unit_test(equal_lengths_are_promised_to_operations_on_steps),
        cmocka_unit_test(pieces_are_for_training),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
