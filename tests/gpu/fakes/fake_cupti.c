/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI for the emulated device: the functions of plugins/common/cupti.h. Records are longer than what the plugin knows
 * of them, as those of a later version are. With FAKE_CUPTI_FAILS in the environment, nothing can be enabled; with the
 * value `copies` they alone cannot, with `time` there is no timestamp. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cupti.h"
#include "emulated_device.h"

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(type, name, arguments) EXPORT type cupti##name arguments;
CUPTI_FUNCTIONS(DECLARE)
#undef DECLARE
EXPORT int fake_cupti_hold(void);
EXPORT void fake_cupti_run(uint32_t device, const char *name);
EXPORT void fake_cupti_add(int kind, uint32_t device, const char *name, int64_t begin_ns, int64_t end_ns,
                           uint64_t bytes, int copy_kind);
EXPORT int fake_cupti_count_enabled(void);

enum { MORE = 32, NAMES = 256, KINDS = 16 };

struct kept {
    struct kept *next;
    int kind; /* of the emulation */
    const char *name;
    uint64_t start, end;
    uint32_t device;
    uint64_t bytes;
    int copy_kind;
};

static uint64_t told; /* the last timestamp */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *first, **last = &first;
static char *names[NAMES];
static int enabled[KINDS];
static cupti_request_fn *request_buffer;
static cupti_complete_fn *complete_buffer;
static uint8_t *held; /* fake_cupti_hold */

static const int kinds[] = {0, CUPTI_KIND_CONCURRENT_KERNEL_, CUPTI_KIND_MEMCPY_, CUPTI_KIND_MEMSET_};

static const char *keep_name(const char *name)
{
    int n = 0;
    while (n < NAMES - 1 && names[n] && strcmp(names[n], name) != 0)
        n++;
    if (!names[n])
        names[n] = strdup(name);
    return names[n];
}

static void keep(struct kept record)
{
    pthread_mutex_lock(&lock);
    struct kept *kept = enabled[kinds[record.kind]] ? calloc(1, sizeof *kept) : NULL;
    if (kept) {
        *kept = record;
        kept->name = record.name ? keep_name(record.name) : NULL;
        *last = kept;
        last = &kept->next;
    }
    pthread_mutex_unlock(&lock);
}

static void note_on(uint32_t device, int kind, const char *name, double begin_ns, double end_ns)
{
    keep((struct kept){NULL, kind, name, (uint64_t)begin_ns, (uint64_t)end_ns, device, 4, 0});
}

static void note(int kind, const char *name, double begin_ns, double end_ns)
{
    note_on(0, kind, name, begin_ns, end_ns);
}

static size_t count_bytes(int kind)
{
    return MORE + (kind == CUPTI_KIND_CONCURRENT_KERNEL_ ? sizeof(struct cupti_kernel)
                   : kind == CUPTI_KIND_MEMCPY_          ? sizeof(struct cupti_memcpy)
                                                         : sizeof(struct cupti_memset));
}

static void write_record(const struct kept *kept, void *at)
{
    memset(at, 0x5A, count_bytes(kinds[kept->kind]));
    if (kept->kind == 1) {
        struct cupti_kernel *kernel = at;
        *kernel = (struct cupti_kernel){
            .kind = kinds[1], .start = kept->start, .end = kept->end, .device = kept->device, .name = kept->name};
    } else if (kept->kind == 2) {
        struct cupti_memcpy *copy = at;
        *copy = (struct cupti_memcpy){.kind = kinds[2],
                                      .copy_kind = (uint8_t)kept->copy_kind,
                                      .bytes = kept->bytes,
                                      .start = kept->start,
                                      .end = kept->end,
                                      .device = kept->device};
    } else {
        struct cupti_memset *fill = at;
        *fill = (struct cupti_memset){
            .kind = kinds[3], .bytes = kept->bytes, .start = kept->start, .end = kept->end, .device = kept->device};
    }
}

EXPORT int cuptiActivityRegisterCallbacks(cupti_request_fn *request, cupti_complete_fn *complete)
{
    request_buffer = request;
    complete_buffer = complete;
    if (held)
        complete(NULL, 0, held, 0, 0);
    held = NULL;
    return CUPTI_SUCCESS_;
}

