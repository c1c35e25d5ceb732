/* SPDX-License-Identifier: Apache-2.0 */
/* See testbed.h. */
#include "dispatch/cost/testbed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "dispatch/cost/axes.h"
#include "dispatch/cost/replay.h"
#include "registry/domain.h"
#include "registry/watch/fence.h"
#include "registry/plugin.h"

/* The captures of an op at one binding: forward alone, and each forward with the backward that belongs to it (NULL:
 * there is none). A backward must follow its forward, which leaves it what it needs. */
struct replays {
    const struct seqlstm_binding *binding;
    void *forward, *both;
    bool refused; /* the device cannot capture them */
};
enum { REPLAYS_MOST = 64 };

/* The time of backward is a difference: where times vary it could be less than nothing. */
static const double least_share = 0.1; /* of forward */

struct sl_testbed {
    union seqlstm_any_desc desc;
    bool on_steps, backward;
    bool replays; /* training launches such calls as captures, where it can */
    struct sl_domain domain;
    struct sl_axes places[SL_PROFILES];
    void *ids[SL_PROFILES]; /* in the domain */
    int32_t place_count;
    int32_t slot_count;
    struct sl_slot *signature;
    void **slots, **grads;
    void *workspace, *reserve, *packed;
    uint32_t parts;
    struct seqlstm_step step;
    struct replays kept[REPLAYS_MOST];
    int32_t kept_count;
};

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to time an operation");
}

static const struct seqlstm_axis *get_axis(const struct sl_testbed *testbed, int32_t place)
{
    return testbed->on_steps ? &testbed->places[place].steps : &testbed->places[place].rows;
}

int64_t sl_testbed_get_rows(const struct sl_testbed *testbed, int32_t profile)
{
    return get_axis(testbed, profile)->rows;
}

static int64_t count_elems(const struct sl_testbed *testbed, const struct sl_slot *slot)
{
    int64_t rows = slot->rows;
    for (int32_t p = 0; slot->axis != SL_SLOT_FREE && p < testbed->place_count; p++) {
        const struct seqlstm_axis *axis = get_axis(testbed, p);
        bool on_rows = slot->axis == SL_SLOT_ON_ROWS || slot->axis == SL_SLOT_ON_ROWS_IN;
        int64_t here = on_rows ? axis->rows : axis->sequences;
        rows = here > rows ? here : rows;
    }
    return rows * slot->features;
}

/* The number of ids: rows of a table, or classes. */
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

/* Memories of equal length from the rows of the smallest profile, read in turn, as the steps of a decoder do. */
static void fill_memories(const struct sl_testbed *testbed, const struct sl_slot *slot, int32_t *buffer, int64_t elems)
{
    int64_t rows = INT64_MAX, count = testbed->desc.head.max_sequences, longest = testbed->desc.head.max_steps;
    for (int32_t p = 0; p < testbed->place_count; p++) {
        const struct seqlstm_axis *axis = get_axis(testbed, p);
        rows = axis->rows < rows ? axis->rows : rows;
        count = axis->sequences < count ? axis->sequences : count;
    }
    int64_t length = rows / count < longest ? rows / count : longest;
    for (int64_t i = 0; i < elems; i++)
        buffer[i] = (int32_t)(slot->axis != SL_SLOT_FREE ? i % count : (i < count ? i : count) * length);
}

/* Activations and gradients in (-1/2, 1/2), parameters ten times smaller, constants (weights, targets) in (0, 1). */
static void fill(const struct sl_testbed *testbed, const struct sl_slot *slot, void *buffer, int64_t elems)
{
    uint32_t state = 12345u + (uint32_t)elems;
    int64_t ids = count_ids(&testbed->desc);
    if (testbed->desc.head.op == SEQLSTM_OP_ATTENTION && slot->dtype == SEQLSTM_DTYPE_INT32) {
        fill_memories(testbed, slot, buffer, elems);
        return;
    }
    float scale = slot->role == SL_SLOT_PARAM ? 0.1f : 1.0f, shift = slot->role == SL_SLOT_CONST ? 0.5f : 0.0f;
    for (int64_t i = 0; i < elems && slot->dtype <= SEQLSTM_DTYPE_INT32; i++) {
        state = state * 1664525u + 1013904223u;
        float value = scale * ((float)(state >> 8) * 0x1p-24f - 0.5f) + shift;
        if (slot->dtype == SEQLSTM_DTYPE_FLOAT32)
            ((float *)buffer)[i] = value;
        else if (slot->dtype == SEQLSTM_DTYPE_INT32)
            ((int32_t *)buffer)[i] = (int32_t)((int64_t)(state >> 8) % ids);
    }
}

