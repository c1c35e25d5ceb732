/* SPDX-License-Identifier: Apache-2.0 */
/* Creates runners: operation, buffers, segments, bindings. See runner_private.h. */
#include "judge/runner_private.h"

#include <stdlib.h>

#include "registry/answer.h"
#include "registry/plugin.h"

/* The reference computes in float64 whatever the roles say, so its descriptor has no dtypes. */
static void clear_dtypes(union seqlstm_any_desc *desc)
{
    struct seqlstm_desc *h = &desc->head;
    if (h->op == SEQLSTM_OP_RECURRENT)
        desc->recurrent.data_scale = desc->recurrent.data_shift = 0;
    h->dtype_activation = h->dtype_activation_grad = h->dtype_state = SEQLSTM_DTYPE_FLOAT32;
    h->dtype_compute = h->dtype_weight = h->dtype_weight_grad = SEQLSTM_DTYPE_FLOAT32;
}

/* The dtype in which a slot is passed. The float64 calls keep the 16-bit types of CAST. */
static uint32_t handed_dtype(const struct sl_runner *r, const struct sl_slot *s)
{
    if (!r->subject.float64 || !sl_slot_is_float(s))
        return s->dtype;
    bool narrow = r->desc.head.op == SEQLSTM_OP_CAST && s->dtype != SEQLSTM_DTYPE_FLOAT32;
    return narrow ? s->dtype : SEQLSTM_DTYPE_FLOAT64;
}

static bool is_state(const struct sl_runner *r, int32_t slot, int which)
{
    const struct sl_slot *s = &r->data->slots[slot];
    return r->desc.head.op == SEQLSTM_OP_RECURRENT && s->role != SL_SLOT_ABSENT && s->axis == SL_SLOT_ON_STATES &&
           (slot - SEQLSTM_SLOT_RECURRENT_STATES) % 4 / 2 == which;
}

bool sl_runner_is_initial(const struct sl_runner *r, int32_t slot)
{
    return is_state(r, slot, 0);
}

bool sl_runner_is_final(const struct sl_runner *r, int32_t slot)
{
    return is_state(r, slot, 1);
}

/* Returns true if backward writes or reads a gradient of this slot. */
static bool has_gradient(const struct sl_runner *r, int32_t k)
{
    const struct sl_slot *s = &r->data->slots[k];
    if (!sl_slot_is_float(s))
        return false;
    return s->role == SL_SLOT_INPUT || s->role == SL_SLOT_PARAM || (s->role == SL_SLOT_OUTPUT && r->data->upstream[k]);
}

static seqlstm_status make_buffers(struct sl_runner *r, struct seqlstm_error *err)
{
    for (int32_t k = 0; k < r->count; k++) {
        const struct sl_slot *s = &r->data->slots[k];
        if (s->role == SL_SLOT_ABSENT)
            continue;
        r->dtypes[k] = handed_dtype(r, s);
        uint64_t bytes = (uint64_t)(r->data->elems[k] * sl_dtype_bytes(r->dtypes[k]));
        SEQLSTM_TRY(sl_guarded_init(&r->values[k], &r->twins, bytes, err));
        if (has_gradient(r, k))
            SEQLSTM_TRY(sl_guarded_init(&r->grads[k], &r->twins, bytes, err));
    }
    SEQLSTM_TRY(sl_guarded_init(&r->workspace, &r->twins, r->sizes.workspace_bytes, err));
    return sl_guarded_init(&r->packed, &r->twins, r->sizes.packed_bytes, err);
}

/* The pointers of segment k into whole tensors, and the states between segments. */
static seqlstm_status make_segment(struct sl_runner *r, int32_t p, struct seqlstm_error *err)
{
    struct sl_runner_segment *segment = &r->segments[p];
    const struct seqlstm_axis *axis = &r->data->axis;
    const bool last = p == r->segment_count - 1;
    size_t count = (size_t)r->count;
    segment->slots = SL_ARENA_ARRAY(&r->arena, void *, 2 * count);
    segment->middle = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, 2 * count);
    if (!segment->slots || !segment->middle)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    segment->grads = segment->slots + count;
    segment->middle_grad = segment->middle + count;
    if (r->desc.head.mode == SEQLSTM_MODE_TRAINING && (p == 0 || !r->stepwise))
        SEQLSTM_TRY(sl_guarded_init(&segment->reserve, &r->twins, r->sizes.reserve_bytes, err));
    for (int32_t k = 0; k < r->count; k++) {
        const struct sl_slot *s = &r->data->slots[k];
        if (s->role == SL_SLOT_ABSENT)
            continue;
        uint64_t row = (uint64_t)(s->features * sl_dtype_bytes(r->dtypes[k]));
        uint64_t offset = 0;
        if (axis->steps > 0 && s->axis == SL_SLOT_ON_ROWS && segment->bind.t0 > 0)
            offset = (uint64_t)axis->row_offsets[segment->bind.t0] * row;
        segment->slots[k] = (unsigned char *)sl_guarded_get_address(&r->values[k]) + offset;
        if (r->grads[k].data)
            segment->grads[k] = (unsigned char *)sl_guarded_get_address(&r->grads[k]) + offset;
        if (p > 0 && sl_runner_is_initial(r, k)) { /* H0, C0 <- HN, CN of the segment before */
            segment->slots[k] = sl_guarded_get_address(&r->segments[p - 1].middle[k + 2]);
            segment->grads[k] = sl_guarded_get_address(&r->segments[p - 1].middle_grad[k + 2]);
        }
        if (!last && sl_runner_is_final(r, k)) {
            uint64_t bytes = (uint64_t)axis->batch_sizes[segment->bind.t0] * row;
            SEQLSTM_TRY(sl_guarded_init(&segment->middle[k], &r->twins, bytes, err));
            SEQLSTM_TRY(sl_guarded_init(&segment->middle_grad[k], &r->twins, bytes, err));
            segment->slots[k] = sl_guarded_get_address(&segment->middle[k]);
            segment->grads[k] = sl_guarded_get_address(&segment->middle_grad[k]);
        }
    }
    return SEQLSTM_OK;
}

