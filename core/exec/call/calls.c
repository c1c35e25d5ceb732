/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared calls, forward and backward.
 *
 * Gradients of a tensor with several readers are added up here: the first reader (the last in forward order) writes the
 * gradient, later ones write to a scratch gradient, which is added to it. The gradient of a parameter is overwritten by
 * its first writer in a step and added to by others (a tied matrix), unless the step accumulates: then all add.
 */
#include "exec/call/calls.h"

#include "base/memory/alignment.h"
#include "base/system/clock.h"
#include "dispatch/plan/blame.h"
#include "exec/call/fences.h"
#include "exec/call/param_grads.h"
#include "exec/call/piece_states.h"
#include "exec/place/place.h"
#include "exec/rows.h"
#include "exec/update/vectors.h"
#include "registry/call_time.h"
#include "registry/plugin.h"
#include "registry/watch/fence.h"

static struct sl_exec_place *get_place(struct sl_exec *exec, int32_t c)
{
    return &exec->places[exec->calls[c].place];
}

static struct seqlstm_queue *get_queue(struct sl_exec *exec, int32_t c)
{
    return &get_place(exec, c)->domain->queue.queue;
}

/* Weights whose packed form is not that of the present ones. A capture packs at every launch. */
static seqlstm_status pack(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    struct sl_exec_call *own = &exec->calls[c];
    const struct seqlstm_backend *table = sl_backend_get_table(call->backend);
    uint64_t version = exec->params->version + 1; /* 0 means never */
    if (exec->loop.step > 0 || exec->pieces.running >= 0 || call->packed_offset < 0 || table->weights_pack == NULL ||
        (own->packed_version == version && !own->repacks && !sl_exec_is_recording(exec)))
        return SEQLSTM_OK;
    char *packed = get_place(exec, c)->packed + call->packed_offset;
    struct sl_fence fence;
    struct sl_domain *domain = get_place(exec, c)->domain;
    sl_fence_begin(&fence, own->place == SL_PLACE_HOST ? packed : NULL, call->sizes.packed_bytes);
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_PACK, call->node->name);
    seqlstm_status status = sl_plugin_pack(table, call->op, get_queue(exec, c), own->slots, packed, &exec->step, err);
    if (status == SEQLSTM_OK)
        status = sl_fence_end(&fence, table, SL_FUNCTION_WEIGHTS_PACK, "packed weights", err);
    sl_call_time_end(&time, domain, SL_ACTIVITY_PACK, call->node->name, table->id, 0);
    if (status != SEQLSTM_OK)
        return sl_plan_blame(call, SL_FUNCTION_WEIGHTS_PACK, status, err);
    own->packed_version = version;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_pack_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const int64_t begin = exec->piece_times ? sl_clock_ns() : 0;
    SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
    SEQLSTM_TRY(pack(exec, c, err));
    if (exec->piece_times)
        exec->piece_times->packs[c] += (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

/* The slot of the state that a final one (with `back` an initial one) belongs to; -1: slot s is none. */
static int32_t find_state(const struct sl_node *node, int32_t s, bool back)
{
    if (node->desc.head.op != SEQLSTM_OP_RECURRENT || s < SEQLSTM_SLOT_RECURRENT_STATES)
        return -1;
    int32_t directions = node->desc.recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    int32_t cells = (int32_t)node->desc.recurrent.layers * directions, at = s - SEQLSTM_SLOT_RECURRENT_STATES;
    bool is_final = at % 4 >= SEQLSTM_STATE_HN;
    if (at >= 4 * cells || is_final == back)
        return -1;
    return back ? s + SEQLSTM_STATE_HN : s - SEQLSTM_STATE_HN;
}

bool sl_exec_is_initial_state(const struct sl_node *node, int32_t s)
{
    return find_state(node, s, true) >= 0;
}

/* Rows of the sequences that have no step: they come after the others. False: there are none. */
static bool find_empty(const struct sl_exec *exec, int32_t c, int64_t *out_alive, int64_t *out_count)
{
    enum sl_axis axis = exec->calls[c].axis;
    *out_alive = exec->shape->sides[sl_exec_get_side(axis)].steps.sequences;
    *out_count = exec->shape->sequences - *out_alive;
    return sl_axis_is_steps(axis) && *out_count > 0;
}

/* `to` gets the rows of `from`, or zeros. */
static seqlstm_status pass_rows(struct sl_exec *exec, int32_t place, float *to, const float *from, int64_t alive,
                                int64_t count, int64_t features, struct seqlstm_error *err)
{
    struct sl_domain *domain = exec->places[place].domain;
    int64_t begin = alive * features, bytes = count * features * (int64_t)sizeof(float);
    return from ? sl_domain_copy(domain, to + begin, from + begin, bytes, err)
                : sl_domain_clear(domain, to + begin, bytes, err);
}

seqlstm_status sl_exec_fill_empty(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_exec_call *own = &exec->calls[c];
    int64_t alive, count;
    if (!find_empty(exec, c, &alive, &count))
        return SEQLSTM_OK;
    for (int32_t s = 0; s < node->slot_count; s++) {
        if (own->roles[s] != SL_SLOT_OUTPUT)
            continue;
        const struct sl_tensor *tensor = &exec->graph->tensors[node->slots[s]];
        int32_t before = find_state(node, s, false);
        if (!sl_axis_is_steps(tensor->axis))
            SEQLSTM_TRY(pass_rows(exec, own->place, own->slots[s], before >= 0 ? own->slots[before] : NULL, alive,
                                  count, tensor->features, err));
    }
    return SEQLSTM_OK;
}

/* The gradient of the initial state of sequences without a step is that of their final one, or zero. */
static seqlstm_status fill_empty_grads(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_exec_call *own = &exec->calls[c];
    int64_t alive, count;
    if (!find_empty(exec, c, &alive, &count) || exec->pieces.running > 0)
        return SEQLSTM_OK;
    for (int32_t s = 0; s < node->slot_count; s++) {
        const int32_t behind = find_state(node, s, true), final = behind >= 0 ? node->slots[behind] : -1;
        const float *grad = behind >= 0 ? own->grads[behind] : NULL;
        if (exec->pieces.running >= 0) /* which holds a border between pieces */
            grad = final >= 0 && exec->grad_valid[final] ? sl_exec_grad_at(exec, own->place, final) : NULL;
        if (own->roles[s] == SL_SLOT_INPUT && own->grads[s] && behind >= 0)
            SEQLSTM_TRY(pass_rows(exec, own->place, own->grads[s], grad, alive, count,
                                  exec->graph->tensors[node->slots[s]].features, err));
    }
    return SEQLSTM_OK;
}

/* What a call without a row read of another axis, such as a memory, has no gradient from it. */
static seqlstm_status clear_input_grads(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_exec_call *own = &exec->calls[c];
    for (int32_t s = 0; s < node->slot_count; s++) {
        if (own->roles[s] != SL_SLOT_INPUT || own->grads[s] == NULL || find_state(node, s, true) >= 0)
            continue;
        const struct sl_tensor *tensor = &exec->graph->tensors[node->slots[s]];
        SEQLSTM_TRY(sl_domain_clear(get_place(exec, c)->domain, own->grads[s],
                                    sl_exec_get_rows(exec, tensor->axis) * tensor->features * (int64_t)sizeof(float),
                                    err));
    }
    return SEQLSTM_OK;
}

/* Fills the slots of a call in its place; what it reads is made valid there. */
seqlstm_status sl_exec_place_slots(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *own = &exec->calls[c];
    for (int32_t s = 0; s < own->slot_count; s++) {
        own->slots[s] = NULL;
        if (own->roles[s] == SL_SLOT_OUTPUT)
            own->slots[s] = sl_exec_at(exec, own->place, node->slots[s]);
        else if (own->roles[s] != SL_SLOT_ABSENT)
            SEQLSTM_TRY(sl_exec_provide(exec, own->place, node->slots[s], &own->slots[s], err));
    }
    if (exec->pieces.running >= 0)
        sl_exec_place_piece_states(exec, c);
    return SEQLSTM_OK;
}

static void note_outputs(struct sl_exec *exec, int32_t c)
{
    const struct sl_exec_call *own = &exec->calls[c];
    for (int32_t s = 0; s < own->slot_count; s++)
        if (own->roles[s] == SL_SLOT_OUTPUT || own->roles[s] == SL_SLOT_INOUT)
            sl_exec_note_written(exec, own->place, exec->plan->calls[c].node->slots[s]);
}

static struct seqlstm_binding *get_binding(const struct sl_exec *exec, int32_t c)
{
    const struct sl_exec_loop *loop = &exec->loop;
    if (exec->pieces.running >= 0)
        return exec->shape->piece_bindings[exec->pieces.running * exec->plan->call_count + c];
    return loop->step < 0 ? exec->shape->bindings[c]
                          : exec->shape->step_bindings[loop->step * (loop->end - loop->first) + c - loop->first];
}

static char *get_reserve(struct sl_exec *exec, int32_t c)
{
    const struct sl_call *call = &exec->plan->calls[c];
    int64_t bytes = sl_align((int64_t)call->sizes.reserve_bytes);
    int64_t at = exec->loop.step > 0 ? exec->loop.step : exec->pieces.running > 0 ? exec->pieces.running : 0;
    if (at > 0 && sl_call_count_reserves(exec->plan, call) == 1)
        at = 0;
    return call->reserve_offset >= 0 ? get_place(exec, c)->reserve + call->reserve_offset + at * bytes : NULL;
}

static seqlstm_status forward_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    struct sl_exec_call *own = &exec->calls[c];
    struct sl_exec_place *place = get_place(exec, c);
    struct seqlstm_binding *binding = get_binding(exec, c);
    SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
    if (binding) {
        int64_t start = sl_clock_ns();
        SEQLSTM_TRY(pack(exec, c, err));
        struct seqlstm_forward args = {
            .struct_size = sizeof args,
            .slot_count = (uint32_t)own->slot_count,
            .slots = own->slots,
            .workspace = call->sizes.workspace_bytes ? place->workspace : NULL,
            .reserve = get_reserve(exec, c),
            .packed = call->packed_offset >= 0 ? place->packed + call->packed_offset : NULL,
            .step = &exec->step,
        };
        struct sl_exec_fences fences;
        if (exec->is_fenced)
            sl_exec_begin_fences(exec, c, SL_FUNCTION_FORWARD, args.workspace, args.reserve, &fences);
        const struct sl_call_time time = sl_call_time_begin(place->domain, SL_ACTIVITY_FORWARD, call->node->name);
        seqlstm_status status =
            sl_plugin_forward(sl_backend_get_table(call->backend), binding, get_queue(exec, c), &args, err);
        if (status == SEQLSTM_OK && exec->is_fenced)
            status = sl_exec_end_fences(exec, c, SL_FUNCTION_FORWARD, &fences, err);
        sl_call_time_end(&time, place->domain, SL_ACTIVITY_FORWARD, call->node->name,
                         sl_backend_get_table(call->backend)->id, sl_exec_get_rows(exec, own->axis));
        if (status != SEQLSTM_OK)
            return sl_plan_blame(call, SL_FUNCTION_FORWARD, status, err);
        const bool counts = !sl_exec_is_recording(exec); /* what is recorded is counted when it is launched */
        exec->timing[c].forward_ns += sl_clock_ns() - start;
        exec->timing[c].calls += counts && exec->loop.step <= 0 && exec->pieces.running <= 0;
        exec->timing[c].rows += counts ? sl_exec_get_rows(exec, own->axis) : 0;
    }
    if (exec->loop.step < 0 && exec->pieces.running < 0)
        SEQLSTM_TRY(sl_exec_fill_empty(exec, c, err));
    note_outputs(exec, c);
    return SEQLSTM_OK;
}

