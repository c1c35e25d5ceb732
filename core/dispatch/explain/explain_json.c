/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as JSON. See explain.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "dispatch/plan/capture.h"
#include "dispatch/explain/explain.h"

static json_t *write_refusal(const struct sl_refusal *refusal)
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s?,s:o}", "backend", refusal->backend, "option", refusal->option, "value",
                  refusal->value, "reason", refusal->reason, "hint", refusal->hint, "without", refusal->without,
                  "speedup", refusal->speedup > 0 ? json_real(refusal->speedup) : json_null());
    if (object && refusal->place.line > 0) {
        object = sl_json_put(object, "file", json_string(refusal->place.file));
        object = sl_json_put(object, "line", json_integer(refusal->place.line));
        object = sl_json_put(object, "column", json_integer(refusal->place.column));
    }
    return object;
}

/* A cost in whole nanoseconds; null: it is only a guess, or unknown. */
static json_t *write_ns(const struct sl_cost *cost, double ns)
{
    return cost->source > SL_COST_GUESS ? json_integer((json_int_t)ns) : json_null();
}

static json_t *write_rival(const struct sl_rival *rival)
{
    return json_pack("{s:s,s:s,s:o,s:s}", "backend", rival->backend, "variant", rival->variant, "cost_ns",
                     write_ns(&rival->cost, rival->cost.forward_ns + rival->cost.backward_ns), "cost_from",
                     sl_cost_source_get_name(rival->cost.source));
}

static const char *get_precision(const struct sl_node *node)
{
    return sl_dtype_name(node->desc.head.dtype_compute);
}

static json_t *write_call(const struct sl_graph *graph, const struct sl_call *call)
{
    const struct sl_node *node = call->node;
    struct sl_place place = {0};
    if (node->layer >= 0)
        place = graph->model->layers[node->layer].place;
    const struct sl_cost *cost = &call->cost;
    json_t *refused = json_array(), *rivals = json_array();
    for (int32_t r = 0; r < call->rival_count; r++)
        rivals = sl_json_add(rivals, write_rival(&call->rivals[r]));
    for (int32_t r = 0; r < call->refusal_count; r++)
        refused = sl_json_add(refused, write_refusal(&call->refusals[r]));
    return json_pack(
        "{s:s,s:s,s:s,s:s?,s:i,s:i,s:s,s:s,s:s,s:I,s:o,s:o,s:o,s:s,s:b,s:o,s:o}", "name", node->name, "op",
        sl_op_name(node->desc.head.op), "precision", get_precision(node), "file", place.file, "line", place.line,
        "column", place.column, "backend", sl_backend_get_id(call->backend), "variant", call->variant, "device",
        sl_backend_get_device(call->backend, call->device)->device_class, "params",
        (json_int_t)sl_call_param_elems(graph, call), "cost_ns", write_ns(cost, cost->forward_ns + cost->backward_ns),
        "forward_ns", write_ns(cost, cost->forward_ns), "backward_ns", write_ns(cost, cost->backward_ns), "cost_from",
        sl_cost_source_get_name(cost->source), "fallback", call->fallback, "others", rivals, "refused", refused);
}

static json_t *write_devices(const struct sl_plan *plan)
{
    json_t *devices = json_array();
    for (int32_t d = 0; d < plan->device_count; d++)
        devices = sl_json_add(devices, json_pack("{s:s,s:s,s:s}", "backend", plan->devices[d].backend, "class",
                                                 plan->devices[d].device_class, "name", plan->devices[d].name));
    return devices;
}

static json_t *write_layers(const struct sl_plan *plan)
{
    json_t *layers = json_array();
    for (int32_t c = 0; c < plan->call_count; c++)
        layers = sl_json_add(layers, write_call(plan->graph, &plan->calls[c]));
    return layers;
}

static json_t *write_copies(const struct sl_plan *plan)
{
    json_t *list = json_array();
    const int32_t count = sl_plan_list_copies(plan, NULL, 0);
    struct sl_copy *copies = count > 0 ? calloc((size_t)count, sizeof *copies) : NULL;
    if (copies)
        sl_plan_list_copies(plan, copies, count);
    else if (count > 0)
        list = sl_json_add(list, NULL);
    for (int32_t k = 0; copies && k < count; k++)
        list = sl_json_add(list, json_pack("{s:s,s:s,s:s,s:I}", "tensor", copies[k].tensor->name, "from",
                                           copies[k].from, "to", copies[k].to, "bytes", (json_int_t)copies[k].bytes));
    free(copies);
    return list;
}

static json_t *write_casts(const struct sl_plan *plan)
{
    json_t *list = json_array();
    const int32_t count = sl_plan_list_casts(plan, NULL, 0);
    struct sl_cast *casts = count > 0 ? calloc((size_t)count, sizeof *casts) : NULL;
    if (casts)
        sl_plan_list_casts(plan, casts, count);
    else if (count > 0)
        list = sl_json_add(list, NULL);
    for (int32_t k = 0; casts && k < count; k++)
        list = sl_json_add(list, json_pack("{s:s,s:s,s:s,s:s,s:I}", "tensor", casts[k].tensor->name, "layer",
                                           casts[k].call->node->name, "from", sl_dtype_name(casts[k].from), "to",
                                           sl_dtype_name(casts[k].to), "bytes", (json_int_t)casts[k].bytes));
    free(casts);
    return list;
}

