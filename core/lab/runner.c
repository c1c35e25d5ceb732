/* SPDX-License-Identifier: Apache-2.0 */
/* One op, its bindings (one per piece of the steps) and its buffers.
 *
 * Pieces. Slots on the steps axis point into the whole tensor. The final state of piece k is a buffer
 * of its own (`middle`), the initial state of piece k + 1; the rows of sequences that ended inside piece
 * k are copied to the final state of the whole. Backward goes the other way round:
 *
 *   forward   h0 -> [piece 0] -> middle 0 -> [piece 1] -> hn rows of the sequences that are alive
 *                                   \_ hn rows of those that ended in piece 0
 *
 * Invariants:
 *  1. pieces[k].slots and .grads are what forward and backward of piece k get, fixed at creation but for
 *     the gradients' presence, which `parts` decides.
 *  2. Reserves are one per piece, never shared; but with `stepwise` piece 0's is that of all, and gradients of
 *     parameters come from one more call, on the whole.
 */
#include "lab/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "dispatch/guard.h"
#include "dispatch/registry.h"
#include "lab/guarded.h"

struct piece {
    struct seqlstm_bind bind;
    struct seqlstm_binding *binding;
    struct sl_guarded reserve;
    struct sl_guarded *middle;      /* [count] final states, all pieces but the last */
    struct sl_guarded *middle_grad; /* [count] their gradients */
    void **slots, **grads;          /* [count] */
};

struct sl_runner {
    struct sl_arena arena;
    struct sl_subject subject;
    const struct sl_data *data;
    union seqlstm_any_desc desc;
    struct seqlstm_answer answer;
    struct seqlstm_sizes sizes;
    struct seqlstm_op *op;
    seqlstm_status (*forward)(struct seqlstm_binding *, struct seqlstm_queue *,
                              const struct seqlstm_forward *, struct seqlstm_error *);
    seqlstm_status (*backward)(struct seqlstm_binding *, struct seqlstm_queue *,
                               const struct seqlstm_backward *, struct seqlstm_error *);
    int32_t count;
    uint32_t *dtypes;          /* [count] as handed over */
    struct sl_guarded *values; /* [count] */
    struct sl_guarded *grads;
    struct sl_guarded workspace, packed;
    struct sl_twins twins;
    struct piece pieces[SL_PIECES_MAX];
    int32_t piece_count;
    bool stepwise;
    struct piece whole; /* stepwise: what dW is asked of */
    bool has_backward;
    double slope_distance; /* sl_runner_move_slopes */
    uint64_t slope_draw;
};

/* ---- creation ------------------------------------------------------------------------------- */

/* The reference computes in float64 whatever the roles say, and is asked in its own words. */
static void
clear_dtypes(union seqlstm_any_desc *desc)
{
    struct seqlstm_desc *h = &desc->head;
    if (h->op == SEQLSTM_OP_RECURRENT)
        desc->recurrent.data_scale = desc->recurrent.data_shift = 0;
    h->dtype_activation = h->dtype_activation_grad = h->dtype_state = SEQLSTM_FLOAT32;
    h->dtype_compute = h->dtype_weight = h->dtype_weight_grad = SEQLSTM_FLOAT32;
}

/* Which dtype a slot is handed over in. The float64 twins keep the 16-bit types of CAST. */
static uint32_t
handed_dtype(const struct sl_runner *r, const struct sl_slot *s)
{
    if (!r->subject.float64 || !sl_slot_is_float(s))
        return s->dtype;
    bool narrow = r->desc.head.op == SEQLSTM_OP_CAST && s->dtype != SEQLSTM_FLOAT32;
    return narrow ? s->dtype : SEQLSTM_FLOAT64;
}

static bool
is_state(const struct sl_runner *r, int32_t slot, int which)
{
    const struct sl_slot *s = &r->data->slots[slot];
    return r->desc.head.op == SEQLSTM_OP_RECURRENT && s->role != SL_SLOT_ABSENT &&
           s->axis == SL_SLOT_ON_STATES && (slot - SEQLSTM_RECURRENT_STATES) % 4 / 2 == which;
}

static bool is_initial(const struct sl_runner *r, int32_t slot) { return is_state(r, slot, 0); }
static bool is_final(const struct sl_runner *r, int32_t slot) { return is_state(r, slot, 1); }

