/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON. See explain.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/op_signature.h"
#include "dispatch/explain.h"

int64_t sl_call_param_elems(const struct sl_graph *graph, const struct sl_call *call)
{
    int64_t elems = 0;
    for (int32_t s = 0; s < call->node->slot_count; s++) {
        int32_t t = call->node->slots[s];
        if (t < 0 || graph->tensors[t].role != SL_TENSOR_PARAM)
            continue;
        const struct sl_param *param = &graph->params[graph->tensors[t].owner];
        if (param->layer == call->node->layer) /* a tied matrix counts at home */
            elems += param->rows * param->columns;
    }
    return elems;
}

static json_t *write_refusal(const struct sl_refusal *refusal)
{
    json_t *object = json_pack("{s:s,s:s,s:s,s:s,s:s}", "backend", refusal->backend, "option", refusal->option,
                               "value", refusal->value, "reason", refusal->reason, "hint", refusal->hint);
    if (object && refusal->place.line > 0) {
        json_object_set_new(object, "file", json_string(refusal->place.file));
        json_object_set_new(object, "line", json_integer(refusal->place.line));
        json_object_set_new(object, "column", json_integer(refusal->place.column));
    }
    return object;
}

static json_t *write_call(const struct sl_graph *graph, const struct sl_call *call)
{
    const struct sl_node *node = call->node;
    struct sl_place place = {0};
    if (node->layer >= 0)
        place = graph->model->layers[node->layer].place;
    json_t *refused = json_array();
    for (int32_t r = 0; r < call->refusal_count; r++)
        json_array_append_new(refused, write_refusal(&call->refusals[r]));
    return json_pack("{s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:I,s:n,s:b,s:o}", "name", node->name, "op",
                     sl_op_name(node->desc.head.op), "line", place.line, "column", place.column, "backend",
                     sl_backend_get_id(call->backend), "variant", call->variant, "device",
                     sl_backend_get_device(call->backend, call->device)->device_class, "params",
                     (json_int_t)sl_call_param_elems(graph, call), "cost_ns", "fallback", call->fallback,
                     "refused", refused);
}

static json_t *write_devices(const struct sl_plan *plan)
{
    json_t *devices = json_array();
    for (int32_t d = 0; d < plan->device_count; d++)
        json_array_append_new(devices, json_pack("{s:s,s:s,s:s}", "backend", plan->devices[d].backend, "class",
                                                 plan->devices[d].device_class, "name", plan->devices[d].name));
    return devices;
}

static const char *const phase_names[] = {
    [SL_PHASE_TRAIN] = "train", [SL_PHASE_EVALUATE] = "evaluate", [SL_PHASE_PREDICT] = "predict"};

seqlstm_status sl_plan_write_json(const struct sl_plan *plan, struct sl_buf *out, struct seqlstm_error *err)
{
    const struct sl_plan_memory *memory = &plan->memory;
    const struct sl_envelope *envelope = &plan->graph->facts.envelope;
    json_t *layers = json_array(), *updates = json_array();
    for (int32_t c = 0; c < plan->call_count; c++)
        json_array_append_new(layers, write_call(plan->graph, &plan->calls[c]));
    for (int32_t v = 0; v < plan->vector_count; v++)
        json_array_append_new(updates,
                              json_pack("{s:s,s:s}", "op", sl_op_name(plan->vectors[v].desc->head.op), "backend",
                                        sl_backend_get_id(plan->vectors[v].backend)));
    json_t *root = json_pack(
        "{s:s,s:s,s:s,s:i,s:o,s:o,s:o,s:[],s:{s:I,s:I,s:I},s:{s:I,s:I,s:I,s:I,s:I,s:I}}", "schema", "seqlstm.plan/1",
        "phase", phase_names[plan->graph->phase], "policy", "order", "threads", plan->threads,
        "devices", write_devices(plan), "layers", layers, "updates", updates,
        "copies", "envelope", "sequences", (json_int_t)envelope->sequences, "steps", (json_int_t)envelope->steps,
        "rows", (json_int_t)envelope->rows, "memory", "weights_bytes", (json_int_t)memory->weights_bytes,
        "gradients_bytes", (json_int_t)memory->gradients_bytes, "optimizer_bytes",
        (json_int_t)memory->optimizer_bytes, "activations_bytes", (json_int_t)memory->activations_bytes,
        "workspace_bytes", (json_int_t)memory->workspace_bytes, "peak_bytes", (json_int_t)memory->peak_bytes);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (text == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan's JSON");
    sl_buf_append_text(out, text);
    sl_buf_append_char(out, '\n');
    free(text);
    return SEQLSTM_OK;
}