/* A buffer in the testbed's domain. Its content is made on the host and copied. */
static seqlstm_status make_buffer(struct sl_testbed *testbed, const struct sl_slot *slot, bool filled,
                                  void **out_buffer, struct seqlstm_error *err)
{
    int64_t elems = count_elems(testbed, slot), bytes = elems * sl_dtype_bytes(slot->dtype);
    SEQLSTM_TRY(sl_domain_allocate(&testbed->domain, bytes, out_buffer, err));
    if (!filled)
        return SEQLSTM_OK;
    if (sl_domain_is_host(&testbed->domain)) {
        fill(testbed, slot, *out_buffer, elems);
        return SEQLSTM_OK;
    }
    void *content = calloc((size_t)bytes + 1, 1);
    if (content == NULL)
        return no_memory(err);
    fill(testbed, slot, content, elems);
    seqlstm_status status = sl_domain_upload(&testbed->domain, *out_buffer, content, bytes, err);
    free(content);
    return status;
}

/* Does the call read or write the gradient of this slot in training? */
static bool has_grad(const struct sl_testbed *testbed, int32_t s, const struct sl_testbed_request *request)
{
    const struct sl_slot *slot = &testbed->signature[s];
    bool recurrent = testbed->desc.head.op == SEQLSTM_OP_RECURRENT;
    if (slot->dtype == SEQLSTM_DTYPE_INT32 || slot->dtype == SEQLSTM_DTYPE_FLOAT64)
        return false;
    if (slot->role == SL_SLOT_PARAM)
        return request->param_grad;
    if (slot->role == SL_SLOT_INPUT)
        return request->input_grad && !(recurrent && s != SEQLSTM_SLOT_RECURRENT_X);
    if (slot->role != SL_SLOT_OUTPUT)
        return false;
    return !recurrent || s == SEQLSTM_SLOT_RECURRENT_Y ||
           (testbed->signature[SEQLSTM_SLOT_RECURRENT_Y].role == SL_SLOT_ABSENT && slot->name[0] == 'h');
}

static seqlstm_status fill_slots(struct sl_testbed *testbed, const struct sl_testbed_request *request,
                                 struct seqlstm_error *err)
{
    for (int32_t s = 0; s < testbed->slot_count; s++) {
        const struct sl_slot *slot = &testbed->signature[s];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        bool written = slot->role == SL_SLOT_OUTPUT;
        SEQLSTM_TRY(make_buffer(testbed, slot, !written, &testbed->slots[s], err));
        if (!testbed->backward || !has_grad(testbed, s, request))
            continue;
        SEQLSTM_TRY(make_buffer(testbed, slot, written, &testbed->grads[s], err));
        if (!written)
            testbed->parts |= slot->role == SL_SLOT_PARAM ? SEQLSTM_BIT_BACKWARD_WEIGHTS : SEQLSTM_BIT_BACKWARD_INPUTS;
    }
    return SEQLSTM_OK;
}

/* Ids and positions on the device, as in training: there captured calls do not copy them from the host. */
static seqlstm_status place_ids(struct sl_testbed *testbed, int32_t place, struct seqlstm_error *err)
{
    struct sl_axes *axes = &testbed->places[place];
    const int64_t n = axes->rows.rows; /* every sequence */
    void **ids = &testbed->ids[place];
    SEQLSTM_TRY(sl_domain_allocate(&testbed->domain, 12 * n, ids, err));
    SEQLSTM_TRY(sl_domain_upload(&testbed->domain, *ids, axes->rows.sequence_id, 8 * n, err));
    SEQLSTM_TRY(sl_domain_upload(&testbed->domain, (uint64_t *)*ids + n, axes->rows.position0, 4 * n, err));
    axes->steps.device_sequence_id = axes->rows.device_sequence_id = *ids;
    axes->steps.device_position0 = axes->rows.device_position0 = (const uint32_t *)((uint64_t *)*ids + n);
    return SEQLSTM_OK;
}

