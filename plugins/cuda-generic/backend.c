/* SPDX-License-Identifier: Apache-2.0 */
/* The vtable of cuda-generic: how an operation is created and bound, and how a call reaches its family. */
#include <stdio.h>
#include <string.h>

#include <seqlstm/bind_check.h>
#include <seqlstm/desc_check.h>
#include <seqlstm/ext/rebind.h>

#include "common/answer.h"
#include "common/host_memory.h"
#include "common/table.h"
#include "cuda-generic/cublaslt/handles.h"
#include "cuda-generic/cublaslt/library.h"
#include "cuda-generic/plugin.h"

static const struct cg_family *const families[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = &cg_recurrent,
    [SEQLSTM_OP_EMBEDDING] = &cg_embedding,
    [SEQLSTM_OP_DENSE] = &cg_dense,
    [SEQLSTM_OP_ACTIVATION] = &cg_activation,
    [SEQLSTM_OP_DROPOUT] = &cg_dropout_family,
    [SEQLSTM_OP_LAYER_NORM] = &cg_layer_norm,
    [SEQLSTM_OP_POOL] = &cg_pool,
    [SEQLSTM_OP_MERGE] = &cg_merge_family,
    [SEQLSTM_OP_GATHER] = &cg_gather_family,
    [SEQLSTM_OP_SCATTER] = &cg_scatter_family,
    [SEQLSTM_OP_CAST] = &cg_cast_family,
    [SEQLSTM_OP_LOSS] = &cg_loss_family,
    [SEQLSTM_OP_DENSE_LOSS] = &cg_dense_loss,
    [SEQLSTM_OP_TOP_K] = &cg_top_k_family,
    [SEQLSTM_OP_FINITE_CHECK] = &cg_finite_check_family,
    [SEQLSTM_OP_SQUARED_NORM] = &cg_squared_norm_family,
    [SEQLSTM_OP_OPTIMIZER] = &cg_optimizer_family,
    [SEQLSTM_OP_VECTOR] = &cg_vector_family,
    [SEQLSTM_OP_ATTENTION] = &cg_attention_family,
};

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {SEQLSTM_EACH_DESC(SEQLSTM_DESC_BYTES_ENTRY)};

static const struct seqlstm_option options[] = {
    GPU_OPTION_CAPTURE,
    GPU_OPTION_CUPTI,
    {"f16x3", "bool", "true", "offer the variants that compute float32 products by three float16 products"},
    {"cublaslt", "string", CG_LT_DEFAULT,
     "file of cuBLASLt, a folder that contains it (also the site-packages of a Python with NVIDIA's wheels), or none"},
};

/* ---- instance --------------------------------------------------------------------------------------------- */

/* A missing cuBLASLt is noted, and reported where an operation asks for it. If the option names a library, it must
 * load. */
static seqlstm_status open_cublaslt(struct seqlstm_instance *instance, const char *place, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &instance->domain.host;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    char line[64];
    const seqlstm_status status = cg_lt_load(place, &why);
    if (status == SEQLSTM_OK) {
        snprintf(line, sizeof line, "cuBLASLt %s", cg_lt_version());
        host->log(host->context, SEQLSTM_LOG_DEBUG, line);
        return cg_lt_handles_create(host, &instance->lt_handles, err);
    }
    snprintf(instance->lt_reason, sizeof instance->lt_reason, "%.700s", why.message);
    host->log(host->context, SEQLSTM_LOG_DEBUG, instance->lt_reason);
    if (strcmp(place, "auto") == 0 || strcmp(place, "none") == 0)
        return SEQLSTM_OK;
    if (err != NULL)
        *err = why;
    return status;
}

