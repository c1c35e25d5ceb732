/* SPDX-License-Identifier: Apache-2.0 */
/* The vtable of the cpu-onednn backend: checks arguments, finds the operation's functions, calls them. */
#include <stdio.h>
#include <string.h>

#include <seqlstm/bind_check.h>
#include <seqlstm/desc_check.h>
#include <seqlstm/ext/rebind.h>

#include "common/cpu_device.h"
#include "common/table.h"
#include "cpu-onednn/library.h"
#include "cpu-onednn/plugin.h"

static void backend_close(struct seqlstm_instance *instance)
{
    if (instance == NULL)
        return;
    if (instance->attr != NULL)
        odn.primitive_attr_destroy(instance->attr);
    if (instance->stream != NULL)
        odn.stream_destroy(instance->stream);
    if (instance->engine != NULL)
        odn.engine_destroy(instance->engine);
    host_release(instance->host, instance);
}

static dnnl_status_t start(struct seqlstm_instance *instance)
{
    dnnl_status_t status = odn.engine_create(&instance->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = odn.stream_create(&instance->stream, instance->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = odn.primitive_attr_create(&instance->attr);
    if (status == dnnl_success)
        status = odn.primitive_attr_set_scratchpad_mode(instance->attr, dnnl_scratchpad_mode_user);
    return status;
}

static seqlstm_status backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    const char *library = "auto";
    for (uint32_t i = 0; i < setting_count; i++) {
        if (strcmp(settings[i].key, "library") != 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "cpu-onednn has no option `%s`", settings[i].key);
        library = settings[i].value;
    }
    SEQLSTM_TRY(odn_library_load(library, err));
    struct seqlstm_instance *instance = host_allocate(host, sizeof *instance);
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an instance of cpu-onednn");
    instance->host = host;
    instance->members_max = cpu_device_count();
    if (instance->members_max > CPU_MEMBERS_MOST)
        instance->members_max = CPU_MEMBERS_MOST;
    instance->level = cpu_device_level();
    seqlstm_status status = odn_check(start(instance), "an engine for the processor", err);
    if (status != SEQLSTM_OK) {
        backend_close(instance);
        return status;
    }
    char line[64];
    snprintf(line, sizeof line, "oneDNN %s", odn_library_version());
    host->log(host->context, SEQLSTM_LOG_DEBUG, line);
    *out_instance = instance;
    return SEQLSTM_OK;
}

static seqlstm_status backend_device_info(struct seqlstm_instance *instance, uint32_t device,
                                          struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    SEQLSTM_TRY(cpu_device_check(device, ODN_ID, err));
    char library[32];
    snprintf(library, sizeof library, "oneDNN %s", odn_library_version());
    cpu_device_describe(instance->level, library, info);
    return SEQLSTM_OK;
}

static seqlstm_status backend_supports(const char *device_class, const struct seqlstm_desc *desc,
                                       struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)err;
    union seqlstm_any_desc copy;
    odn_supports(device_class, desc, answer, &copy);
    return SEQLSTM_OK;
}

static void op_destroy(struct seqlstm_op *op)
{
    if (op == NULL)
        return;
    op->operation->destroy(op);
    host_release(op->instance->host, op);
}

static seqlstm_status op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    SEQLSTM_TRY(cpu_device_check(device, ODN_ID, err));
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    union seqlstm_any_desc full;
    odn_supports(instance->level == 4 ? "cpu:x86-64-v4" : "cpu", desc, &answer, &full);
    uint32_t index = 0;
    SEQLSTM_TRY(answer_choose(&answer, ODN_ID, variant, &index, err));
    struct seqlstm_op *op = host_allocate(instance->host, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation");
    op->instance = instance;
    op->operation = odn_operation_get(desc->op);
    op->desc = full;
    op->training = full.head.mode == SEQLSTM_MODE_TRAINING;
    op->exclusive = index == 1;
    seqlstm_status status = op->operation->create(op, err);
    if (status != SEQLSTM_OK) {
        op_destroy(op);
        return status;
    }
    *out_op = op;
    return SEQLSTM_OK;
}