static seqlstm_status prepare(struct sl_testbed *testbed, const struct sl_testbed_request *request,
                              struct seqlstm_error *err)
{
    const struct sl_profiles *profiles = request->profiles;
    for (int32_t p = 0; p < request->profile_count; p++) {
        SEQLSTM_TRY(sl_axes_init(&testbed->places[p], &profiles->items[request->profile_first + p], request->steps_most,
                                 profiles->stream, err));
        testbed->place_count++;
        if (get_axis(testbed, p)->rows == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a batch without rows cannot be timed");
    }
    testbed->signature = calloc(SL_SLOTS_MAX, sizeof *testbed->signature);
    if (testbed->signature == NULL)
        return no_memory(err);
    SEQLSTM_TRY(sl_op_signature(&testbed->desc.head, testbed->signature, SL_SLOTS_MAX, &testbed->slot_count, err));
    testbed->slots = calloc((size_t)testbed->slot_count + 1, sizeof *testbed->slots);
    testbed->grads = calloc((size_t)testbed->slot_count + 1, sizeof *testbed->grads);
    if (!testbed->slots || !testbed->grads)
        return no_memory(err);
    struct sl_domain *domain = &testbed->domain;
    const struct seqlstm_device_info *info = sl_backend_get_device(request->backend, request->device);
    if (strcmp(info->domain, "host") == 0)
        sl_domain_init_host(domain, request->pool, NULL);
    else
        SEQLSTM_TRY(sl_domain_open(domain, sl_backend_get_table(request->backend),
                                   sl_backend_get_instance(request->backend), request->device, info->domain, err));
    for (int32_t p = 0; p < testbed->place_count && request->replays && !sl_domain_is_host(domain); p++)
        SEQLSTM_TRY(place_ids(testbed, p, err));
    SEQLSTM_TRY(
        sl_domain_allocate(domain, (int64_t)request->sizes->workspace_bytes + SL_FENCE_ROOM, &testbed->workspace, err));
    SEQLSTM_TRY(
        sl_domain_allocate(domain, (int64_t)request->sizes->reserve_bytes + SL_FENCE_ROOM, &testbed->reserve, err));
    SEQLSTM_TRY(
        sl_domain_allocate(domain, (int64_t)request->sizes->packed_bytes + SL_FENCE_ROOM, &testbed->packed, err));
    return fill_slots(testbed, request, err);
}

seqlstm_status sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                 struct seqlstm_error *err)
{
    struct sl_testbed *testbed = calloc(1, sizeof *testbed);
    if (testbed == NULL)
        return no_memory(err);
    testbed->desc = *request->desc;
    testbed->on_steps = request->on_steps;
    testbed->backward = request->backward;
    testbed->replays = request->replays;
    testbed->step = (struct seqlstm_step){.struct_size = sizeof testbed->step,
                                          .seed = 1,
                                          .update = 1,
                                          .normaliser = 1e-3f,
                                          .loss_scale = 1.0f,
                                          .grad_scale = 1.0f};
    seqlstm_status status = prepare(testbed, request, err);
    if (status != SEQLSTM_OK) {
        sl_testbed_destroy(testbed);
        return status;
    }
    *out_testbed = testbed;
    return SEQLSTM_OK;
}

void sl_testbed_destroy(struct sl_testbed *testbed)
{
    if (testbed == NULL)
        return;
    for (int32_t p = 0; p < SL_PROFILES; p++)
        sl_axes_deinit(&testbed->places[p]);
    for (int32_t k = 0; k < testbed->kept_count; k++) {
        sl_domain_drop_capture(&testbed->domain, testbed->kept[k].forward);
        sl_domain_drop_capture(&testbed->domain, testbed->kept[k].both);
    }
    for (int32_t s = 0; s < testbed->slot_count; s++) {
        sl_domain_release(&testbed->domain, testbed->slots ? testbed->slots[s] : NULL);
        sl_domain_release(&testbed->domain, testbed->grads ? testbed->grads[s] : NULL);
    }
    for (int32_t p = 0; p < SL_PROFILES; p++)
        sl_domain_release(&testbed->domain, testbed->ids[p]);
    sl_domain_release(&testbed->domain, testbed->workspace);
    sl_domain_release(&testbed->domain, testbed->reserve);
    sl_domain_release(&testbed->domain, testbed->packed);
    sl_domain_close(&testbed->domain);
    free(testbed->signature);
    free(testbed->slots);
    free(testbed->grads);
    free(testbed);
}

