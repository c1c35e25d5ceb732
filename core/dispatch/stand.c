/* SPDX-License-Identifier: Apache-2.0 */
/* See stand.h. */
#include "dispatch/stand.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/op_signature.h"
#include "dispatch/axes.h"
#include "dispatch/domain.h"

struct sl_stand {
    union seqlstm_any_desc desc;
    bool on_steps, backward;
    struct sl_domain domain;
    struct sl_axes places[SL_PROFILES];
    int32_t place_count;
    int32_t slot_count;
    struct sl_slot *signature;
    void **slots, **grads;
    void *workspace, *reserve, *packed;
    uint32_t parts;
    struct seqlstm_step step;
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to time an operation");
}

static const struct seqlstm_axis *get_axis(const struct sl_stand *stand, int32_t place)
{
    return stand->on_steps ? &stand->places[place].steps : &stand->places[place].rows;
}

int64_t sl_stand_get_rows(const struct sl_stand *stand, int32_t profile)
{
    return get_axis(stand, profile)->rows;
}

static int64_t count_elems(const struct sl_stand *stand, const struct sl_slot *slot)
{
    int64_t rows = slot->rows;
    for (int32_t p = 0; slot->axis != SL_SLOT_FREE && p < stand->place_count; p++) {
        const struct seqlstm_axis *axis = get_axis(stand, p);
        bool on_rows = slot->axis == SL_SLOT_ON_ROWS || slot->axis == SL_SLOT_ON_ROWS_IN;
        int64_t here = on_rows ? axis->rows : axis->sequences;
        rows = here > rows ? here : rows;
    }
    return rows * slot->features;
}

/* How many values an id may have: rows of a table, classes. */
static int64_t count_ids(const union seqlstm_any_desc *desc)
{
    switch (desc->head.op) {
    case SEQLSTM_OP_EMBEDDING:
        return desc->embedding.vocabulary;
    case SEQLSTM_OP_LOSS:
        return desc->loss.features;
    case SEQLSTM_OP_DENSE_LOSS:
        return desc->dense_loss.output;
    default:
        return 1;
    }
}

/* The rows of the smallest profile as memories of equal length, each looked at in turn, as a decoder's steps do. */
static void fill_memories(const struct sl_stand *stand, const struct sl_slot *slot, int32_t *buffer, int64_t elems)
{
    int64_t rows = INT64_MAX, count = stand->desc.head.max_sequences, longest = stand->desc.head.max_steps;
    for (int32_t p = 0; p < stand->place_count; p++) {
        const struct seqlstm_axis *axis = get_axis(stand, p);
        rows = axis->rows < rows ? axis->rows : rows;
        count = axis->sequences < count ? axis->sequences : count;
    }
    int64_t length = rows / count < longest ? rows / count : longest;
    for (int64_t i = 0; i < elems; i++)
        buffer[i] = (int32_t)(slot->axis != SL_SLOT_FREE ? i % count : (i < count ? i : count) * length);
}

/* Activations and gradients in (-1/2, 1/2), parameters ten times smaller, constants (weights, targets) in (0, 1). */
static void fill(const struct sl_stand *stand, const struct sl_slot *slot, void *buffer, int64_t elems)
{
    uint32_t state = 12345u + (uint32_t)elems;
    int64_t ids = count_ids(&stand->desc);
    if (stand->desc.head.op == SEQLSTM_OP_ATTENTION && slot->dtype == SEQLSTM_INT32) {
        fill_memories(stand, slot, buffer, elems);
        return;
    }
    float scale = slot->role == SL_SLOT_PARAM ? 0.1f : 1.0f, shift = slot->role == SL_SLOT_CONST ? 0.5f : 0.0f;
    for (int64_t i = 0; i < elems && slot->dtype <= SEQLSTM_INT32; i++) {
        state = state * 1664525u + 1013904223u;
        float value = scale * ((float)(state >> 8) * 0x1p-24f - 0.5f) + shift;
        if (slot->dtype == SEQLSTM_FLOAT32)
            ((float *)buffer)[i] = value;
        else if (slot->dtype == SEQLSTM_INT32)
            ((int32_t *)buffer)[i] = (int32_t)((int64_t)(state >> 8) % ids);
    }
}

