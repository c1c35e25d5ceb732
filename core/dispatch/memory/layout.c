/* SPDX-License-Identifier: Apache-2.0 */
/* Places buffers by their life times.
 *
 * Time runs from 0 to n-1 over the calls forward and, in training, from n to 2n-1 backward: the backward of call i is
 * at 2n-1-i.
 *
 *   activation   from its producer to its last reader; in training to the last backward that reads it
 *   gradient     from the first backward of a reader to the backward of its producer
 *
 * All calls of a unit, such as a loop, count as one: what they use lives as long as the unit, forward and backward.
 *
 * Each block gets the lowest offset at which it overlaps no block that lives at the same time (first fit, in the order
 * in which lives begin). Reserves are written forward and read backward, so they never share memory.
 */
#include "dispatch/memory/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/alignment.h"
#include "base/memory/arena.h"
#include "base/value/checked.h"
#include "base/operation/op_signature.h"
#include "dispatch/plan/capture.h"
#include "registry/watch/fence.h"

struct block {
    int32_t tensor; /* -1: scratch gradient */
    bool is_grad;
    int32_t begin, end; /* life, both ends included */
    int64_t bytes;
    int64_t offset;
};

int64_t sl_plan_get_tensor_bytes(const struct sl_plan *plan, int32_t t)
{
    const struct sl_tensor *tensor = &plan->graph->tensors[t];
    return sl_align(sl_graph_get_rows(plan->graph, tensor) * tensor->features * sl_dtype_bytes(tensor->dtype));
}

static bool lives_in_buffer(const struct sl_tensor *tensor)
{
    return tensor->role == SL_TENSOR_ACTIVATION || tensor->role == SL_TENSOR_STATE_OUT ||
           tensor->role == SL_TENSOR_MEMORY_OUT;
}

static void widen(struct block *block, int32_t begin, int32_t end)
{
    if (block->begin < 0 || begin < block->begin)
        block->begin = begin;
    if (end > block->end)
        block->end = end;
}

/* The first and the last of the calls that run as one with call c. */
static void find_round(const struct sl_plan *plan, const struct sl_call *calls, int32_t c, int32_t *out_first,
                       int32_t *out_last)
{
    const struct sl_unit unit = sl_plan_find_unit(plan->graph, calls, plan->call_count, c);
    *out_first = unit.first;
    *out_last = unit.end - 1;
}

/* Finds the lives of all values and gradients. A block that no call uses keeps end = -1. */
static void collect(const struct sl_plan *plan, const struct sl_call *calls, struct block *blocks, struct block *grads)
{
    const struct sl_graph *graph = plan->graph;
    int32_t n = plan->call_count;
    for (int32_t t = 0; t < graph->tensor_count; t++) {
        blocks[t] = (struct block){
            .tensor = t, .begin = -1, .end = -1, .bytes = sl_plan_get_tensor_bytes(plan, t) + SL_FENCE_BYTES};
        grads[t] = blocks[t];
        grads[t].is_grad = true;
    }
    for (int32_t c = 0; c < n; c++) {
        const struct sl_node *node = calls[c].node;
        int32_t first, last;
        find_round(plan, calls, c, &first, &last);
        int32_t back = node->needs_backward ? 2 * n - 1 - first : last;
        for (int32_t s = 0; s < node->slot_count; s++) {
            int32_t t = node->slots[s];
            if (t < 0 || !lives_in_buffer(&graph->tensors[t]))
                continue;
            widen(&blocks[t], first, back);
            if (graph->tensors[t].needs_grad && node->needs_backward)
                widen(&grads[t], 2 * n - 1 - last, back);
            if (t == graph->output || graph->tensors[t].role == SL_TENSOR_STATE_OUT ||
                graph->tensors[t].role == SL_TENSOR_MEMORY_OUT)
                blocks[t].end = 2 * n;
        }
    }
}

/* The initial values of a loop are no slots of its calls, but its calls read them. */
static void collect_initial(const struct sl_plan *plan, const struct sl_call *calls, struct block *blocks,
                            struct block *grads)
{
    const struct sl_loop *loop = &plan->graph->loop;
    int32_t n = plan->call_count, begin = 0, first, last;
    while (begin < n && !sl_call_is_in_loop(plan->graph, &calls[begin]))
        begin++;
    for (int32_t k = 0; begin < n && k < loop->carry_count; k++) {
        int32_t t = loop->carries[k].initial;
        find_round(plan, calls, begin, &first, &last);
        if (t < 0 || !lives_in_buffer(&plan->graph->tensors[t]))
            continue;
        bool back = plan->graph->tensors[t].needs_grad;
        widen(&blocks[t], first, back ? 2 * n - 1 - first : last);
        if (back)
            widen(&grads[t], 2 * n - 1 - last, 2 * n - 1 - first);
    }
}

static int compare_birth(const void *a, const void *b)
{
    const struct block *x = *(const struct block *const *)a, *y = *(const struct block *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->is_grad != y->is_grad)
        return x->is_grad ? 1 : -1;
    return x->tensor < y->tensor ? -1 : 1;
}

