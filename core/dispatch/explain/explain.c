/* SPDX-License-Identifier: Apache-2.0 */
/* What the table and the JSON of a plan share. See explain.h. */
#include "dispatch/explain/explain.h"

#include <string.h>

int64_t sl_call_param_elems(const struct sl_graph *graph, const struct sl_call *call)
{
    int64_t elems = 0;
    for (int32_t s = 0; s < call->node->slot_count; s++) {
        int32_t t = call->node->slots[s];
        if (t < 0 || graph->tensors[t].role != SL_TENSOR_PARAM)
            continue;
        const struct sl_param *param = &graph->params[graph->tensors[t].owner];
        if (param->layer == call->node->layer) /* a tied matrix counts in the layer that owns it */
            elems += param->rows * param->columns;
    }
    return elems;
}

const char *sl_cost_source_get_name(enum sl_cost_source source)
{
    static const char *const names[] = {
        [SL_COST_NONE] = "none",         [SL_COST_GUESS] = "guess",  [SL_COST_BOUND] = "bound",
        [SL_COST_ESTIMATE] = "estimate", [SL_COST_CACHED] = "cache", [SL_COST_STORED] = "stored",
        [SL_COST_MEASURED] = "measured"};
    return names[source];
}

/* What the plan's executor and its backends allocate; parameters exist already. */
static int64_t count_buffers(const struct sl_plan_memory *memory)
{
    return memory->activations_bytes + memory->workspace_bytes + memory->backends_bytes + memory->batches_bytes;
}

static int64_t count_pair(const struct sl_plan_pair *pair)
{
    if (pair->step == NULL)
        return 0;
    return count_buffers(&pair->encoder->memory) + count_buffers(&pair->step->memory) + pair->own_bytes;
}

static void add_evaluation(struct sl_plan_memory *sum, const struct sl_plan *evaluate)
{
    const struct sl_plan_memory *more = &evaluate->memory;
    sum->activations_bytes += more->activations_bytes;
    sum->workspace_bytes += more->workspace_bytes;
    sum->backends_bytes += more->backends_bytes;
    sum->batches_bytes += more->batches_bytes;
    sum->peak_bytes += count_buffers(more);
}

/* At the end the test split is evaluated while everything else still exists, with its own decoder instead of the
 * validation's. After a validation, the backends' own memory is there already. */
static int64_t count_test(const struct sl_plan *plan, const struct sl_plan_beside *beside)
{
    if (beside->test)
        return count_buffers(&beside->test->memory) + count_pair(&beside->test_decoding);
    if (beside->evaluate && plan->graph->model->data.splits[SL_SPLIT_TEST].origin != SL_SOURCE_NONE)
        return count_buffers(&beside->evaluate->memory) - beside->evaluate->memory.backends_bytes;
    return 0;
}

struct sl_plan_memory sl_plan_sum_memory(const struct sl_plan *plan, const struct sl_plan_beside *beside)
{
    struct sl_plan_memory sum = plan->memory;
    sum.decoding_bytes = count_pair(&beside->decoding) + count_pair(&beside->sampling);
    sum.peak_bytes += sum.decoding_bytes;
    if (beside->evaluate)
        add_evaluation(&sum, beside->evaluate);
    sum.test_bytes = count_test(plan, beside);
    if (sum.test_bytes > sum.checkpoint_bytes)
        sum.peak_bytes += sum.test_bytes - sum.checkpoint_bytes;
    /* The weights of a run are read from a file before anything else: then the file is in memory, too. */
    const int64_t reading = sum.process_bytes + 2 * sum.weights_bytes;
    if (plan->graph->phase == SL_PHASE_EVALUATE && sum.reached_bytes < reading)
        sum.reached_bytes = reading;
    if (sum.peak_bytes < sum.reached_bytes)
        sum.peak_bytes = sum.reached_bytes;
    return sum;
}

/* The domain in which a tensor is written before call `reader`; NULL: no other call writes it. */
static const char *find_domain(const struct sl_plan *plan, int32_t t, int32_t reader)
{
    enum sl_tensor_role role = plan->graph->tensors[t].role;
    if (role == SL_TENSOR_INPUT || role == SL_TENSOR_TARGET || role == SL_TENSOR_WEIGHT)
        return "host";
    for (int32_t c = reader - 1; role == SL_TENSOR_ACTIVATION && c >= 0; c--)
        if (sl_node_uses(plan->calls[c].node, t))
            return sl_call_get_domain(&plan->calls[c]);
    return NULL;
}

int32_t sl_plan_list_copies(const struct sl_plan *plan, struct sl_copy *out_copies, int32_t capacity)
{
    int32_t count = 0;
    for (int32_t c = 0; c < plan->call_count; c++)
        for (int32_t s = 0; s < plan->calls[c].node->slot_count; s++) {
            int32_t t = plan->calls[c].node->slots[s];
            const char *from = t >= 0 ? find_domain(plan, t, c) : NULL, *to = sl_call_get_domain(&plan->calls[c]);
            if (from == NULL || strcmp(from, to) == 0)
                continue;
            const struct sl_tensor *tensor = &plan->graph->tensors[t];
            int64_t rows = sl_graph_get_rows(plan->graph, tensor);
            if (count < capacity)
                out_copies[count] = (struct sl_copy){tensor, from, to, rows * tensor->features * 4};
            count++;
        }
    return count;
}

/* Does a call before `reader` write the tensor, or does the batch contain it? */
static bool is_given(const struct sl_plan *plan, int32_t t, int32_t reader)
{
    bool given = plan->graph->tensors[t].role == SL_TENSOR_INPUT;
    for (int32_t c = 0; c < reader && !given; c++)
        for (int32_t s = 0; s < plan->calls[c].node->slot_count; s++)
            given = given || plan->calls[c].node->slots[s] == t;
    return given;
}

int32_t sl_plan_list_casts(const struct sl_plan *plan, struct sl_cast *out_casts, int32_t capacity)
{
    int32_t count = 0;
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_node *node = plan->calls[c].node;
        const uint32_t type = node->desc.head.dtype_compute;
        if (type == SEQLSTM_DTYPE_FLOAT32 || type == SEQLSTM_DTYPE_TF32) /* tf32 rounds inside products */
            continue;
        for (int32_t s = 0; s < node->slot_count; s++) {
            const int32_t t = node->slots[s];
            const struct sl_tensor *tensor = t >= 0 ? &plan->graph->tensors[t] : NULL;
            if (tensor == NULL || tensor->dtype != SEQLSTM_DTYPE_FLOAT32 ||
                (tensor->role != SL_TENSOR_ACTIVATION && tensor->role != SL_TENSOR_INPUT))
                continue;
            const bool reads = is_given(plan, t, c);
            if (count < capacity)
                out_casts[count] =
                    (struct sl_cast){.tensor = tensor,
                                     .call = &plan->calls[c],
                                     .from = reads ? SEQLSTM_DTYPE_FLOAT32 : type,
                                     .to = reads ? type : SEQLSTM_DTYPE_FLOAT32,
                                     .bytes = sl_graph_get_rows(plan->graph, tensor) * tensor->features * 4};
            count++;
        }
    }
    return count;
}