EXPORT int cuptiActivityEnable(int kind)
{
    const char *fails = getenv("FAKE_CUPTI_FAILS");
    if (fails && strcmp(fails, "time") != 0 && (strcmp(fails, "copies") != 0 || kind == CUPTI_KIND_MEMCPY_))
        return 15;
    enabled[kind] = 1;
    emulated_observe(note);
    return CUPTI_SUCCESS_;
}

EXPORT int cuptiActivityDisable(int kind)
{
    enabled[kind] = 0;
    for (int k = 1; k <= 3; k++)
        if (enabled[kinds[k]])
            return CUPTI_SUCCESS_;
    emulated_observe(NULL);
    return CUPTI_SUCCESS_;
}

/* Fills one buffer with the oldest records; returns what is left of them. */
static struct kept *flush_some(struct kept *kept)
{
    uint8_t *buffer = NULL;
    size_t bytes = 0, most = 0, used = 0, newest = 0;
    request_buffer(&buffer, &bytes, &most);
    if (bytes > 4096)
        bytes = 4096; /* so that there are several */
    while (kept && used + count_bytes(kinds[kept->kind]) <= bytes) {
        struct kept *next = kept->next;
        write_record(kept, buffer + used);
        newest = count_bytes(kinds[kept->kind]);
        used += newest;
        free(kept);
        kept = next;
    }
    for (size_t at = used; newest > 0 && at + newest <= bytes; at += newest) /* behind the valid bytes: no records */
        memcpy(buffer + at, buffer + used - newest, newest);
    complete_buffer(NULL, 0, buffer, bytes, used);
    return kept;
}

EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
    pthread_mutex_lock(&lock);
    struct kept *kept = flag == CUPTI_FLUSH_FORCED_ ? first : NULL;
    if (kept) {
        first = NULL;
        last = &first;
    }
    pthread_mutex_unlock(&lock);
    while (kept)
        kept = flush_some(kept);
    return CUPTI_SUCCESS_;
}

/* For tests: asks for a buffer, which goes back, empty, when functions are registered again. Returns whether there was
 * one. */
EXPORT int fake_cupti_hold(void)
{
    size_t bytes = 0, most = 0;
    request_buffer(&held, &bytes, &most);
    return held != NULL;
}

/* For tests: a kernel that ran on a device just now. */
EXPORT void fake_cupti_run(uint32_t device, const char *name)
{
    const double now = (double)emulated_read_clock();
    note_on(device, 1, name, now, now);
}

/* For tests: a kernel (1), a copy (2) or a fill (3), in nanoseconds since the last timestamp. */
EXPORT void fake_cupti_add(int kind, uint32_t device, const char *name, int64_t begin_ns, int64_t end_ns,
                           uint64_t bytes, int copy_kind)
{
    keep((struct kept){NULL, kind, name, told + (uint64_t)begin_ns, told + (uint64_t)end_ns, device, bytes, copy_kind});
}

/* For tests: how many kinds are recorded. */
EXPORT int fake_cupti_count_enabled(void)
{
    return enabled[kinds[1]] + enabled[kinds[2]] + enabled[kinds[3]];
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, struct cupti_record **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + count_bytes((*record)->kind) : buffer;
    if (next >= buffer + valid_bytes)
        return CUPTI_MAX_LIMIT_REACHED_;
    *record = (struct cupti_record *)(void *)next;
    return CUPTI_SUCCESS_;
}

EXPORT int cuptiGetTimestamp(uint64_t *out_ns)
{
    const char *fails = getenv("FAKE_CUPTI_FAILS");
    if (fails && strcmp(fails, "time") == 0)
        return 15;
    *out_ns = told = (uint64_t)emulated_read_clock();
    return CUPTI_SUCCESS_;
}

EXPORT int cuptiGetResultString(int result, const char **out_text)
{
    *out_text = result == 15 ? "CUPTI_ERROR_NOT_INITIALIZED" : "CUPTI_ERROR_UNKNOWN";
    return CUPTI_SUCCESS_;
}
