/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that breaks one rule, chosen by -DHOSTILE_…=1; without any it is a sound plugin that can do nothing.
 * Built once per rule by meson.build; test_loader.c says what the loader must make of each. */
#ifdef HOSTILE_OPENS_LIBRARY
#include <dlfcn.h>
#endif
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <seqlstm/backend.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define FLUSH_TO_ZERO() _mm_setcsr(_mm_getcsr() | 0x8040)
#else
#define FLUSH_TO_ZERO() ((void)0)
#endif

#ifndef HOSTILE_ID
#define HOSTILE_ID "h-good"
#endif

struct seqlstm_instance {
    const struct seqlstm_host *host;
};

#ifdef HOSTILE_UNRESOLVED
extern int seqlstm_no_such_function(void);
#endif

#ifdef HOSTILE_FTZ_AT_LOAD
__attribute__((constructor)) static void at_load(void)
{
    FLUSH_TO_ZERO();
}
#endif
#ifdef HOSTILE_SIGNAL_AT_LOAD
static void handler(int number)
{
    (void)number;
}
__attribute__((constructor)) static void at_load(void)
{
    signal(SIGUSR2, handler);
}
#endif
#ifdef HOSTILE_LOCALE_AT_LOAD
__attribute__((constructor)) static void at_load(void)
{
    setlocale(LC_ALL, "C.UTF-8");
}
#endif

static seqlstm_status hostile_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                   uint32_t setting_count, struct seqlstm_instance **out_instance,
                                   struct seqlstm_error *err)
{
    (void)settings;
    (void)setting_count;
#ifdef HOSTILE_OPEN_FAILS
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the flux capacitor is empty");
#endif
#ifdef HOSTILE_OPEN_UNAVAILABLE
    SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "libflux.so.1 is not installed");
#endif
#ifdef HOSTILE_OPEN_WITHOUT_REASON
    return SEQLSTM_DEVICE;
#endif
#ifdef HOSTILE_OPEN_WITHOUT_INSTANCE
    return SEQLSTM_OK;
#endif
#ifdef HOSTILE_DAZ_IN_OPEN
    FLUSH_TO_ZERO();
#endif
#ifdef HOSTILE_OPENS_LIBRARY
    Dl_info self;
    char path[4096];
    if (dladdr((void *)(uintptr_t)hostile_open, &self) == 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "dladdr");
    snprintf(path, sizeof path, "%.*s/libseqlstm_backend_h-opened.so",
             (int)(strrchr(self.dli_fname, '/') - self.dli_fname), self.dli_fname);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s", dlerror());
#endif
#ifdef HOSTILE_CHDIR_IN_OPEN
    if (chdir("/") != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "chdir");
#endif
    struct seqlstm_instance *instance = host->allocate(host->context, sizeof *instance);
    if (!instance)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the instance");
    instance->host = host;
    *out_instance = instance;
    return SEQLSTM_OK;
}

static void hostile_close(struct seqlstm_instance *instance)
{
    if (instance)
        instance->host->release(instance->host->context, instance);
}

static seqlstm_status hostile_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                           struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
#ifdef HOSTILE_NO_DEVICE
    *out_count = 0;
#elif defined HOSTILE_MANY_DEVICES
    *out_count = 0xFFFFFFFF;
#else
    *out_count = 1;
#endif
    return SEQLSTM_OK;
}

static seqlstm_status hostile_device_info(struct seqlstm_instance *instance, uint32_t device,
                                          struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    (void)instance;
    if (device != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "no device %u", device);
#ifdef HOSTILE_DEVICE_TEXT
    memset(info->name, 'x', sizeof info->name);
#else
    snprintf(info->name, sizeof info->name, "hostile device");
#endif
    snprintf(info->device_class, sizeof info->device_class, "cpu:any");
    snprintf(info->domain, sizeof info->domain, "host");
    return SEQLSTM_OK;
}

static seqlstm_status hostile_supports(const char *device_class, const struct seqlstm_desc *desc,
                                       struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    (void)device_class;
    (void)desc;
    (void)err;
    answer->code = SEQLSTM_BIT_REFUSED_OPERATION;
    snprintf(answer->reason, sizeof answer->reason, "it can do nothing");
#ifdef HOSTILE_ANSWER_SEVEN
    answer->accepted = 7;
#endif
#ifdef HOSTILE_ANSWER_NO_REASON
    answer->reason[0] = 0;
#endif
#ifdef HOSTILE_ANSWER_NO_CODE
    answer->code = 0;
#endif
#ifdef HOSTILE_ANSWER_NO_VARIANT
    answer->accepted = 1;
#endif
#ifdef HOSTILE_ANSWER_UNTERMINATED
    memset(answer->reason, 'x', sizeof answer->reason);
#endif
#ifdef HOSTILE_ANSWER_VARIANTS
    answer->accepted = 1;
    answer->variant_count = 4000000000u;
#endif
#ifdef HOSTILE_ANSWER_TWINS
    answer->accepted = 1;
    answer->variant_count = 2;
    strcpy(answer->variants[0], "a");
    strcpy(answer->variants[1], "a");
#endif
#ifdef HOSTILE_ANSWER_OPTION
    answer->option = 9999;
#endif
#ifdef HOSTILE_ANSWER_ERROR
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the oracle is silent");
#endif
#ifdef HOSTILE_ANSWER_YES
    answer->accepted = 1;
    answer->variant_count = 1;
    strcpy(answer->variants[0], "yes");
#endif
    return SEQLSTM_OK;
}