/* Does the slot have a gradient that backward writes or reads? */
static bool
has_gradient(const struct sl_runner *r, int32_t k)
{
    const struct sl_slot *s = &r->data->slots[k];
    if (!sl_slot_is_float(s))
        return false;
    return s->role == SL_SLOT_INPUT || s->role == SL_SLOT_PARAM ||
           (s->role == SL_SLOT_OUTPUT && r->data->upstream[k]);
}

static seqlstm_status
make_buffers(struct sl_runner *r, struct seqlstm_error *err)
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

/* Pointers of piece k into whole tensors, and the states between pieces. */
static seqlstm_status
make_piece(struct sl_runner *r, int32_t p, struct seqlstm_error *err)
{
    struct piece *piece = &r->pieces[p];
    const struct seqlstm_axis *axis = &r->data->axis;
    const bool last = p == r->piece_count - 1;
    size_t count = (size_t)r->count;
    piece->slots = SL_ARENA_ARRAY(&r->arena, void *, 2 * count);
    piece->middle = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, 2 * count);
    if (!piece->slots || !piece->middle)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    piece->grads = piece->slots + count;
    piece->middle_grad = piece->middle + count;
    if (r->desc.head.mode == SEQLSTM_MODE_TRAINING && (p == 0 || !r->stepwise))
        SEQLSTM_TRY(sl_guarded_init(&piece->reserve, &r->twins, r->sizes.reserve_bytes, err));
    for (int32_t k = 0; k < r->count; k++) {
        const struct sl_slot *s = &r->data->slots[k];
        if (s->role == SL_SLOT_ABSENT)
            continue;
        uint64_t row = (uint64_t)(s->features * sl_dtype_bytes(r->dtypes[k]));
        uint64_t offset = 0;
        if (axis->steps > 0 && s->axis == SL_SLOT_ON_ROWS && piece->bind.t0 > 0)
            offset = (uint64_t)axis->row_offsets[piece->bind.t0] * row;
        piece->slots[k] = (unsigned char *)sl_guarded_get_address(&r->values[k]) + offset;
        if (r->grads[k].data)
            piece->grads[k] = (unsigned char *)sl_guarded_get_address(&r->grads[k]) + offset;
        if (p > 0 && is_initial(r, k)) { /* H0, C0 <- HN, CN of the piece before */
            piece->slots[k] = sl_guarded_get_address(&r->pieces[p - 1].middle[k + 2]);
            piece->grads[k] = sl_guarded_get_address(&r->pieces[p - 1].middle_grad[k + 2]);
        }
        if (!last && is_final(r, k)) {
            uint64_t bytes = (uint64_t)axis->batch_sizes[piece->bind.t0] * row;
            SEQLSTM_TRY(sl_guarded_init(&piece->middle[k], &r->twins, bytes, err));
            SEQLSTM_TRY(sl_guarded_init(&piece->middle_grad[k], &r->twins, bytes, err));
            piece->slots[k] = sl_guarded_get_address(&piece->middle[k]);
            piece->grads[k] = sl_guarded_get_address(&piece->middle_grad[k]);
        }
    }
    return SEQLSTM_OK;
}

static void
make_bind(const struct sl_runner *r, const struct sl_cuts *cuts, int32_t p, struct seqlstm_bind *bind)
{
    const struct sl_data *d = r->data;
    bind->struct_size = (uint32_t)sizeof *bind;
    bind->flags = d->c.on_sequences ? SEQLSTM_BIND_ON_SEQUENCES : 0;
    bind->rows = d->rows;
    bind->rows_in = d->rows_in;
    if (d->axis.steps == 0)
        return;
    bind->axis = &d->axis;
    bind->t0 = cuts && cuts->count > 1 ? cuts->at[p] : 0;
    bind->t1 = cuts && cuts->count > 1 ? cuts->at[p + 1] : d->axis.steps;
    if (!d->c.on_sequences) {
        bind->rows = d->axis.row_offsets[bind->t1] - d->axis.row_offsets[bind->t0];
        bind->rows_in = bind->rows;
    }
}

static seqlstm_status
bind_piece(struct sl_runner *r, struct piece *piece, struct seqlstm_error *err)
{
    SEQLSTM_TRY(r->subject.table->op_bind(r->op, r->subject.queue, &piece->bind, &piece->binding, err));
    if (!piece->binding)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "op_bind said OK and returned no binding");
    return SEQLSTM_OK;
}

