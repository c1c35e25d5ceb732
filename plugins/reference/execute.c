/* SPDX-License-Identifier: Apache-2.0 */
/* One call: float32 slots become float64 arrays in the workspace, the family computes, and the results are copied back.
 *
 *   workspace  [ slot 0 | slot 1 | … | gradients | the family's scratch ]   (float64, in this order)
 *
 * The float64 twins use the caller's arrays directly, and the workspace contains only scratch. Within a call, gradients
 * of parameters are summed in float64; they are rounded to float32 once, when the call stores them. */
#include <string.h>

#include "reference.h"

static bool reads(enum ref_access access)
{
    return access != REF_OUTPUT && access != REF_ABSENT;
}

static bool writes(enum ref_access access)
{
    return access == REF_OUTPUT || access == REF_INOUT;
}

static void load(const float *from, double *to, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        to[k] = (double)from[k];
}

static void store(const double *from, float *to, int64_t n, bool add)
{
    for (int64_t k = 0; k < n; k++)
        to[k] = (float)(add ? (double)to[k] + from[k] : from[k]);
}

/* Does the caller give every slot that forward needs? */
static seqlstm_status check_slots(const struct seqlstm_binding *b, uint32_t slot_count, void *const *slots,
                                  struct seqlstm_error *err)
{
    if (slot_count != (uint32_t)b->slot_count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%u slots were given, expected %d", slot_count, b->slot_count);
    for (int32_t k = 0; k < b->slot_count; k++)
        if (b->slots[k].access != REF_ABSENT && b->slots[k].access != REF_OUTPUT && slots[k] == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "slot %d is NULL, but needed", k);
    return SEQLSTM_OK;
}

/* Fills values[] from the caller's slots; returns the rest of the workspace. In backward, forward's outputs are not
 * read: families compute again what they need from inputs and reserve. */
static double *take_values(struct seqlstm_binding *b, void *const *slots, bool wide, bool backward, double *workspace)
{
    for (int32_t k = 0; k < b->slot_count; k++) {
        const struct ref_slot *slot = &b->slots[k];
        b->values[k] = NULL;
        b->grads[k] = NULL;
        if (slot->access == REF_ABSENT || slots[k] == NULL || (backward && slot->access == REF_OUTPUT))
            continue;
        if (wide || slot->dtype != SEQLSTM_DTYPE_FLOAT32) {
            b->values[k] = slots[k];
            continue;
        }
        b->values[k] = workspace;
        if (reads(slot->access))
            load(slots[k], workspace, slot->elems);
        workspace += slot->elems;
    }
    return workspace;
}

static struct ref_call make_call(const struct seqlstm_binding *b, const struct seqlstm_step *step, double *scratch,
                                 void *reserve)
{
    return (struct ref_call){.desc = &b->op->desc,
                             .bind = &b->bind,
                             .extent = &b->extent,
                             .step = step,
                             .values = b->values,
                             .scratch = scratch,
                             .reserve = b->op->desc.head.mode == SEQLSTM_MODE_TRAINING ? reserve : NULL};
}

static seqlstm_status forward(struct seqlstm_binding *b, const struct seqlstm_forward *args, bool wide,
                              struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_slots(b, args->slot_count, args->slots, err));
    double *scratch = take_values(b, args->slots, wide, false, args->workspace);
    const struct ref_call call = make_call(b, args->step, scratch, args->reserve);
    SEQLSTM_TRY(b->op->family->forward(&call, err));
    for (int32_t k = 0; !wide && k < b->slot_count; k++)
        if (b->values[k] && writes(b->slots[k].access) && b->slots[k].dtype == SEQLSTM_DTYPE_FLOAT32)
            store(b->values[k], args->slots[k], b->slots[k].elems, false);
    return SEQLSTM_OK;
}

static bool wanted(enum ref_access access, uint32_t parts)
{
    switch (access) {
    case REF_INPUT:
        return parts & SEQLSTM_BIT_BACKWARD_INPUTS;
    case REF_STATE:
        return parts & SEQLSTM_BIT_BACKWARD_STATES;
    case REF_PARAM:
        return parts & SEQLSTM_BIT_BACKWARD_WEIGHTS;
    default:
        return access == REF_OUTPUT;
    }
}

/* 16-bit gradients exist only in CAST, and are not converted. */
static bool is_float(uint32_t dtype)
{
    return dtype == SEQLSTM_DTYPE_FLOAT32 || dtype == SEQLSTM_DTYPE_FLOAT64;
}

static double *take_grads(struct seqlstm_binding *b, void *const *grads, uint32_t parts, bool wide, double *workspace)
{
    for (int32_t k = 0; k < b->slot_count; k++) {
        const struct ref_slot *slot = &b->slots[k];
        if (grads[k] == NULL || !wanted(slot->access, parts))
            continue;
        const bool direct = wide || slot->dtype != SEQLSTM_DTYPE_FLOAT32;
        b->grads[k] = direct ? grads[k] : workspace;
        if (slot->access == REF_OUTPUT) {
            if (!direct)
                load(grads[k], workspace, slot->elems);
        } else if (is_float(slot->dtype)) {
            const bool keep = direct && slot->access == REF_PARAM && (parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE);
            if (!keep)
                memset(b->grads[k], 0, (size_t)slot->elems * sizeof(double));
        }
        if (!direct)
            workspace += slot->elems;
    }
    return workspace;
}

static seqlstm_status backward(struct seqlstm_binding *b, const struct seqlstm_backward *args, bool wide,
                               double slope_distance, uint64_t slope_draw, struct seqlstm_error *err)
{
    if (b->op->family->backward == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "operation %u has no backward", b->op->desc.head.op);
    if (b->op->desc.head.mode != SEQLSTM_MODE_TRAINING)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "an operation in inference mode has no backward");
    SEQLSTM_TRY(check_slots(b, args->slot_count, args->slots, err));
    double *scratch = take_values(b, args->slots, wide, true, args->workspace);
    scratch = take_grads(b, args->grads, args->parts, wide, scratch);
    struct ref_call call = make_call(b, args->step, scratch, args->reserve);
    call.grads = b->grads;
    call.parts = args->parts;
    call.slope_distance = slope_distance;
    call.slope_draw = &slope_draw;
    SEQLSTM_TRY(b->op->family->backward(&call, err));
    for (int32_t k = 0; !wide && k < b->slot_count; k++)
        if (b->grads[k] && b->slots[k].access != REF_OUTPUT && b->slots[k].dtype == SEQLSTM_DTYPE_FLOAT32)
            store(b->grads[k], args->grads[k], b->slots[k].elems,
                  b->slots[k].access == REF_PARAM && (args->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE));
    return SEQLSTM_OK;
}

seqlstm_status ref_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                           const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)queue;
    return forward(binding, args, false, err);
}

seqlstm_status ref_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                            const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    (void)queue;
    return backward(binding, args, false, 0, 0, err);
}

seqlstm_status ref_forward64(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                             const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)queue;
    return forward(binding, args, true, err);
}

seqlstm_status ref_backward64(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    (void)queue;
    return backward(binding, args, true, 0, 0, err);
}

seqlstm_status ref_backward64_moved(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, double distance, uint64_t draw,
                                    struct seqlstm_error *err)
{
    (void)queue;
    return backward(binding, args, true, distance, draw, err);
}
