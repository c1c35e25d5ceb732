/* SPDX-License-Identifier: Apache-2.0 */
/* Models that do not fit the data, which only the graph can tell: each with its reason and the place in the model file.
 */
#include "graph/graph.h"
#include "model_fixture.h"
#include "oom.h"

#define NUMBERS "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
#define TOKENS  "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n"
#define PAIRS   "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace}\n"
#define MSE     "train: {loss: mse, epochs: 1}\n"
#define CLASSES "train: {epochs: 1}\n"

/* What the data are. */
enum { NONE, VALUES, IDS };
struct shape {
    int input, target, source;
    bool on_steps, target_on_steps;
    int64_t features, target_features, classes;
};

#define OF_VALUES                                                                                                      \
    {                                                                                                                  \
        .input = VALUES, .target = VALUES, .on_steps = true, .features = 3, .target_features = 2                       \
    }
#define ON_STEPS                                                                                                       \
    {                                                                                                                  \
        .input = VALUES, .target = VALUES, .on_steps = true, .target_on_steps = true, .features = 3,                   \
        .target_features = 2                                                                                           \
    }
#define OF_IDS                                                                                                         \
    {                                                                                                                  \
        .input = IDS, .target = IDS, .on_steps = true, .features = 1, .target_features = 1, .classes = 7               \
    }
#define IDS_ON_STEPS                                                                                                   \
    {                                                                                                                  \
        .input = IDS, .target = IDS, .on_steps = true, .target_on_steps = true, .features = 1, .target_features = 1,   \
        .classes = 7                                                                                                   \
    }