static seqlstm_status backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    bool captures = true, f16x3 = true;
    const char *cublaslt = CG_LT_DEFAULT, *cupti = GPU_CUPTI_DEFAULT;
    for (uint32_t k = 0; k < setting_count; k++) {
        if (strcmp(settings[k].key, "capture") == 0)
            captures = strcmp(settings[k].value, "true") == 0;
        else if (strcmp(settings[k].key, "f16x3") == 0)
            f16x3 = strcmp(settings[k].value, "true") == 0;
        else if (strcmp(settings[k].key, "cublaslt") == 0)
            cublaslt = settings[k].value;
        else if (strcmp(settings[k].key, "cupti") == 0)
            cupti = settings[k].value;
        else
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "cuda-generic has no option `%s`", settings[k].key);
    }
    struct seqlstm_instance *instance = NULL;
    SEQLSTM_TRY(gpu_domain_create(host, sizeof *instance, CG_ID, cupti, &instance, err));
    seqlstm_status status = cg_blocks_create(host, &instance->blocks, err);
    if (status == SEQLSTM_OK)
        status = open_cublaslt(instance, cublaslt, err);
    if (status != SEQLSTM_OK) {
        cg_blocks_destroy(host, instance->blocks);
        host_release(host, instance);
        return status;
    }
    instance->captures = captures;
    instance->f16x3 = f16x3;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void backend_close(struct seqlstm_instance *instance)
{
    if (instance == NULL)
        return;
    const struct seqlstm_host host = instance->domain.host;
    cg_lt_handles_destroy(&host, instance->lt_handles);
    cg_blocks_destroy(&host, instance->blocks);
    host_release(&host, instance);
}

/* ---- operations ------------------------------------------------------------------------------------------- */

/* Blocks that the device does not run at the same time would wait for each other forever. */
static seqlstm_status lay_out_resident(struct seqlstm_op *op, const struct gpu_device *device,
                                       struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &op->desc.recurrent;
    if (!device->cooperative)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "resident: the device cannot run blocks that wait for each other");
    SEQLSTM_TRY(gpu_use(op->ordinal, err));
    for (int back = 0; back <= (d->head.mode == SEQLSTM_MODE_TRAINING); back++) {
        struct cg_resident *r = &op->resident[back];
        int blocks = 0;
        if (!cg_resident_make(d, back, device->multiprocessors, device->shared_bytes, r))
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "resident: the blocks of %lld units do not fit %d multiprocessors",
                         (long long)d->hidden, (int)device->multiprocessors);
        if (r->parts == 2 && !op->instance->f16x3)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "resident: the option f16x3 is false");
        const int code = back ? cg_resident_count_backward(r, device->multiprocessors, &blocks)
                              : cg_resident_count_forward(r, device->multiprocessors, &blocks);
        if (code != 0 || blocks < r->together * r->groups * r->blocks)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "resident: the device runs %d of %d blocks at the same time", blocks,
                         (int)(r->together * r->groups * r->blocks));
    }
    return SEQLSTM_OK;
}

/* Lays out the variants whose layout depends on the device. */
static seqlstm_status lay_out(struct seqlstm_op *op, struct seqlstm_error *err)
{
    const struct gpu_device *device = &op->instance->domain.devices[op->device];
    if (op->variant == CG_SMALL)
        return cg_small_open(op, device->multiprocessors, err);
    if (cg_count_blocks(op->variant) > 0)
        return cg_cluster_open(op, device, err);
    return op->variant == CG_RESIDENT ? lay_out_resident(op, device, err) : SEQLSTM_OK;
}

/* Where cuBLASLt's workspace begins: behind all else. */
static void place_cublaslt(struct seqlstm_op *op)
{
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    if (op->lt && op->family->sizes)
        op->family->sizes(op, &sizes);
    op->lt_offset = sizes.workspace_bytes;
}

