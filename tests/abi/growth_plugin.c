/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of the older or of the newer headers: y = x, times 1 + `grown` of the descriptor where that is known, times
 * what the host's new service says where there is one. It reads and writes new members as backend.h asks. */
#include <stdio.h>
#include <string.h>

#include "growth.h"

#ifndef NEEDED
#define NEEDED 1
#endif

struct seqlstm_instance {
    const struct seqlstm_host *host;
    float factor;
};

struct seqlstm_op {
    struct seqlstm_instance *instance;
    union seqlstm_any_desc desc;
};

struct seqlstm_binding {
    const struct seqlstm_op *op;
    int64_t elems;
};

static seqlstm_status growth_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                  uint32_t setting_count, struct seqlstm_instance **out_instance,
                                  struct seqlstm_error *err)
{
    (void)settings;
    (void)setting_count;
    struct seqlstm_instance *instance = host->allocate(host->context, sizeof *instance);
    if (!instance)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    instance->host = host;
    instance->factor = 1;
#ifdef SEQLSTM_GROWN
    if (SEQLSTM_HAS(host, grown) && host->grown)
        instance->factor = (float)host->grown(host->context);
#endif
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void growth_close(struct seqlstm_instance *instance)
{
    if (instance)
        instance->host->release(instance->host->context, instance);
}

static seqlstm_status growth_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                          struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

static seqlstm_status growth_device_info(struct seqlstm_instance *instance, uint32_t device,
                                         struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no device %u", device);
    snprintf(info->name, sizeof info->name, "CPU");
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
#ifdef SEQLSTM_GROWN
    if (SEQLSTM_HAS(info, grown))
        info->grown = GROWTH_MARK;
#endif
    return SEQLSTM_OK;
}

static seqlstm_status growth_supports(const char *device_class, const struct seqlstm_desc *desc,
                                      struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)device_class;
    (void)err;
    if (!seqlstm_desc_check(desc, answer))
        return SEQLSTM_OK;
    answer->accepted = 1;
    answer->variant_count = 1;
    snprintf(answer->variants[0], sizeof answer->variants[0], "only");
#ifdef SEQLSTM_GROWN
    if (SEQLSTM_HAS(answer, grown))
        answer->grown = GROWTH_MARK;
#endif
    return SEQLSTM_OK;
}

static seqlstm_status growth_op_create(struct seqlstm_instance *instance, uint32_t device,
                                       const struct seqlstm_desc *desc, const char *variant, struct seqlstm_op **out_op,
                                       struct seqlstm_error *err)
{
    (void)device;
    (void)variant;
    struct seqlstm_op *op = instance->host->allocate(instance->host->context, sizeof *op);
    if (!op)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    op->instance = instance;
    seqlstm_desc_copy(desc, &op->desc);
    *out_op = op;
    return SEQLSTM_OK;
}

static seqlstm_status growth_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                      struct seqlstm_error *err)
{
    (void)op;
    (void)err;
    sizes->workspace_bytes = 64;
#ifdef SEQLSTM_GROWN
    if (SEQLSTM_HAS(sizes, grown))
        sizes->grown = GROWTH_MARK;
#endif
    return SEQLSTM_OK;
}

static seqlstm_status growth_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                     struct seqlstm_error *err)
{
    (void)queue;
    const struct seqlstm_host *host = op->instance->host;
    struct seqlstm_binding *binding = host->allocate(host->context, sizeof *binding);
    if (!binding)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory");
    binding->op = op;
    binding->elems = bind->rows * op->desc.activation.features;
    *out_binding = binding;
    return SEQLSTM_OK;
}

static seqlstm_status growth_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)queue;
    (void)err;
    const float *x = args->slots[SEQLSTM_SLOT_UNARY_X];
    float *y = args->slots[SEQLSTM_SLOT_UNARY_Y], factor = binding->op->instance->factor;
#ifdef SEQLSTM_GROWN
    factor *= 1 + (float)binding->op->desc.activation.grown;
    if (SEQLSTM_HAS(args, grown)) /* arguments may grow too */
        factor *= (float)args->grown;
#endif
    for (int64_t i = 0; i < binding->elems; i++)
        y[i] = factor * x[i];
    return SEQLSTM_OK;
}

static void growth_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        binding->op->instance->host->release(binding->op->instance->host->context, binding);
}

static void growth_op_destroy(struct seqlstm_op *op)
{
    if (op)
        op->instance->host->release(op->instance->host->context, op);
}

#ifdef SEQLSTM_GROWN
static int32_t growth_slot(void *context)
{
    (void)context;
    return GROWTH_MARK;
}
#endif

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_ACTIVATION] = sizeof(struct seqlstm_activation_desc),
};

static const struct seqlstm_backend table = {
    .struct_size = sizeof(struct seqlstm_backend),
    .magic = SEQLSTM_MAGIC,
    .abi_major = SEQLSTM_ABI_MAJOR,
    .abi_minor_needed = NEEDED,
    .id = "growth",
    .version = "1.0.0",
    .vendor = "seqlstm",
    .license = "Apache-2.0",
    .build = "test",
    .desc_count = SEQLSTM_OP_COUNT,
    .desc_bytes = desc_bytes,
    .open = growth_open,
    .close = growth_close,
    .device_count = growth_device_count,
    .device_info = growth_device_info,
    .supports = growth_supports,
    .op_create = growth_op_create,
    .op_sizes = growth_op_sizes,
    .op_bind = growth_op_bind,
    .forward = growth_forward,
    .binding_destroy = growth_binding_destroy,
    .op_destroy = growth_op_destroy,
#ifdef SEQLSTM_GROWN
    .grown = growth_slot,
#endif
};

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v1(uint32_t host_minor);

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v1(uint32_t host_minor)
{
    (void)host_minor;
    return &table;
}