seqlstm_status sl_testbed_bind(struct sl_testbed *testbed, const struct sl_backend *backend,
                               const struct seqlstm_op *op, int32_t profile, struct seqlstm_binding **out_binding,
                               struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = get_axis(testbed, profile);
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .flags = testbed->on_steps ? 0 : SEQLSTM_BIT_BIND_ON_SEQUENCES,
                                .rows = axis->rows,
                                .rows_in = axis->rows,
                                .axis = axis,
                                .t0 = 0,
                                .t1 = axis->steps};
    return sl_plugin_bind(sl_backend_get_table(backend), op, &testbed->domain.queue.queue, &bind, out_binding, err);
}

/* Only memory of the host is looked at. */
static void begin_fences(const struct sl_testbed *testbed, const struct seqlstm_sizes *sizes, const void *workspace,
                         const void *reserve, struct sl_fence fences[2])
{
    bool host = sl_domain_is_host(&testbed->domain);
    sl_fence_begin(&fences[0], host ? workspace : NULL, sizes->workspace_bytes);
    sl_fence_begin(&fences[1], host ? reserve : NULL, sizes->reserve_bytes);
}

static seqlstm_status end_fences(const struct sl_fence fences[2], const struct seqlstm_backend *table,
                                 enum sl_plugin_function function, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_fence_end(&fences[0], table, function, "workspace", err));
    return sl_fence_end(&fences[1], table, function, "reserve", err);
}

/* One op at one binding, and the arguments of its calls. */
struct call {
    struct sl_testbed *testbed;
    const struct seqlstm_backend *table;
    const struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    struct seqlstm_forward forward;
    struct seqlstm_backward backward;
};

static struct call make_call(struct sl_testbed *testbed, const struct seqlstm_backend *table,
                             const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                             struct seqlstm_binding *binding)
{
    void *workspace = sizes->workspace_bytes ? testbed->workspace : NULL;
    const bool training = testbed->desc.head.mode == SEQLSTM_MODE_TRAINING;
    void *reserve = training && sizes->reserve_bytes ? testbed->reserve : NULL;
    void *packed = sizes->packed_bytes ? testbed->packed : NULL;
    return (struct call){.testbed = testbed,
                         .table = table,
                         .op = op,
                         .binding = binding,
                         .forward = {.struct_size = sizeof(struct seqlstm_forward),
                                     .slot_count = (uint32_t)testbed->slot_count,
                                     .slots = testbed->slots,
                                     .workspace = workspace,
                                     .reserve = reserve,
                                     .packed = packed,
                                     .step = &testbed->step},
                         .backward = {.struct_size = sizeof(struct seqlstm_backward),
                                      .slot_count = (uint32_t)testbed->slot_count,
                                      .slots = testbed->slots,
                                      .grads = testbed->grads,
                                      .workspace = workspace,
                                      .reserve = reserve,
                                      .packed = packed,
                                      .step = &testbed->step}};
}

static seqlstm_status pack(struct call *call, struct seqlstm_error *err)
{
    struct sl_testbed *testbed = call->testbed;
    if (call->forward.packed == NULL || call->table->weights_pack == NULL)
        return SEQLSTM_OK;
    return sl_plugin_pack(call->table, call->op, &testbed->domain.queue.queue, testbed->slots,
                          (void *)call->forward.packed, &testbed->step, err);
}

static seqlstm_status forward(struct call *call, struct seqlstm_error *err)
{
    return sl_plugin_forward(call->table, call->binding, &call->testbed->domain.queue.queue, &call->forward, err);
}