/* Whole tensors, the first piece's initial states. */
static seqlstm_status
make_whole(struct sl_runner *r, struct seqlstm_error *err)
{
    struct piece *whole = &r->whole;
    make_bind(r, NULL, 0, &whole->bind);
    whole->slots = SL_ARENA_ARRAY(&r->arena, void *, 2 * (size_t)r->count);
    if (!whole->slots)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    whole->grads = whole->slots + r->count;
    for (int32_t k = 0; k < r->count; k++) {
        whole->slots[k] = sl_guarded_get_address(&r->values[k]);
        whole->grads[k] = sl_guarded_get_address(&r->grads[k]);
    }
    return bind_piece(r, whole, err);
}

static seqlstm_status
create_op(struct sl_runner *r, const char *variant, struct seqlstm_error *err)
{
    const struct sl_subject *s = &r->subject;
    SEQLSTM_TRY(sl_table_supports(s->table, s->device_class, &r->desc.head, &r->answer, err));
    if (!r->answer.accepted)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s", r->answer.reason);
    SEQLSTM_TRY(s->table->op_create(s->instance, s->device, &r->desc.head,
                                    variant ? variant : r->answer.variants[0], &r->op, err));
    if (!r->op)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "op_create said OK and returned no op");
    r->sizes.struct_size = (uint32_t)sizeof r->sizes;
    SEQLSTM_TRY(s->table->op_sizes(r->op, &r->sizes, err));
    if (r->sizes.packed_bytes > 0 && !s->table->weights_pack)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "op_sizes asks for packed weights, and the table has no weights_pack");
    return SEQLSTM_OK;
}

seqlstm_status
sl_runner_create(const struct sl_subject *subject, const struct sl_data *data, const char *variant,
                 const struct sl_cuts *cuts, struct sl_runner **out_runner, struct seqlstm_error *err)
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
    r->piece_count = cuts && cuts->count > 1 ? cuts->count : 1;
    r->stepwise = r->desc.head.op == SEQLSTM_OP_RECURRENT && r->desc.head.mode == SEQLSTM_MODE_TRAINING &&
                  (r->desc.recurrent.options & SEQLSTM_RECURRENT_STEPWISE);
    r->dtypes = SL_ARENA_ARRAY(&r->arena, uint32_t, count);
    r->values = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, count);
    r->grads = SL_ARENA_ARRAY(&r->arena, struct sl_guarded, count);
    if (!r->dtypes || !r->values || !r->grads)
        goto no_memory;
    rc = create_op(r, variant, err);
    if (rc == SEQLSTM_OK)
        rc = make_buffers(r, err);
    for (int32_t p = 0; rc == SEQLSTM_OK && p < r->piece_count; p++) {
        make_bind(r, cuts, p, &r->pieces[p].bind);
        rc = make_piece(r, p, err);
        if (rc == SEQLSTM_OK)
            rc = bind_piece(r, &r->pieces[p], err);
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

void
sl_runner_destroy(struct sl_runner *r)
{
    if (!r)
        return;
    for (int32_t p = 0; p < r->piece_count; p++) {
        struct piece *piece = &r->pieces[p];
        if (piece->binding)
            r->subject.table->binding_destroy(piece->binding);
        sl_guarded_deinit(&piece->reserve);
        for (int32_t k = 0; piece->middle && k < r->count; k++) {
            sl_guarded_deinit(&piece->middle[k]);
            sl_guarded_deinit(&piece->middle_grad[k]);
        }
    }
    if (r->whole.binding)
        r->subject.table->binding_destroy(r->whole.binding);
    if (r->op)
        r->subject.table->op_destroy(r->op);
    for (int32_t k = 0; r->values && r->grads && k < r->count; k++) {
        sl_guarded_deinit(&r->values[k]);
        sl_guarded_deinit(&r->grads[k]);
    }
    sl_guarded_deinit(&r->workspace);
    sl_guarded_deinit(&r->packed);
    sl_arena_deinit(&r->arena);
    free(r);
}

const struct seqlstm_answer *
sl_runner_get_answer(const struct sl_runner *runner)
{
    return &runner->answer;
}

void
sl_runner_set_data(struct sl_runner *runner, const struct sl_data *data)
{
    runner->data = data;
}

void
sl_runner_move_slopes(struct sl_runner *runner, double distance, uint64_t draw)
{
    runner->slope_distance = distance;
    runner->slope_draw = draw;
}

/* What a call may not do to the thread that made it. */
static seqlstm_status
check_mode(const struct sl_fp_state *before, const char *what, seqlstm_status rc, struct seqlstm_error *err)
{
    struct sl_fp_state after = sl_fp_state_get();
    if (after.vector == before->vector && after.x87 == before->x87)
        return rc;
    sl_fp_state_set(*before);
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "%s changed the floating-point mode (MXCSR %#x to %#x, x87 %#x to %#x)", what,
                 before->vector, after.vector, before->x87, after.x87);
}