static const struct mistake {
    const char *text;
    struct shape shape;
    const char *message, *where;
} mistakes[] = {
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `lstm_1` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: dense, units: 3, name: d}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `d` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: layer_norm, name: n}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `n` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: pool, mode: max, name: p}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `p` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: activation, activation: tanh, name: a}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `a` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: dropout, rate: 0.5, name: r}\n- {type: dense, units: 2}\n" MSE, OF_IDS,
     "layer `r` needs numbers, but the data are token ids; put an embedding layer before it", "m.yaml:4:3"},
    {TOKENS "model:\n- {type: embedding, dim: 3, name: e}\n- {type: lstm, units: 2}\n- {type: output, activation: "
            "softmax}\n" CLASSES,
     OF_VALUES, "layer `e` needs token ids, but the data are numbers; remove the embedding", "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2, name: one}\n- {type: dense, units: 2}\n" MSE,
     {.input = VALUES, .target = VALUES, .features = 3, .target_features = 2},
     "layer `one` needs a sequence, but its input is one vector per record",
     "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: pool, mode: max, name: p}\n- {type: dense, units: 2}\n" MSE,
     {.input = VALUES, .target = VALUES, .features = 3, .target_features = 2},
     "layer `p` pools over the steps of a sequence, but its input is one vector per record",
     "m.yaml:4:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: 2}\n" MSE, ON_STEPS,
     "layer `dense_1` yields one row per sequence, but the target has one row per step; use `return_sequences: true` "
     "in the recurrent layers",
     "m.yaml:5:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2, return_sequences: true}\n- {type: dense, units: 2}\n" MSE, OF_VALUES,
     "layer `dense_1` yields one row per step, but the target has one row per sequence; use `return_sequences: false` "
     "in the last recurrent layer, or a pool layer",
     "m.yaml:5:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: 5, name: d}\n" MSE, OF_VALUES,
     "layer `d` yields 5 features, but the target has 2 values; use `units: from_target`", "m.yaml:5:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: 2}\ntrain:\n  epochs: 1\n  loss: mse\n",
     {.input = VALUES, .target = IDS, .on_steps = true, .features = 3, .target_features = 1, .classes = 2},
     "the loss mse needs numbers as target, but the data have classes or tokens",
     "m.yaml:8:3"},
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: 2}\n" MSE,
     {.input = VALUES, .on_steps = true, .features = 3},
     "the data have no target, but the loss mse needs one",
     "m.yaml:2:7"},
    {NUMBERS "model:\n- {type: lstm, units: 2}\n- {type: dense, units: from_target, name: d}\n" MSE,
     {.input = VALUES, .on_steps = true, .features = 3},
     "layer `d` takes its width from the target, but the data have none",
     "m.yaml:5:3"},
    {TOKENS "model:\n- {type: embedding, dim: 3}\n- {type: lstm, units: 2}\n- {type: output, activation: "
            "softmax}\ntrain:\n  epochs: 1\n  loss: cross_entropy\n",
     {.input = IDS, .target = VALUES, .on_steps = true, .features = 1, .target_features = 2, .classes = 7},
     "the loss cross_entropy needs classes or tokens as target, but the data have numbers",
     "m.yaml:9:3"},
    {TOKENS "model:\n- {type: embedding, dim: 3}\n- {type: lstm, units: 2}\n- {type: dense, units: 3, activation: "
            "softmax, name: d}\n" CLASSES,
     OF_IDS, "layer `d` yields 3 features, but the target has 7 classes; use `units: from_target`", "m.yaml:6:3"},
    {TOKENS "model:\n- {type: embedding, dim: 3, name: e}\n- {type: lstm, units: 3, return_sequences: true}\n- {type: "
            "output, tie: e, activation: softmax}\ntrain: {epochs: 1, task: tag}\n",
     {.input = IDS,
      .target = IDS,
      .on_steps = true,
      .target_on_steps = true,
      .features = 1,
      .target_features = 1,
      .classes = -7},
     "`tie: e` needs as many classes as the embedding has rows (7), but the target has 8",
     "m.yaml:6:18"},
    {NUMBERS
     "model:\n- {type: lstm, units: 2, name: a}\n- {type: add, name: s, from: [a, a]}\n- {type: dense, units: 2}\n" MSE,
     OF_VALUES, "layer `s` joins the same values twice", "m.yaml:5:24"},
    {NUMBERS "model:\n- {type: lstm, units: 2, name: a}\n- {type: concat, name: c, from: [input, a]}\n- {type: dense, "
             "units: 2}\n" MSE,
     OF_VALUES, "layer `c` joins a sequence with a vector", "m.yaml:5:27"},
    {NUMBERS "model:\n- {type: lstm, units: 3, name: a}\n- {type: add, name: s, from: [a, input]}\n- {type: dense, "
             "units: 2}\n" MSE,
     OF_VALUES, "layer `s` joins a sequence with a vector", "m.yaml:5:24"},
    {PAIRS "model:\n  encoder: [{type: embedding, dim: 3}, {type: lstm, units: 4}]\n  decoder: [{type: embedding, dim: "
           "3}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: softmax}]\n" CLASSES,
     IDS_ON_STEPS, "the model has an encoder, but the data have no source for it", "m.yaml:2:7"},
    {PAIRS "model:\n  encoder: [{type: embedding, dim: 3, name: w}, {type: lstm, units: 4}]\n  decoder: [{type: "
           "embedding, dim: 3, share: w}, {type: lstm, units: 4, return_sequences: true}, {type: output, activation: "
           "softmax}]\n" CLASSES,
     {.input = IDS,
      .target = IDS,
      .source = IDS,
      .on_steps = true,
      .target_on_steps = true,
      .features = 1,
      .target_features = 1,
      .classes = -7},
     "`share: w` needs one vocabulary, but that of the source has 6 tokens, and that of the target 7; use `shared: "
     "true` in the tokenizer",
     "m.yaml:5:39"},
};

/* `classes` below 0: the target has one more than the input, the source one less. */
static struct sl_data_facts make_facts(const struct shape *s)
{
    static const enum sl_field_kind kinds[] = {SL_FIELD_NONE, SL_FIELD_VALUES, SL_FIELD_IDS};
    const int64_t classes = s->classes < 0 ? -s->classes : s->classes, apart = s->classes < 0;
    struct sl_data_facts facts = {.has_steps = s->on_steps, .envelope = {.sequences = 2, .steps = 4, .rows = 8}};
    facts.input = (struct sl_field_facts){
        .kind = kinds[s->input], .on_steps = s->on_steps, .features = s->features, .classes = classes};
    facts.target = (struct sl_field_facts){.kind = kinds[s->target],
                                           .on_steps = s->target_on_steps,
                                           .features = s->target_features,
                                           .classes = classes + apart};
    if (s->source != NONE) {
        facts.source = (struct sl_field_facts){
            .kind = kinds[s->source], .on_steps = true, .features = 1, .classes = classes - apart};
        facts.envelope.source_steps = 4;
        facts.envelope.source_rows = 8;
    }
    return facts;
}

