/* SPDX-License-Identifier: Apache-2.0 */
/* All that graphs of models hold, in each phase: tensors, parameters with their initial values, operations with every
 * member of their descriptors, what may replace them, and the operations of the update. See support/dump_file.h.
 *
 * The title of a case has the facts of its data: `NAME: input ids 7 steps, target ids 7 steps, source values 3 steps`,
 * where a number is that of the classes or features, then `weight`, `pieces N`, `stream` and `batches of N rows` where
 * they hold.
 */
#include "dump_file.h"
#include "graph_dump.h"
#include "model_fixture.h"
#include "oom.h"

static struct sl_field_facts read_field(const char *title, const char *name)
{
    const char *at = strstr(title, name);
    struct sl_field_facts facts = {0};
    char kind[16] = "", steps[16] = "";
    int count = 0;
    if (at == NULL)
        return facts;
    assert_true(sscanf(at + strlen(name), " %15[a-z] %d %15[a-z]", kind, &count, steps) >= 2);
    facts.on_steps = strcmp(steps, "steps") == 0;
    facts.kind = strcmp(kind, "ids") == 0 ? SL_FIELD_IDS : SL_FIELD_VALUES;
    facts.features = facts.kind == SL_FIELD_IDS ? 1 : count;
    facts.classes = facts.kind == SL_FIELD_IDS ? count : 0;
    return facts;
}

static struct sl_data_facts read_facts(const char *title)
{
    struct sl_data_facts facts = {.input = read_field(title, "input"),
                                  .target = read_field(title, "target"),
                                  .source = read_field(title, "source"),
                                  .has_weight = strstr(title, "weight") != NULL,
                                  .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    facts.has_steps = facts.input.on_steps;
    const char *rows = strstr(title, "batches of ");
    if (rows)
        facts.envelope.rows = atoll(rows + strlen("batches of "));
    facts.envelope.stream = strstr(title, "stream") != NULL;
    if (facts.source.kind != SL_FIELD_NONE) {
        facts.envelope.source_steps = 5;
        facts.envelope.source_rows = 17;
    }
    return facts;
}

static void add_graph(struct sl_buf *out, const struct sl_graph_request *request, const char *what, bool with_params)
{
    struct sl_graph *graph = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_printf(out, "-- %s\n", what);
    if (sl_graph_create(request, &graph, &err) == SEQLSTM_OK)
        dump_graph(out, graph, with_params);
    else
        sl_buf_printf(out, "refused %d: %s (%s)\n", (int)err.code, err.message, err.where);
    sl_graph_destroy(graph);
}

/* What runs where the output of one layer is wanted. */
static void add_outputs(struct sl_buf *out, struct sl_graph_request request)
{
    for (size_t l = 1; l < request.model->layer_count; l++) {
        struct sl_graph *graph = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        request.output_layer = &request.model->layers[l];
        sl_buf_printf(out, "-- output of %s", request.output_layer->name);
        if (sl_graph_create(&request, &graph, &err) != SEQLSTM_OK) {
            sl_buf_printf(out, " refused %d: %s\n", (int)err.code, err.message);
            continue;
        }
        sl_buf_printf(out, ": %s by", name_tensor(graph, graph->output));
        for (int32_t n = 0; n < graph->node_count; n++)
            sl_buf_printf(out, " %s", graph->nodes[n].name);
        for (int32_t a = 0; a < graph->alternative_count; a++)
            sl_buf_printf(out, ", or %s", graph->alternatives[a].node.name);
        if (graph->loop.count > 0)
            sl_buf_printf(out, "; %d of them from the %d. on step by step", graph->loop.count, graph->loop.first + 1);
        sl_buf_append_char(out, '\n');
        sl_graph_destroy(graph);
    }
}

static void add_graphs(struct sl_buf *out, const char *title, const struct sl_model *model)
{
    const struct sl_data_facts facts = read_facts(title);
    const char *pieces = strstr(title, "pieces");
    struct sl_graph_request request = {.model = model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    request.pieces = pieces ? atoi(pieces + strlen("pieces")) : 0;
    add_graph(out, &request, "train", true);
    if (pieces)
        return;
    request.need_output = true;
    request.phase = SL_PHASE_EVALUATE;
    add_graph(out, &request, "evaluate", false);
    request.need_output = false;
    request.phase = SL_PHASE_PREDICT;
    if (facts.source.kind == SL_FIELD_NONE) {
        request.carry_state = true;
        request.output_layer = &model->layers[0];
    }
    add_graph(out, &request, "predict", false);
    add_outputs(out, request);
    if (facts.source.kind == SL_FIELD_NONE)
        return;
    request.output_layer = NULL;
    request.part = SL_PART_ENCODER;
    add_graph(out, &request, "encoder", false);
    request.part = SL_PART_DECODER;
    request.attention_weights = true;
    add_graph(out, &request, "decoder", false);
}

static void add_model(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded l = load(text);
    if (l.model)
        add_graphs(out, title, l.model);
    else
        sl_buf_append_text(out, sl_buf_text(&l.text));
    unload(&l);
}

static void graphs_are_as_before(void **state)
{
    (void)state;
    compare_dumps("graphs", add_model);
}

/* Why data that a model was not written for are refused. */
static void add_refusal(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded l = load(text);
    const struct sl_data_facts facts = read_facts(title);
    const struct sl_graph_request request = {.model = l.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_graph *graph = NULL;
    if (l.model == NULL)
        sl_buf_append_text(out, sl_buf_text(&l.text));
    else if (sl_graph_create(&request, &graph, &err) == SEQLSTM_OK)
        sl_buf_append_text(out, "fits\n");
    else
        sl_buf_printf(out, "%d: %s (%s)\n", (int)err.code, err.message, err.where);
    sl_graph_destroy(graph);
    unload(&l);
}

static void refusals_are_as_before(void **state)
{
    (void)state;
    compare_dumps("refused_graphs", add_refusal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_as_before),
        cmocka_unit_test(refusals_are_as_before),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