/* A buffer of the stand's domain, filled by way of the host where that is not the host itself. */
static seqlstm_status make_buffer(struct sl_stand *stand, const struct sl_slot *slot, bool filled, void **out_buffer,
                                  struct seqlstm_error *err)
{
    int64_t elems = count_elems(stand, slot), bytes = elems * sl_dtype_bytes(slot->dtype);
    SEQLSTM_TRY(sl_domain_allocate(&stand->domain, bytes, out_buffer, err));
    if (!filled)
        return SEQLSTM_OK;
    if (sl_domain_is_host(&stand->domain)) {
        fill(stand, slot, *out_buffer, elems);
        return SEQLSTM_OK;
    }
    void *content = calloc((size_t)bytes + 1, 1);
    if (content == NULL)
        return no_memory(err);
    fill(stand, slot, content, elems);
    seqlstm_status status = sl_domain_upload(&stand->domain, *out_buffer, content, bytes, err);
    free(content);
    return status;
}

/* Is it a slot whose gradient the call takes in or gives out, when the model is trained? */
static bool has_grad(const struct sl_stand *stand, int32_t s, const struct sl_stand_request *request)
{
    const struct sl_slot *slot = &stand->signature[s];
    bool recurrent = stand->desc.head.op == SEQLSTM_OP_RECURRENT;
    if (slot->dtype == SEQLSTM_INT32 || slot->dtype == SEQLSTM_FLOAT64)
        return false;
    if (slot->role == SL_SLOT_PARAM)
        return request->param_grad;
    if (slot->role == SL_SLOT_INPUT)
        return request->input_grad && !(recurrent && s != SEQLSTM_RECURRENT_X);
    if (slot->role != SL_SLOT_OUTPUT)
        return false;
    return !recurrent || s == SEQLSTM_RECURRENT_Y ||
           (stand->signature[SEQLSTM_RECURRENT_Y].role == SL_SLOT_ABSENT && slot->name[0] == 'h');
}

static seqlstm_status fill_slots(struct sl_stand *stand, const struct sl_stand_request *request,
                                 struct seqlstm_error *err)
{
    for (int32_t s = 0; s < stand->slot_count; s++) {
        const struct sl_slot *slot = &stand->signature[s];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        bool written = slot->role == SL_SLOT_OUTPUT;
        SEQLSTM_TRY(make_buffer(stand, slot, !written, &stand->slots[s], err));
        if (!stand->backward || !has_grad(stand, s, request))
            continue;
        SEQLSTM_TRY(make_buffer(stand, slot, written, &stand->grads[s], err));
        if (!written)
            stand->parts |= slot->role == SL_SLOT_PARAM ? SEQLSTM_BACKWARD_WEIGHTS : SEQLSTM_BACKWARD_INPUTS;
    }
    return SEQLSTM_OK;
}

