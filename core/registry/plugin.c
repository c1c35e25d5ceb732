/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin.h. */
#include "registry/plugin.h"

#include <string.h>

#include "base/value/text.h"
#include "registry/watch/plugin_text.h"
#include "registry/watch/watch.h"

/* Calls table->FUNCTION and sets `result` to what it returns. */
#define WATCHED(table, number, result, expression)                                                                     \
    do {                                                                                                               \
        struct sl_watched_call call_;                                                                                  \
        sl_watch_begin(&call_, (table)->id, (number));                                                                 \
        result expression;                                                                                             \
        sl_watch_end(&call_);                                                                                          \
    } while (0)

static seqlstm_status fail_without_result(const struct seqlstm_backend *table, enum sl_plugin_function function,
                                          const char *result, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the backend %s is faulty: its %s returned OK but no %s", table->id,
                 sl_plugin_function_name(function), result);
}

seqlstm_status sl_plugin_check_status(const struct seqlstm_backend *table, enum sl_plugin_function function,
                                      seqlstm_status status, struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        return SEQLSTM_OK;
    if (status < SEQLSTM_OK || status > SEQLSTM_INTERNAL)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the backend %s is faulty: its %s returned %d, which is no status",
                     table->id, sl_plugin_function_name(function), (int)status);
    sl_plugin_error_clean(err);
    if (err && err->struct_size >= sizeof *err && err->message[0] == 0)
        SEQLSTM_FAIL(err, status, "the backend %s failed in %s (status %d) and gave no reason", table->id,
                     sl_plugin_function_name(function), (int)status);
    return status;
}

/* ---- the instance ----------------------------------------------------------------------------------------------- */

/* Guarded by the caller, which refuses a plugin that changes the process here. */
seqlstm_status sl_plugin_open(const struct seqlstm_backend *table, const struct seqlstm_host *host,
                              const struct seqlstm_setting *settings, uint32_t setting_count,
                              struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    struct sl_running running;
    sl_running_begin(&running, table->id, SL_FUNCTION_OPEN);
    seqlstm_status status = table->open(host, settings, setting_count, out_instance, err);
    sl_running_end(&running);
    sl_plugin_error_clean(err);
    return status;
}

void sl_plugin_close(const struct seqlstm_backend *table, struct seqlstm_instance *instance)
{
    WATCHED(table, SL_FUNCTION_CLOSE, , table->close(instance));
}

seqlstm_status sl_plugin_count_devices(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                       uint32_t *out_count, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_DEVICE_COUNT, status =, table->device_count(instance, out_count, err));
    return sl_plugin_check_status(table, SL_FUNCTION_DEVICE_COUNT, status, err);
}

static void clean_unless_endless(char *text, size_t capacity_bytes)
{
    if (memchr(text, 0, capacity_bytes))
        sl_plugin_text_clean(text, capacity_bytes);
}

seqlstm_status sl_plugin_describe_device(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                         uint32_t device, struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_DEVICE_INFO, status =, table->device_info(instance, device, info, err));
    clean_unless_endless(info->name, sizeof info->name);
    clean_unless_endless(info->device_class, sizeof info->device_class);
    clean_unless_endless(info->domain, sizeof info->domain);
    return sl_plugin_check_status(table, SL_FUNCTION_DEVICE_INFO, status, err);
}

seqlstm_status sl_plugin_supports(const struct seqlstm_backend *table, const char *device_class,
                                  const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                                  struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_SUPPORTS, status =, table->supports(device_class, desc, answer, err));
    sl_plugin_error_clean(err);
    return status;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

seqlstm_status sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                   uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                   struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    seqlstm_status status;
    *out_op = NULL;
    WATCHED(table, SL_FUNCTION_OP_CREATE, status =, table->op_create(instance, device, desc, variant, out_op, err));
    if (status == SEQLSTM_OK && *out_op == NULL)
        return fail_without_result(table, SL_FUNCTION_OP_CREATE, "operation", err);
    if (status != SEQLSTM_OK)
        *out_op = NULL;
    return sl_plugin_check_status(table, SL_FUNCTION_OP_CREATE, status, err);
}

static seqlstm_status check_size(const struct seqlstm_backend *table, uint64_t bytes, const char *name,
                                 struct seqlstm_error *err)
{
    if (bytes > SL_PLUGIN_BYTES_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "the backend %s is faulty: its op_sizes asks for %llu bytes of %s, more than any machine has",
                     table->id, (unsigned long long)bytes, name);
    return SEQLSTM_OK;
}