/* Creates the products of the largest batch: refuses here what cuBLASLt has no algorithm for. */
static seqlstm_status try_cublaslt(struct seqlstm_op *op, struct seqlstm_error *err)
{
    struct seqlstm_binding trial = {.op = op, .bind = {.rows = op->desc.head.max_rows}};
    if (op->instance->lt_handles == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s", op->instance->lt_reason);
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    op->narrow = cg_dense_is_narrow(&op->desc);
    seqlstm_status status = cg_dense_lt_open(&trial, &why);
    if (status == SEQLSTM_UNSUPPORTED && op->narrow) {
        cg_lt_close(&trial);
        op->narrow = false;
        status = cg_dense_lt_open(&trial, &why);
    }
    cg_lt_close(&trial);
    if (status != SEQLSTM_OK && err != NULL)
        *err = why;
    return status;
}

static seqlstm_status backend_op_create(struct seqlstm_instance *instance, uint32_t device,
                                        const struct seqlstm_desc *desc, const char *variant,
                                        struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    SEQLSTM_TRY(gpu_domain_device_info(instance, device, &info, err));
    SEQLSTM_TRY(cg_supports(info.device_class, desc, &answer, err));
    uint32_t index = 0;
    SEQLSTM_TRY(answer_choose(&answer, CG_ID, variant, &index, err));
    struct seqlstm_op *op = host_allocate(&instance->domain.host, sizeof *op);
    if (op == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation of cuda-generic");
    op->instance = instance;
    op->family = families[desc->op];
    op->device = device;
    op->ordinal = instance->domain.devices[device].ordinal;
    seqlstm_desc_copy(desc, &op->desc);
    op->lt = strcmp(answer.variants[index], "cublaslt") == 0;
    seqlstm_status status = op->lt ? try_cublaslt(op, err) : SEQLSTM_OK;
    const bool named = cg_find_variant(answer.variants[index], &op->variant, &op->f16x3);
    if (status == SEQLSTM_OK && desc->op == SEQLSTM_OP_RECURRENT && named) {
        status = lay_out(op, err);
        op->lt = instance->lt_handles != NULL && !op->f16x3;
    }
    if (status == SEQLSTM_OK && op->f16x3 && !instance->f16x3)
        status = seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, __FILE__, __LINE__, "%s: the option f16x3 is false",
                                   answer.variants[index]);
    if (status != SEQLSTM_OK) { /* it may not be laid out, and has no sizes */
        host_release(&instance->domain.host, op);
        return status;
    }
    place_cublaslt(op);
    *out_op = op;
    return SEQLSTM_OK;
}

static void backend_op_destroy(struct seqlstm_op *op)
{
    if (op)
        host_release(&op->instance->domain.host, op);
}

static uint32_t get_capture(uint32_t op)
{
    switch (op) {
    case SEQLSTM_OP_FINITE_CHECK:
    case SEQLSTM_OP_SQUARED_NORM:
    case SEQLSTM_OP_OPTIMIZER:
    case SEQLSTM_OP_VECTOR:
        return SEQLSTM_CAPTURE_ANY_SHAPE;
    default:
        return SEQLSTM_CAPTURE_PER_SHAPE;
    }
}

static seqlstm_status backend_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
{
    (void)err;
    sizes->workspace_bytes = sizes->reserve_bytes = sizes->packed_bytes = 0;
    sizes->capture = op->instance->captures ? get_capture(op->desc.head.op) : SEQLSTM_CAPTURE_NONE;
    if (op->family->sizes)
        op->family->sizes(op, sizes);
    if (op->lt) {
        sizes->workspace_bytes = op->lt_offset + CG_LT_WORKSPACE_ALIGNMENT + CG_LT_WORKSPACE_BYTES;
        cg_dense_lt_sizes(op, sizes);
    }
    return SEQLSTM_OK;
}

static void backend_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding == NULL)
        return;
    cg_recurrent_close(binding);
    cg_lt_close(binding);
    cg_axis_close(&binding->axis, binding->op, binding->stream);
    cg_blocks_leave_counter(&binding->op->instance->domain.host, binding->op->instance->blocks, binding->counter);
    host_release(&binding->op->instance->domain.host, binding);
}

/* Once created, an operation must bind: our own kernels compute the numbers of rows that cuBLASLt has no algorithm
 * for. */
static seqlstm_status bind_cublaslt(struct seqlstm_binding *b, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = b->recurrent != NULL ? cg_recurrent_lt_open(b, &why) : cg_dense_lt_open(b, &why);
    if (status == SEQLSTM_UNSUPPORTED) {
        cg_lt_close(b);
        return SEQLSTM_OK;
    }
    if (status != SEQLSTM_OK && err != NULL)
        *err = why;
    return status;
}

static seqlstm_status backend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                      const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                      struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_domain_check_queue(queue, CG_ID, err));
    SEQLSTM_TRY(seqlstm_bind_check(&op->desc, bind, err));
    struct seqlstm_binding *b = host_allocate(&op->instance->domain.host, sizeof *b);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of cuda-generic");
    b->op = op;
    b->bind = *bind;
    b->stream = queue->native_stream;
    seqlstm_status status = cg_blocks_find_counter(&op->instance->domain.host, op->instance->blocks, op->ordinal,
                                                   b->stream, &b->counter, err);
    if (status == SEQLSTM_OK && seqlstm_needs_axis(&op->desc))
        status = cg_axis_open(&b->axis, op, bind, b->stream, err);
    if (status == SEQLSTM_OK && op->desc.head.op == SEQLSTM_OP_RECURRENT)
        status = cg_recurrent_open(b, err);
    if (status == SEQLSTM_OK && op->lt)
        status = bind_cublaslt(b, err);
    if (status != SEQLSTM_OK) {
        backend_binding_destroy(b);
        return status;
    }
    *out_binding = b;
    return SEQLSTM_OK;
}