static json_t *write_capture(const struct sl_plan *plan)
{
    const struct sl_capture capture = sl_plan_find_capture(plan);
    return json_pack("{s:b,s:b,s:o}", "possible", capture.possible, "update", capture.with_update, "reason",
                     capture.with_update ? json_null() : json_string(capture.reason));
}

/* null: whole steps were not compared. */
static json_t *write_whole_steps(const struct sl_whole_steps *steps)
{
    if (steps->source == SL_COST_NONE)
        return json_null();
    json_t *other = json_array();
    for (int32_t k = 0; k < steps->other_count; k++)
        other = sl_json_add(other, json_pack("{s:s,s:s,s:s}", "name", steps->other[k].node, "backend",
                                             steps->other[k].backend, "variant", steps->other[k].variant));
    return json_pack("{s:I,s:I,s:s,s:b,s:o}", "step_ns", (json_int_t)steps->chosen_ns, "other_step_ns",
                     (json_int_t)steps->other_ns, "from", sl_cost_source_get_name(steps->source), "overturned",
                     steps->overturned, "other", other);
}

static const char *const phase_names[] = {
    [SL_PHASE_TRAIN] = "train", [SL_PHASE_EVALUATE] = "evaluate", [SL_PHASE_PREDICT] = "predict"};

static const char *const policy_names[] = {
    [SL_POLICY_MEASURED] = "measured", [SL_POLICY_ESTIMATE] = "estimate", [SL_POLICY_ORDER] = "order"};

static json_t *write_memory(const struct sl_plan_memory *memory)
{
    const struct {
        const char *key;
        int64_t bytes;
    } parts[] = {{"weights_bytes", memory->weights_bytes},
                 {"gradients_bytes", memory->gradients_bytes},
                 {"optimizer_bytes", memory->optimizer_bytes},
                 {"activations_bytes", memory->activations_bytes},
                 {"workspace_bytes", memory->workspace_bytes},
                 {"backends_bytes", memory->backends_bytes},
                 {"batches_bytes", memory->batches_bytes},
                 {"decoding_bytes", memory->decoding_bytes},
                 {"checkpoint_bytes", memory->checkpoint_bytes},
                 {"test_bytes", memory->test_bytes},
                 {"process_bytes", memory->process_bytes},
                 {"reached_bytes", memory->reached_bytes},
                 {"peak_bytes", memory->peak_bytes}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        object = sl_json_put(object, parts[i].key, json_integer(parts[i].bytes));
    return object;
}

/* The backends of a decoder that runs step by step. */
static json_t *write_pair(const struct sl_plan_pair *pair)
{
    const struct sl_plan *const plans[] = {pair->encoder, pair->step};
    json_t *layers = json_array();
    for (int p = 0; p < 2; p++)
        for (int32_t c = 0; c < plans[p]->call_count; c++)
            layers = sl_json_add(layers, json_pack("{s:s,s:s,s:s}", "name", plans[p]->calls[c].node->name, "backend",
                                                   sl_backend_get_id(plans[p]->calls[c].backend), "variant",
                                                   plans[p]->calls[c].variant));
    return json_pack("{s:o}", "layers", layers);
}

seqlstm_status sl_plan_write_json(const struct sl_plan *plan, const struct sl_plan_beside *beside, struct sl_buf *out,
                                  struct seqlstm_error *err)
{
    const struct sl_plan_memory memory = sl_plan_sum_memory(plan, beside);
    const struct sl_plan *evaluate = beside->evaluate;
    const struct sl_envelope *envelope = &plan->graph->facts.envelope;
    json_t *updates = json_array();
    for (int32_t v = 0; v < plan->vector_count; v++)
        updates = sl_json_add(updates, json_pack("{s:s,s:s}", "op", sl_op_name(plan->vectors[v].desc->head.op),
                                                 "backend", sl_backend_get_id(plan->vectors[v].backend)));
    json_t *root =
        json_pack("{s:s,s:s,s:s,s:b,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:{s:I,s:I,s:I},s:o}", "schema", "seqlstm.plan/1",
                  "phase", phase_names[plan->graph->phase], "policy", policy_names[plan->policy], "replayed",
                  plan->replayed, "threads", plan->threads, "devices", write_devices(plan), "layers",
                  write_layers(plan), "updates", updates, "copies", write_copies(plan), "casts", write_casts(plan),
                  "capture", write_capture(plan), "envelope", "sequences", (json_int_t)envelope->sequences, "steps",
                  (json_int_t)envelope->steps, "rows", (json_int_t)envelope->rows, "memory", write_memory(&memory));
    root = sl_json_put(root, "whole_steps", write_whole_steps(&plan->whole_steps));
    if (evaluate)
        root = sl_json_put(root, "evaluate",
                           json_pack("{s:o,s:o}", "layers", write_layers(evaluate), "whole_steps",
                                     write_whole_steps(&evaluate->whole_steps)));
    if (beside->decoding.step)
        root = sl_json_put(root, "decoding", write_pair(&beside->decoding));
    if (beside->sampling.step)
        root = sl_json_put(root, "sampling", write_pair(&beside->sampling));
    const struct sl_loop *loop = &plan->graph->loop;
    if (loop->count > 0)
        root = sl_json_put(root, "loop",
                           json_pack("{s:s,s:s}", "first", plan->graph->nodes[loop->first].name, "last",
                                     plan->graph->nodes[loop->first + loop->count - 1].name));
    if (!sl_json_append_tree(out, root, JSON_REAL_PRECISION(4)))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan's JSON");
    return SEQLSTM_OK;
}