static const struct sl_guarded *
reserve_of(const struct sl_runner *r, int32_t p)
{
    return &r->pieces[r->stepwise ? 0 : p].reserve;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Rows of the final states that ended in piece p: from the piece's own state to the whole's. */
static void
collect_finals(struct sl_runner *r, int32_t p)
{
    const int32_t *alive = r->data->axis.batch_sizes;
    for (int32_t k = 0; k < r->count; k++) {
        if (!is_final(r, k) || !r->pieces[p].middle[k].data)
            continue;
        size_t row = (size_t)(r->data->slots[k].features * sl_dtype_bytes(r->dtypes[k]));
        size_t from = (size_t)alive[r->pieces[p + 1].bind.t0], to = (size_t)alive[r->pieces[p].bind.t0];
        memcpy((unsigned char *)r->values[k].data + from * row,
               (unsigned char *)r->pieces[p].middle[k].data + from * row, (to - from) * row);
    }
}

seqlstm_status
sl_runner_forward(struct sl_runner *r, struct seqlstm_error *err)
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
        SEQLSTM_TRY(table->weights_pack(r->op, r->subject.queue, r->pieces[0].slots,
                                        sl_guarded_get_address(&r->packed), &r->data->step, err));
        SEQLSTM_TRY(sl_twins_download(&r->twins, err));
    }
    for (int32_t p = 0; p < r->piece_count; p++) {
        struct piece *piece = &r->pieces[p];
        for (int32_t k = 0; k < r->count; k++)
            sl_guarded_poison(&piece->middle[k]);
        if (p == 0 || !r->stepwise)
            sl_guarded_poison(&piece->reserve);
        sl_guarded_poison(&r->workspace);
        struct seqlstm_forward args = {
            .struct_size = (uint32_t)sizeof args,
            .slot_count = (uint32_t)r->count,
            .slots = piece->slots,
            .workspace = sl_guarded_get_address(&r->workspace),
            .reserve = sl_guarded_get_address(reserve_of(r, p)),
            .packed = sl_guarded_get_address(&r->packed),
            .step = &r->data->step,
        };
        SEQLSTM_TRY(sl_twins_upload(&r->twins, err));
        struct sl_fp_state mode = sl_fp_state_get();
        seqlstm_status rc = r->forward(piece->binding, r->subject.queue, &args, err);
        SEQLSTM_TRY(check_mode(&mode, "forward", rc, err));
        SEQLSTM_TRY(sl_twins_download(&r->twins, err));
    }
    for (int32_t p = 0; p + 1 < r->piece_count; p++)
        collect_finals(r, p);
    return SEQLSTM_OK;
}

/* ---- backward ------------------------------------------------------------------------------- */

static uint32_t
part_of(const struct sl_runner *r, int32_t k)
{
    if (r->data->slots[k].role == SL_SLOT_PARAM)
        return SEQLSTM_BACKWARD_WEIGHTS;
    return is_initial(r, k) ? SEQLSTM_BACKWARD_STATES : SEQLSTM_BACKWARD_INPUTS;
}

/* Is this gradient an output of backward under `parts`? */
static bool
is_wanted(const struct sl_runner *r, int32_t k, uint32_t parts)
{
    const struct sl_slot *s = &r->data->slots[k];
    if (s->role != SL_SLOT_INPUT && s->role != SL_SLOT_PARAM)
        return false;
    if (s->role == SL_SLOT_INPUT && part_of(r, k) == SEQLSTM_BACKWARD_INPUTS && r->data->c.no_input_grad)
        return false;
    return (part_of(r, k) & parts) != 0;
}

