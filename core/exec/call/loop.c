/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a graph: its calls run step by step over the steps axis, and backward through time.
 *
 * Step t works on rows [row_offsets[t], row_offsets[t+1]) of every tensor on the steps axis, and reads as "the step
 * before" the first batch_sizes[t] rows of step t-1: sequences are sorted by length, longest first, so those that
 * continue come first, and nothing is copied.
 *
 *   value    | step 0: a b c d | step 1: a b c | step 2: a |
 *   before       (initial)       a b c of 0      a of 1
 *
 * The gradient of a row of `value` is the sum of those from readers after the loop, readers in the same step and the
 * following step; a sequence that ends at a step gets nothing from the next one.
 *
 * Invariants:
 *  1. All calls run in one place; what they read from outside the loop is made valid there before the first step.
 *  2. Weight gradients come from one call over all rows if the operation keeps nothing from its forward call (or is
 *     STEPWISE), else from each step.
 *  3. After backward, the gradient of every tensor of the loop is valid for all rows, zeros included.
 */
#include "exec/call/loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/alignment.h"
#include "exec/call/calls.h"
#include "exec/call/gather.h"
#include "exec/call/param_grads.h"
#include "exec/place/place.h"
#include "exec/rows.h"
#include "exec/update/vectors.h"

/* ---- life ---------------------------------------------------------------------------------------------------- */

static bool is_stepwise(const struct sl_node *node)
{
    return node->desc.head.op == SEQLSTM_OP_RECURRENT &&
           (node->desc.recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE);
}

static void find_calls(struct sl_exec *exec)
{
    const struct sl_loop *loop = &exec->graph->loop;
    exec->loop.step = -1;
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        const struct sl_call *call = &exec->plan->calls[c];
        if (call->node_first < loop->first || call->node_first >= loop->first + loop->count)
            continue;
        if (exec->loop.end == 0)
            exec->loop.first = c;
        exec->loop.end = c + 1;
        exec->calls[c].gathers_weights = sl_exec_can_gather(exec, c);
    }
}

seqlstm_status sl_exec_open_loop(struct sl_exec *exec, struct seqlstm_error *err)
{
    size_t tensors = (size_t)exec->graph->tensor_count + 1;
    find_calls(exec);
    exec->loop.touched = calloc(tensors, sizeof *exec->loop.touched);
    exec->loop.outer = calloc(tensors, sizeof *exec->loop.outer);
    exec->loop.carried = calloc(tensors, sizeof *exec->loop.carried);
    if (!exec->loop.touched || !exec->loop.outer || !exec->loop.carried)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t c = exec->loop.first; c < exec->loop.end; c++)
        for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
            int32_t t = exec->plan->calls[c].node->slots[s];
            if (t >= 0 && exec->graph->tensors[t].axis == SL_AXIS_STEPS && exec->graph->tensors[t].needs_grad &&
                exec->graph->tensors[t].role != SL_TENSOR_BEFORE && exec->calls[c].roles[s] != SL_SLOT_ABSENT)
                exec->loop.touched[t] = true;
        }
    return SEQLSTM_OK;
}

void sl_exec_close_loop(struct sl_exec *exec)
{
    free(exec->loop.touched);
    free(exec->loop.outer);
    free(exec->loop.carried);
}

/* ---- forward ------------------------------------------------------------------------------------------------- */

static bool is_written(const struct sl_exec *exec, int32_t t)
{
    for (int32_t c = exec->loop.first; c < exec->loop.end; c++)
        for (int32_t s = 0; s < exec->calls[c].slot_count; s++)
            if (exec->plan->calls[c].node->slots[s] == t && exec->calls[c].roles[s] == SL_SLOT_OUTPUT)
                return true;
    return false;
}

