/* SPDX-License-Identifier: Apache-2.0 */
/* A complete backend with one operation: ACTIVATION with relu, forward and backward, on all threads of the queue.
 * docs/writing-a-backend.md explains how to build it. The test suite builds it and runs the conformance kit on it.
 *
 *   cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Iinclude docs/examples/minimal_backend.c \
 *      -o libseqlstm_backend_minimal.so
 *   seqlstm conformance ./libseqlstm_backend_minimal.so
 */
#include <stdio.h>
#include <string.h>

#include <seqlstm/backend.h>
#include <seqlstm/bind_check.h>
#include <seqlstm/desc_check.h>

/* The opened backend. All private memory is allocated through the host. */
struct seqlstm_instance {
    const struct seqlstm_host *host;
};

/* An operation: immutable, and shared by threads. */
struct seqlstm_op {
    struct seqlstm_instance *instance;
    union seqlstm_any_desc desc;
};

/* An operation at one shape. */
struct seqlstm_binding {
    const struct seqlstm_op *op;
    int64_t elems;
};

/* ---- instance and device ---------------------------------------------------------------------- */

static seqlstm_status minimal_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    (void)settings;
    (void)setting_count; /* the table declares no options, so the host passes none */
    struct seqlstm_instance *instance = host->allocate(host->context, sizeof *instance);
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the backend's instance");
    instance->host = host;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void minimal_close(struct seqlstm_instance *instance)
{
    if (instance)
        instance->host->release(instance->host->context, instance);
}

static seqlstm_status minimal_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                           struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

static seqlstm_status minimal_device_info(struct seqlstm_instance *instance, uint32_t device,
                                          struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no device %u, only device 0", device);
    info->flags = 0;
    info->memory_bytes = 0; /* it uses the host's memory */
    snprintf(info->name, sizeof info->name, "CPU");
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
    return SEQLSTM_OK;
}

/* ---- capability --------------------------------------------------------------------------------- */

static seqlstm_status minimal_supports(const char *device_class, const struct seqlstm_desc *desc,
                                       struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)err;
    if (strncmp(device_class, "cpu", 3) != 0) {
        seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
                          "it runs on CPUs only");
        return SEQLSTM_OK;
    }
    if (!seqlstm_desc_check(desc, answer)) /* there are unknown values or bits: the answer is no, with a reason */
        return SEQLSTM_OK;
    const struct seqlstm_activation_desc *d = (const struct seqlstm_activation_desc *)(const void *)desc;
    const uint32_t dtypes = desc->dtype_activation | desc->dtype_activation_grad | desc->dtype_state |
                            desc->dtype_compute | desc->dtype_weight | desc->dtype_weight_grad;
    if (dtypes != SEQLSTM_DTYPE_FLOAT32)
        seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL, "it supports float32 only");
    else if (d->activation.kind != SEQLSTM_ACT_RELU)
        seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION, NULL, "it supports relu only");
    else {
        answer->accepted = 1;
        answer->variant_count = 1;
        snprintf(answer->variants[0], sizeof answer->variants[0], "loop");
    }
    return SEQLSTM_OK;
}

/* ---- create and bind ---------------------------------------------------------------------------- */

static seqlstm_status minimal_op_create(struct seqlstm_instance *instance, uint32_t device,
                                        const struct seqlstm_desc *desc, const char *variant,
                                        struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    if (device != 0 || strcmp(variant, "loop") != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no variant '%s' on device %u", variant, device);
    struct seqlstm_op *op = instance->host->allocate(instance->host->context, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation");
    op->instance = instance;
    seqlstm_desc_copy(desc, &op->desc);
    *out_op = op;
    return SEQLSTM_OK;
}

static void minimal_op_destroy(struct seqlstm_op *op)
{
    if (op)
        op->instance->host->release(op->instance->host->context, op);
}

/* Backward recomputes the sign from x, so forward need not store anything for it. */
static seqlstm_status minimal_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
{
    (void)op;
    (void)err;
    sizes->workspace_bytes = 0;
    sizes->reserve_bytes = 0;
    sizes->packed_bytes = 0;
    return SEQLSTM_OK;
}

static seqlstm_status minimal_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                      const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                      struct seqlstm_error *err)
{
    (void)queue;
    SEQLSTM_TRY(seqlstm_bind_check(&op->desc, bind, err)); /* the shape must fit the descriptor */
    const struct seqlstm_host *host = op->instance->host;
    struct seqlstm_binding *binding = host->allocate(host->context, sizeof *binding);
    if (binding == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding");
    binding->op = op;
    binding->elems = bind->rows * op->desc.activation.features;
    *out_binding = binding;
    return SEQLSTM_OK;
}

static void minimal_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        binding->op->instance->host->release(binding->op->instance->host->context, binding);
}

/* ---- execute ------------------------------------------------------------------------------------ */

struct work {
    const float *x, *dy;
    float *out; /* y, or dx */
};

static void relu(void *argument, int64_t begin, int64_t end)
{
    const struct work *w = argument;
    for (int64_t i = begin; i < end; i++)
        w->out[i] = w->x[i] > 0 ? w->x[i] : 0;
}

static void relu_backward(void *argument, int64_t begin, int64_t end)
{
    const struct work *w = argument;
    for (int64_t i = begin; i < end; i++)
        w->out[i] = w->dy && w->x[i] > 0 ? w->dy[i] : 0; /* dy may be NULL: zero everywhere */
}

static seqlstm_status minimal_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)err;
    struct work w = {.x = args->slots[SEQLSTM_SLOT_UNARY_X], .out = args->slots[SEQLSTM_SLOT_UNARY_Y]};
    queue->services->parallel_for(queue, binding->elems, 4096, relu, &w);
    return SEQLSTM_OK;
}

static seqlstm_status minimal_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    (void)err;
    struct work w = {.x = args->slots[SEQLSTM_SLOT_UNARY_X],
                     .dy = args->grads[SEQLSTM_SLOT_UNARY_Y],
                     .out = args->grads[SEQLSTM_SLOT_UNARY_X]};
    if ((args->parts & SEQLSTM_BIT_BACKWARD_INPUTS) && w.out != NULL)
        queue->services->parallel_for(queue, binding->elems, 4096, relu_backward, &w);
    return SEQLSTM_OK;
}

/* ---- the table ---------------------------------------------------------------------------------- */

/* How many bytes of each descriptor this backend reads. If a later host sets any byte behind them, the host answers no
 * by itself. 0: the backend does not support the operation. */
static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_ACTIVATION] = sizeof(struct seqlstm_activation_desc),
};

static const struct seqlstm_backend table = {
    .struct_size = sizeof(struct seqlstm_backend),
    .magic = SEQLSTM_MAGIC,
    .abi_major = SEQLSTM_ABI_MAJOR,
    .abi_minor_needed = SEQLSTM_ABI_MINOR,
    .id = "minimal",
    .version = "0.1.0",
    .vendor = "example",
    .license = "Apache-2.0",
    .build = "plain C",
    .desc_count = SEQLSTM_OP_COUNT,
    .desc_bytes = desc_bytes,
    .open = minimal_open,
    .close = minimal_close,
    .device_count = minimal_device_count,
    .device_info = minimal_device_info,
    .supports = minimal_supports,
    .op_create = minimal_op_create,
    .op_sizes = minimal_op_sizes,
    .op_bind = minimal_op_bind,
    .forward = minimal_forward,
    .binding_destroy = minimal_binding_destroy,
    .op_destroy = minimal_op_destroy,
    .backward = minimal_backward,
};

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    (void)host_minor;
    return &table;
}
