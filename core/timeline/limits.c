/* SPDX-License-Identifier: Apache-2.0 */
/* See limits.h. */
#include "timeline/limits.h"

#include <string.h>

#include "base/operation/op_signature.h"
#include "measure/flops.h"

static const double bound = 0.5;        /* of a peak: the part is limited by it */
static const double beyond = 1.1;       /* of the peak of memory: the memory is not what serves it */
static const double small_ns = 100e3;   /* a call that takes less is small */
static const double counted_flop = 1e4; /* of a call; with fewer, the speed says nothing */

static const struct sl_call *find_call(const struct sl_plan *plan, const char *name)
{
    for (int32_t c = 0; name && c < plan->call_count; c++)
        if (strcmp(plan->calls[c].node->name, name) == 0)
            return &plan->calls[c];
    return NULL;
}

/* Bytes of the node's parameters, and of what it reads and writes in each row. */
static void count_bytes(const struct sl_graph *graph, const struct sl_node *node, double *out_fixed, double *out_row)
{
    const enum sl_axis axis = sl_graph_get_axis(graph, node);
    *out_fixed = *out_row = 0;
    for (int32_t s = 0; s < node->slot_count; s++) {
        if (node->slots[s] < 0)
            continue;
        const struct sl_tensor *tensor = &graph->tensors[node->slots[s]];
        const double bytes = (double)tensor->features * (double)sl_dtype_bytes(tensor->dtype);
        if (tensor->role == SL_TENSOR_PARAM)
            *out_fixed += (double)tensor->rows * bytes;
        else if (tensor->axis == axis)
            *out_row += bytes;
    }
}

/* An embedding reads the rows of its tokens, not the whole table. */
static bool reads_all(const struct sl_node *node)
{
    return node->desc.head.op != SEQLSTM_OP_EMBEDDING;
}

double sl_timeline_find_peak(const struct sl_timeline_peaks *peaks, const struct sl_call *call)
{
    const uint32_t type = call->node->desc.head.dtype_compute;
    if (type == SEQLSTM_DTYPE_BFLOAT16)
        return peaks->tiles_gflops;
    if (type == SEQLSTM_DTYPE_TF32)
        return peaks->tiles_gflops / SL_TIMELINE_TF32_PRODUCTS;
    return sl_call_uses_tiles(call) ? peaks->tiles_gflops / SL_TIMELINE_FLOAT32_PRODUCTS : peaks->gflops;
}

static void count_call(const struct sl_timeline_request *request, const struct sl_call *call,
                       struct sl_timeline_part *part)
{
    const struct sl_graph *graph = request->plan->graph;
    const bool backward = part->kind == SL_ACTIVITY_BACKWARD;
    const struct sl_node *node = call->node;
    const bool has_input = node->slot_count > 0 && node->slots[0] >= 0;
    const bool input_grad = has_input && graph->tensors[node->slots[0]].needs_grad;
    double fixed, row;
    count_bytes(graph, node, &fixed, &row);
    part->variant = call->variant;
    part->on_device = strcmp(sl_call_get_domain(call), "host") != 0;
    if (part->kind == SL_ACTIVITY_PACK) {
        part->bytes = 2 * fixed * (double)part->count;
        return;
    }
    part->peak_gflops = sl_timeline_find_peak(&request->peaks, call);
    part->flop = sl_flops_count(node, part->amount, backward, input_grad);
    part->bytes =
        (backward ? 2 : 1) * ((reads_all(node) ? fixed * (double)part->count : 0) + row * (double)part->amount);
}

/* Floats that a flat operation moves for each element. */
static double count_floats(const char *name, int32_t states)
{
    if (strcmp(name, sl_op_name(SEQLSTM_OP_OPTIMIZER)) == 0)
        return 3 + 2 * (double)states; /* gradient read; parameter and states read and written */
    return strcmp(name, sl_op_name(SEQLSTM_OP_SQUARED_NORM)) == 0 ? 1 : 3;
}

static const struct sl_vector_call *find_vector(const struct sl_plan *plan, const char *name)
{
    for (int32_t v = 0; v < plan->vector_count; v++)
        if (strcmp(sl_op_name(plan->vectors[v].desc->head.op), name) == 0)
            return &plan->vectors[v];
    return NULL;
}

/* What the device does after the last update, such as the step that has been started ahead, does not count. */
static void add_device_times(struct sl_timeline *timeline)
{
    const struct sl_trace *trace = timeline->request.trace;
    for (int32_t t = 0; t < trace->track_count; t++)
        for (int64_t a = 0; trace->tracks[t].is_device && a < trace->tracks[t].count; a++) {
            const struct sl_activity *activity = &trace->tracks[t].activities[a];
            const int64_t end = activity->end_ns < timeline->end_ns ? activity->end_ns : timeline->end_ns;
            for (int32_t p = 1; p < timeline->part_count && activity->begin_ns >= timeline->begin_ns; p++) {
                struct sl_timeline_part *part = &timeline->parts[p];
                if (part->kind == activity->kind && part->depth == 1 && part->name && activity->name &&
                    strcmp(part->name, activity->name) == 0) {
                    part->device_ns += end > activity->begin_ns ? (double)(end - activity->begin_ns) : 0;
                    part->on_device = true;
                    break;
                }
            }
        }
}

static void judge(const struct sl_timeline_peaks *peaks, struct sl_timeline_part *part)
{
    const double ns = sl_timeline_part_get_cost(part);
    if (!(ns > 0))
        return;
    part->gflops = part->flop / ns;
    part->gbytes = part->bytes / ns;
    if (part->on_device || !(peaks->gflops > 0) || !(peaks->gbytes > 0))
        return;
    const bool counts = part->flop / (double)part->count >= counted_flop && part->peak_gflops > 0;
    const double compute = counts ? part->gflops / part->peak_gflops : 0, memory = part->gbytes / peaks->gbytes;
    part->of_peak = compute > memory ? compute : memory;
    if (compute >= bound && compute >= memory)
        part->limit = SL_LIMIT_COMPUTE;
    else if (memory > beyond)
        part->limit = SL_LIMIT_CACHE;
    else if (memory >= bound)
        part->limit = SL_LIMIT_MEMORY;
    else if (part->flop > 0 || part->bytes > 0)
        part->limit = ns / (double)part->count < small_ns ? SL_LIMIT_SIZE : SL_LIMIT_NEITHER;
}

void sl_timeline_judge(struct sl_timeline *timeline)
{
    const struct sl_plan *plan = timeline->request.plan;
    add_device_times(timeline);
    for (int32_t p = 1; p < timeline->part_count; p++) {
        struct sl_timeline_part *part = &timeline->parts[p];
        const struct sl_call *call = find_call(plan, part->name);
        if (sl_timeline_part_is_call(part) && call && part->depth == 1)
            count_call(&timeline->request, call, part);
        else if (part->kind == SL_ACTIVITY_OPTIMIZER && find_vector(plan, part->name))
            part->bytes = 4 * count_floats(part->name, timeline->request.optimizer_states) * (double)part->amount;
        else if (part->kind == SL_ACTIVITY_COPY)
            part->bytes = (double)part->amount;
        judge(&timeline->request.peaks, part);
    }
}