/* Where the running piece of call c has its time. */
static double *find_time(const struct sl_exec *exec, double *times, int32_t c)
{
    return &times[c * exec->piece_times->pieces + (exec->pieces.running > 0 ? exec->pieces.running : 0)];
}

seqlstm_status sl_exec_forward_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    if (!exec->piece_times)
        return forward_call(exec, c, err);
    const int64_t begin = sl_clock_ns();
    SEQLSTM_TRY(forward_call(exec, c, err));
    *find_time(exec, exec->piece_times->forward, c) += (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

/* x, and h0 and c0 of every (layer, direction) of the deepest stack; more than a merge has. */
enum { INPUTS_MOST = 1 + 2 * 2 * SEQLSTM_MAX_LAYERS };

/* Is slot s the state from which a piece other than the first one begins? It is not the model's tensor then. */
static bool is_between_pieces(const struct sl_exec *exec, const struct sl_node *node, int32_t s)
{
    return exec->pieces.running > 0 && find_state(node, s, true) >= 0;
}

/* What one call's backward is asked for. */
struct request {
    uint32_t parts;
    bool any_output_grad;
    int32_t added_count; /* inputs whose gradient goes to scratch first */
    struct {
        int32_t tensor;
        float *scratch;
    } added[INPUTS_MOST];
};

static seqlstm_status collect_grads(struct sl_exec *exec, int32_t c, struct request *request, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *own = &exec->calls[c];
    char *scratch = get_place(exec, c)->activations + exec->plan->scratch_grad_offset;
    const bool pieced = exec->pieces.running >= 0;
    request->parts = 0;
    request->any_output_grad = false;
    request->added_count = 0;
    for (int32_t s = 0; s < own->slot_count; s++) {
        int32_t t = node->slots[s];
        float *grad = NULL;
        own->grads[s] = NULL;
        if (own->roles[s] == SL_SLOT_ABSENT || t < 0)
            continue;
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (!tensor->needs_grad)
            continue;
        if (own->roles[s] == SL_SLOT_OUTPUT && exec->grad_valid[t]) {
            SEQLSTM_TRY(sl_exec_provide_grad(exec, own->place, t, &grad, err));
            request->any_output_grad = true;
        } else if (own->roles[s] == SL_SLOT_PARAM && !(pieced && own->gathers_weights)) {
            SEQLSTM_TRY(sl_exec_locate_param(exec, c, s, &grad, err));
            request->parts |= SEQLSTM_BIT_BACKWARD_WEIGHTS;
        } else if (own->roles[s] == SL_SLOT_INPUT && !is_between_pieces(exec, node, s)) {
            request->parts |=
                find_state(node, s, true) >= 0 ? SEQLSTM_BIT_BACKWARD_STATES : SEQLSTM_BIT_BACKWARD_INPUTS;
            grad = sl_exec_grad_at(exec, own->place, t);
            if (exec->grad_valid[t]) {
                grad = (float *)(void *)scratch;
                request->added[request->added_count].tensor = t;
                request->added[request->added_count++].scratch = grad;
                scratch += sl_align(sl_exec_get_rows(exec, tensor->axis) * tensor->features * 4);
            }
        }
        own->grads[s] = grad;
    }
    if (pieced && sl_exec_place_piece_grads(exec, c))
        request->parts |= SEQLSTM_BIT_BACKWARD_STATES;
    return SEQLSTM_OK;
}

/* Notes which gradients of inputs have been written, and adds the scratch gradients where the plan adds vectors. */
static seqlstm_status settle_inputs(struct sl_exec *exec, int32_t c, const struct request *request,
                                    struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_exec_call *own = &exec->calls[c];
    for (int32_t s = 0; s < node->slot_count; s++) {
        int32_t t = node->slots[s];
        if (own->roles[s] == SL_SLOT_INPUT && own->grads[s] && exec->grad_valid[t] == 0 &&
            !is_between_pieces(exec, node, s))
            exec->grad_valid[t] = (uint8_t)(1u << own->place);
    }
    int32_t adder = sl_exec_get_vector_place(exec, SEQLSTM_OP_VECTOR, SEQLSTM_KIND_VECTOR_AXPY);
    for (int32_t a = 0; a < request->added_count; a++) {
        int32_t t = request->added[a].tensor;
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        int64_t elems = sl_exec_get_rows(exec, tensor->axis) * tensor->features;
        int64_t offset = (char *)request->added[a].scratch - exec->places[own->place].activations;
        char *more = exec->places[adder].activations + offset;
        float *grad;
        SEQLSTM_TRY(sl_exec_provide_grad(exec, adder, t, &grad, err));
        if (adder != own->place)
            SEQLSTM_TRY(sl_params_move(exec->params, own->place, adder, request->added[a].scratch,
                                       exec->places[SL_PLACE_HOST].activations + offset, more, elems * 4, err));
        SEQLSTM_TRY(sl_exec_add(exec, grad, (const float *)(const void *)more, elems, err));
        exec->grad_valid[t] = (uint8_t)(1u << adder);
    }
    return SEQLSTM_OK;
}

struct seqlstm_backward sl_exec_get_backward(struct sl_exec *exec, int32_t c, uint32_t parts)
{
    const struct sl_call *call = &exec->plan->calls[c];
    struct sl_exec_place *place = get_place(exec, c);
    return (struct seqlstm_backward){
        .struct_size = sizeof(struct seqlstm_backward),
        .slot_count = (uint32_t)exec->calls[c].slot_count,
        .slots = exec->calls[c].slots,
        .grads = exec->calls[c].grads,
        .parts = parts,
        .workspace = call->sizes.workspace_bytes ? place->workspace : NULL,
        .reserve = get_reserve(exec, c),
        .packed = call->packed_offset >= 0 ? place->packed + call->packed_offset : NULL,
        .step = &exec->step,
    };
}

seqlstm_status sl_exec_call_backward(struct sl_exec *exec, int32_t c, const struct seqlstm_backward *args,
                                     struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    int64_t start = sl_clock_ns();
    struct sl_exec_fences fences;
    struct sl_domain *domain = get_place(exec, c)->domain;
    if (exec->is_fenced)
        sl_exec_begin_fences(exec, c, SL_FUNCTION_BACKWARD, args->workspace, args->reserve, &fences);
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_BACKWARD, call->node->name);
    seqlstm_status status =
        sl_plugin_backward(sl_backend_get_table(call->backend), get_binding(exec, c), get_queue(exec, c), args, err);
    if (status == SEQLSTM_OK && exec->is_fenced)
        status = sl_exec_end_fences(exec, c, SL_FUNCTION_BACKWARD, &fences, err);
    sl_call_time_end(&time, domain, SL_ACTIVITY_BACKWARD, call->node->name, sl_backend_get_table(call->backend)->id,
                     sl_exec_get_rows(exec, exec->calls[c].axis));
    if (status != SEQLSTM_OK)
        return sl_plan_blame(call, SL_FUNCTION_BACKWARD, status, err);
    exec->timing[c].backward_ns += sl_clock_ns() - start;
    return SEQLSTM_OK;
}

