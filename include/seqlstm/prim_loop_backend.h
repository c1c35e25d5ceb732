/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the time loop (prim_loop.h) into a whole plugin:
 *
 *   static const struct seqlstm_prim prims[] = {{"blocked", my_gemm, NULL, NULL, NULL},
 *                                               {"plain", NULL, NULL, NULL, NULL}};
 *   SEQLSTM_PRIM_BACKEND("mine", "0.1.0", "me", "Apache-2.0", "C", prims)
 *
 * Each element of the array is a variant; put the one that is probably fastest first. The functions below are an
 * ordinary CPU backend. Copy them into the plugin when it needs more than they do (other operations, options,
 * weights_pack …). It is not part of the ABI.
 */
#ifndef SEQLSTM_PRIM_LOOP_BACKEND_H
#define SEQLSTM_PRIM_LOOP_BACKEND_H

#include <stdio.h>
#include <string.h>

#include "backend.h"
#include "bind_check.h"
#include "prim_loop.h"
#include "prim_loop_backward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps the host that `open` was given: all private data are allocated through it. */
struct seqlstm_instance {
    const struct seqlstm_host *host;
};

struct seqlstm_op {
    const struct seqlstm_host *host;
    const struct seqlstm_prim *prim;
    struct seqlstm_recurrent_desc desc;
};

struct seqlstm_binding {
    const struct seqlstm_op *op;
    const struct seqlstm_axis *axis; /* its shape is fixed; ids and positions may change between calls */
    int64_t t0, t1;
    struct seqlstm_prim_shape shape;
    struct seqlstm_prim_scratch scratch;
};

static inline seqlstm_status seqlstm_prim_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                               uint32_t setting_count, struct seqlstm_instance **out_instance,
                                               struct seqlstm_error *err)
{
    (void)settings;
    (void)setting_count; /* the table declares no options, so the host passes none */
    struct seqlstm_instance *instance =
        (struct seqlstm_instance *)host->allocate(host->context, sizeof(struct seqlstm_instance));
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the backend's instance");
    instance->host = host;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static inline void seqlstm_prim_close(struct seqlstm_instance *instance)
{
    if (instance)
        instance->host->release(instance->host->context, instance);
}

static inline seqlstm_status seqlstm_prim_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                                       struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = 1;
    return SEQLSTM_OK;
}

static inline seqlstm_status seqlstm_prim_device_info(struct seqlstm_instance *instance, uint32_t device,
                                                      struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "device %u was asked for, there is one", device);
    info->flags = 0;
    info->memory_bytes = 0; /* the host's memory */
    snprintf(info->name, sizeof info->name, "CPU");
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
    return SEQLSTM_OK;
}

/* Answers with the variants that accept the descriptor. If none does, the answer is the refusal of the last one. */
static inline seqlstm_status seqlstm_prim_table_supports(const struct seqlstm_prim *prims, uint32_t count,
                                                         const char *device_class, const struct seqlstm_desc *desc,
                                                         struct seqlstm_answer *answer)
{
    if (strncmp(device_class, "cpu", 3) != 0) {
        seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
                          "it runs on CPUs only");
        return SEQLSTM_OK;
    }
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < count && accepted < SEQLSTM_MAX_VARIANTS; i++)
        if (seqlstm_prim_supports(&prims[i], desc, answer))
            snprintf(answer->variants[accepted++], sizeof answer->variants[0], "%s", prims[i].variant);
    if (accepted == 0)
        return SEQLSTM_OK;
    answer->accepted = 1;
    answer->code = 0; /* clears the refusal of another variant */
    answer->option = 0;
    memset(answer->value, 0, sizeof answer->value);
    memset(answer->reason, 0, sizeof answer->reason);
    memset(answer->hint, 0, sizeof answer->hint);
    answer->variant_count = accepted;
    return SEQLSTM_OK;
}

static inline seqlstm_status seqlstm_prim_table_create(const struct seqlstm_prim *prims, uint32_t count,
                                                       struct seqlstm_instance *instance, uint32_t device,
                                                       const struct seqlstm_desc *desc, const char *variant,
                                                       struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    uint32_t which = 0;
    while (which < count && strcmp(prims[which].variant, variant) != 0)
        which++;
    if (device != 0 || which == count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no device %u or no variant '%s'", device, variant);
    const struct seqlstm_host *host = instance->host;
    struct seqlstm_op *op = (struct seqlstm_op *)host->allocate(host->context, sizeof(struct seqlstm_op));
    union seqlstm_any_desc copy;
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation");
    seqlstm_desc_copy(desc, &copy);
    op->host = host;
    op->prim = &prims[which];
    op->desc = copy.recurrent;
    *out_op = op;
    return SEQLSTM_OK;
}

static inline void seqlstm_prim_op_destroy(struct seqlstm_op *op)
{
    if (op)
        op->host->release(op->host->context, op);
}

/* Every part of the workspace grows with rows and sequences, so the bounds are those of the largest batch. */
static inline seqlstm_status seqlstm_prim_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                                   struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_prim_shape shape =
        seqlstm_prim_shape_make(&op->desc, op->desc.head.max_rows, op->desc.head.max_sequences);
    sizes->workspace_bytes = (uint64_t)seqlstm_prim_scratch_make(&shape).elems * sizeof(float);
    sizes->reserve_bytes = shape.training ? (uint64_t)seqlstm_prim_reserve_elems(&shape) * sizeof(float) : 0;
    sizes->packed_bytes = 0; /* it uses the canonical weights */
    return SEQLSTM_OK;
}