static seqlstm_status prepare(struct sl_stand *stand, const struct sl_stand_request *request,
                              struct seqlstm_error *err)
{
    const struct sl_profiles *profiles = request->profiles;
    for (int32_t p = 0; p < request->profile_count; p++) {
        SEQLSTM_TRY(sl_axes_init(&stand->places[p], &profiles->items[request->profile_first + p],
                                 request->steps_most, profiles->stream, err));
        stand->place_count++;
        if (get_axis(stand, p)->rows == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a batch without rows cannot be timed");
    }
    stand->signature = calloc(SL_SLOTS_MAX, sizeof *stand->signature);
    if (stand->signature == NULL)
        return no_memory(err);
    SEQLSTM_TRY(sl_op_signature(&stand->desc.head, stand->signature, SL_SLOTS_MAX, &stand->slot_count, err));
    stand->slots = calloc((size_t)stand->slot_count + 1, sizeof *stand->slots);
    stand->grads = calloc((size_t)stand->slot_count + 1, sizeof *stand->grads);
    if (!stand->slots || !stand->grads)
        return no_memory(err);
    struct sl_domain *domain = &stand->domain;
    const struct seqlstm_device_info *info = sl_backend_get_device(request->backend, request->device);
    if (strcmp(info->domain, "host") == 0)
        sl_domain_init_host(domain, request->pool, NULL);
    else
        SEQLSTM_TRY(sl_domain_open(domain, sl_backend_get_table(request->backend),
                                   sl_backend_get_instance(request->backend), request->device, info->domain, err));
    SEQLSTM_TRY(sl_domain_allocate(domain, (int64_t)request->sizes->workspace_bytes, &stand->workspace, err));
    SEQLSTM_TRY(sl_domain_allocate(domain, (int64_t)request->sizes->reserve_bytes, &stand->reserve, err));
    SEQLSTM_TRY(sl_domain_allocate(domain, (int64_t)request->sizes->packed_bytes, &stand->packed, err));
    return fill_slots(stand, request, err);
}

seqlstm_status sl_stand_create(const struct sl_stand_request *request, struct sl_stand **out_stand,
                               struct seqlstm_error *err)
{
    struct sl_stand *stand = calloc(1, sizeof *stand);
    if (stand == NULL)
        return no_memory(err);
    stand->desc = *request->desc;
    stand->on_steps = request->on_steps;
    stand->backward = request->backward;
    stand->step = (struct seqlstm_step){.struct_size = sizeof stand->step, .seed = 1, .update = 1,
                                        .normaliser = 1e-3f, .loss_scale = 1.0f, .grad_scale = 1.0f};
    seqlstm_status status = prepare(stand, request, err);
    if (status != SEQLSTM_OK) {
        sl_stand_destroy(stand);
        return status;
    }
    *out_stand = stand;
    return SEQLSTM_OK;
}

void sl_stand_destroy(struct sl_stand *stand)
{
    if (stand == NULL)
        return;
    for (int32_t p = 0; p < SL_PROFILES; p++)
        sl_axes_deinit(&stand->places[p]);
    for (int32_t s = 0; s < stand->slot_count; s++) {
        sl_domain_release(&stand->domain, stand->slots ? stand->slots[s] : NULL);
        sl_domain_release(&stand->domain, stand->grads ? stand->grads[s] : NULL);
    }
    sl_domain_release(&stand->domain, stand->workspace);
    sl_domain_release(&stand->domain, stand->reserve);
    sl_domain_release(&stand->domain, stand->packed);
    sl_domain_close(&stand->domain);
    free(stand->signature);
    free(stand->slots);
    free(stand->grads);
    free(stand);
}

seqlstm_status sl_stand_bind(struct sl_stand *stand, const struct sl_backend *backend, const struct seqlstm_op *op,
                             int32_t profile, struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = get_axis(stand, profile);
    struct seqlstm_bind bind = {.struct_size = sizeof bind, .flags = stand->on_steps ? 0 : SEQLSTM_BIND_ON_SEQUENCES,
                                .rows = axis->rows, .rows_in = axis->rows, .axis = axis, .t0 = 0,
                                .t1 = axis->steps};
    return sl_backend_get_table(backend)->op_bind(op, &stand->domain.queue.queue, &bind, out_binding, err);
}

seqlstm_status sl_stand_run(struct sl_stand *stand, const struct sl_backend *backend, const struct seqlstm_op *op,
                            const struct seqlstm_sizes *sizes, struct seqlstm_binding *binding, double *out_forward_ns,
                            double *out_backward_ns, struct seqlstm_error *err)
{
    const struct seqlstm_backend *table = sl_backend_get_table(backend);
    struct seqlstm_queue *queue = &stand->domain.queue.queue;
    bool training = stand->desc.head.mode == SEQLSTM_MODE_TRAINING;
    void *workspace = sizes->workspace_bytes ? stand->workspace : NULL;
    void *reserve = training && sizes->reserve_bytes ? stand->reserve : NULL;
    void *packed = sizes->packed_bytes ? stand->packed : NULL;
    struct seqlstm_forward forward = {.struct_size = sizeof forward, .slot_count = (uint32_t)stand->slot_count,
                                      .slots = stand->slots, .workspace = workspace, .reserve = reserve,
                                      .packed = packed, .step = &stand->step};
    int64_t start = sl_clock_ns();
    if (packed && table->weights_pack)
        SEQLSTM_TRY(table->weights_pack(op, queue, stand->slots, packed, &stand->step, err));
    if (!training) {
        SEQLSTM_TRY(sl_domain_finish(&stand->domain, err));
        start = sl_clock_ns();
    }
    SEQLSTM_TRY(table->forward(binding, queue, &forward, err));
    SEQLSTM_TRY(sl_domain_finish(&stand->domain, err));
    int64_t middle = sl_clock_ns(), end = middle;
    if (stand->backward && table->backward) {
        struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                            .slot_count = (uint32_t)stand->slot_count, .slots = stand->slots,
                                            .grads = stand->grads, .parts = stand->parts, .workspace = workspace,
                                            .reserve = reserve, .packed = packed, .step = &stand->step};
        SEQLSTM_TRY(table->backward(binding, queue, &backward, err));
        SEQLSTM_TRY(sl_domain_finish(&stand->domain, err));
        end = sl_clock_ns();
    }
    *out_forward_ns = (double)(middle - start);
    *out_backward_ns = (double)(end - middle);
    return SEQLSTM_OK;
}
