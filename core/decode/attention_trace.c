/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_trace.h. */
#include "decode/attention_trace.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/ext/draft/attention.h>

struct sl_attention_trace {
    struct sl_exec *exec;
    int32_t *layers; /* [layer_count] */
    int32_t layer_count;
    int64_t sources;
    float *values;
    size_t value_count, value_capacity;
    size_t *parts; /* [steps, layer_count] offset of the weights of one layer at one step: [rows, sources] */
    size_t part_count, part_capacity;
};

/* Room for one part of `elems` more. */
static seqlstm_status reserve(struct sl_attention_trace *trace, size_t elems, struct seqlstm_error *err)
{
    if (trace->value_count + elems > trace->value_capacity) {
        size_t capacity = 2 * trace->value_capacity + elems;
        float *grown = realloc(trace->values, capacity * sizeof *grown);
        if (grown == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the weights of attention");
        trace->values = grown;
        trace->value_capacity = capacity;
    }
    if (trace->part_count == trace->part_capacity) {
        size_t capacity = 2 * trace->part_capacity + 64;
        size_t *grown = realloc(trace->parts, capacity * sizeof *grown);
        if (grown == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the weights of attention");
        trace->parts = grown;
        trace->part_capacity = capacity;
    }
    return SEQLSTM_OK;
}

static seqlstm_status watch(void *context, struct sl_exec *exec, const struct sl_node *node, struct seqlstm_error *err)
{
    struct sl_attention_trace *trace = context;
    const float *weights;
    int64_t elems;
    if (node->desc.head.op != SEQLSTM_OP_ATTENTION)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exec_read(exec, node->slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS], &weights, &elems, err));
    int64_t width = node->desc.head.max_steps, rows = elems / width;
    SEQLSTM_TRY(reserve(trace, (size_t)(rows * trace->sources), err));
    trace->parts[trace->part_count++] = trace->value_count;
    for (int64_t r = 0; r < rows; r++, trace->value_count += (size_t)trace->sources)
        memcpy(trace->values + trace->value_count, weights + r * width, (size_t)trace->sources * sizeof *weights);
    return SEQLSTM_OK;
}

seqlstm_status sl_attention_trace_create(struct sl_exec *exec, struct sl_attention_trace **out_trace,
                                         struct seqlstm_error *err)
{
    const struct sl_graph *graph = sl_exec_get_graph(exec);
    struct sl_attention_trace *trace = calloc(1, sizeof *trace);
    int32_t *layers = calloc((size_t)graph->node_count + 1, sizeof *layers);
    if (trace == NULL || layers == NULL) {
        free(trace);
        free(layers);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the weights of attention");
    }
    trace->exec = exec;
    trace->layers = layers;
    for (int32_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].desc.head.op == SEQLSTM_OP_ATTENTION)
            layers[trace->layer_count++] = graph->nodes[n].layer;
    sl_exec_watch(exec, watch, trace);
    *out_trace = trace;
    return SEQLSTM_OK;
}

void sl_attention_trace_destroy(struct sl_attention_trace *trace)
{
    if (trace == NULL)
        return;
    sl_exec_watch(trace->exec, NULL, NULL);
    free(trace->layers);
    free(trace->values);
    free(trace->parts);
    free(trace);
}

void sl_attention_trace_begin(struct sl_attention_trace *trace, int64_t sources)
{
    trace->sources = sources;
    trace->value_count = trace->part_count = 0;
}

int32_t sl_attention_trace_get_layers(const struct sl_attention_trace *trace, const int32_t **out_layers)
{
    *out_layers = trace->layers;
    return trace->layer_count;
}

const float *sl_attention_trace_get(const struct sl_attention_trace *trace, int32_t k, int64_t step, int32_t row)
{
    return trace->values + trace->parts[step * trace->layer_count + k] + (size_t)row * (size_t)trace->sources;
}
