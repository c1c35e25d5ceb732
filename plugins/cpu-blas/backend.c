/* SPDX-License-Identifier: Apache-2.0 */
/* The vtable of the cpu-blas backend. Each function checks its arguments, finds the operation, and calls it. */
#include <string.h>

#include <seqlstm/bind_check.h>
#include <seqlstm/ext/rebind.h>

#include "common/cpu_device.h"
#include "common/table.h"
#include "cpu-blas/multiply.h"
#include "cpu-blas/gemm/openblas.h"
#include "cpu-blas/plugin.h"
#include "cpu-blas/rowmath/rowmath.h"

#ifndef BLAS_VERSION
#define BLAS_VERSION "0.1.0"
#endif
#ifndef BLAS_BUILD
#define BLAS_BUILD ""
#endif

static seqlstm_status choose_isa(const char *name, enum blas_isa *out_isa, struct seqlstm_error *err)
{
    const enum blas_isa best = blas_isa_detect();
    enum blas_isa isa = best;
    if (strcmp(name, "auto") != 0) {
        isa = BLAS_ISA_AVX512;
        while (isa > BLAS_ISA_PORTABLE && strcmp(name, blas_isa_name(isa)) != 0)
            isa--;
        if (strcmp(name, blas_isa_name(isa)) != 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "instructions is `%s`, expected auto, avx512, avx2 or portable",
                         name);
    }
    if (isa > best)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "instructions is %s, but this processor offers %s", name,
                     blas_isa_name(best));
    *out_isa = isa;
    return SEQLSTM_OK;
}

static seqlstm_status backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    const char *core = "auto", *instructions = "auto";
    for (uint32_t i = 0; i < setting_count; i++) {
        if (strcmp(settings[i].key, "openblas_core") == 0)
            core = settings[i].value;
        else if (strcmp(settings[i].key, "instructions") == 0)
            instructions = settings[i].value;
        else
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "cpu-blas has no option `%s`", settings[i].key);
    }
    enum blas_isa isa = BLAS_ISA_PORTABLE;
    SEQLSTM_TRY(choose_isa(instructions, &isa, err));
    SEQLSTM_TRY(blas_openblas_load(core, err));
    struct seqlstm_instance *instance = host_allocate(host, sizeof *instance);
    if (instance == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an instance of cpu-blas");
    instance->host = host;
    instance->isa = isa;
    instance->tiles = strcmp(instructions, "auto") == 0 && blas_tiles_offered();
    instance->math = blas_rowmath_get(instance->isa);
    instance->members_max = cpu_device_count();
    char line[128];
    snprintf(line, sizeof line, "kernels %s, OpenBLAS core %s", blas_isa_name(instance->isa), blas_openblas_core());
    host->log(host->context, SEQLSTM_LOG_DEBUG, line);
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void backend_close(struct seqlstm_instance *instance)
{
    if (instance != NULL)
        host_release(instance->host, instance);
}

/* The x86-64 psABI level that the kernels need. The option `instructions` may have set less than the processor
 * offers. */
static int used_level(enum blas_isa isa)
{
    int level = cpu_device_level(), used = isa == BLAS_ISA_AVX512 ? 4 : isa == BLAS_ISA_AVX2 ? 3 : 2;
    return level < used ? level : used;
}

static seqlstm_status backend_device_info(struct seqlstm_instance *instance, uint32_t device,
                                          struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    SEQLSTM_TRY(cpu_device_check(device, BLAS_ID, err));
    char library[32];
    snprintf(library, sizeof library, "OpenBLAS %s", blas_openblas_core());
    cpu_device_describe(used_level(instance->isa), library, info);
    if (instance->tiles)
        strncat(info->device_class, BLAS_CLASS_TILES, sizeof info->device_class - strlen(info->device_class) - 1);
    return SEQLSTM_OK;
}

static seqlstm_status backend_supports(const char *device_class, const struct seqlstm_desc *desc,
                                       struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)err;
    blas_supports(device_class, desc, answer);
    return SEQLSTM_OK;
}

static void op_destroy(struct seqlstm_op *op)
{
    if (op == NULL)
        return;
    blas_recurrent_destroy(op->recurrent);
    host_release(op->instance->host, op);
}