seqlstm_status sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                   struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_OP_SIZES, status =, table->op_sizes(op, sizes, err));
    SEQLSTM_TRY(sl_plugin_check_status(table, SL_FUNCTION_OP_SIZES, status, err));
    if (sizes->capture > SEQLSTM_CAPTURE_ANY_SHAPE)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the backend %s is faulty: its op_sizes sets capture to %u", table->id,
                     sizes->capture);
    SEQLSTM_TRY(check_size(table, sizes->workspace_bytes, "workspace", err));
    SEQLSTM_TRY(check_size(table, sizes->reserve_bytes, "reserve", err));
    return check_size(table, sizes->packed_bytes, "packed weights", err);
}

seqlstm_status sl_plugin_bind(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                              struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    seqlstm_status status;
    *out_binding = NULL;
    WATCHED(table, SL_FUNCTION_OP_BIND, status =, table->op_bind(op, queue, bind, out_binding, err));
    if (status == SEQLSTM_OK && *out_binding == NULL)
        return fail_without_result(table, SL_FUNCTION_OP_BIND, "binding", err);
    if (status != SEQLSTM_OK)
        *out_binding = NULL;
    return sl_plugin_check_status(table, SL_FUNCTION_OP_BIND, status, err);
}

const struct seqlstm_rebind *sl_plugin_find_rebind(const struct seqlstm_backend *table,
                                                   struct seqlstm_instance *instance)
{
    const struct seqlstm_rebind *extension = sl_plugin_get_extension(table, instance, SEQLSTM_REBIND_EXTENSION);
    return extension && SEQLSTM_HAS(extension, rebind) && extension->rebind ? extension : NULL;
}

seqlstm_status sl_plugin_rebind(const struct seqlstm_backend *table, const struct seqlstm_rebind *extension,
                                struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_REBIND, status =, extension->rebind(binding, queue, bind, err));
    return sl_plugin_check_status(table, SL_FUNCTION_REBIND, status, err);
}

seqlstm_status sl_plugin_pack(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                              struct seqlstm_queue *queue, void *const *slots, void *packed,
                              const struct seqlstm_step *step, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_WEIGHTS_PACK, status =, table->weights_pack(op, queue, slots, packed, step, err));
    return sl_plugin_check_status(table, SL_FUNCTION_WEIGHTS_PACK, status, err);
}

seqlstm_status sl_plugin_forward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                 struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                 struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_FORWARD, status =, table->forward(binding, queue, args, err));
    return sl_plugin_check_status(table, SL_FUNCTION_FORWARD, status, err);
}

seqlstm_status sl_plugin_forward_again(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                       struct seqlstm_queue *queue, const struct seqlstm_forward *args,
                                       struct seqlstm_error *err)
{
    struct sl_watched_call call;
    sl_watch_begin_again(&call, table->id, SL_FUNCTION_FORWARD);
    const seqlstm_status status = table->forward(binding, queue, args, err);
    sl_watch_end_again(&call);
    return sl_plugin_check_status(table, SL_FUNCTION_FORWARD, status, err);
}

seqlstm_status sl_plugin_backward(const struct seqlstm_backend *table, struct seqlstm_binding *binding,
                                  struct seqlstm_queue *queue, const struct seqlstm_backward *args,
                                  struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_BACKWARD, status =, table->backward(binding, queue, args, err));
    return sl_plugin_check_status(table, SL_FUNCTION_BACKWARD, status, err);
}

seqlstm_status sl_plugin_estimate(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                  const struct seqlstm_bind *bind, struct seqlstm_cost *cost, struct seqlstm_error *err)
{
    seqlstm_status status;
    WATCHED(table, SL_FUNCTION_ESTIMATE, status =, table->estimate(op, bind, cost, err));
    return sl_plugin_check_status(table, SL_FUNCTION_ESTIMATE, status, err);
}

void sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding)
{
    WATCHED(table, SL_FUNCTION_BINDING_DESTROY, , table->binding_destroy(binding));
}

void sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op)
{
    WATCHED(table, SL_FUNCTION_OP_DESTROY, , table->op_destroy(op));
}

const void *sl_plugin_get_extension(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                    const char *id)
{
    const void *extension = NULL;
    if (table->get_extension)
        WATCHED(table, SL_FUNCTION_GET_EXTENSION, extension =, table->get_extension(instance, id));
    return extension;
}