static seqlstm_status backward(struct call *call, struct seqlstm_error *err)
{
    struct sl_testbed *testbed = call->testbed;
    struct seqlstm_queue *queue = &testbed->domain.queue.queue;
    const uint32_t weights = testbed->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS;
    const bool apart = testbed->desc.head.op == SEQLSTM_OP_RECURRENT &&
                       (testbed->desc.recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    call->backward.parts = apart ? testbed->parts & ~weights : testbed->parts;
    SEQLSTM_TRY(sl_plugin_backward(call->table, call->binding, queue, &call->backward, err));
    call->backward.parts = weights;
    return apart && weights ? sl_plugin_backward(call->table, call->binding, queue, &call->backward, err) : SEQLSTM_OK;
}

/* ---- replays ---- */

static seqlstm_status start_forward(void *context, struct seqlstm_error *err)
{
    SEQLSTM_TRY(pack(context, err));
    return forward(context, err);
}

static seqlstm_status start_both(void *context, struct seqlstm_error *err)
{
    SEQLSTM_TRY(start_forward(context, err));
    return backward(context, err);
}

/* Does training run this call in a capture? */
static bool is_captured(const struct sl_testbed *testbed, const struct seqlstm_backend *table,
                        const struct seqlstm_sizes *sizes)
{
    return testbed->replays && !sl_domain_is_host(&testbed->domain) && sl_domain_has_captures(table) &&
           (sizes->capture == SEQLSTM_CAPTURE_PER_SHAPE || sizes->capture == SEQLSTM_CAPTURE_ANY_SHAPE);
}

static struct replays *find_replays(struct sl_testbed *testbed, const struct seqlstm_binding *binding)
{
    for (int32_t k = 0; k < testbed->kept_count; k++)
        if (testbed->kept[k].binding == binding)
            return &testbed->kept[k];
    return NULL;
}

/* After the calls have run once. If the device cannot capture them, they have the times of starting them. */
static void record(struct call *call)
{
    struct sl_testbed *testbed = call->testbed;
    struct replays made = {.binding = call->binding};
    if (testbed->kept_count == REPLAYS_MOST)
        return;
    seqlstm_status status = sl_replay_record(&testbed->domain, start_forward, call, &made.forward, NULL);
    if (status == SEQLSTM_OK && testbed->backward && call->table->backward)
        status = sl_replay_record(&testbed->domain, start_both, call, &made.both, NULL);
    made.refused = status != SEQLSTM_OK;
    testbed->kept[testbed->kept_count++] = made;
}

static seqlstm_status replay(struct sl_testbed *testbed, const struct replays *replays, double *out_forward_ns,
                             double *out_backward_ns, struct seqlstm_error *err)
{
    *out_backward_ns = 0;
    SEQLSTM_TRY(sl_replay_time(&testbed->domain, replays->forward, out_forward_ns, err));
    if (replays->both == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_replay_time(&testbed->domain, replays->both, out_backward_ns, err));
    *out_backward_ns = fmax(*out_backward_ns - *out_forward_ns, least_share * *out_forward_ns);
    return SEQLSTM_OK;
}

/* Runs the calls once and waits for them. */
static seqlstm_status run_calls(struct call *call, const struct seqlstm_sizes *sizes, double *out_forward_ns,
                                double *out_backward_ns, struct seqlstm_error *err)
{
    struct sl_testbed *testbed = call->testbed;
    int64_t start = sl_clock_ns();
    SEQLSTM_TRY(pack(call, err));
    if (testbed->desc.head.mode != SEQLSTM_MODE_TRAINING) {
        SEQLSTM_TRY(sl_domain_finish(&testbed->domain, err));
        start = sl_clock_ns();
    }
    struct sl_fence fences[2];
    begin_fences(testbed, sizes, call->forward.workspace, call->forward.reserve, fences);
    SEQLSTM_TRY(forward(call, err));
    SEQLSTM_TRY(sl_domain_finish(&testbed->domain, err));
    int64_t middle = sl_clock_ns(), end = middle;
    SEQLSTM_TRY(end_fences(fences, call->table, SL_FUNCTION_FORWARD, err));
    if (testbed->backward && call->table->backward) {
        SEQLSTM_TRY(backward(call, err));
        SEQLSTM_TRY(sl_domain_finish(&testbed->domain, err));
        end = sl_clock_ns();
        SEQLSTM_TRY(end_fences(fences, call->table, SL_FUNCTION_BACKWARD, err));
    }
    *out_forward_ns = (double)(middle - start);
    *out_backward_ns = (double)(end - middle);
    return SEQLSTM_OK;
}

seqlstm_status sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend, const struct seqlstm_op *op,
                              const struct seqlstm_sizes *sizes, struct seqlstm_binding *binding,
                              double *out_forward_ns, double *out_backward_ns, struct seqlstm_error *err)
{
    struct call call = make_call(testbed, sl_backend_get_table(backend), op, sizes, binding);
    const struct replays *replays = find_replays(testbed, binding);
    if (replays == NULL) {
        SEQLSTM_TRY(run_calls(&call, sizes, out_forward_ns, out_backward_ns, err));
        if (!is_captured(testbed, call.table, sizes))
            return SEQLSTM_OK;
        record(&call);
        replays = find_replays(testbed, binding);
    }
    return replays && !replays->refused ? replay(testbed, replays, out_forward_ns, out_backward_ns, err)
                                        : run_calls(&call, sizes, out_forward_ns, out_backward_ns, err);
}
