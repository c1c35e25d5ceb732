/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a runner: forward over all segments, backward from the last to the first. See runner_private.h. */
#include "judge/runner_private.h"

#include <stdlib.h>
#include <string.h>

#include "registry/plugin.h"
#include "registry/watch/watch.h"

static const struct sl_guarded *reserve_of(const struct sl_runner *r, int32_t p)
{
    return &r->segments[r->stepwise ? 0 : p].reserve;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Copies the rows of the final states that ended in segment p from the segment's own state to that of the whole. */
static void collect_finals(struct sl_runner *r, int32_t p)
{
    const int32_t *alive = r->data->axis.batch_sizes;
    for (int32_t k = 0; k < r->count; k++) {
        if (!sl_runner_is_final(r, k) || !r->segments[p].middle[k].data)
            continue;
        size_t row = (size_t)(r->data->slots[k].features * sl_dtype_bytes(r->dtypes[k]));
        size_t from = (size_t)alive[r->segments[p + 1].bind.t0], to = (size_t)alive[r->segments[p].bind.t0];
        memcpy((unsigned char *)r->values[k].data + from * row,
               (unsigned char *)r->segments[p].middle[k].data + from * row, (to - from) * row);
    }
}

seqlstm_status sl_runner_forward(struct sl_runner *r, struct seqlstm_error *err)
{
    const struct seqlstm_backend *table = r->subject.table;
    for (int32_t k = 0; k < r->count; k++) {
        sl_guarded_poison(&r->values[k]);
        sl_guarded_poison(&r->grads[k]);
        if (r->values[k].data && r->data->values[k])
            sl_dtype_store(r->dtypes[k], r->values[k].data, r->data->values[k], r->data->elems[k]);
    }
    sl_guarded_poison(&r->packed);
    r->has_backward = false;
    if (r->sizes.packed_bytes > 0) {
        SEQLSTM_TRY(sl_twins_upload(&r->twins, err));
        SEQLSTM_TRY(sl_plugin_pack(table, r->op, r->subject.queue, r->segments[0].slots,
                                   sl_guarded_get_address(&r->packed), &r->data->step, err));
        SEQLSTM_TRY(sl_twins_download(&r->twins, err));
    }
    for (int32_t p = 0; p < r->segment_count; p++) {
        struct sl_runner_segment *segment = &r->segments[p];
        for (int32_t k = 0; k < r->count; k++)
            sl_guarded_poison(&segment->middle[k]);
        if (p == 0 || !r->stepwise)
            sl_guarded_poison(&segment->reserve);
        sl_guarded_poison(&r->workspace);
        struct seqlstm_forward args = {
            .struct_size = (uint32_t)sizeof args,
            .slot_count = (uint32_t)r->count,
            .slots = segment->slots,
            .workspace = sl_guarded_get_address(&r->workspace),
            .reserve = sl_guarded_get_address(reserve_of(r, p)),
            .packed = sl_guarded_get_address(&r->packed),
            .step = &r->data->step,
        };
        SEQLSTM_TRY(sl_twins_upload(&r->twins, err));
        struct sl_watched_call call;
        sl_watch_begin(&call, table->id, SL_FUNCTION_FORWARD);
        seqlstm_status status = r->forward(segment->binding, r->subject.queue, &args, err);
        sl_watch_end(&call);
        SEQLSTM_TRY(sl_plugin_check_status(table, SL_FUNCTION_FORWARD, status, err));
        SEQLSTM_TRY(sl_twins_download(&r->twins, err));
    }
    for (int32_t p = 0; p + 1 < r->segment_count; p++)
        collect_finals(r, p);
    return SEQLSTM_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

static const uint32_t ALL_PARTS =
    SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS;

uint32_t sl_runner_get_part(const struct sl_runner *r, int32_t k)
{
    if (r->data->slots[k].role == SL_SLOT_PARAM)
        return SEQLSTM_BIT_BACKWARD_WEIGHTS;
    if (r->data->slots[k].role != SL_SLOT_INPUT)
        return 0;
    return sl_runner_is_initial(r, k) ? SEQLSTM_BIT_BACKWARD_STATES : SEQLSTM_BIT_BACKWARD_INPUTS;
}

/* Returns true if this gradient is an output of backward under `parts`. */
static bool is_wanted(const struct sl_runner *r, int32_t k, uint32_t parts)
{
    const uint32_t part = sl_runner_get_part(r, k);
    return (part & parts) != 0 && !(part == SEQLSTM_BIT_BACKWARD_INPUTS && r->data->c.no_input_grad);
}

static void fill_grads(struct sl_runner *r, bool accumulate)
{
    for (int32_t k = 0; k < r->count; k++) {
        const struct sl_slot *s = &r->data->slots[k];
        if (!r->grads[k].block)
            continue;
        sl_guarded_poison(&r->grads[k]);
        const double *from = s->role == SL_SLOT_OUTPUT                ? r->data->upstream[k]
                             : accumulate && s->role == SL_SLOT_PARAM ? r->data->base[k]
                                                                      : NULL;
        if (from && r->grads[k].data)
            sl_dtype_store(r->dtypes[k], r->grads[k].data, from, r->data->elems[k]);
    }
}

/* Copies the upstream gradients of the sequences that ended in segment p. Those of the others came from the backward
 * of segment p + 1. */
static void spread_finals(struct sl_runner *r, int32_t p)
{
    const int32_t *alive = r->data->axis.batch_sizes;
    for (int32_t k = 0; k < r->count; k++) {
        struct sl_guarded *middle = &r->segments[p].middle_grad[k];
        if (!middle->data)
            continue;
        size_t row = (size_t)(r->data->slots[k].features * sl_dtype_bytes(r->dtypes[k]));
        size_t from = (size_t)alive[r->segments[p + 1].bind.t0], to = (size_t)alive[r->segments[p].bind.t0];
        if (r->grads[k].data)
            memcpy((unsigned char *)middle->data + from * row, (unsigned char *)r->grads[k].data + from * row,
                   (to - from) * row);
        else
            memset((unsigned char *)middle->data + from * row, 0, (to - from) * row);
    }
}

/* Makes one call of backward. The workspace is poisoned before it. */
static seqlstm_status go_back(struct sl_runner *r, const struct sl_runner_segment *segment,
                              const struct sl_guarded *reserve, void *const *grads, uint32_t parts,
                              struct seqlstm_error *err)
{
    if (!r->watches_idle)
        sl_guarded_poison(&r->workspace);
    struct seqlstm_backward args = {
        .struct_size = (uint32_t)sizeof args,
        .slot_count = (uint32_t)r->count,
        .slots = segment->slots,
        .grads = grads,
        .parts = parts,
        .workspace = sl_guarded_get_address(&r->workspace),
        .reserve = sl_guarded_get_address(reserve),
        .packed = sl_guarded_get_address(&r->packed),
        .step = &r->data->step,
    };
    SEQLSTM_TRY(sl_twins_upload(&r->twins, err));
    struct sl_watched_call call;
    sl_watch_begin(&call, r->subject.table->id, SL_FUNCTION_BACKWARD);
    seqlstm_status status = r->slope_distance > 0
                                ? r->subject.float64->backward_moved(segment->binding, r->subject.queue, &args,
                                                                     r->slope_distance, r->slope_draw, err)
                                : r->backward(segment->binding, r->subject.queue, &args, err);
    sl_watch_end(&call);
    SEQLSTM_TRY(sl_plugin_check_status(r->subject.table, SL_FUNCTION_BACKWARD, status, err));
    return sl_twins_download(&r->twins, err);
}

seqlstm_status sl_runner_backward(struct sl_runner *r, uint32_t parts, bool accumulate, struct seqlstm_error *err)
{
    if (!r->backward)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s has no backward", r->subject.table->id);
    void **grads = calloc((size_t)r->count, sizeof *grads);
    if (!grads)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    fill_grads(r, accumulate);
    r->has_backward = true;
    /* one call: what it is not asked for is there all the same */
    r->unasked_parts = r->segment_count == 1 && !r->stepwise ? ALL_PARTS & ~parts : 0;
    seqlstm_status rc = SEQLSTM_OK;
    const uint32_t now =
        r->stepwise ? (parts & ~(uint32_t)SEQLSTM_BIT_BACKWARD_WEIGHTS) | SEQLSTM_BIT_BACKWARD_STATES : parts;
    for (int32_t p = r->segment_count - 1; rc == SEQLSTM_OK && p >= 0; p--) {
        struct sl_runner_segment *segment = &r->segments[p];
        if (p < r->segment_count - 1)
            spread_finals(r, p);
        for (int32_t k = 0; k < r->count; k++) {
            bool between = p > 0 && sl_runner_is_initial(r, k); /* the segment before needs it, wanted or not */
            bool is_output = r->data->slots[k].role == SL_SLOT_OUTPUT;
            grads[k] =
                is_output || between || is_wanted(r, k, (parts & now) | r->unasked_parts) ? segment->grads[k] : NULL;
        }
        bool adds = !r->stepwise && (accumulate || p < r->segment_count - 1);
        rc = go_back(r, segment, reserve_of(r, p), grads,
                     now | (p > 0 ? SEQLSTM_BIT_BACKWARD_STATES : 0u) | (adds ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u),
                     err);
    }
    if (rc == SEQLSTM_OK && r->stepwise && (parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)) {
        for (int32_t k = 0; k < r->count; k++)
            grads[k] = is_wanted(r, k, SEQLSTM_BIT_BACKWARD_WEIGHTS) ? r->whole.grads[k] : NULL;
        rc = go_back(r, &r->whole, reserve_of(r, 0), grads,
                     SEQLSTM_BIT_BACKWARD_WEIGHTS | (accumulate ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0u), err);
    }
    free(grads);
    return rc;
}
