/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI side of the reference: its table, what it accepts, how an operation is created and bound.
 *
 * The same source is a module of its own and a part of the program (plugins/reference/meson.build).
 */
#include <stdio.h>
#include <string.h>

#include <seqlstm/desc_check.h>
#include <seqlstm/ext/draft/float64.h>

#include "reference.h"

static const struct ref_family *const families[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = &ref_recurrent,
    [SEQLSTM_OP_EMBEDDING] = &ref_embedding,
    [SEQLSTM_OP_DENSE] = &ref_dense,
    [SEQLSTM_OP_ACTIVATION] = &ref_activation,
    [SEQLSTM_OP_DROPOUT] = &ref_dropout,
    [SEQLSTM_OP_LAYER_NORM] = &ref_layer_norm,
    [SEQLSTM_OP_POOL] = &ref_pool,
    [SEQLSTM_OP_MERGE] = &ref_merge,
    [SEQLSTM_OP_GATHER] = &ref_gather,
    [SEQLSTM_OP_SCATTER] = &ref_scatter,
    [SEQLSTM_OP_CAST] = &ref_cast,
    [SEQLSTM_OP_LOSS] = &ref_loss,
    [SEQLSTM_OP_DENSE_LOSS] = &ref_dense_loss,
    [SEQLSTM_OP_TOP_K] = &ref_top_k,
    [SEQLSTM_OP_FINITE_CHECK] = &ref_finite_check,
    [SEQLSTM_OP_SQUARED_NORM] = &ref_squared_norm,
    [SEQLSTM_OP_OPTIMIZER] = &ref_optimizer,
    [SEQLSTM_OP_VECTOR] = &ref_vector,
    [SEQLSTM_OP_ATTENTION] = &ref_attention,
};

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc),
    [SEQLSTM_OP_EMBEDDING] = sizeof(struct seqlstm_embedding_desc),
    [SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc),
    [SEQLSTM_OP_ACTIVATION] = sizeof(struct seqlstm_activation_desc),
    [SEQLSTM_OP_DROPOUT] = sizeof(struct seqlstm_dropout_desc),
    [SEQLSTM_OP_LAYER_NORM] = sizeof(struct seqlstm_layer_norm_desc),
    [SEQLSTM_OP_POOL] = sizeof(struct seqlstm_pool_desc),
    [SEQLSTM_OP_MERGE] = sizeof(struct seqlstm_merge_desc),
    [SEQLSTM_OP_GATHER] = sizeof(struct seqlstm_gather_desc),
    [SEQLSTM_OP_SCATTER] = sizeof(struct seqlstm_gather_desc),
    [SEQLSTM_OP_CAST] = sizeof(struct seqlstm_cast_desc),
    [SEQLSTM_OP_LOSS] = sizeof(struct seqlstm_loss_desc),
    [SEQLSTM_OP_DENSE_LOSS] = sizeof(struct seqlstm_dense_loss_desc),
    [SEQLSTM_OP_TOP_K] = sizeof(struct seqlstm_top_k_desc),
    [SEQLSTM_OP_FINITE_CHECK] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_SQUARED_NORM] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_OPTIMIZER] = sizeof(struct seqlstm_optimizer_desc),
    [SEQLSTM_OP_VECTOR] = sizeof(struct seqlstm_vector_desc),
    [SEQLSTM_OP_ATTENTION] = sizeof(struct seqlstm_attention_desc),
};

/* ---- instance ------------------------------------------------------------------------------------ */

static seqlstm_status
backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings, uint32_t setting_count,
             struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    if (setting_count > 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the reference backend has no option `%s`, it has none at all",
                     settings[0].key);
    struct seqlstm_instance *instance = host->allocate(host->context, sizeof *instance);
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the reference backend's instance");
    instance->host = *host;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void
backend_close(struct seqlstm_instance *instance)
{
    if (instance)
        instance->host.release(instance->host.context, instance);
}

static seqlstm_status
backend_device_count(struct seqlstm_instance *instance, uint32_t *out_count, struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

static seqlstm_status
backend_device_info(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_device_info *info,
                    struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u of the reference backend, which has one", device);
    info->flags = 0;
    info->memory_bytes = 0;
    snprintf(info->name, sizeof info->name, "CPU, float64 loops");
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
    return SEQLSTM_OK;
}

/* ---- capability ----------------------------------------------------------------------------------- */

static int32_t
accept_dtypes(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t roles[5] = {d->dtype_activation, d->dtype_activation_grad, d->dtype_state, d->dtype_weight,
                               d->dtype_weight_grad};
    for (int k = 0; k < 5; k++)
        if (roles[k] != SEQLSTM_FLOAT32)
            return seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                     "the reference reads and writes float32 only (it computes in float64)");
    if (d->dtype_compute != SEQLSTM_FLOAT32 && d->dtype_compute != SEQLSTM_FLOAT64)
        return seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                 "the reference computes in float64 and does not imitate a lower precision");
    return 1;
}

