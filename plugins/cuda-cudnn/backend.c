/* SPDX-License-Identifier: Apache-2.0 */
/* The vtable of cuda-cudnn, its instance, and how a call runs. */
#include <stdio.h>
#include <string.h>

#include <seqlstm/ext/rebind.h>

#include "common/host_memory.h"
#include "common/table.h"
#include "plugin.h"

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc),
};

static const struct seqlstm_option options[] = {
    {"library", "string", "auto",
     "file of cuDNN, or a folder that contains it: cuDNN's own, or the site-packages of a Python with cuDNN's wheel"},
    GPU_OPTION_CAPTURE,
    GPU_OPTION_CUPTI,
};

/* ---- instance --------------------------------------------------------------------------------------------------- */

static seqlstm_status backend_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    const char *library = "auto", *cupti = GPU_CUPTI_DEFAULT;
    bool captures = true;
    char line[64];
    for (uint32_t k = 0; k < setting_count; k++) {
        if (strcmp(settings[k].key, "library") == 0)
            library = settings[k].value;
        else if (strcmp(settings[k].key, "cupti") == 0)
            cupti = settings[k].value;
        else if (strcmp(settings[k].key, "capture") == 0)
            captures = strcmp(settings[k].value, "true") == 0;
        else
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "cuda-cudnn has no option `%s`", settings[k].key);
    }
    struct seqlstm_instance *instance = NULL;
    SEQLSTM_TRY(gpu_domain_create(host, sizeof *instance, CDN_ID, cupti, &instance, err));
    seqlstm_status status = cdn_library_load(library, err);
    if (status != SEQLSTM_OK) {
        host_release(host, instance);
        return status;
    }
    cdn_handles_init(&instance->handles);
    cdn_kept_init(&instance->kept);
    instance->captures = captures;
    snprintf(line, sizeof line, "cuDNN %s", cdn_library_version());
    host->log(host->context, SEQLSTM_LOG_DEBUG, line);
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void backend_close(struct seqlstm_instance *instance)
{
    if (instance == NULL)
        return;
    const struct seqlstm_host host = instance->domain.host;
    cdn_kept_deinit(&instance->kept);
    cdn_handles_deinit(&instance->handles);
    host_release(&host, instance);
}

static seqlstm_status backend_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
{
    (void)err;
    sizes->workspace_bytes = op->workspace_bytes;
    sizes->reserve_bytes = op->reserve_bytes;
    sizes->packed_bytes = op->packed_bytes;
    sizes->capture = op->instance->captures ? SEQLSTM_CAPTURE_PER_SHAPE : SEQLSTM_CAPTURE_NONE;
    return SEQLSTM_OK;
}

/* An operation that was created must run: from here on, a refusal of cuDNN is a failure. */
static seqlstm_status keep_promise(seqlstm_status status, struct seqlstm_error *err)
{
    if (status != SEQLSTM_UNSUPPORTED)
        return status;
    if (err != NULL && err->struct_size >= sizeof *err)
        err->code = SEQLSTM_DEVICE;
    return SEQLSTM_DEVICE;
}

static seqlstm_status backend_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                      const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                      struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_domain_check_queue(queue, CDN_ID, err));
    return keep_promise(cdn_binding_create(op, queue, bind, out_binding, err), err);
}

/* The descriptors of the binding are set anew. A capture of the calls is of one shape: the host makes another one. */
static seqlstm_status backend_rebind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_domain_check_queue(queue, CDN_ID, err));
    SEQLSTM_TRY(gpu_use(binding->op->ordinal, err));
    return cdn_binding_renew(binding, bind, err);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static struct cdn_call make_call(struct seqlstm_binding *b, int32_t plan, struct seqlstm_queue *queue,
                                 void *const *slots, void *workspace, void *reserve, const void *packed)
{
    return (struct cdn_call){.binding = b,
                             .op = b->op,
                             .plan = &b->op->plans[plan],
                             .run = &b->runs[plan],
                             .stream = queue->native_stream,
                             .slots = slots,
                             .workspace = b->own_workspace != NULL ? b->own_workspace : workspace,
                             .reserve = reserve,
                             .packed = packed};
}

/* Switches to the next plan, for this call and all later ones. Returns false if there is none. */
static bool fall_back(struct cdn_call *call)
{
    struct seqlstm_binding *b = call->binding;
    if (b->active + 1 >= b->op->plan_count || !b->runs[b->active + 1].usable)
        return false;
    b->active++;
    cdn_call_set_plan(call, b->active);
    return true;
}

static seqlstm_status backend_forward(struct seqlstm_binding *b, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct cdn_call call = make_call(b, b->active, queue, args->slots, args->workspace, args->reserve, args->packed);
    SEQLSTM_TRY(gpu_use(b->op->ordinal, err));
    seqlstm_status status = cdn_forward(&call, err);
    while (status == SEQLSTM_UNSUPPORTED && fall_back(&call))
        status = cdn_forward(&call, err);
    return keep_promise(status, err);
}

static seqlstm_status backend_backward(struct seqlstm_binding *b, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    if (b->op->desc.head.mode != SEQLSTM_MODE_TRAINING)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "an operation in inference mode has no backward");
    struct cdn_call call =
        make_call(b, cdn_backward_plan(b), queue, args->slots, args->workspace, args->reserve, args->packed);
    call.grads = args->grads;
    call.parts = args->parts;
    SEQLSTM_TRY(gpu_use(b->op->ordinal, err));
    seqlstm_status status = cdn_backward(&call, err);
    while (status == SEQLSTM_UNSUPPORTED && fall_back(&call)) { /* its reserve needs a forward of its own */
        call.again = true;
        status = cdn_forward(&call, err);
        if (status == SEQLSTM_OK)
            status = cdn_backward(&call, err);
    }
    return keep_promise(status, err);
}

static seqlstm_status backend_weights_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                           void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)step;
    SEQLSTM_TRY(gpu_use(op->ordinal, err));
    return cdn_weights_pack(op, queue->native_stream, slots, packed, err);
}

static const struct seqlstm_rebind rebind = {
    .struct_size = sizeof(struct seqlstm_rebind),
    .rebind = backend_rebind,
};

static const void *backend_get_extension(struct seqlstm_instance *instance, const char *id)
{
    return strcmp(id, SEQLSTM_REBIND_EXTENSION) == 0 ? &rebind : gpu_domain_get_extension(instance, id);
}

/* ---- table ------------------------------------------------------------------------------------------------------ */

static const struct seqlstm_backend table = {
    TABLE_HEAD(CDN_ID, CDN_VERSION, CDN_BUILD),
    .desc_bytes = desc_bytes,
    .option_count = sizeof options / sizeof *options,
    .options = options,
    .open = backend_open,
    .close = backend_close,
    .device_count = gpu_domain_device_count,
    .device_info = gpu_domain_device_info,
    .supports = cdn_supports,
    .op_create = cdn_op_create,
    .op_sizes = backend_op_sizes,
    .op_bind = backend_op_bind,
    .forward = backend_forward,
    .binding_destroy = cdn_binding_destroy,
    .op_destroy = cdn_op_destroy,
    .backward = backend_backward,
    .weights_pack = backend_weights_pack,
    .memory = &gpu_domain_memory,
    .streams = &gpu_domain_streams,
    .get_extension = backend_get_extension,
};

TABLE_EXPORT(table)