static void
fill_grads(struct sl_runner *r, bool accumulate)
{
    for (int32_t k = 0; k < r->count; k++) {
        const struct sl_slot *s = &r->data->slots[k];
        if (!r->grads[k].block)
            continue;
        sl_guarded_poison(&r->grads[k]);
        const double *from = s->role == SL_SLOT_OUTPUT ? r->data->upstream[k]
                             : accumulate && s->role == SL_SLOT_PARAM ? r->data->base[k]
                                                                     : NULL;
        if (from && r->grads[k].data)
            sl_dtype_store(r->dtypes[k], r->grads[k].data, from, r->data->elems[k]);
    }
}

/* Upstream of the sequences that ended in piece p; the others' came from piece p + 1's backward. */
static void
spread_finals(struct sl_runner *r, int32_t p)
{
    const int32_t *alive = r->data->axis.batch_sizes;
    for (int32_t k = 0; k < r->count; k++) {
        struct sl_guarded *middle = &r->pieces[p].middle_grad[k];
        if (!middle->data)
            continue;
        size_t row = (size_t)(r->data->slots[k].features * sl_dtype_bytes(r->dtypes[k]));
        size_t from = (size_t)alive[r->pieces[p + 1].bind.t0], to = (size_t)alive[r->pieces[p].bind.t0];
        if (r->grads[k].data)
            memcpy((unsigned char *)middle->data + from * row,
                   (unsigned char *)r->grads[k].data + from * row, (to - from) * row);
        else
            memset((unsigned char *)middle->data + from * row, 0, (to - from) * row);
    }
}

/* One call; the workspace is poisoned before it. */
static seqlstm_status
go_back(struct sl_runner *r, const struct piece *piece, const struct sl_guarded *reserve, void *const *grads,
        uint32_t parts, struct seqlstm_error *err)
{
    sl_guarded_poison(&r->workspace);
    struct seqlstm_backward args = {
        .struct_size = (uint32_t)sizeof args,
        .slot_count = (uint32_t)r->count,
        .slots = piece->slots,
        .grads = grads,
        .parts = parts,
        .workspace = sl_guarded_get_address(&r->workspace),
        .reserve = sl_guarded_get_address(reserve),
        .packed = sl_guarded_get_address(&r->packed),
        .step = &r->data->step,
    };
    SEQLSTM_TRY(sl_twins_upload(&r->twins, err));
    struct sl_fp_state mode = sl_fp_state_get();
    seqlstm_status rc =
        r->slope_distance > 0
            ? r->subject.float64->backward_moved(piece->binding, r->subject.queue, &args, r->slope_distance,
                                                 r->slope_draw, err)
            : r->backward(piece->binding, r->subject.queue, &args, err);
    SEQLSTM_TRY(check_mode(&mode, "backward", rc, err));
    return sl_twins_download(&r->twins, err);
}

seqlstm_status
sl_runner_backward(struct sl_runner *r, uint32_t parts, bool accumulate, struct seqlstm_error *err)
{
    if (!r->backward)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s has no backward", r->subject.table->id);
    void **grads = calloc((size_t)r->count, sizeof *grads);
    if (!grads)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for case %s", r->data->c.text);
    fill_grads(r, accumulate);
    r->has_backward = true;
    seqlstm_status rc = SEQLSTM_OK;
    const uint32_t now = r->stepwise ? (parts & ~(uint32_t)SEQLSTM_BACKWARD_WEIGHTS) | SEQLSTM_BACKWARD_STATES : parts;
    for (int32_t p = r->piece_count - 1; rc == SEQLSTM_OK && p >= 0; p--) {
        struct piece *piece = &r->pieces[p];
        if (p < r->piece_count - 1)
            spread_finals(r, p);
        for (int32_t k = 0; k < r->count; k++) {
            bool between = p > 0 && is_initial(r, k); /* needed by the piece before, wanted or not */
            bool is_output = r->data->slots[k].role == SL_SLOT_OUTPUT;
            grads[k] = is_output || between || is_wanted(r, k, parts & now) ? piece->grads[k] : NULL;
        }
        bool adds = !r->stepwise && (accumulate || p < r->piece_count - 1);
        rc = go_back(r, piece, reserve_of(r, p), grads,
                     now | (p > 0 ? SEQLSTM_BACKWARD_STATES : 0u) | (adds ? SEQLSTM_BACKWARD_ACCUMULATE : 0u), err);
    }
    if (rc == SEQLSTM_OK && r->stepwise && (parts & SEQLSTM_BACKWARD_WEIGHTS)) {
        for (int32_t k = 0; k < r->count; k++)
            grads[k] = is_wanted(r, k, SEQLSTM_BACKWARD_WEIGHTS) ? r->whole.grads[k] : NULL;
        rc = go_back(r, &r->whole, reserve_of(r, 0), grads,
                     SEQLSTM_BACKWARD_WEIGHTS | (accumulate ? SEQLSTM_BACKWARD_ACCUMULATE : 0u), err);
    }
    free(grads);
    return rc;
}