static int32_t
accept_body(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    if (d->head.op == SEQLSTM_OP_CAST) {
        const uint32_t ends[2] = {d->cast.from, d->cast.to};
        for (int k = 0; k < 2; k++)
            if (ends[k] == SEQLSTM_TF32 || ends[k] > SEQLSTM_FLOAT64)
                return seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                         "cast knows float32, float64, float16 and bfloat16");
    }
    return 1;
}

static seqlstm_status
backend_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                 struct seqlstm_error *err)
{
    (void)err;
    if (strncmp(device_class, "cpu", 3) != 0) {
        seqlstm_answer_no(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
                          "the reference runs on the CPU only");
        return SEQLSTM_OK;
    }
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)desc;
    if (!seqlstm_desc_check(desc, answer) || !accept_dtypes(desc, answer) || !accept_body(d, answer))
        return SEQLSTM_OK;
    answer->accepted = 1;
    answer->variant_count = 1;
    snprintf(answer->variants[0], sizeof answer->variants[0], "loops");
    return SEQLSTM_OK;
}

/* ---- operations ------------------------------------------------------------------------------------ */

static seqlstm_status
backend_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                  const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u of the reference backend, which has one", device);
    if (variant && strcmp(variant, "loops") != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "variant `%s`, the reference has only `loops`", variant);
    struct seqlstm_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.struct_size = (uint32_t)sizeof answer;
    SEQLSTM_TRY(backend_supports("cpu", desc, &answer, err));
    if (!answer.accepted)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s", answer.reason);
    struct seqlstm_op *op = instance->host.allocate(instance->host.context, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation of the reference backend");
    memset(op, 0, sizeof *op);
    op->instance = instance;
    op->family = families[desc->op];
    seqlstm_desc_copy(desc, &op->desc);
    *out_op = op;
    return SEQLSTM_OK;
}

static void
backend_op_destroy(struct seqlstm_op *op)
{
    if (op)
        op->instance->host.release(op->instance->host.context, op);
}

/* Upper bounds: every slot and every gradient as float64, and the family's scratch. */
static seqlstm_status
backend_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_desc *head = &op->desc.head;
    const struct ref_extent extent = {.rows = head->max_rows,
                                      .rows_in = head->max_rows,
                                      .states = head->max_sequences,
                                      .sequences = head->max_sequences};
    struct ref_slot slots[REF_SLOTS_MAX];
    memset(slots, 0, sizeof slots);
    const int32_t count = op->family->slots(&op->desc, &extent, slots);
    const bool training = head->mode == SEQLSTM_MODE_TRAINING;
    int64_t elems = op->family->scratch_elems ? op->family->scratch_elems(&op->desc, &extent) : 0;
    for (int32_t k = 0; k < count; k++)
        if (slots[k].dtype == SEQLSTM_FLOAT32)
            elems += (training ? 2 : 1) * slots[k].elems;
    sizes->workspace_bytes = (uint64_t)elems * sizeof(double);
    sizes->reserve_bytes = training && op->family->reserve_elems
                               ? (uint64_t)op->family->reserve_elems(&op->desc, &extent) * sizeof(double)
                               : 0;
    sizes->packed_bytes = 0;
    return SEQLSTM_OK;
}

/* The rows that the slots of this binding have, and whether they fit the descriptor's bounds. */
static seqlstm_status
measure(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct ref_extent *out, struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &op->desc.head;
    const struct seqlstm_axis *axis = bind->axis;
    struct ref_extent e = {.rows = bind->rows, .rows_in = bind->rows_in};
    if (head->op != SEQLSTM_OP_GATHER && head->op != SEQLSTM_OP_SCATTER && head->op != SEQLSTM_OP_ATTENTION)
        e.rows_in = e.rows;
    const bool needs_axis = head->op == SEQLSTM_OP_RECURRENT || head->op == SEQLSTM_OP_POOL ||
                            (head->op == SEQLSTM_OP_DROPOUT && head->mode == SEQLSTM_MODE_TRAINING &&
                             op->desc.dropout.rate > 0) ||
                            (head->op == SEQLSTM_OP_TOP_K && op->desc.top_k.kind == SEQLSTM_TOP_K_SAMPLE);
    if (axis == NULL && needs_axis)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "operation %u needs an axis", head->op);
    if (axis && !(bind->flags & SEQLSTM_BIND_ON_SEQUENCES) && needs_axis) {
        if (bind->t0 < 0 || bind->t0 >= bind->t1 || bind->t1 > axis->steps)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the range [%lld, %lld) of an axis of %lld steps",
                         (long long)bind->t0, (long long)bind->t1, (long long)axis->steps);
        const int64_t rows = axis->row_offsets[bind->t1] - axis->row_offsets[bind->t0];
        if (rows != bind->rows)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "rows is %lld, the range has %lld", (long long)bind->rows,
                         (long long)rows);
        e.states = axis->batch_sizes[bind->t0];
        e.sequences = axis->sequences;
        const bool whole = bind->t0 == 0 && bind->t1 == axis->steps;
        if (!whole && (head->op == SEQLSTM_OP_POOL || (head->op == SEQLSTM_OP_RECURRENT &&
                                                       op->desc.recurrent.direction != SEQLSTM_DIRECTION_FORWARD)))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "the range [%lld, %lld) where only the whole of %lld steps runs", (long long)bind->t0,
                         (long long)bind->t1, (long long)axis->steps);
    }
    if (e.rows < 1 || e.rows_in < 1 || e.rows > head->max_rows || e.rows_in > head->max_rows ||
        (head->max_sequences > 0 && e.states > head->max_sequences))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "%lld rows and %lld sequences, the descriptor allows 1 to %lld and %lld",
                     (long long)e.rows, (long long)e.states, (long long)head->max_rows, (long long)head->max_sequences);
    *out = e;
    return SEQLSTM_OK;
}