static seqlstm_status backward_call(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err)
{
    uint32_t op = exec->plan->calls[c].node->desc.head.op;
    bool is_loss = op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS, add;
    struct request request;
    SEQLSTM_TRY(collect_grads(exec, c, &request, err));
    if (!is_loss && !request.any_output_grad)
        return accumulate ? SEQLSTM_OK : sl_exec_clear_unwritten(exec, c, err);
    if (get_binding(exec, c) == NULL) { /* every sequence is empty */
        SEQLSTM_TRY(fill_empty_grads(exec, c, err));
        SEQLSTM_TRY(clear_input_grads(exec, c, err));
        SEQLSTM_TRY(accumulate ? SEQLSTM_OK : sl_exec_clear_unwritten(exec, c, err));
        return settle_inputs(exec, c, &request, err);
    }
    if (exec->pieces.running >= 0) /* the slots are those of the last piece that ran */
        SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
    SEQLSTM_TRY(sl_exec_begin_params(exec, c, accumulate, &add, err));
    struct seqlstm_backward args =
        sl_exec_get_backward(exec, c, request.parts | (add ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0));
    SEQLSTM_TRY(sl_exec_call_backward(exec, c, &args, err));
    SEQLSTM_TRY(fill_empty_grads(exec, c, err));
    sl_exec_note_params(exec, c);
    return settle_inputs(exec, c, &request, err);
}

seqlstm_status sl_exec_backward_call(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err)
{
    if (!exec->piece_times)
        return backward_call(exec, c, accumulate, err);
    const int64_t begin = sl_clock_ns();
    SEQLSTM_TRY(backward_call(exec, c, accumulate, err));
    *find_time(exec, exec->piece_times->backward, c) += (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

void sl_exec_time_pieces(struct sl_exec *exec, struct sl_piece_times *times)
{
    exec->piece_times = times;
}