static seqlstm_status op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    SEQLSTM_TRY(cpu_device_check(device, BLAS_ID, err));
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    union seqlstm_any_desc full;
    blas_answer(instance->tiles, desc, &answer, &full);
    uint32_t index = 0;
    SEQLSTM_TRY(answer_choose(&answer, BLAS_ID, variant, &index, err));
    struct seqlstm_op *op = host_allocate(instance->host, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation");
    op->instance = instance;
    op->operation = blas_operation_get(desc->op);
    op->math = instance->math;
    op->kernels = blas_recurrent_get_kernels(instance->isa);
    op->desc = full;
    op->training = full.head.mode == SEQLSTM_MODE_TRAINING;
    op->variant = index;
    op->on_tiles = strcmp(answer.variants[index], BLAS_TILES) == 0;
    seqlstm_status status = blas_multiply_choose(op, err);
    if (status == SEQLSTM_OK && desc->op == SEQLSTM_OP_RECURRENT) {
        status = blas_recurrent_create(instance->host, instance->isa, &op->tiled, instance->members_max,
                                       &op->desc.recurrent, answer.variants[index], &op->recurrent, err);
        if (status != SEQLSTM_OK)
            op->recurrent = NULL;
    }
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
    sizes->workspace_bytes = sizes->reserve_bytes = sizes->packed_bytes = 0;
    if (op->recurrent != NULL)
        blas_recurrent_sizes(op->recurrent, SEQLSTM_HAS(sizes, members) ? sizes->members : 0, sizes);
    if (op->operation != NULL && op->operation->sizes != NULL)
        op->operation->sizes(op, sizes);
    sizes->workspace_bytes += blas_multiply_bytes(op);
    return SEQLSTM_OK;
}

static void binding_destroy(struct seqlstm_binding *binding)
{
    if (binding == NULL)
        return;
    blas_recurrent_unbind(binding->recurrent);
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
    if (op->recurrent != NULL) {
        seqlstm_status status = blas_recurrent_bind(op->recurrent, queue, bind, &binding->recurrent, err);
        if (status != SEQLSTM_OK) {
            binding->recurrent = NULL;
            binding_destroy(binding);
            return status;
        }
    }
    *out_binding = binding;
    return SEQLSTM_OK;
}

static seqlstm_status backend_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    SEQLSTM_TRY(seqlstm_bind_check(&binding->op->desc, bind, err));
    if (binding->recurrent != NULL)
        SEQLSTM_TRY(blas_recurrent_rebind(binding->recurrent, queue, bind, err));
    binding->bind = *bind;
    binding->bind.struct_size = sizeof binding->bind;
    return SEQLSTM_OK;
}

static struct blas_call make_call(const struct seqlstm_binding *binding, struct seqlstm_queue *queue, void *workspace)
{
    const struct seqlstm_op *op = binding->op;
    const int32_t most = op->instance->members_max;
    const uint64_t tiles = blas_multiply_bytes(op);
    return (struct blas_call){
        .op = op,
        .math = op->math,
        .bind = &binding->bind,
        .queue = queue,
        .members = queue->members < most ? queue->members : most,
        .tiles = tiles > 0 ? workspace : NULL,
        .workspace = tiles > 0 ? (char *)workspace + tiles : workspace,
    };
}

static seqlstm_status backend_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    if (binding->recurrent != NULL)
        return blas_recurrent_forward(binding->recurrent, queue, args, err);
    const struct blas_operation *operation = binding->op->operation;
    if (args->slot_count < operation->slots)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%u slots were given, %u are needed", (unsigned)args->slot_count,
                     (unsigned)operation->slots);
    struct blas_call call = make_call(binding, queue, args->workspace);
    call.slots = args->slots;
    call.packed = args->packed;
    call.reserve = args->reserve;
    call.step = args->step;
    return operation->forward(&call, err);
}

static seqlstm_status backend_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    if (!binding->op->training)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "backward of an operation that was made for inference");
    if (binding->recurrent != NULL)
        return blas_recurrent_backward(binding->recurrent, queue, args, err);
    const struct blas_operation *operation = binding->op->operation;
    if (operation->backward == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "this operation has no backward");
    if (args->slot_count < operation->slots)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%u slots were given, %u are needed", (unsigned)args->slot_count,
                     (unsigned)operation->slots);
    struct blas_call call = make_call(binding, queue, args->workspace);
    call.slots = args->slots;
    call.grads = args->grads;
    call.parts = args->parts;
    call.reserve = args->reserve;
    call.step = args->step;
    return operation->backward(&call, err);
}

static seqlstm_status backend_weights_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                           void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    if (op->recurrent != NULL)
        return blas_recurrent_weights_pack(op->recurrent, queue, slots, packed, step, err);
    if (op->operation->pack != NULL)
        op->operation->pack(op, slots, packed);
    return SEQLSTM_OK;
}

static seqlstm_status idle_ranges(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                  const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    (void)err;
    if (op->recurrent != NULL && axis != NULL)
        blas_recurrent_find_idle(op->recurrent, sizes, axis, idle);
    return SEQLSTM_OK;
}

static const struct seqlstm_footprint footprint = {
    .struct_size = sizeof(struct seqlstm_footprint),
    .idle_ranges = idle_ranges,
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

static const struct seqlstm_option options[] = {
    {"instructions", "auto|avx512|avx2|portable", "auto",
     "instruction set of the plugin's own kernels; bits depend on it, and only auto has tiles of AMX"},
    {"openblas_core", "string", "auto",
     "kernels of OpenBLAS: auto (what it finds best), environment (OPENBLAS_* as set), or a core's name"},
};

static const struct seqlstm_backend table = {
    TABLE_HEAD(BLAS_ID, BLAS_VERSION, BLAS_BUILD),
    .desc_bytes = blas_desc_bytes,
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