/* First fit: the lowest offset at which it overlaps no placed block that lives at the same time. */
static int64_t place(struct block *const *placed, int32_t placed_count, const struct block *block)
{
    int64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t p = 0; p < placed_count; p++) {
            const struct block *other = placed[p];
            if (other->end < block->begin || block->end < other->begin || other->offset + other->bytes <= offset ||
                offset + block->bytes <= other->offset)
                continue;
            offset = other->offset + other->bytes;
            moved = true;
        }
    }
    return offset;
}

static int32_t count_touches(const struct sl_plan *plan, const struct sl_call *calls, int32_t t)
{
    int32_t touches = 0;
    for (int32_t c = 0; c < plan->call_count; c++)
        for (int32_t s = 0; s < calls[c].node->slot_count; s++)
            touches += calls[c].node->slots[s] == t;
    return touches;
}

/* The gradient of a tensor that several calls read, or that is read at several steps, is a sum: each later part is
 * computed in a scratch buffer and added. It has room for all such inputs of one call. */
static int64_t scratch_bytes(const struct sl_plan *plan, const struct sl_call *calls, const struct block *grads)
{
    int64_t most = 0;
    for (int32_t c = 0; c < plan->call_count; c++) {
        int64_t bytes = 0;
        for (int32_t s = 0; s < calls[c].node->slot_count; s++) {
            int32_t t = calls[c].node->slots[s];
            if (t >= 0 && sl_call_is_in_loop(plan->graph, &calls[c]) && plan->graph->tensors[t].needs_grad)
                bytes += sl_plan_get_tensor_bytes(plan, t);
            else if (t >= 0 && grads[t].end >= 0 && count_touches(plan, calls, t) > 2)
                bytes += grads[t].bytes;
        }
        if (bytes > most)
            most = bytes;
    }
    return most;
}

/* All calls share one workspace. */
static void count_workspace(const struct seqlstm_sizes *sizes, int64_t *io_most)
{
    const int64_t bytes = (int64_t)sizes->workspace_bytes;
    *io_most = bytes > *io_most ? bytes : *io_most;
}

static void sum_calls(struct sl_plan *plan, struct sl_call *calls)
{
    int64_t workspace = 0;
    for (int32_t c = 0; c < plan->call_count; c++) {
        struct sl_call *call = &calls[c];
        call->reserve_offset = call->packed_offset = -1;
        if (call->sizes.reserve_bytes) {
            call->reserve_offset = plan->reserve_bytes;
            const int64_t reserves = sl_call_count_reserves(plan, call);
            plan->reserve_bytes += reserves * sl_align((int64_t)call->sizes.reserve_bytes);
        }
        if (call->sizes.packed_bytes) {
            call->packed_offset = plan->packed_bytes;
            plan->packed_bytes += sl_align((int64_t)call->sizes.packed_bytes);
        }
        count_workspace(&call->sizes, &workspace);
        plan->memory.backends_bytes += (int64_t)call->own_bytes;
    }
    for (int32_t v = 0; v < plan->vector_count; v++)
        count_workspace(&plan->vectors[v].sizes, &workspace);
    plan->workspace_bytes = sl_align(workspace);
}

/* Memory for batches in the domain of calls[first]: every field of the graph. In training also copies for the next
 * batches of the fields that calls there read: two on the device and one in pinned memory. If steps are captured, a
 * ring of slots with all fields, on the device and in pinned memory. */
enum { RING_SLOTS = 2 };

static int64_t count_domain_batches(const struct sl_plan *plan, const struct sl_call *calls, int32_t first)
{
    const struct sl_graph *graph = plan->graph;
    const char *domain = sl_call_get_domain(&calls[first]);
    const int64_t ring = sl_plan_find_capture(plan).possible ? RING_SLOTS : 0;
    int64_t all = 0;
    for (int32_t t = 0; t < graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &graph->tensors[t];
        bool is_staged = tensor->role >= SL_TENSOR_INPUT && tensor->role <= SL_TENSOR_SOURCE;
        bool is_field = sl_tensor_role_is_field(tensor->role), is_read = false;
        int64_t bytes = sl_align(sl_graph_get_rows(graph, tensor) * tensor->features * sl_dtype_bytes(tensor->dtype));
        for (int32_t c = first; c < plan->call_count && is_staged && graph->phase == SL_PHASE_TRAIN; c++)
            is_read = is_read || (sl_node_uses(calls[c].node, t) && strcmp(sl_call_get_domain(&calls[c]), domain) == 0);
        all += is_field ? bytes * ((is_read ? 4 : 1) + 2 * ring) : 0;
    }
    return all;
}