static seqlstm_status hostile_op_create(struct seqlstm_instance *instance, uint32_t device,
                                        const struct seqlstm_desc *desc, const char *variant,
                                        struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    (void)desc;
    (void)variant;
    (void)out_op;
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "it can do nothing");
}

static seqlstm_status hostile_op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
{
    (void)op;
    (void)sizes;
    (void)err;
    return SEQLSTM_INTERNAL;
}

static seqlstm_status hostile_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                      const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                      struct seqlstm_error *err)
{
    (void)op;
    (void)queue;
    (void)bind;
    (void)out_binding;
    (void)err;
    return SEQLSTM_INTERNAL;
}

#ifndef HOSTILE_NULL_SLOT
static seqlstm_status hostile_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    (void)binding;
    (void)queue;
    (void)args;
    (void)err;
    return SEQLSTM_INTERNAL;
}
#endif

static void hostile_binding_destroy(struct seqlstm_binding *binding)
{
    (void)binding;
}
static void hostile_op_destroy(struct seqlstm_op *op)
{
    (void)op;
}

static const uint32_t desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc) - 8, /* an older one: 8 bytes fewer */
    [SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc),
#ifdef HOSTILE_DESC_BYTES
    [SEQLSTM_OP_LOSS] = 13,
#endif
};

static const struct seqlstm_option options[] = {
    {"tile", "int 1..4096", "64", "rows of a tile"},
    {"mode", "fast|slow", "fast", "how it works"},
    {"loud", "bool", "false", "whether it talks"},
    {"factor", "float 0..1", "1", "a factor"},
    {"path", "string", "", "a file"},
};

static seqlstm_status hostile_estimate(const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                                       struct seqlstm_cost *cost, struct seqlstm_error *err)
{
    (void)op;
    (void)bind;
    (void)cost;
    (void)err;
    return SEQLSTM_INTERNAL;
}

/* A table of other headers: shorter, what stands behind it is not part of it; or longer. */
static const struct {
    struct seqlstm_backend backend;
    uint64_t later[8];
} table_and_more = {.backend =
                        {
#ifdef HOSTILE_SIZE
                            .struct_size = 40,
#elif defined HOSTILE_SHORT_TABLE
                            .struct_size = (uint32_t)offsetof(struct seqlstm_backend, backward),
#elif defined HOSTILE_LONG_TABLE
                            .struct_size = (uint32_t)sizeof(table_and_more),
#elif defined HOSTILE_ENDLESS_TABLE
                            .struct_size = 0xFFFFFFF0u,
#else
                            .struct_size = (uint32_t)sizeof(struct seqlstm_backend),
#endif
#ifdef HOSTILE_MAGIC
                            .magic = 0xDEADBEEF,
#else
                            .magic = SEQLSTM_MAGIC,
#endif
#ifdef HOSTILE_MAJOR
                            .abi_major = 9,
#else
                            .abi_major = SEQLSTM_ABI_MAJOR,
#endif
#ifdef HOSTILE_MINOR
                            .abi_minor_needed = SEQLSTM_ABI_MINOR + 1,
#else
                            .abi_minor_needed = SEQLSTM_ABI_MINOR,
#endif
#ifdef HOSTILE_BAD_ID
                            .id = "Not An Id!",
#else
                            .id = HOSTILE_ID,
#endif
                            .version = "1.2.3",
#ifndef HOSTILE_NO_VENDOR
                            .vendor = "none",
#endif
                            .license = "Apache-2.0",
                            .build = "test",
                            .desc_count = SEQLSTM_OP_COUNT,
#ifdef HOSTILE_NO_DESC_BYTES
                            .desc_bytes = sizeof desc_bytes ? NULL : desc_bytes,
#else
                            .desc_bytes = desc_bytes,
#endif
                            .option_count = sizeof options / sizeof *options,
                            .options = options,
                            .open = hostile_open,
                            .close = hostile_close,
                            .device_count = hostile_device_count,
                            .device_info = hostile_device_info,
                            .supports = hostile_supports,
                            .op_create = hostile_op_create,
                            .op_sizes = hostile_op_sizes,
                            .op_bind = hostile_op_bind,
#ifdef HOSTILE_NULL_SLOT
                            .backward = NULL, /* and no forward either */
#else
                            .forward = hostile_forward,
#endif
                            .binding_destroy = hostile_binding_destroy,
                            .op_destroy = hostile_op_destroy,
                            .estimate = hostile_estimate,
                        },
                    .later = {1, 2, 3, 4, 5, 6, 7, 8}};
#define table table_and_more.backend

#ifdef HOSTILE_SECOND_SYMBOL
SEQLSTM_EXPORT int seqlstm_extra_symbol(void);
SEQLSTM_EXPORT int seqlstm_extra_symbol(void)
{
    return 1;
}
#endif

#ifdef HOSTILE_MISSING_SYMBOL
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v77(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v77(uint32_t host_minor)
#else
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
#endif
{
    (void)host_minor;
#ifdef HOSTILE_UNRESOLVED
    if (seqlstm_no_such_function())
        return NULL;
#endif
#ifdef HOSTILE_FTZ_IN_QUERY
    FLUSH_TO_ZERO();
#endif
#ifdef HOSTILE_NULL_TABLE
    return table.magic == 0 ? &table : NULL;
#elif defined HOSTILE_MOVING_TABLE
    static struct seqlstm_backend copies[2];
    static int turn;
    turn = !turn;
    copies[turn] = table;
    return &copies[turn];
#else
    return &table;
#endif
}