static void make_bind(const struct sl_runner *r, const struct sl_cuts *cuts, int32_t p, struct seqlstm_bind *bind)
{
    const struct sl_data *d = r->data;
    bind->struct_size = (uint32_t)sizeof *bind;
    bind->flags = d->c.on_sequences ? SEQLSTM_BIT_BIND_ON_SEQUENCES : 0;
    bind->rows = d->rows;
    bind->rows_in = d->rows_in;
    if (d->axis.steps == 0)
        return;
    bind->axis = &d->axis;
    bind->t0 = cuts && cuts->count > 1 ? cuts->at[p] : 0;
    bind->t1 = cuts && cuts->count > 1 ? cuts->at[p + 1] : d->axis.steps;
    if (!d->c.on_sequences) {
        bind->rows = d->axis.row_offsets[bind->t1] - d->axis.row_offsets[bind->t0];
        if (d->rows_in == d->rows) /* otherwise it reads all rows of another axis */
            bind->rows_in = bind->rows;
    }
}

static seqlstm_status bind_segment(struct sl_runner *r, struct sl_runner_segment *segment, struct seqlstm_error *err)
{
    return sl_plugin_bind(r->subject.table, r->op, r->subject.queue, &segment->bind, &segment->binding, err);
}

/* Gives a binding that had another shape that of the segment; where it cannot be changed, makes another one. */
static seqlstm_status change_binding(struct sl_runner *r, struct sl_cuts *cuts, struct sl_runner_segment *segment,
                                     struct seqlstm_error *err)
{
    const struct sl_subject *s = &r->subject;
    const struct seqlstm_rebind *extension = sl_plugin_find_rebind(s->table, s->instance);
    cuts->rebinds->fail_after = cuts->rebinds->memory.n_allocs;
    const seqlstm_status status =
        sl_plugin_rebind(s->table, extension, segment->binding, s->queue, &segment->bind, err);
    cuts->rebinds->fail_after = -1;
    cuts->rebound += status == SEQLSTM_OK;
    if (status != SEQLSTM_UNSUPPORTED)
        return status;
    sl_plugin_destroy_binding(s->table, segment->binding);
    segment->binding = NULL;
    return bind_segment(r, segment, err);
}

/* Binds all steps, and changes that binding. Another one has had the shape of the segment before, so that what the
 * backend keeps of bindings that have ended is there. */
static seqlstm_status rebind_segment(struct sl_runner *r, struct sl_cuts *cuts, struct sl_runner_segment *segment,
                                     struct seqlstm_error *err)
{
    const struct sl_subject *s = &r->subject;
    const struct seqlstm_bind part = segment->bind;
    SEQLSTM_TRY(bind_segment(r, segment, err));
    if (sl_plugin_find_rebind(s->table, s->instance) == NULL)
        return SEQLSTM_OK;
    sl_plugin_destroy_binding(s->table, segment->binding);
    segment->binding = NULL;
    make_bind(r, NULL, 0, &segment->bind);
    const seqlstm_status bound = bind_segment(r, segment, err);
    segment->bind = part;
    return bound == SEQLSTM_OK ? change_binding(r, cuts, segment, err) : bound;
}

seqlstm_status sl_runner_exchange_bindings(struct sl_runner *r, struct sl_cuts *cuts, struct seqlstm_error *err)
{
    struct seqlstm_binding *const first = r->segments[0].binding;
    for (int32_t p = 0; p < r->segment_count; p++)
        r->segments[p].binding = p + 1 < r->segment_count ? r->segments[p + 1].binding : first;
    for (int32_t p = 0; p < r->segment_count; p++)
        SEQLSTM_TRY(change_binding(r, cuts, &r->segments[p], err));
    return SEQLSTM_OK;
}