static inline seqlstm_status seqlstm_prim_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                                  const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                                  struct seqlstm_error *err)
{
    (void)queue;
    union seqlstm_any_desc desc;
    desc.recurrent = op->desc;
    SEQLSTM_TRY(seqlstm_bind_check(&desc, bind, err));
    struct seqlstm_binding *binding =
        (struct seqlstm_binding *)op->host->allocate(op->host->context, sizeof(struct seqlstm_binding));
    if (binding == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding");
    binding->op = op;
    binding->axis = bind->axis;
    binding->t0 = bind->t0;
    binding->t1 = bind->t1;
    binding->shape = seqlstm_prim_shape_make(&op->desc, bind->rows, bind->axis->batch_sizes[bind->t0]);
    binding->scratch = seqlstm_prim_scratch_make(&binding->shape);
    *out_binding = binding;
    return SEQLSTM_OK;
}

static inline void seqlstm_prim_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding)
        binding->op->host->release(binding->op->host->context, binding);
}

static inline struct seqlstm_prim_call seqlstm_prim_call_make(struct seqlstm_binding *binding,
                                                              struct seqlstm_queue *queue, void *workspace,
                                                              void *reserve)
{
    struct seqlstm_prim_call call;
    memset(&call, 0, sizeof call);
    call.prim = binding->op->prim;
    call.queue = queue;
    call.shape = binding->shape;
    call.at = binding->scratch;
    call.axis = binding->axis;
    call.t0 = binding->t0;
    call.t1 = binding->t1;
    call.work = (float *)workspace;
    call.reserve = binding->shape.training ? (float *)reserve : call.work + call.at.reserve;
    return call;
}

static inline seqlstm_status seqlstm_prim_table_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                                        const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)err;
    struct seqlstm_prim_call call = seqlstm_prim_call_make(binding, queue, args->workspace, args->reserve);
    call.slots = args->slots;
    call.step = args->step;
    seqlstm_prim_forward(&call);
    return SEQLSTM_OK;
}

static inline seqlstm_status seqlstm_prim_table_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                                         const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    (void)err;
    struct seqlstm_prim_call call = seqlstm_prim_call_make(binding, queue, args->workspace, args->reserve);
    call.slots = args->slots;
    call.grads = args->grads;
    call.parts = args->parts;
    call.step = args->step;
    seqlstm_prim_backward(&call);
    return SEQLSTM_OK;
}

/* Bytes of each descriptor that the loop reads; 0: not offered. */
static const uint32_t seqlstm_prim_desc_bytes[SEQLSTM_OP_RECURRENT + 1] = {
    0, (uint32_t)sizeof(struct seqlstm_recurrent_desc)};

/* Defines the table and the exported function. `prims`: an array of struct seqlstm_prim with at most
 * SEQLSTM_MAX_VARIANTS elements. Use it in one source file of the plugin, without a semicolon. */
#define SEQLSTM_PRIM_BACKEND(id, version, vendor, license, build, prims)                                               \
    static seqlstm_status seqlstm_prim_supports_these(const char *device_class, const struct seqlstm_desc *desc,       \
                                                      struct seqlstm_answer *answer, struct seqlstm_error *err)        \
    {                                                                                                                  \
        (void)err;                                                                                                     \
        return seqlstm_prim_table_supports(prims, (uint32_t)(sizeof(prims) / sizeof(prims)[0]), device_class, desc,    \
                                           answer);                                                                    \
    }                                                                                                                  \
    static seqlstm_status seqlstm_prim_create_these(struct seqlstm_instance *instance, uint32_t device,                \
                                                    const struct seqlstm_desc *desc, const char *variant,              \
                                                    struct seqlstm_op **out_op, struct seqlstm_error *err)             \
    {                                                                                                                  \
        return seqlstm_prim_table_create(prims, (uint32_t)(sizeof(prims) / sizeof(prims)[0]), instance, device, desc,  \
                                         variant, out_op, err);                                                        \
    }                                                                                                                  \
    static const struct seqlstm_backend seqlstm_prim_table = {(uint32_t)sizeof(struct seqlstm_backend),                \
                                                              SEQLSTM_MAGIC,                                           \
                                                              SEQLSTM_ABI_MAJOR,                                       \
                                                              SEQLSTM_ABI_MINOR,                                       \
                                                              id,                                                      \
                                                              version,                                                 \
                                                              vendor,                                                  \
                                                              license,                                                 \
                                                              build,                                                   \
                                                              0,                                                       \
                                                              SEQLSTM_OP_RECURRENT + 1,                                \
                                                              seqlstm_prim_desc_bytes,                                 \
                                                              0,                                                       \
                                                              0,                                                       \
                                                              NULL,                                                    \
                                                              seqlstm_prim_open,                                       \
                                                              seqlstm_prim_close,                                      \
                                                              seqlstm_prim_device_count,                               \
                                                              seqlstm_prim_device_info,                                \
                                                              seqlstm_prim_supports_these,                             \
                                                              seqlstm_prim_create_these,                               \
                                                              seqlstm_prim_op_sizes,                                   \
                                                              seqlstm_prim_op_bind,                                    \
                                                              seqlstm_prim_table_forward,                              \
                                                              seqlstm_prim_binding_destroy,                            \
                                                              seqlstm_prim_op_destroy,                                 \
                                                              seqlstm_prim_table_backward,                             \
                                                              NULL,                                                    \
                                                              NULL,                                                    \
                                                              NULL,                                                    \
                                                              NULL,                                                    \
                                                              NULL};                                                   \
    SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);                        \
    SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)                         \
    {                                                                                                                  \
        (void)host_minor;                                                                                              \
        return &seqlstm_prim_table;                                                                                    \
    }

#ifdef __cplusplus
}
#endif

#endif
