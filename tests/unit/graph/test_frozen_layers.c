/* SPDX-License-Identifier: Apache-2.0 */
/* Which gradients a training step computes, where any of the layers are frozen: that of a tensor wherever something
 * that is trained lies below it, whatever lies above, and no other. */
#include "base/operation/op_signature.h"
#include "graph/graph.h"
#include "model_fixture.h"
#include "oom.h"

enum { LAYERS_MOST = 12 };

static const struct sl_data_facts pairs = {
    .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8},
    .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8},
    .source = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8},
    .has_steps = true,
    .envelope = {.sequences = 4, .steps = 6, .rows = 19, .source_steps = 5, .source_rows = 17}};
static const struct sl_data_facts values = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                            .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                            .has_steps = true,
                                            .envelope = {.sequences = 4, .steps = 6, .rows = 19}};

/* Where a layer may be frozen stands `@`. */
static const struct {
    const struct sl_data_facts *facts;
    const char *text;
} models[] = {
    {&values, "seqlstm: 1\ndata: {train: {type: npy, x: a.npy, y: b.npy}}\nmodel:\n"
              "  - {type: layer_norm, name: n, @}\n"
              "  - {type: lstm, name: a, units: 4, layers: 2, return_sequences: true, @}\n"
              "  - {type: gru, name: b, units: 2, direction: bidirectional, return_sequences: true, from: n, @}\n"
              "  - {type: add, name: sum, from: [a, b]}\n"
              "  - {type: activation, activation: tanh}\n"
              "  - {type: rnn, name: c, units: 3, @}\n"
              "  - {type: dense, name: d, units: 5, @}\n"
              "  - {type: pool, name: p, mode: max, from: b}\n"
              "  - {type: concat, from: [p, d]}\n"
              "  - {type: dense, units: from_target, @}\n"
              "train: {epochs: 1}\n"},
    {&pairs,
     "seqlstm: 1\ndata: {train: {type: lines, source: a, target: b}, tokenizer: {type: char, shared: true}}\nmodel:\n"
     "  encoder:\n"
     "    - {type: embedding, name: words, dim: 3, @}\n"
     "    - {type: lstm, name: e, units: 4, return_sequences: true, direction: bidirectional, @}\n"
     "  decoder:\n"
     "    - {type: embedding, share: words, dim: 3}\n"
     "    - {type: lstm, name: d, units: 5, return_sequences: true, initial_state: {from: e, bridge: dense}, @}\n"
     "    - {type: attention, name: x, score: additive, units: 6, @}\n"
     "    - {type: dense, units: 3, @}\n"
     "    - {type: output, activation: softmax, tie: words, @}\n"
     "train: {epochs: 1}\n"},
    {&pairs,
     "seqlstm: 1\ndata: {train: {type: lines, source: a, target: b}, tokenizer: {type: char, shared: true}}\nmodel:\n"
     "  encoder:\n"
     "    - {type: embedding, name: words, dim: 3, @}\n"
     "    - {type: gru, name: e, units: 4, return_sequences: true, @}\n"
     "  decoder:\n"
     "    - {type: embedding, dim: 3, @}\n"
     "    - {type: gru, name: d, units: 4, return_sequences: true, @}\n"
     "    - {type: attention, name: x, score: general, @}\n"
     "    - {type: layer_norm, @}\n"
     "    - {type: output, activation: softmax, @}\n"
     "train: {epochs: 1}\n"},
};

/* The text with the layers of `frozen`, a bit for each `@`, frozen. Returns how many there are. */
static int freeze(const char *text, unsigned frozen, char *out, size_t room)
{
    int count = 0;
    size_t at = 0;
    for (; *text; text++) {
        const char *said = frozen >> count & 1 ? "trainable: false" : "trainable: true";
        at += (size_t)snprintf(out + at, room - at, "%.*s", *text == '@' ? 20 : 1, *text == '@' ? said : text);
        assert_true(at < room);
        count += *text == '@';
    }
    return count;
}

static bool is_written_to(enum sl_slot_role role)
{
    return role == SL_SLOT_OUTPUT || role == SL_SLOT_INOUT;
}

/* Does what the node reads depend on something that is trained? */
static bool reads_trained(const struct sl_graph *graph, const struct sl_node *node, const struct sl_slot *slots)
{
    for (int32_t s = 0; s < node->slot_count; s++) {
        const bool reads = slots[s].role == SL_SLOT_INPUT || slots[s].role == SL_SLOT_PARAM;
        if (reads && node->slots[s] >= 0 && graph->tensors[node->slots[s]].needs_grad)
            return true;
    }
    return false;
}

/* What a node writes has a gradient where what it reads has one. Final states that another layer or the output reads
 * always have one. */
static void check_node(const struct sl_graph *graph, const struct sl_node *node, const char *text)
{
    struct sl_slot slots[SL_SLOTS_MAX];
    int32_t count;
    assert_int_equal(sl_op_signature(&node->desc.head, slots, SL_SLOTS_MAX, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, node->slot_count);
    const bool trained = reads_trained(graph, node, slots);
    for (int32_t s = 0; s < count; s++) {
        if (!is_written_to(slots[s].role) || node->slots[s] < 0)
            continue;
        const struct sl_tensor *tensor = &graph->tensors[node->slots[s]];
        const bool final = node->desc.head.op == SEQLSTM_OP_RECURRENT && s >= SEQLSTM_SLOT_RECURRENT_STATES;
        const bool expected = final || (tensor->role == SL_TENSOR_ACTIVATION && trained);
        if (tensor->needs_grad != expected)
            fail_msg("the gradient of %s is %s in\n%s", tensor->name,
                     expected ? "not computed" : "computed for nothing", text);
    }
    if (trained && !node->needs_backward)
        fail_msg("%s has no backward in\n%s", node->name, text);
}

static void check_graph(const struct sl_graph *graph, const char *text)
{
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param *param = &graph->params[p];
        const bool trainable = graph->model->layers[param->layer].trainable;
        assert_int_equal(param->trainable, trainable);
        assert_int_equal(graph->tensors[param->tensor].needs_grad, trainable);
    }
    for (int32_t n = 0; n < graph->node_count; n++)
        check_node(graph, &graph->nodes[n], text);
    for (int32_t a = 0; a < graph->alternative_count; a++)
        check_node(graph, &graph->alternatives[a].node, text);
}

static void gradients_pass_through_frozen_layers(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        int layers = 1;
        for (unsigned frozen = 0; frozen < 1u << layers; frozen++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_graph *graph = NULL;
            char text[1500];
            layers = freeze(models[m].text, frozen, text, sizeof text);
            assert_in_range(layers, 1, LAYERS_MOST);
            struct loaded l = load_clean(text);
            const struct sl_graph_request request = {
                .model = l.model, .facts = models[m].facts, .phase = SL_PHASE_TRAIN};
            if (sl_graph_create(&request, &graph, &err) != SEQLSTM_OK)
                fail_msg("%s", err.message);
            check_graph(graph, text);
            sl_graph_destroy(graph);
            unload(&l);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_pass_through_frozen_layers),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