static seqlstm_status
backend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    (void)queue;
    struct ref_extent extent;
    SEQLSTM_TRY(measure(op, bind, &extent, err));
    struct ref_slot slots[REF_SLOTS_MAX];
    memset(slots, 0, sizeof slots);
    const int32_t count = op->family->slots(&op->desc, &extent, slots);
    const size_t per_slot = sizeof(struct ref_slot) + sizeof(void *) + sizeof(double *);
    const size_t bytes = sizeof(struct seqlstm_binding) + (size_t)count * per_slot;
    const struct seqlstm_host *host = &op->instance->host;
    struct seqlstm_binding *b = host->allocate(host->context, bytes);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of the reference backend");
    memset(b, 0, bytes);
    b->op = op;
    b->bind = *bind;
    b->extent = extent;
    b->slot_count = count;
    b->values = (void **)(void *)(b + 1);
    b->grads = (double **)(void *)(b->values + count);
    b->slots = (struct ref_slot *)(void *)(b->grads + count);
    memcpy(b->slots, slots, (size_t)count * sizeof *slots);
    *out_binding = b;
    return SEQLSTM_OK;
}

static void
backend_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        binding->op->instance->host.release(binding->op->instance->host.context, binding);
}

/* A guess, so that a plan by estimates never prefers the oracle: one nanosecond for each row and each
 * parameter that meets it, and for each element moved. */
static seqlstm_status
backend_estimate(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct seqlstm_cost *cost,
                 struct seqlstm_error *err)
{
    struct ref_extent extent;
    SEQLSTM_TRY(measure(op, bind, &extent, err));
    struct ref_slot slots[REF_SLOTS_MAX];
    memset(slots, 0, sizeof slots);
    const int32_t count = op->family->slots(&op->desc, &extent, slots);
    double ns = 1000;
    for (int32_t k = 0; k < count; k++) {
        const bool product = slots[k].access == REF_PARAM && op->desc.head.op != SEQLSTM_OP_EMBEDDING;
        ns += (double)slots[k].elems * (product ? (double)extent.rows + 2 : 4);
    }
    cost->confidence = 0;
    cost->forward_ns = ns;
    cost->backward_ns = 3 * ns;
    return SEQLSTM_OK;
}

/* ---- table ------------------------------------------------------------------------------------------ */

static const struct seqlstm_float64 float64_table = {
    .struct_size = sizeof(struct seqlstm_float64),
    .forward = ref_forward64,
    .backward = ref_backward64,
    .backward_moved = ref_backward64_moved,
};

static const void *
backend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    (void)instance;
    return strcmp(id, SEQLSTM_FLOAT64_EXTENSION) == 0 ? &float64_table : NULL;
}

#if defined(__has_feature)
#define REF_HAS_FEATURE(name) __has_feature(name)
#else
#define REF_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || REF_HAS_FEATURE(address_sanitizer)
#define REF_SANITIZERS 1u
#elif defined(__SANITIZE_THREAD__) || REF_HAS_FEATURE(thread_sanitizer)
#define REF_SANITIZERS 2u
#else
#define REF_SANITIZERS 0u
#endif

static const struct seqlstm_backend table = {
    .struct_size = sizeof(struct seqlstm_backend),
    .magic = SEQLSTM_MAGIC,
    .abi_major = SEQLSTM_ABI_MAJOR,
    .abi_minor_needed = SEQLSTM_ABI_MINOR,
    .id = "reference",
    .version = "0.1.0",
    .vendor = "seqlstm",
    .license = "Apache-2.0",
    .build = "float64 loops, compiler " __VERSION__,
    .sanitizers = REF_SANITIZERS,
    .desc_count = SEQLSTM_OP_COUNT,
    .desc_bytes = desc_bytes,
    .open = backend_open,
    .close = backend_close,
    .device_count = backend_device_count,
    .device_info = backend_device_info,
    .supports = backend_supports,
    .op_create = backend_op_create,
    .op_sizes = backend_op_sizes,
    .op_bind = backend_op_bind,
    .forward = ref_forward,
    .binding_destroy = backend_binding_destroy,
    .op_destroy = backend_op_destroy,
    .backward = ref_backward,
    .estimate = backend_estimate,
    .get_extension = backend_get_extension,
};

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);

SEQLSTM_EXPORT const struct seqlstm_backend *
seqlstm_backend_query_v0(uint32_t host_minor)
{
    (void)host_minor;
    return &table;
}
