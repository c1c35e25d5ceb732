/* SPDX-License-Identifier: Apache-2.0 */
/* The whole ONNX model: inputs, one operation after the other, outputs, and the model record around them. */
#include "interop/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file_writer.h"
#include "interop/onnx_builder.h"
#include "interop/protobuf.h"

enum { IR_VERSION = 8, OPSET = 17 };
#define FILE_BYTES_MAX ((size_t)INT32_MAX) /* protobuf's limit for one message */

static int32_t find_role(const struct sl_graph *graph, enum sl_tensor_role role)
{
    for (int32_t t = 0; t < graph->tensor_count; t++)
        if (graph->tensors[t].role == role)
            return t;
    return -1;
}

static void name_value(struct sl_onnx_builder *b, int32_t tensor, const char *name)
{
    snprintf(b->tensors[tensor].text, sizeof b->tensors[tensor].text, "%s", name);
}

/* Steps of the input: a free dimension, but one step where input feeding carries something from step to step. */
static int64_t get_time(const struct sl_graph *graph)
{
    if (graph->part == SL_PART_ENCODER)
        return SL_ONNX_SOURCE_TIME;
    return graph->part == SL_PART_DECODER && graph->model->feeding.present ? 1 : SL_ONNX_TIME;
}

static void add_states_in(struct sl_onnx_builder *b)
{
    const struct sl_graph *graph = b->graph;
    for (int32_t s = 0; s < graph->state_count && graph->part != SL_PART_ENCODER; s++) {
        int64_t state[2] = {SL_ONNX_BATCH, graph->states[s].features};
        sl_onnx_add_input(b, graph->states[s].name, SL_ONNX_FLOAT, state, 2);
        name_value(b, graph->states[s].tensor_in, graph->states[s].name);
    }
}

/* The attention memories, which the encoder's file computes. */
static void add_memories_in(struct sl_onnx_builder *b)
{
    const struct sl_graph *graph = b->graph;
    for (int32_t m = 0; m < graph->memory_count && graph->part == SL_PART_DECODER; m++) {
        const struct sl_tensor *memory = &graph->tensors[graph->memories[m].tensor_in];
        int64_t dims[3] = {SL_ONNX_BATCH, SL_ONNX_SOURCE_TIME, memory->features}, lengths = SL_ONNX_BATCH;
        sl_onnx_add_input(b, memory->name, SL_ONNX_FLOAT, dims, 3);
        name_value(b, graph->memories[m].tensor_in, memory->name);
        if (m == 0)
            sl_onnx_add_input(b, "source_lengths", SL_ONNX_INT32, &lengths, 1);
    }
}

static void add_inputs(struct sl_onnx_builder *b)
{
    const struct sl_graph *graph = b->graph;
    bool encodes = graph->part == SL_PART_ENCODER;
    int32_t input = find_role(graph, encodes ? SL_TENSOR_SOURCE : SL_TENSOR_INPUT);
    const struct sl_tensor *x = &graph->tensors[input];
    bool is_ids = x->dtype == SEQLSTM_DTYPE_INT32, on_steps = sl_axis_is_steps(x->axis);
    int64_t dims[3] = {SL_ONNX_BATCH, get_time(graph), x->features};
    const char *name = encodes ? "source" : "input";
    if (!on_steps)
        dims[1] = x->features;
    sl_onnx_add_input(b, name, is_ids ? SL_ONNX_INT64 : SL_ONNX_FLOAT, dims, 1 + on_steps + !is_ids);
    name_value(b, input, name);
    struct sl_onnx_name lengths = sl_onnx_get_lengths(b, x->axis);
    if (on_steps && lengths.text[0])
        sl_onnx_add_input(b, lengths.text, SL_ONNX_INT32, dims, 1);
    add_states_in(b);
    add_memories_in(b);
}

/* Gives a value the name that the file's interface promises. */
static void publish(struct sl_onnx_builder *b, int32_t tensor, const char *name)
{
    struct sl_onnx_name output;
    snprintf(output.text, sizeof output.text, "%s", name);
    sl_onnx_add_node(b, "Identity", &b->tensors[tensor], 1, &output, 1);
}

/* What the decoder begins with; states that do not come from the encoder are zeros. */
static void add_encoded(struct sl_onnx_builder *b)
{
    const struct sl_graph *graph = b->graph;
    for (int32_t s = 0; s < graph->state_count; s++) {
        int64_t state[2] = {SL_ONNX_BATCH, graph->states[s].features}, features = graph->states[s].features;
        int32_t out = graph->states[s].tensor_out;
        if (b->tensors[out].text[0] == '\0') {
            struct sl_onnx_name lengths = {"source_lengths"}, width = sl_onnx_add_ints(b, &features, 1), dims[2], shape;
            dims[0] = sl_onnx_add(b, "Shape", &lengths, NULL, NULL);
            dims[1] = width;
            shape = sl_onnx_make_name(b, "shape");
            sl_onnx_set_int(b, "axis", 0);
            sl_onnx_add_node(b, "Concat", dims, 2, &shape, 1);
            b->tensors[out] = sl_onnx_add(b, "ConstantOfShape", &shape, NULL, NULL);
        }
        publish(b, out, graph->states[s].name);
        sl_onnx_add_output(b, graph->states[s].name, SL_ONNX_FLOAT, state, 2);
    }
    for (int32_t m = 0; m < graph->memory_count; m++) {
        const struct sl_tensor *memory = &graph->tensors[graph->memories[m].tensor_out];
        int64_t dims[3] = {SL_ONNX_BATCH, SL_ONNX_SOURCE_TIME, memory->features};
        publish(b, graph->memories[m].tensor_out, memory->name);
        sl_onnx_add_output(b, memory->name, SL_ONNX_FLOAT, dims, 3);
    }
}

