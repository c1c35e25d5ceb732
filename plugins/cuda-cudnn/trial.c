/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a new operation once, forward and (in training) backward, before its creation succeeds: cuDNN refuses some
 * combinations of algorithm, device and shape only when they run. The batch has the largest number of sequences and a
 * few steps. Its values are zeros, except for mixed variants, whose gradients are compared (pair.c). */
#include "trial.h"

#include <string.h>

enum { STEPS = 2, STEPS_OF_PAIR = 4 };

/* An axis whose first sequence has STEPS steps; the others have one step, or STEPS too if all lengths are equal. Fewer
 * where the largest batch has not enough rows. */
struct trial_axis {
    struct seqlstm_axis axis;
    int32_t batch_sizes[STEPS_OF_PAIR];
    int64_t row_offsets[STEPS_OF_PAIR + 1];
};

static void make_axis(const struct seqlstm_op *op, int32_t *lengths, struct trial_axis *t)
{
    const struct seqlstm_desc *head = &op->desc.head;
    const int32_t b = (int32_t)head->max_sequences, later = head->flags & SEQLSTM_BIT_DESC_UNIFORM ? b : 1;
    const int64_t most = op->mixed ? STEPS_OF_PAIR : STEPS, room = 1 + (head->max_rows - b) / later;
    int64_t steps = head->max_steps < most ? head->max_steps : most;
    steps = room < steps ? (room < 1 ? 1 : room) : steps;
    t->row_offsets[0] = 0;
    for (int64_t k = 0; k < steps; k++) {
        t->batch_sizes[k] = k == 0 ? b : later;
        t->row_offsets[k + 1] = t->row_offsets[k] + t->batch_sizes[k];
    }
    for (int32_t k = 0; k < b; k++)
        lengths[k] = k < later ? (int32_t)steps : 1;
    t->axis = (struct seqlstm_axis){.struct_size = sizeof t->axis,
                                    .sequences = b,
                                    .steps = steps,
                                    .rows = t->row_offsets[steps],
                                    .lengths = lengths,
                                    .batch_sizes = t->batch_sizes,
                                    .row_offsets = t->row_offsets};
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void count_elements(struct cdn_trial *t)
{
    const struct seqlstm_op *op = t->call.op;
    const struct seqlstm_recurrent_desc *d = &op->desc;
    const int64_t count = d->layers * cdn_directions(d);
    const int64_t wider = cdn_output(d) > d->hidden ? cdn_output(d) : d->hidden;
    t->elems[SEQLSTM_SLOT_RECURRENT_X] = t->axis->rows * d->input;
    t->elems[SEQLSTM_SLOT_RECURRENT_Y] = t->axis->rows * cdn_width(d);
    for (int64_t k = SEQLSTM_SLOT_RECURRENT_STATES; k < SEQLSTM_SLOT_RECURRENT_PARAM(count, 0, 0); k++)
        t->elems[k] = t->axis->sequences * wider;
    for (int32_t n = 0; op->mixed && n < op->plans[0].count; n++) {
        const struct cdn_net *net = &op->plans[0].nets[n];
        for (int32_t k = 0; k < net->copy_count; k++) {
            const struct cdn_copy *p = &net->copies[k];
            int64_t *elems = &t->elems[SEQLSTM_SLOT_RECURRENT_PARAM(count, p->n, p->which)];
            *elems = p->from + p->elems > *elems ? p->from + p->elems : *elems;
        }
    }
}

/* Is this slot an output: Y or a final state? */
static bool comes_out(const struct cdn_trial *t, size_t slot)
{
    const int64_t count = t->call.op->desc.layers * cdn_directions(&t->call.op->desc);
    const int64_t state = (int64_t)slot - SEQLSTM_SLOT_RECURRENT_STATES;
    return slot == SEQLSTM_SLOT_RECURRENT_Y || (state >= 0 && state < 4 * count && state % 4 >= SEQLSTM_STATE_HN);
}

static void *take(const struct cdn_trial *t, uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    *end += cdn_align(bytes);
    return t->base != NULL && bytes > 0 ? t->base + at : NULL;
}

/* Gives everything its place in the block; without a base, only computes sizes. Returns the number of bytes. */
static uint64_t place(struct cdn_trial *t, uint64_t workspace_bytes)
{
    uint64_t end = 0;
    for (size_t s = 0; s < t->slot_count; s++) {
        void *at = take(t, &end, (uint64_t)t->elems[s] * sizeof(float));
        *(comes_out(t, s) ? &t->grads[s] : &t->slots[s]) = at;
    }
    t->read_bytes = end;
    for (size_t s = 0; s < t->slot_count; s++)
        if (!comes_out(t, s))
            t->grads[s] = take(t, &end, (uint64_t)t->elems[s] * sizeof(float));
    t->made_bytes = end - t->read_bytes;
    for (size_t s = 0; s < t->slot_count; s++)
        if (comes_out(t, s))
            t->slots[s] = take(t, &end, (uint64_t)t->elems[s] * sizeof(float));
    t->call.workspace = take(t, &end, workspace_bytes);
    t->call.reserve = take(t, &end, t->reserve_bytes);
    t->call.packed = t->packed = take(t, &end, t->call.op->packed_bytes);
    return end;
}

/* ---- the run ---------------------------------------------------------------------------------------------------- */

static seqlstm_status run(struct cdn_trial *t, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = t->call.op;
    const struct cdn_run *runs = t->call.binding->runs;
    uint64_t workspace_bytes = 0;
    void *base = NULL;
    for (int32_t p = 0; p < op->plan_count; p++) {
        const struct cdn_places *places = &runs[p].places;
        workspace_bytes = places->workspace_bytes > workspace_bytes ? places->workspace_bytes : workspace_bytes;
        t->reserve_bytes = places->reserve_bytes > t->reserve_bytes ? places->reserve_bytes : t->reserve_bytes;
    }
    count_elements(t);
    const uint64_t bytes = place(t, workspace_bytes);
    SEQLSTM_TRY(gpu_allocate(op->ordinal, SEQLSTM_MEMORY_DEVICE, bytes, &base, err));
    t->base = base;
    SEQLSTM_TRY(gpu_fill(op->ordinal, t->call.stream, base, 0, bytes, err));
    place(t, workspace_bytes);
    if (op->mixed)
        return cdn_pair_check_gradients(t, err);
    SEQLSTM_TRY(cdn_forward(&t->call, err));
    if (op->desc.head.mode == SEQLSTM_MODE_TRAINING)
        SEQLSTM_TRY(cdn_backward(&t->call, err));
    return gpu_stream_synchronize(op->ordinal, t->call.stream, err);
}

/* Explains why the largest batch does not run as the variant says. */
static seqlstm_status explain(const struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    if (op->mixed && binding->runs[0].usable)
        return cdn_pair_check_sizes(binding, err);
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cuDNN %s refuses this algorithm for a batch of this size: %lld",
                 cdn_library_version(), (long long)op->desc.head.max_sequences);
}