/* Invariant 1. */
static seqlstm_status provide_outer(struct sl_exec *exec, int32_t place, struct seqlstm_error *err)
{
    void *read;
    for (int32_t c = exec->loop.first; c < exec->loop.end; c++) {
        if (exec->calls[c].place != place)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                         "`%s` and `%s` run step by step, so they need backends of one device; pin both to one",
                         exec->plan->calls[exec->loop.first].node->name, exec->plan->calls[c].node->name);
        for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
            int32_t t = exec->plan->calls[c].node->slots[s];
            bool reads = exec->calls[c].roles[s] != SL_SLOT_ABSENT && exec->calls[c].roles[s] != SL_SLOT_OUTPUT;
            if (reads && exec->graph->tensors[t].role != SL_TENSOR_BEFORE && !is_written(exec, t))
                SEQLSTM_TRY(sl_exec_provide(exec, place, t, &read, err));
        }
    }
    for (int32_t k = 0; k < exec->graph->loop.carry_count; k++)
        if (exec->graph->loop.carries[k].initial >= 0)
            SEQLSTM_TRY(sl_exec_provide(exec, place, exec->graph->loop.carries[k].initial, &read, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_loop_forward(struct sl_exec *exec, struct seqlstm_error *err)
{
    int64_t steps = exec->shape->step_binding_count > 0 ? exec->shape->sides[SL_EXEC_TARGET].steps.steps : 0;
    SEQLSTM_TRY(provide_outer(exec, exec->calls[exec->loop.first].place, err));
    for (int64_t step = 0; step < steps; step++) {
        exec->loop.step = step;
        for (int32_t c = exec->loop.first; c < exec->loop.end; c++)
            SEQLSTM_TRY(sl_exec_forward_call(exec, c, err));
    }
    exec->loop.step = -1;
    return SEQLSTM_OK;
}

/* ---- backward ------------------------------------------------------------------------------------------------ */

/* Where the gradient goes that a call makes for one input. */
struct target {
    int32_t tensor; /* the gradient's tensor; -1: none */
    float *grad;    /* its rows; NULL: it is not needed */
    float *scratch; /* where the call writes, to be added to grad; NULL: to grad itself */
    int64_t rows;   /* that the call writes */
    int64_t more;   /* rows after them that get nothing: set to zero when the call writes to grad */
    bool before;    /* it belongs to the step before */
};

/* x, and h0 and c0 of the layers of the deepest stack, which has one direction in a loop. */
enum { TARGETS_MOST = 1 + 2 * SEQLSTM_MAX_LAYERS };

struct request {
    uint32_t parts;
    bool any_output_grad;
    int32_t count;
    int32_t slots[TARGETS_MOST];
    struct target targets[TARGETS_MOST];
};

static const struct seqlstm_axis *get_steps(const struct sl_exec *exec)
{
    return &exec->shape->sides[SL_EXEC_TARGET].steps;
}

static struct target find_target(struct sl_exec *exec, int32_t place, int32_t t)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    int64_t step = exec->loop.step;
    struct target target = {.tensor = t, .rows = sl_exec_get_rows(exec, tensor->axis)};
    if (tensor->role != SL_TENSOR_BEFORE) {
        target.grad = sl_exec_grad_at(exec, place, t);
        return target;
    }
    const struct sl_carry *carry = &exec->graph->loop.carries[tensor->owner];
    target.before = true;
    target.tensor = step > 0 ? carry->value : carry->initial;
    target.more = (step > 0 ? get_steps(exec)->batch_sizes[step - 1] : exec->shape->sequences) - target.rows;
    if (target.tensor < 0)
        return target;
    exec->loop.step = step > 0 ? step - 1 : -1;
    target.grad = sl_exec_grad_at(exec, place, target.tensor);
    exec->loop.step = step;
    return target;
}

/* Have the rows been written already? */
static bool is_valid(const struct sl_exec *exec, const struct target *target)
{
    bool steps = target->before && exec->loop.step > 0;
    return steps ? exec->loop.outer[target->tensor] || exec->loop.carried[target->tensor]
                 : exec->grad_valid[target->tensor] != 0;
}

static seqlstm_status collect(struct sl_exec *exec, int32_t c, struct request *request, struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *own = &exec->calls[c];
    char *scratch = exec->places[own->place].activations + exec->plan->scratch_grad_offset;
    *request = (struct request){0};
    for (int32_t s = 0; s < own->slot_count; s++) {
        int32_t t = node->slots[s];
        own->grads[s] = NULL;
        if (own->roles[s] == SL_SLOT_ABSENT || t < 0 || !exec->graph->tensors[t].needs_grad)
            continue;
        if (own->roles[s] == SL_SLOT_OUTPUT && exec->grad_valid[t]) {
            own->grads[s] = sl_exec_grad_at(exec, own->place, t);
            request->any_output_grad = true;
        } else if (own->roles[s] == SL_SLOT_PARAM && !own->gathers_weights) {
            float *grad;
            SEQLSTM_TRY(sl_exec_locate_param(exec, c, s, &grad, err));
            own->grads[s] = grad;
            request->parts |= SEQLSTM_BIT_BACKWARD_WEIGHTS;
        } else if (own->roles[s] == SL_SLOT_INPUT) {
            struct target *target = &request->targets[request->count];
            request->slots[request->count++] = s;
            *target = find_target(exec, own->place, t);
            request->parts |=
                sl_exec_is_initial_state(node, s) ? SEQLSTM_BIT_BACKWARD_STATES : SEQLSTM_BIT_BACKWARD_INPUTS;
            bool adds = target->grad && is_valid(exec, target);
            if (adds && !(target->before && exec->loop.step > 0)) {
                float *whole;
                SEQLSTM_TRY(sl_exec_provide_grad(exec, own->place, target->tensor, &whole, err));
            }
            if (target->grad == NULL || adds) {
                target->scratch = (float *)(void *)scratch;
                scratch += sl_align(target->rows * exec->graph->tensors[t].features * 4);
            }
            own->grads[s] = target->scratch ? target->scratch : target->grad;
        }
    }
    return SEQLSTM_OK;
}

/* Adds the scratch where the plan adds vectors. */
static seqlstm_status add(struct sl_exec *exec, int32_t place, const struct target *target, int64_t elems,
                          struct seqlstm_error *err)
{
    int32_t adder = sl_exec_get_vector_place(exec, SEQLSTM_OP_VECTOR, SEQLSTM_KIND_VECTOR_AXPY);
    char *here = exec->places[place].activations, *there = exec->places[adder].activations;
    char *host = exec->places[SL_PLACE_HOST].activations;
    int64_t to = (char *)target->grad - here, from = (char *)target->scratch - here;
    if (adder != place) {
        SEQLSTM_TRY(sl_params_move(exec->params, place, adder, here + to, host + to, there + to, elems * 4, err));
        SEQLSTM_TRY(sl_params_move(exec->params, place, adder, here + from, host + from, there + from, elems * 4, err));
    }
    float *sum = (float *)(void *)(there + to);
    SEQLSTM_TRY(sl_exec_add(exec, sum, (const float *)(const void *)(there + from), elems, err));
    return adder == place
               ? SEQLSTM_OK
               : sl_params_move(exec->params, adder, place, there + to, host + to, here + to, elems * 4, err);
}

static seqlstm_status settle(struct sl_exec *exec, int32_t c, const struct request *request, struct seqlstm_error *err)
{
    int32_t place = exec->calls[c].place;
    for (int32_t k = 0; k < request->count; k++) {
        const struct target *target = &request->targets[k];
        int64_t features = exec->graph->tensors[exec->plan->calls[c].node->slots[request->slots[k]]].features;
        if (target->grad == NULL)
            continue;
        if (target->scratch)
            SEQLSTM_TRY(add(exec, place, target, target->rows * features, err));
        else if (target->more > 0)
            SEQLSTM_TRY(sl_domain_clear(exec->places[place].domain, target->grad + target->rows * features,
                                        target->more * features * (int64_t)sizeof(float), err));
        if (target->before && exec->loop.step > 0)
            exec->loop.carried[target->tensor] = true;
        else
            exec->grad_valid[target->tensor] = (uint8_t)(1u << place);
    }
    return SEQLSTM_OK;
}

/* One call at one step. Segments of a STEPWISE operation must all run, one after the other. */
static seqlstm_status run_back(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err)
{
    struct request request;
    bool adds = false;
    SEQLSTM_TRY(collect(exec, c, &request, err));
    if (request.parts == 0 || (!request.any_output_grad && !is_stepwise(exec->plan->calls[c].node)))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
    if (request.parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)
        SEQLSTM_TRY(sl_exec_begin_params(exec, c, accumulate, &adds, err));
    struct seqlstm_backward args =
        sl_exec_get_backward(exec, c, request.parts | (adds ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0));
    SEQLSTM_TRY(sl_exec_call_backward(exec, c, &args, err));
    sl_exec_note_params(exec, c);
    return settle(exec, c, &request, err);
}

/* Which gradients of the step are valid before its calls run: those from readers after the loop, and from the next
 * step. */
static void begin_step(struct sl_exec *exec, int32_t place)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++)
        if (exec->loop.touched[t]) {
            exec->grad_valid[t] = exec->loop.outer[t] || exec->loop.carried[t] ? (uint8_t)(1u << place) : 0;
            exec->loop.carried[t] = false;
        }
}

