/* SPDX-License-Identifier: Apache-2.0 */
/* A backend with three devices that does nothing, which a test changes before it is opened by its id. */
#ifndef TEST_PLAIN_BACKEND_H
#define TEST_PLAIN_BACKEND_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>
#include <seqlstm/ops.h>

#include "ok.h"
#include "registry/registry.h"

enum { PLAIN_DEVICES = 3, PLAIN_OPTIONS = 3 };

static struct {
    struct seqlstm_backend table; /* what the query function returns */
    struct seqlstm_option options[PLAIN_OPTIONS];
    uint32_t desc_bytes[SEQLSTM_OP_DENSE + 1];
    uint32_t device_count;
    struct seqlstm_device_info devices[PLAIN_DEVICES]; /* further ones are as the last */
    seqlstm_status open_status;
    const char *open_message;
    const struct seqlstm_host *host; /* the services that it was given */
    int instances;                   /* that are open */
} plain;

static seqlstm_status plain_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                 uint32_t setting_count, struct seqlstm_instance **out_instance,
                                 struct seqlstm_error *err)
{
    (void)settings, (void)setting_count;
    plain.host = host;
    if (plain.open_status != SEQLSTM_OK)
        return seqlstm_error_set(err, plain.open_status, "plain.c", 1, "%s", plain.open_message);
    plain.instances++;
    *out_instance = (struct seqlstm_instance *)(void *)&plain;
    return SEQLSTM_OK;
}

static void plain_close(struct seqlstm_instance *instance)
{
    (void)instance;
    plain.instances--;
}

static seqlstm_status plain_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                         struct seqlstm_error *err)
{
    (void)instance, (void)err;
    *out_count = plain.device_count;
    return SEQLSTM_OK;
}

static seqlstm_status plain_device_info(struct seqlstm_instance *instance, uint32_t device,
                                        struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance, (void)err;
    *info = plain.devices[device < PLAIN_DEVICES ? device : PLAIN_DEVICES - 1];
    return SEQLSTM_OK;
}

static seqlstm_status plain_supports(const char *device_class, const struct seqlstm_desc *desc,
                                     struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)desc, (void)err;
    answer->accepted = 1;
    answer->variant_count = 1;
    snprintf(answer->variants[0], sizeof answer->variants[0], "%.20s", device_class);
    return SEQLSTM_OK;
}

static seqlstm_status plain_op_create(struct seqlstm_instance *instance, uint32_t device,
                                      const struct seqlstm_desc *desc, const char *variant, struct seqlstm_op **out_op,
                                      struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)desc, (void)variant, (void)out_op, (void)err;
    return SEQLSTM_UNSUPPORTED;
}

static seqlstm_status plain_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                     struct seqlstm_error *err)
{
    (void)op, (void)sizes, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status plain_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                    const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                    struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)bind, (void)out_binding, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status plain_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)binding, (void)queue, (void)args, (void)err;
    return SEQLSTM_OK;
}

static void plain_binding_destroy(struct seqlstm_binding *binding)
{
    (void)binding;
}

static void plain_op_destroy(struct seqlstm_op *op)
{
    (void)op;
}

static const struct seqlstm_backend *plain_query(uint32_t host_minor)
{
    (void)host_minor;
    return &plain.table;
}

static void plain_describe(uint32_t device, const char *name, const char *device_class, const char *domain)
{
    plain.devices[device] = (struct seqlstm_device_info){.struct_size = sizeof plain.devices[device]};
    snprintf(plain.devices[device].name, sizeof plain.devices[device].name, "%s", name);
    snprintf(plain.devices[device].device_class, sizeof plain.devices[device].device_class, "%s", device_class);
    snprintf(plain.devices[device].domain, sizeof plain.devices[device].domain, "%s", domain);
}

/* A sound backend. */
static void plain_reset(void)
{
    memset(&plain, 0, sizeof plain);
    plain.options[0] = (struct seqlstm_option){"tile", "int 1..64", "8", "Rows at a time."};
    plain.options[1] = (struct seqlstm_option){"order", "row|column", "row", "What comes first."};
    plain.options[2] = (struct seqlstm_option){"share", "float", "0.5", "Of the memory."};
    plain.desc_bytes[SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc);
    plain.device_count = PLAIN_DEVICES;
    plain_describe(0, "first", "cpu:one", "host");
    plain_describe(1, "second", "cpu:two", "host");
    plain_describe(2, "third", "cpu:three", "host");
    plain.table = (struct seqlstm_backend){.struct_size = sizeof plain.table,
                                           .magic = SEQLSTM_MAGIC,
                                           .abi_major = SEQLSTM_ABI_MAJOR,
                                           .abi_minor_needed = SEQLSTM_ABI_MINOR,
                                           .id = "plain",
                                           .version = "1.2",
                                           .vendor = "a test",
                                           .license = "MIT",
                                           .build = "by hand",
                                           .desc_count = SEQLSTM_OP_DENSE + 1,
                                           .desc_bytes = plain.desc_bytes,
                                           .option_count = PLAIN_OPTIONS,
                                           .options = plain.options,
                                           .open = plain_open,
                                           .close = plain_close,
                                           .device_count = plain_device_count,
                                           .device_info = plain_device_info,
                                           .supports = plain_supports,
                                           .op_create = plain_op_create,
                                           .op_sizes = plain_op_sizes,
                                           .op_bind = plain_op_bind,
                                           .forward = plain_forward,
                                           .binding_destroy = plain_binding_destroy,
                                           .op_destroy = plain_op_destroy};
}

/* A registry of this entry alone; the rest of the request as given. */
static inline struct sl_registry *plain_load(struct sl_registry_request request, struct sl_registry_entry entry)
{
    static const struct sl_backend_builtin builtins[] = {{"plain", plain_query}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    entry.name = "plain";
    request.entries = &entry;
    request.entry_count = 1;
    request.builtins = builtins;
    request.builtin_count = 1;
    request.only_folders = true;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_int_equal(sl_registry_get_record_count(registry), 1);
    return registry;
}

/* Opened or refused with this reason, as a whole; NULL: it is opened. Nothing stays open. */
static inline void plain_expect(struct sl_registry_request request, struct sl_registry_entry entry,
                                enum sl_backend_status status, const char *reason)
{
    struct sl_registry *registry = plain_load(request, entry);
    const struct sl_backend_record *record = sl_registry_get_record(registry, 0);
    if (record->status != status ||
        (reason ? !record->reason || strcmp(record->reason, reason) != 0 : !!record->reason))
        fail_msg("%s `%s`, expected %s `%s`", sl_backend_status_name(record->status),
                 record->reason ? record->reason : "", sl_backend_status_name(status), reason ? reason : "");
    assert_string_equal(record->id, "plain");
    assert_int_equal(sl_registry_get_backend_count(registry), status == SL_BACKEND_OK);
    assert_int_equal(plain.instances, status == SL_BACKEND_OK);
    sl_registry_destroy(registry);
    assert_int_equal(plain.instances, 0);
}

#endif