static seqlstm_status op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)err;
    sizes->workspace_bytes = op->sizes.workspace_bytes;
    sizes->reserve_bytes = op->sizes.reserve_bytes;
    sizes->packed_bytes = op->sizes.packed_bytes;
    return SEQLSTM_OK;
}

static void binding_destroy(struct seqlstm_binding *binding)
{
    if (binding == NULL)
        return;
    binding->op->operation->unbind(binding);
    host_release(binding->op->instance->host, binding);
}

static seqlstm_status op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    SEQLSTM_TRY(seqlstm_bind_check(&op->desc, bind, err));
    struct seqlstm_binding *binding = host_allocate(op->instance->host, sizeof *binding);
    if (binding == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding");
    binding->op = op;
    binding->bind = *bind;
    binding->bind.struct_size = sizeof binding->bind;
    seqlstm_status status = op->operation->bind(binding, queue, err);
    if (status != SEQLSTM_OK) {
        binding_destroy(binding);
        return status;
    }
    *out_binding = binding;
    return SEQLSTM_OK;
}

/* The queue is the one of the binding, so as many members share the new shape. */
static seqlstm_status backend_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    (void)queue;
    SEQLSTM_TRY(seqlstm_bind_check(&binding->op->desc, bind, err));
    binding->bind = *bind;
    binding->bind.struct_size = sizeof binding->bind;
    return binding->op->operation->rebind(binding, err);
}

static seqlstm_status backend_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    return binding->op->operation->forward(binding, queue, args, err);
}

static seqlstm_status backend_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    if (!binding->op->training)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "an operation in inference mode has no backward");
    return binding->op->operation->backward(binding, queue, args, err);
}

static seqlstm_status backend_weights_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                           void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)step;
    if (op->operation->pack == NULL)
        return SEQLSTM_OK;
    return op->operation->pack(op, queue, slots, packed, err);
}

static const struct seqlstm_option options[] = {
    {"library", "string", "auto", "name or path of oneDNN's shared library, instead of the system's"},
};

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {SEQLSTM_DESC_BYTES_ENTRY(
    RECURRENT, recurrent) SEQLSTM_DESC_BYTES_ENTRY(DENSE, dense) SEQLSTM_DESC_BYTES_ENTRY(LAYER_NORM, layer_norm)};

static seqlstm_status idle_ranges(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                  const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    return op->operation->find_idle != NULL && axis != NULL ? op->operation->find_idle(op, sizes, axis, idle, err)
                                                            : SEQLSTM_OK;
}

static seqlstm_status own_bytes(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                                uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                struct seqlstm_error *err)
{
    *out_bytes = 0;
    return op->operation->find_own != NULL
               ? op->operation->find_own(op, batches, batch_count, bound_count, out_bytes, err)
               : SEQLSTM_OK;
}

static const struct seqlstm_footprint footprint = {
    .struct_size = sizeof(struct seqlstm_footprint),
    .idle_ranges = idle_ranges,
    .own_bytes = own_bytes,
};

static const struct seqlstm_rebind rebind = {
    .struct_size = sizeof(struct seqlstm_rebind),
    .rebind = backend_rebind,
};

static const void *backend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    (void)instance;
    if (strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0)
        return &rebind;
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : NULL;
}

static const struct seqlstm_backend table = {
    TABLE_HEAD(ODN_ID, ODN_VERSION, ODN_BUILD),
    .desc_bytes = desc_bytes,
    .option_count = sizeof options / sizeof *options,
    .options = options,
    .open = backend_open,
    .close = backend_close,
    .device_count = cpu_device_report_count,
    .device_info = backend_device_info,
    .supports = backend_supports,
    .op_create = op_create,
    .op_sizes = op_sizes,
    .op_bind = op_bind,
    .forward = backend_forward,
    .binding_destroy = binding_destroy,
    .op_destroy = op_destroy,
    .backward = backend_backward,
    .weights_pack = backend_weights_pack,
    .get_extension = backend_get_extension,
};

TABLE_EXPORT(table)