/* Whole tensors, with the initial states of the first segment. */
static seqlstm_status make_whole(struct sl_runner *r, struct seqlstm_error *err)
{
    struct sl_runner_segment *whole = &r->whole;
    make_bind(r, NULL, 0, &whole->bind);
    whole->slots = SL_ARENA_ARRAY(&r->arena, void *, 2 * (size_t)r->count);
    if (!whole->slots)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    whole->grads = whole->slots + r->count;
    for (int32_t k = 0; k < r->count; k++) {
        whole->slots[k] = sl_guarded_get_address(&r->values[k]);
        whole->grads[k] = sl_guarded_get_address(&r->grads[k]);
    }
    return bind_segment(r, whole, err);
}

static seqlstm_status create_op(struct sl_runner *r, const char *variant, struct seqlstm_error *err)
{
    const struct sl_subject *s = &r->subject;
    SEQLSTM_TRY(sl_table_supports(s->table, s->device_class, &r->desc.head, &r->answer, err));
    if (!r->answer.accepted)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s", r->answer.reason);
    SEQLSTM_TRY(sl_plugin_create_op(s->table, s->instance, s->device, &r->desc.head,
                                    variant ? variant : r->answer.variants[0], &r->op, err));
    r->sizes.struct_size = (uint32_t)sizeof r->sizes;
    r->sizes.members = s->queue->members;
    SEQLSTM_TRY(sl_plugin_get_sizes(s->table, r->op, &r->sizes, err));
    if (r->sizes.packed_bytes > 0 && !s->table->weights_pack)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "op_sizes asks for packed weights, and the table has no weights_pack");
    return SEQLSTM_OK;
}

seqlstm_status sl_runner_create(const struct sl_subject *subject, const struct sl_data *data, const char *variant,
                                struct sl_cuts *cuts, struct sl_runner **out_runner, struct seqlstm_error *err)
{
    struct sl_runner *r = calloc(1, sizeof *r);
    seqlstm_status rc = SEQLSTM_NO_MEMORY;
    size_t count = (size_t)data->count;
    if (!r)
        goto no_memory;
    r->subject = *subject;
    r->twins.domain = subject->domain;
    r->data = data;
    r->desc = data->c.desc;
    r->forward = subject->table->forward;
    r->backward = subject->table->backward;
    if (subject->float64) {
        r->forward = subject->float64->forward;
        r->backward = subject->float64->backward;
        clear_dtypes(&r->desc);
    }
    r->count = data->count;
    r->segment_count = cuts && cuts->count > 1 ? cuts->count : 1;
    r->stepwise = r->desc.head.op == SEQLSTM_OP_RECURRENT && r->desc.head.mode == SEQLSTM_MODE_TRAINING &&
                  (r->desc.recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    r->dtypes = SL_ARENA_ARRAY(&r->arena, uint32_t, count);
    r->values = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, count);
    r->grads = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, count);
    if (!r->dtypes || !r->values || !r->grads)
        goto no_memory;
    rc = create_op(r, variant, err);
    if (rc == SEQLSTM_OK)
        rc = make_buffers(r, err);
    for (int32_t p = 0; rc == SEQLSTM_OK && p < r->segment_count; p++) {
        make_bind(r, cuts, p, &r->segments[p].bind);
        rc = make_segment(r, p, err);
        if (rc == SEQLSTM_OK)
            rc = cuts && cuts->rebinds ? rebind_segment(r, cuts, &r->segments[p], err)
                                       : bind_segment(r, &r->segments[p], err);
    }
    if (rc == SEQLSTM_OK && r->stepwise)
        rc = make_whole(r, err);
    if (rc != SEQLSTM_OK) {
        sl_runner_destroy(r);
        return rc;
    }
    *out_runner = r;
    return SEQLSTM_OK;
no_memory:
    sl_runner_destroy(r);
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", data->c.text);
}

void sl_runner_destroy(struct sl_runner *r)
{
    if (!r)
        return;
    for (int32_t p = 0; p < r->segment_count; p++) {
        struct sl_runner_segment *segment = &r->segments[p];
        if (segment->binding)
            sl_plugin_destroy_binding(r->subject.table, segment->binding);
        sl_guarded_deinit(&segment->reserve);
        for (int32_t k = 0; segment->middle_grad && k < r->count; k++) {
            sl_guarded_deinit(&segment->middle[k]);
            sl_guarded_deinit(&segment->middle_grad[k]);
        }
    }
    if (r->whole.binding)
        sl_plugin_destroy_binding(r->subject.table, r->whole.binding);
    if (r->op)
        sl_plugin_destroy_op(r->subject.table, r->op);
    for (int32_t k = 0; r->values && r->grads && k < r->count; k++) {
        sl_guarded_deinit(&r->values[k]);
        sl_guarded_deinit(&r->grads[k]);
    }
    sl_guarded_deinit(&r->workspace);
    sl_guarded_deinit(&r->packed);
    sl_arena_deinit(&r->arena);
    sl_idle_deinit(&r->idle);
    free(r);
}

void sl_runner_set_data(struct sl_runner *runner, const struct sl_data *data)
{
    runner->data = data;
}

void sl_runner_move_slopes(struct sl_runner *runner, double distance, uint64_t draw)
{
    runner->slope_distance = distance;
    runner->slope_draw = draw;
}