/* What has an axis on the device, a capture or an algorithm of cuBLASLt belongs to one shape. */
static seqlstm_status backend_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    (void)queue;
    SEQLSTM_TRY(seqlstm_bind_check(&binding->op->desc, bind, err));
    if (binding->axis.block != NULL || binding->recurrent != NULL || binding->op->lt)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the binding has data of its shape on the device");
    binding->bind = *bind;
    return SEQLSTM_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------- */

/* cuBLASLt requires an aligned workspace. */
static unsigned char *align_up(unsigned char *pointer)
{
    return pointer +
           (CG_LT_WORKSPACE_ALIGNMENT - (uintptr_t)pointer % CG_LT_WORKSPACE_ALIGNMENT) % CG_LT_WORKSPACE_ALIGNMENT;
}

static seqlstm_status begin_call(struct seqlstm_binding *b, struct seqlstm_queue *queue,
                                 const struct seqlstm_step *step, struct cg_call *call, struct seqlstm_error *err)
{
    call->op = b->op;
    call->binding = b;
    call->desc = &b->op->desc;
    call->axis = &b->axis.device;
    call->stream = queue->native_stream;
    call->rows = b->bind.rows;
    if (b->recurrent && (call->desc->recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE) &&
        call->desc->head.mode == SEQLSTM_MODE_TRAINING)
        call->row0 = b->bind.axis->row_offsets[b->bind.t0];
    call->live = cg_live_make(step);
    if (b->op->lt && call->workspace)
        call->lt_workspace = align_up(call->workspace + b->op->lt_offset);
    SEQLSTM_TRY(gpu_use(b->op->ordinal, err));
    return b->axis.block ? cg_axis_renew(&b->axis, b->op, b->bind.axis, queue->native_stream, err) : SEQLSTM_OK;
}

static seqlstm_status backend_forward(struct seqlstm_binding *b, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct cg_call call = {
        .slots = args->slots, .workspace = args->workspace, .reserve = args->reserve, .packed = args->packed};
    SEQLSTM_TRY(begin_call(b, queue, args->step, &call, err));
    return b->op->family->forward(&call, err);
}

static seqlstm_status backend_backward(struct seqlstm_binding *b, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    if (b->op->family->backward == NULL || b->op->desc.head.mode != SEQLSTM_MODE_TRAINING)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "cuda-generic has no backward of operation %u",
                     b->op->desc.head.op);
    struct cg_call call = {.slots = args->slots,
                           .grads = args->grads,
                           .parts = args->parts,
                           .add = args->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE,
                           .workspace = args->workspace,
                           .reserve = args->reserve,
                           .packed = args->packed};
    SEQLSTM_TRY(begin_call(b, queue, args->step, &call, err));
    return b->op->family->backward(&call, err);
}

static seqlstm_status backend_weights_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                           void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(op->ordinal, err));
    return op->desc.head.op == SEQLSTM_OP_RECURRENT
               ? cg_recurrent_pack(op, queue->native_stream, slots, packed, step, err)
               : SEQLSTM_OK;
}

static const struct seqlstm_rebind rebind = {
    .struct_size = sizeof(struct seqlstm_rebind),
    .rebind = backend_rebind,
};

static const void *backend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &rebind : gpu_domain_get_extension(instance, id);
}

/* ---- table ------------------------------------------------------------------------------------------------- */

static const struct seqlstm_backend table = {
    TABLE_HEAD(CG_ID, CG_VERSION, CG_BUILD),
    .desc_bytes = desc_bytes,
    .option_count = sizeof options / sizeof *options,
    .options = options,
    .open = backend_open,
    .close = backend_close,
    .device_count = gpu_domain_device_count,
    .device_info = gpu_domain_device_info,
    .supports = cg_supports,
    .op_create = backend_op_create,
    .op_sizes = backend_op_sizes,
    .op_bind = backend_op_bind,
    .forward = backend_forward,
    .binding_destroy = backend_binding_destroy,
    .op_destroy = backend_op_destroy,
    .backward = backend_backward,
    .weights_pack = backend_weights_pack,
    .memory = &gpu_domain_memory,
    .streams = &gpu_domain_streams,
    .get_extension = backend_get_extension,
};

TABLE_EXPORT(table)