/* ---- results -------------------------------------------------------------------------------- */

bool
sl_runner_read(const struct sl_runner *r, int32_t slot, bool gradient, double *out)
{
    const struct sl_guarded *buffer = gradient ? &r->grads[slot] : &r->values[slot];
    enum sl_slot_role role = r->data->slots[slot].role;
    bool is_result = gradient ? r->has_backward && (role == SL_SLOT_INPUT || role == SL_SLOT_PARAM)
                              : role == SL_SLOT_OUTPUT || role == SL_SLOT_INOUT;
    if (!buffer->data || !is_result)
        return false;
    sl_dtype_load(r->dtypes[slot], buffer->data, out, r->data->elems[slot]);
    return true;
}

static bool
report_damage(const struct sl_guarded *buffer, const char *name, char *text, size_t capacity)
{
    int64_t at = sl_guarded_check(buffer);
    if (at == 0)
        return false;
    sl_text_snprintf(text, capacity, "wrote %lld byte%s %s %s (%llu bytes)", (long long)(at < 0 ? -at : at),
                     at == 1 || at == -1 ? "" : "s", at < 0 ? "before" : "behind the end of", name,
                     (unsigned long long)buffer->bytes);
    return true;
}

/* An input must still hold what was stored. */
static bool
input_changed(const struct sl_runner *r, int32_t k, char *text, size_t capacity)
{
    enum sl_slot_role role = r->data->slots[k].role;
    if (role != SL_SLOT_INPUT && role != SL_SLOT_PARAM && role != SL_SLOT_CONST)
        return false;
    size_t one = (size_t)sl_dtype_bytes(r->dtypes[k]);
    for (int64_t i = 0; i < r->data->elems[k]; i++) {
        unsigned char expected[8];
        sl_dtype_store(r->dtypes[k], expected, &r->data->values[k][i], 1);
        if (memcmp(expected, (const unsigned char *)r->values[k].data + (size_t)i * one, one) != 0) {
            sl_text_snprintf(text, capacity, "changed element %lld of the input %s", (long long)i,
                             r->data->slots[k].name);
            return true;
        }
    }
    return false;
}

bool
sl_runner_find_damage(const struct sl_runner *r, char *text, size_t capacity_bytes)
{
    for (int32_t k = 0; k < r->count; k++) {
        char name[64];
        const char *slot = r->data->slots[k].name;
        if (!r->values[k].block)
            continue;
        sl_text_snprintf(name, sizeof name, "d%s", slot);
        if (report_damage(&r->values[k], slot, text, capacity_bytes) ||
            report_damage(&r->grads[k], name, text, capacity_bytes) ||
            input_changed(r, k, text, capacity_bytes))
            return true;
    }
    for (int32_t p = 0; p < r->piece_count; p++) {
        const struct piece *piece = &r->pieces[p];
        if (report_damage(&piece->reserve, "the reserve", text, capacity_bytes))
            return true;
        for (int32_t k = 0; k < r->count; k++)
            if (report_damage(&piece->middle[k], "a state between pieces", text, capacity_bytes) ||
                report_damage(&piece->middle_grad[k], "a state's gradient between pieces", text, capacity_bytes))
                return true;
    }
    return report_damage(&r->workspace, "the workspace", text, capacity_bytes) ||
           report_damage(&r->packed, "the packed weights", text, capacity_bytes);
}

uint64_t
sl_runner_digest(const struct sl_runner *r)
{
    uint64_t digest = 0;
    for (int32_t k = 0; k < r->count; k++) {
        enum sl_slot_role role = r->data->slots[k].role;
        if (role == SL_SLOT_OUTPUT || role == SL_SLOT_INOUT)
            digest = sl_hash_bytes(r->values[k].data, (size_t)r->values[k].bytes, digest + 1);
        else if (r->has_backward && r->grads[k].data)
            digest = sl_hash_bytes(r->grads[k].data, (size_t)r->grads[k].bytes, digest + 1);
    }
    return digest;
}