static int64_t count_batches(const struct sl_plan *plan, const struct sl_call *calls)
{
    int64_t bytes = 0;
    for (int32_t c = 0; c < plan->call_count; c++) {
        bool is_new = strcmp(sl_call_get_domain(&calls[c]), "host") != 0;
        for (int32_t before = 0; before < c && is_new; before++)
            is_new = strcmp(sl_call_get_domain(&calls[before]), sl_call_get_domain(&calls[c])) != 0;
        bytes += is_new ? count_domain_batches(plan, calls, c) : 0;
    }
    return bytes;
}

static void sum_memory(struct sl_plan *plan, const struct sl_call *calls, int32_t optimizer_states)
{
    const struct sl_graph *graph = plan->graph;
    int64_t weights = 0, states = 0, memories = 0;
    for (int32_t p = 0; p < graph->param_count; p++)
        weights += sl_align(graph->params[p].rows * graph->params[p].columns * 4);
    for (int32_t c = 0; c < plan->call_count; c++)
        states += 4 * sl_call_count_piece_states(graph, &calls[c]);
    for (int32_t s = 0; s < graph->state_count; s++)
        states += sl_align(graph->facts.envelope.sequences * graph->states[s].features * 4);
    for (int32_t m = 0; m < graph->memory_count; m++)
        if (graph->memories[m].tensor_in >= 0)
            memories += sl_plan_get_tensor_bytes(plan, graph->memories[m].tensor_in);
    struct sl_plan_memory *memory = &plan->memory;
    bool training = graph->phase == SL_PHASE_TRAIN;
    memory->weights_bytes = weights;
    memory->gradients_bytes = training ? weights : 0;
    memory->optimizer_bytes = training ? weights * optimizer_states : 0;
    memory->checkpoint_bytes = training ? weights + memory->optimizer_bytes : 0;
    memory->activations_bytes = plan->activation_bytes + plan->reserve_bytes + states + memories;
    memory->workspace_bytes = plan->workspace_bytes + plan->packed_bytes;
    memory->batches_bytes = count_batches(plan, calls);
    memory->peak_bytes = memory->weights_bytes + memory->gradients_bytes + memory->optimizer_bytes +
                         memory->activations_bytes + memory->workspace_bytes + memory->backends_bytes +
                         memory->batches_bytes + memory->checkpoint_bytes;
}

void sl_plan_set_process(struct sl_plan *plan, int64_t resident_bytes, int64_t reached_bytes)
{
    struct sl_plan_memory *memory = &plan->memory;
    memory->peak_bytes += resident_bytes - memory->process_bytes;
    memory->process_bytes = resident_bytes;
    memory->reached_bytes = reached_bytes;
}

seqlstm_status sl_plan_lay_out(struct sl_plan *plan, struct sl_call *calls, int32_t optimizer_states,
                               struct seqlstm_error *err)
{
    int32_t tensors = plan->graph->tensor_count;
    int64_t *offsets = SL_ARENA_ARRAY(plan->arena, int64_t, (size_t)tensors);
    int64_t *grad_offsets = SL_ARENA_ARRAY(plan->arena, int64_t, (size_t)tensors);
    struct block *blocks = calloc((size_t)tensors * 2 + 1, sizeof *blocks);
    struct block **order = calloc((size_t)tensors * 2 + 1, sizeof *order);
    struct block **placed = calloc((size_t)tensors * 2 + 1, sizeof *placed);
    if (!offsets || !grad_offsets || !blocks || !order || !placed) {
        free(blocks);
        free(order);
        free(placed);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    struct block *grads = blocks + tensors, *scratch = blocks + 2 * tensors;
    collect(plan, calls, blocks, grads);
    collect_initial(plan, calls, blocks, grads);
    *scratch = (struct block){.tensor = -1,
                              .is_grad = true,
                              .begin = plan->call_count,
                              .end = 2 * plan->call_count,
                              .bytes = scratch_bytes(plan, calls, grads)};
    int32_t count = 0, placed_count = 0;
    for (int32_t k = 0; k < 2 * tensors + 1; k++)
        if (blocks[k].end >= 0 && blocks[k].bytes > 0)
            order[count++] = &blocks[k];
    qsort(order, (size_t)count, sizeof *order, compare_birth);
    for (int32_t k = 0; k < count; k++) {
        order[k]->offset = place(placed, placed_count, order[k]);
        placed[placed_count++] = order[k];
        if (order[k]->offset + order[k]->bytes > plan->activation_bytes)
            plan->activation_bytes = order[k]->offset + order[k]->bytes;
    }
    for (int32_t t = 0; t < tensors; t++) {
        offsets[t] = blocks[t].end >= 0 ? blocks[t].offset : -1;
        grad_offsets[t] = grads[t].end >= 0 ? grads[t].offset : -1;
    }
    plan->scratch_grad_offset = scratch->bytes > 0 ? scratch->offset : -1;
    plan->scratch_grad_bytes = scratch->bytes;
    plan->tensor_offsets = offsets;
    plan->grad_offsets = grad_offsets;
    free(blocks);
    free(order);
    free(placed);
    sum_calls(plan, calls);
    sum_memory(plan, calls, optimizer_states);
    return SEQLSTM_OK;
}
