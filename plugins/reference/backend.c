/* SPDX-License-Identifier: Apache-2.0 */
/* The vtable of the reference: what it accepts, how an operation is created and bound.
 *
 * The same source is built as a plugin of its own and into the program (plugins/reference/meson.build). */
#include <stdio.h>
#include <string.h>

#include <seqlstm/bind_check.h>
#include <seqlstm/desc_check.h>
#include <seqlstm/ext/draft/float64.h>
#include <seqlstm/ext/rebind.h>

#include "common/answer.h"
#include "common/host_memory.h"
#include "common/table.h"
#include "reference.h"

#define REF_ID "reference"

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

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {SEQLSTM_EACH_DESC(SEQLSTM_DESC_BYTES_ENTRY)};

/* ---- instance ------------------------------------------------------------------------------------ */

static seqlstm_status backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    if (setting_count > 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the reference backend has no options, so not `%s`", settings[0].key);
    struct seqlstm_instance *instance = host->allocate(host->context, sizeof *instance);
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the reference backend's instance");
    instance->host = *host;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void backend_close(struct seqlstm_instance *instance)
{
    if (instance)
        host_release(&instance->host, instance);
}

static seqlstm_status backend_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                           struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

static seqlstm_status backend_device_info(struct seqlstm_instance *instance, uint32_t device,
                                          struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u does not exist: the reference backend has one", device);
    info->flags = 0;
    info->memory_bytes = 0;
    snprintf(info->name, sizeof info->name, "CPU, float64 loops");
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
    return SEQLSTM_OK;
}

/* ---- capability ----------------------------------------------------------------------------------- */

static bool accept_dtypes(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    if (!answer_float32_edges(answer, REF_ID, &d->head))
        return false;
    if (d->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32 && d->head.dtype_compute != SEQLSTM_DTYPE_FLOAT64)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "The reference computes in float64 and emulates no lower precision.", "precision: float32",
                         "%s", answer_dtype_name(d->head.dtype_compute));
    return d->head.op != SEQLSTM_OP_CAST || answer_cast(answer, &d->cast);
}

static seqlstm_status backend_supports(const char *device_class, const struct seqlstm_desc *desc,
                                       struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    static const char *const variants[] = {"loops", NULL};
    union seqlstm_any_desc copy;
    (void)err;
    answer->accepted = 0;
    if (!answer_on_cpu(answer, REF_ID, device_class) || !seqlstm_desc_check(desc, answer))
        return SEQLSTM_OK;
    seqlstm_desc_copy(desc, &copy);
    if (accept_dtypes(&copy, answer))
        answer_yes(answer, variants);
    return SEQLSTM_OK;
}

/* ---- operations ------------------------------------------------------------------------------------ */

static seqlstm_status backend_op_create(struct seqlstm_instance *instance, uint32_t device,
                                        const struct seqlstm_desc *desc, const char *variant,
                                        struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u does not exist: the reference backend has one", device);
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    uint32_t only = 0;
    SEQLSTM_TRY(backend_supports("cpu", desc, &answer, err));
    SEQLSTM_TRY(answer_choose(&answer, REF_ID, variant, &only, err));
    struct seqlstm_op *op = host_allocate(&instance->host, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation of the reference backend");
    op->instance = instance;
    op->family = families[desc->op];
    seqlstm_desc_copy(desc, &op->desc);
    *out_op = op;
    return SEQLSTM_OK;
}

static void backend_op_destroy(struct seqlstm_op *op)
{
    if (op)
        host_release(&op->instance->host, op);
}

/* Upper bounds: every slot and every gradient as float64, and the family's scratch. */
static seqlstm_status backend_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
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
        if (slots[k].dtype == SEQLSTM_DTYPE_FLOAT32)
            elems += (training ? 2 : 1) * slots[k].elems;
    sizes->workspace_bytes = (uint64_t)elems * sizeof(double);
    sizes->reserve_bytes = training && op->family->reserve_elems
                               ? (uint64_t)op->family->reserve_elems(&op->desc, &extent) * sizeof(double)
                               : 0;
    sizes->packed_bytes = 0;
    return SEQLSTM_OK;
}

/* Finds the rows that the slots of this binding have, and checks that it fits the descriptor. */
static seqlstm_status measure(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct ref_extent *out,
                              struct seqlstm_error *err)
{
    SEQLSTM_TRY(seqlstm_bind_check(&op->desc, bind, err));
    *out =
        (struct ref_extent){.rows = bind->rows, .rows_in = seqlstm_has_rows_in(&op->desc) ? bind->rows_in : bind->rows};
    if (seqlstm_needs_axis(&op->desc) && !(bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES)) {
        out->states = bind->axis->batch_sizes[bind->t0];
        out->sequences = bind->axis->sequences;
    }
    return SEQLSTM_OK;
}

static seqlstm_status backend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                      const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                      struct seqlstm_error *err)
{
    (void)queue;
    struct ref_extent extent;
    SEQLSTM_TRY(measure(op, bind, &extent, err));
    struct ref_slot slots[REF_SLOTS_MAX];
    memset(slots, 0, sizeof slots);
    const int32_t count = op->family->slots(&op->desc, &extent, slots);
    const size_t per_slot = sizeof(struct ref_slot) + sizeof(void *) + sizeof(double *);
    const size_t bytes = sizeof(struct seqlstm_binding) + (size_t)count * per_slot;
    struct seqlstm_binding *b = host_allocate(&op->instance->host, bytes);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of the reference backend");
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

/* The number of slots is that of the operation. */
static seqlstm_status backend_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    (void)queue;
    const struct seqlstm_op *op = binding->op;
    SEQLSTM_TRY(measure(op, bind, &binding->extent, err));
    binding->bind = *bind;
    memset(binding->slots, 0, (size_t)binding->slot_count * sizeof *binding->slots);
    op->family->slots(&op->desc, &binding->extent, binding->slots);
    return SEQLSTM_OK;
}

static void backend_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        host_release(&binding->op->instance->host, binding);
}

/* A guess which ensures that a plan by estimates never prefers the oracle: one nanosecond for each product of a row
 * with a parameter, and for each element moved. */
static seqlstm_status backend_estimate(const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                                       struct seqlstm_cost *cost, struct seqlstm_error *err)
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

static const struct seqlstm_rebind rebind_table = {
    .struct_size = sizeof(struct seqlstm_rebind),
    .rebind = backend_rebind,
};

static const void *backend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    (void)instance;
    if (strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0)
        return &rebind_table;
    return strcmp(id, SEQLSTM_FLOAT64_EXTENSION) == 0 ? &float64_table : NULL;
}

static const struct seqlstm_backend table = {
    TABLE_HEAD(REF_ID, "0.1.0", "float64 loops, compiler " __VERSION__),
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

TABLE_EXPORT(table)