static void each_mistake_has_its_reason_and_place(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
        const struct mistake *m = &mistakes[k];
        const struct sl_data_facts facts = make_facts(&m->shape);
        struct loaded l = load(m->text);
        assert_int_equal(l.status, SEQLSTM_OK);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
        struct sl_graph *graph = NULL;
        const seqlstm_status status = sl_graph_create(&request, &graph, &err);
        if (status != SEQLSTM_INVALID_CONFIG || strcmp(err.message, m->message) != 0 ||
            strcmp(err.where, m->where) != 0)
            fail_msg("%s\nstatus %d: %s (%s), expected %s (%s)", m->text, (int)status, err.message, err.where,
                     m->message, m->where);
        assert_null(graph);
        unload(&l);
    }
}

static const struct shape text_pairs = {.input = IDS,
                                        .target = IDS,
                                        .source = IDS,
                                        .on_steps = true,
                                        .target_on_steps = true,
                                        .features = 1,
                                        .target_features = 1,
                                        .classes = 7};

/* A loop begins anew with each batch. */
static void a_loop_carries_no_state(void **state)
{
    (void)state;
    const struct sl_data_facts facts = make_facts(&text_pairs);
    struct loaded l = load_clean(
        PAIRS "model:\n  encoder: [{type: embedding, dim: 3}, {type: lstm, units: 4, return_sequences: true}]\n"
              "  decoder: [{type: embedding, dim: 3}, {type: lstm, name: d, units: 4, return_sequences: true},\n"
              "    {type: attention, input_feeding: true}, {type: output, activation: softmax}]\n" CLASSES);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_graph *graph = NULL;
    const struct sl_graph_request request = {
        .model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN, .carry_state = true};
    assert_int_equal(sl_graph_create(&request, &graph, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "layer `d` is fed step by step within a batch, so its state cannot be carried to "
                                     "the next one");
    assert_string_equal(err.where, "m.yaml:5:40");
    assert_null(graph);
    unload(&l);
}

/* What turns a state of the encoder into one of the decoder: as a state is, between -1 and 1, or as a cell, any number.
 */
static void a_dense_bridge_ends_as_its_state_does(void **state)
{
    (void)state;
    const struct sl_data_facts facts = make_facts(&text_pairs);
    struct loaded l = load_clean(
        PAIRS "model:\n  encoder: [{type: embedding, dim: 3}, {type: lstm, name: e, units: 3}]\n"
              "  decoder: [{type: embedding, dim: 3}, {type: lstm, units: 5, return_sequences: true,\n"
              "    initial_state: {from: e, bridge: dense}}, {type: output, activation: softmax}]\n" CLASSES);
    struct sl_graph *graph = NULL;
    const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    int found = 0;
    assert_int_equal(sl_graph_create(&request, &graph, NULL), SEQLSTM_OK);
    for (int32_t n = 0; n < graph->node_count; n++) {
        const struct sl_node *node = &graph->nodes[n];
        const bool h = strstr(node->name, "bridge_h"), c = strstr(node->name, "bridge_c");
        if (node->desc.head.op != SEQLSTM_OP_DENSE || (!h && !c))
            continue;
        assert_int_equal(node->desc.dense.activation.kind, h ? SEQLSTM_ACT_TANH : SEQLSTM_ACT_NONE);
        found++;
    }
    assert_int_equal(found, 2);
    sl_graph_destroy(graph);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mistake_has_its_reason_and_place),
        cmocka_unit_test(a_loop_carries_no_state),
        cmocka_unit_test(a_dense_bridge_ends_as_its_state_does),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