static void add_outputs(struct sl_onnx_builder *b)
{
    const struct sl_graph *graph = b->graph;
    if (graph->part == SL_PART_ENCODER) {
        add_encoded(b);
        return;
    }
    const struct sl_tensor *y = &graph->tensors[graph->output];
    bool on_steps = y->axis == SL_AXIS_STEPS;
    int64_t dims[3] = {SL_ONNX_BATCH, on_steps ? get_time(graph) : y->features, y->features};
    publish(b, graph->output, "output");
    sl_onnx_add_output(b, "output", SL_ONNX_FLOAT, dims, on_steps ? 3 : 2);
    for (int32_t s = 0; s < graph->state_count; s++) {
        int64_t state[2] = {SL_ONNX_BATCH, graph->states[s].features};
        int32_t out = graph->states[s].tensor_out;
        char name[SL_ONNX_NAME_BYTES];
        if (b->tensors[out].text[0] == '\0') /* a vector that is repeated stays */
            b->tensors[out] = b->tensors[graph->states[s].tensor_in];
        snprintf(name, sizeof name, "%s.next", graph->states[s].name);
        publish(b, out, name);
        sl_onnx_add_output(b, name, SL_ONNX_FLOAT, state, 2);
    }
}

static seqlstm_status add_nodes(struct sl_onnx_builder *b)
{
    for (int32_t n = 0; n < b->graph->node_count; n++) {
        const struct sl_node *node = &b->graph->nodes[n];
        SEQLSTM_TRY(node->desc.head.op == SEQLSTM_OP_RECURRENT ? sl_onnx_add_recurrent(b, node)
                                                               : sl_onnx_add_rowwise(b, node));
    }
    return SEQLSTM_OK;
}

static void wrap(const struct sl_onnx_builder *b, const char *name, struct sl_buf *model)
{
    enum {
        MODEL_IR = 1,
        MODEL_PRODUCER = 2,
        MODEL_GRAPH = 7,
        MODEL_OPSET = 8,
        GRAPH_NAME = 2,
        OPSET_DOMAIN = 1,
        OPSET_VERSION = 2
    };
    struct sl_buf opset = {0}, graph = {0};
    sl_protobuf_append_text(&opset, OPSET_DOMAIN, "");
    sl_protobuf_append_int(&opset, OPSET_VERSION, OPSET);
    sl_protobuf_append_text(&graph, GRAPH_NAME, name);
    graph.failed = graph.failed || b->graph_fields.failed;
    sl_buf_append(&graph, b->graph_fields.data, b->graph_fields.length_bytes);
    sl_protobuf_append_int(model, MODEL_IR, IR_VERSION);
    sl_protobuf_append_text(model, MODEL_PRODUCER, "seqlstm");
    sl_protobuf_append_message(model, MODEL_GRAPH, &graph);
    sl_protobuf_append_message(model, MODEL_OPSET, &opset);
    sl_buf_deinit(&opset);
    sl_buf_deinit(&graph);
}

/* The size of the weights alone decides whether the file is possible. */
static seqlstm_status check_size(const struct sl_graph *graph, struct seqlstm_error *err)
{
    int64_t elems = sl_graph_param_elems(graph);
    if (elems < (int64_t)(FILE_BYTES_MAX / sizeof(float)) - (1 << 20))
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                 "the model has %lld parameters, but one ONNX file holds at most 2 GB; use `--to safetensors`",
                 (long long)elems);
}

seqlstm_status sl_onnx_write(const struct sl_graph *graph, const float *const *values, const char *path,
                             struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_size(graph, err));
    struct sl_onnx_builder b = {.graph = graph, .values = values, .err = err};
    struct sl_buf model = {0};
    b.tensors = calloc((size_t)graph->tensor_count + 1, sizeof *b.tensors);
    if (b.tensors == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the names of an ONNX graph");
    add_inputs(&b);
    seqlstm_status status = add_nodes(&b);
    if (status == SEQLSTM_OK) {
        add_outputs(&b);
        wrap(&b, graph->model->name, &model);
        if (model.failed)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the ONNX file");
        else
            status = sl_file_write(path, model.data, model.length_bytes, err);
    }
    sl_buf_deinit(&model);
    sl_buf_deinit(&b.graph_fields);
    sl_buf_deinit(&b.attributes);
    free(b.tensors);
    return status;
}