/* Invariant 3. */
static seqlstm_status end_step(struct sl_exec *exec, int32_t place, struct seqlstm_error *err)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        float *grad = exec->loop.touched[t] && !exec->grad_valid[t] ? sl_exec_grad_at(exec, place, t) : NULL;
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (grad)
            SEQLSTM_TRY(sl_domain_clear(exec->places[place].domain, grad,
                                        sl_exec_get_rows(exec, tensor->axis) * tensor->features * 4, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_loop_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err)
{
    int32_t place = exec->calls[exec->loop.first].place;
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        float *grad;
        if (exec->grad_valid[t] && exec->loop.touched[t])
            SEQLSTM_TRY(sl_exec_provide_grad(exec, place, t, &grad, err));
        exec->loop.outer[t] = exec->loop.touched[t] ? exec->grad_valid[t] : 0;
        exec->loop.carried[t] = false;
    }
    for (int64_t step = get_steps(exec)->steps - 1; step >= 0; step--) {
        exec->loop.step = step;
        begin_step(exec, place);
        for (int32_t c = exec->loop.end - 1; c >= exec->loop.first; c--)
            if (exec->plan->calls[c].node->needs_backward)
                SEQLSTM_TRY(run_back(exec, c, accumulate, err));
        SEQLSTM_TRY(end_step(exec, place, err));
    }
    exec->loop.step = -1;
    for (int32_t t = 0; t < exec->graph->tensor_count; t++)
        if (exec->loop.touched[t])
            exec->grad_valid[t] = (uint8_t)(1u << place);
    for (int32_t c = exec->loop.end - 1; c >= exec->loop.first; c--)
        if (exec->plan->calls[c].node->needs_backward)
            SEQLSTM_TRY(sl_exec_gather_weights(exec, c, accumulate, err));
    return SEQLSTM_OK;
}