static seqlstm_status bind_and_run(struct cdn_trial *t, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = t->call.op;
    struct seqlstm_binding *binding = NULL;
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1, .native_stream = t->call.stream};
    const struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                      .rows = t->axis->rows,
                                      .rows_in = t->axis->rows,
                                      .axis = t->axis,
                                      .t0 = 0,
                                      .t1 = t->axis->steps};
    SEQLSTM_TRY(cdn_binding_create(op, &queue, &bind, &binding, err));
    seqlstm_status status;
    if (binding->active == 0) {
        t->call.binding = binding;
        cdn_call_set_plan(&t->call, 0);
        status = run(t, err);
    } else {
        status = explain(binding, err);
    }
    if (gpu_stream_synchronize(op->ordinal, t->call.stream, status == SEQLSTM_OK ? err : NULL) != SEQLSTM_OK &&
        status == SEQLSTM_OK)
        status = SEQLSTM_DEVICE;
    cdn_binding_destroy(binding);
    gpu_release(op->ordinal, SEQLSTM_MEMORY_DEVICE, t->base);
    return status;
}

seqlstm_status cdn_trial_run(const struct seqlstm_op *op, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    const size_t slots = SEQLSTM_SLOT_RECURRENT_COUNT((size_t)(op->desc.layers * cdn_directions(&op->desc)));
    const size_t lengths_bytes = cdn_align((uint64_t)op->desc.head.max_sequences * sizeof(int32_t));
    const size_t bytes = lengths_bytes + slots * (2 * sizeof(void *) + sizeof(int64_t));
    unsigned char *memory = host->allocate(host->context, bytes);
    void *stream = NULL;
    if (memory == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trial of an operation");
    memset(memory, 0, bytes);
    void **pointers = (void **)(void *)(memory + lengths_bytes);
    struct trial_axis axis;
    make_axis(op, (int32_t *)(void *)memory, &axis);
    seqlstm_status status = gpu_stream_create(op->ordinal, &stream, err);
    if (status == SEQLSTM_OK) {
        struct cdn_trial trial = {
            .call = {.op = op,
                     .stream = stream,
                     .slots = pointers,
                     .grads = pointers + slots,
                     .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS},
            .axis = &axis.axis,
            .slot_count = slots,
            .slots = pointers,
            .grads = pointers + slots,
            .elems = (int64_t *)(void *)(pointers + 2 * slots)};
        status = bind_and_run(&trial, err);
        gpu_stream_destroy(op->ordinal, stream);
    }
    host->release(host->context, memory);
    return status;
}
