/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a fresh op, forwards and (in training) back, before its creation is said to have succeeded: cuDNN refuses
 * some combinations of algorithm, device and shape no earlier. The largest batch, two steps, zeros. */
#include <string.h>

#include "plugin.h"

/* Device memory of a trial: one block, everything in it zero. */
struct block {
    unsigned char *base;
    uint64_t end;
};

static void *take(struct block *block, uint64_t bytes)
{
    const uint64_t at = block->end;
    block->end += cdn_align(bytes);
    return block->base != NULL ? block->base + at : NULL;
}

/* An axis whose first sequence has two steps and, unless all are equal, the others one; one step where the largest
 * batch has no more rows. */
struct trial_axis {
    struct seqlstm_axis axis;
    int32_t batch_sizes[2];
    int64_t row_offsets[3];
};

static void make_axis(const struct seqlstm_op *op, int32_t *lengths, struct trial_axis *t)
{
    const struct seqlstm_desc *head = &op->desc.head;
    const int32_t b = (int32_t)head->max_sequences, second = head->flags & SEQLSTM_DESC_UNIFORM ? b : 1;
    const int32_t steps = head->max_steps > 1 && head->max_rows >= b + second ? 2 : 1;
    t->batch_sizes[0] = b;
    t->batch_sizes[1] = second;
    t->row_offsets[0] = 0;
    t->row_offsets[1] = b;
    t->row_offsets[2] = b + second;
    for (int32_t k = 0; k < b; k++)
        lengths[k] = k < second ? steps : 1;
    t->axis = (struct seqlstm_axis){.struct_size = sizeof t->axis, .sequences = b, .steps = steps,
                                    .rows = t->row_offsets[steps], .lengths = lengths, .batch_sizes = t->batch_sizes,
                                    .row_offsets = t->row_offsets};
}

/* Points every slot and gradient but those of parameters at memory of the block. */
static void place(const struct seqlstm_op *op, int64_t rows, struct block *block, void **slots, void **grads,
                  struct cdn_call *call)
{
    const struct seqlstm_recurrent_desc *d = &op->desc;
    const int64_t wider = cdn_output(d) > d->hidden ? cdn_output(d) : d->hidden;
    const uint64_t state = (uint64_t)(d->head.max_sequences * wider) * sizeof(float);
    slots[SEQLSTM_RECURRENT_X] = take(block, (uint64_t)(rows * d->input) * sizeof(float));
    slots[SEQLSTM_RECURRENT_Y] = take(block, (uint64_t)(rows * cdn_width(d)) * sizeof(float));
    grads[SEQLSTM_RECURRENT_X] = take(block, (uint64_t)(rows * d->input) * sizeof(float));
    grads[SEQLSTM_RECURRENT_Y] = take(block, (uint64_t)(rows * cdn_width(d)) * sizeof(float));
    for (int64_t n = 0; n < d->layers * cdn_directions(d); n++)
        for (int32_t which = SEQLSTM_STATE_H0; which <= SEQLSTM_STATE_CN; which++) {
            slots[SEQLSTM_RECURRENT_STATE(n, which)] = take(block, state);
            grads[SEQLSTM_RECURRENT_STATE(n, which)] = take(block, state);
        }
    call->workspace = take(block, call->run->places.workspace_bytes);
    call->reserve = take(block, call->run->places.reserve_bytes);
    call->packed = take(block, op->packed_bytes);
}

static seqlstm_status run(struct cdn_call *call, int64_t rows, void **slots, void **grads, struct block *block,
                          struct seqlstm_error *err)
{
    const struct seqlstm_op *op = call->op;
    void *base = NULL;
    place(op, rows, block, slots, grads, call);
    SEQLSTM_TRY(gpu_allocate(op->ordinal, SEQLSTM_MEMORY_DEVICE, block->end, &base, err));
    block->base = base;
    SEQLSTM_TRY(gpu_fill(op->ordinal, call->stream, base, 0, block->end, err));
    block->end = 0;
    place(op, rows, block, slots, grads, call);
    SEQLSTM_TRY(cdn_forward(call, err));
    if (op->desc.head.mode == SEQLSTM_MODE_TRAINING)
        SEQLSTM_TRY(cdn_backward(call, err));
    return gpu_stream_synchronize(op->ordinal, call->stream, err);
}

static seqlstm_status bind_and_run(const struct seqlstm_op *op, void *stream, int32_t *lengths, void **slots,
                                   void **grads, struct seqlstm_error *err)
{
    struct trial_axis t;
    struct block block = {0};
    struct seqlstm_binding *binding = NULL;
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1, .native_stream = stream};
    make_axis(op, lengths, &t);
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = t.axis.rows, .rows_in = t.axis.rows,
                                      .axis = &t.axis, .t0 = 0, .t1 = t.axis.steps};
    SEQLSTM_TRY(cdn_binding_create(op, &queue, &bind, &binding, err));
    seqlstm_status status = SEQLSTM_UNSUPPORTED;
    if (binding->active == 0) {
        struct cdn_call call = {.binding = binding, .op = op, .plan = &op->plans[0], .run = &binding->runs[0],
                                .stream = stream, .slots = slots, .grads = grads,
                                .parts = SEQLSTM_BACKWARD_INPUTS | SEQLSTM_BACKWARD_STATES | SEQLSTM_BACKWARD_WEIGHTS};
        status = run(&call, t.axis.rows, slots, grads, &block, err);
    } else {
        seqlstm_error_set(err, status, __FILE__, __LINE__, "cuDNN %s refuses this algorithm at %lld sequences",
                          cdn_library_version(), (long long)op->desc.head.max_sequences);
    }
    if (gpu_stream_synchronize(op->ordinal, stream, status == SEQLSTM_OK ? err : NULL) != SEQLSTM_OK &&
        status == SEQLSTM_OK)
        status = SEQLSTM_DEVICE;
    cdn_binding_destroy(binding);
    gpu_release(op->ordinal, SEQLSTM_MEMORY_DEVICE, block.base);
    return status;
}

seqlstm_status cdn_trial_run(const struct seqlstm_op *op, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    const size_t slots = SEQLSTM_RECURRENT_SLOTS((size_t)(op->desc.layers * cdn_directions(&op->desc)));
    const size_t lengths_bytes = cdn_align((uint64_t)op->desc.head.max_sequences * sizeof(int32_t));
    unsigned char *memory = host->allocate(host->context, lengths_bytes + 2 * slots * sizeof(void *));
    void *stream = NULL;
    if (memory == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trial of an operation");
    memset(memory, 0, lengths_bytes + 2 * slots * sizeof(void *));
    void **pointers = (void **)(void *)(memory + lengths_bytes);
    seqlstm_status status = gpu_stream_create(op->ordinal, &stream, err);
    if (status == SEQLSTM_OK) {
        status = bind_and_run(op, stream, (int32_t *)(void *)memory, pointers, pointers + slots, err);
        gpu_stream_destroy(op->ordinal, stream);
    }
    host->release(host->context, memory);
    return status;
}
