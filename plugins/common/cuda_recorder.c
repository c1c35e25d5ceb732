/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_recorder.h. CUPTI records for the whole process and knows no context of a caller: a buffer has the records
 * of all devices, and stays until each device that is recorded has read its own. CUPTI asks for buffers and gives them
 * back on threads of its own, perhaps after the end of a recording: so they are no memory of the host. They are read in
 * `report`. CUPTI records from the first start to the last stop, which is a turn.
 *
 * Each CUDA plugin has this code, and CUPTI has the functions of the one that has begun a turn last. So a buffer which
 * one plugin gave may come back to another: a buffer knows which turn of which plugin counts it. */
#include "common/cuda_recorder.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda_domain.h"
#include "common/cupti.h"
#include "common/vendor_library.h"

enum { NAME_BYTES = 96 };

static const size_t buffer_bytes = (size_t)1 << 20;
static const size_t buffers_most = 128; /* further activities are lost */

#define CUPTI_MEMBER(type, name, arguments) type(*name) arguments;
static struct cupti_functions {
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
} cupti; /* written once, before the first recording */
#undef CUPTI_MEMBER
static bool loaded;

/* A buffer, whose records begin behind it. */
struct buffer {
    struct buffer *next;
    size_t valid_bytes;
    const void *owner; /* `recording` of its plugin */
    uint64_t turn;
    uint32_t unread; /* a bit for each device that has yet to read it, once it has come back */
};
enum { HEAD = 64 }; /* bytes before the records of a buffer */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
struct recorded {
    const struct seqlstm_instance *instance; /* NULL: nothing is recorded */
    int32_t ordinal;
    uint64_t zero_ns; /* on the clock of CUPTI */
};
static struct {
    struct recorded devices[GPU_DEVICES_MAX];
    uint32_t active; /* a bit for each of them that is recorded */
    struct buffer *full;
    size_t buffers; /* which this turn has given and not yet freed */
    uint64_t turn;  /* number of this turn */
} recording;

static const int kinds[] = {CUPTI_KIND_CONCURRENT_KERNEL_, CUPTI_KIND_MEMCPY_, CUPTI_KIND_MEMSET_};

/* ---- the library ------------------------------------------------------------------------------------------------ */

static seqlstm_status load(const char *place, struct seqlstm_error *err)
{
    static const char *const folders[] = {
        "", "lib64/", "lib/", "extras/CUPTI/lib64/", "nvidia/cu13/lib/", "nvidia/cuda_cupti/lib/", NULL};
    static const char *const files[] = {"libcupti.so.13", "libcupti.so.12"};
    char reason[1024] = "";
    void *library = NULL;
    for (size_t f = 0; f < sizeof files / sizeof *files && library == NULL && strcmp(place, "none") != 0; f++) {
        const struct vendor_library wanted = {files[f], folders};
        library = vendor_library_open(&wanted, place, reason, sizeof reason);
    }
    if (library == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "CUPTI, which measures them, %s%.400s (the backend's option `cupti` names a file or folder)",
                     reason[0] ? "cannot be loaded: " : "is switched off", reason);
    const char *missing = NULL;
#define CUPTI_FIND(type, name, arguments) vendor_library_find(library, "cupti" #name, &cupti.name, &missing);
    CUPTI_FUNCTIONS(CUPTI_FIND)
#undef CUPTI_FIND
    if (missing != NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "CUPTI, which measures them, has no function %s", missing);
    loaded = true;
    return SEQLSTM_OK;
}

static seqlstm_status check(int result, const char *function, struct seqlstm_error *err)
{
    const char *text = NULL;
    if (result == CUPTI_SUCCESS_)
        return SEQLSTM_OK;
    cupti.GetResultString(result, &text);
    seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                      "CUPTI, which measures them, failed in cupti%s: %.200s (%d)", function, text ? text : "?",
                      result);
    if (err != NULL && err->struct_size >= sizeof *err)
        err->native_code = result;
    return SEQLSTM_UNAVAILABLE;
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static void give_buffer(uint8_t **out_buffer, size_t *out_bytes, size_t *out_records_most)
{
    unsigned char *block = NULL;
    pthread_mutex_lock(&lock);
    if (recording.active != 0 && recording.buffers < buffers_most)
        block = aligned_alloc(HEAD, HEAD + buffer_bytes);
    if (block != NULL) {
        *(struct buffer *)(void *)block = (struct buffer){.owner = &recording, .turn = recording.turn};
        recording.buffers++;
    }
    pthread_mutex_unlock(&lock);
    *out_buffer = block ? block + HEAD : NULL;
    *out_bytes = block ? buffer_bytes : 0;
    *out_records_most = 0; /* as many as there is room for */
}

static void take_buffer(void *context, uint32_t stream, uint8_t *records, size_t bytes, size_t valid_bytes)
{
    (void)context;
    (void)stream;
    (void)bytes;
    if (records == NULL)
        return;
    struct buffer *buffer = (struct buffer *)(void *)(records - HEAD);
    pthread_mutex_lock(&lock);
    buffer->next = recording.full;
    buffer->valid_bytes = valid_bytes;
    buffer->unread = recording.active;
    recording.full = buffer;
    pthread_mutex_unlock(&lock);
}

static struct buffer *take_full(void)
{
    pthread_mutex_lock(&lock);
    struct buffer *full = recording.full;
    recording.full = NULL;
    pthread_mutex_unlock(&lock);
    return full;
}

/* A device has read the buffer. The last one frees it. */
static void leave_buffer(struct buffer *buffer, uint32_t bit)
{
    pthread_mutex_lock(&lock);
    buffer->unread &= ~bit;
    const bool last = buffer->unread == 0;
    if (!last) {
        buffer->next = recording.full;
        recording.full = buffer;
    } else if (buffer->owner == &recording && buffer->turn == recording.turn) {
        recording.buffers--;
    }
    pthread_mutex_unlock(&lock);
    if (last)
        free(buffer);
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

void gpu_recorder_name(const char *mangled, char *out, size_t capacity)
{
    const char *at = mangled, *name = NULL;
    int bytes = 0, used;
    if (strncmp(at, "_Z", 2) == 0) {
        at += at[2] == 'N' ? 3 : 2;
        at += *at == 'L'; /* of this file only */
        for (int length; sscanf(at, "%d%n", &length, &used) == 1 && length > 0 &&
                         (size_t)length <= strnlen(at + used, (size_t)length);
             at += used + length) {
            name = at + used;
            bytes = length;
        }
    }
    if (name != NULL)
        snprintf(out, capacity, "%.*s", bytes, name);
    else
        snprintf(out, capacity, "%s", mangled);
}

static void report_activity(const struct recorded *of, const struct seqlstm_report *to, uint32_t kind, const char *name,
                            uint64_t start, uint64_t end, uint64_t bytes)
{
    const struct seqlstm_activity activity = {.struct_size = sizeof activity,
                                              .kind = kind,
                                              .name = name,
                                              .begin_ns = (int64_t)(start - of->zero_ns),
                                              .end_ns = (int64_t)(end - of->zero_ns),
                                              .bytes = bytes};
    if (start >= of->zero_ns && end >= start)
        to->activity(to->context, &activity);
}

static void report_record(const struct recorded *of, const struct seqlstm_report *to, const struct cupti_record *record)
{
    const void *at = record;
    if (record->kind == CUPTI_KIND_CONCURRENT_KERNEL_) {
        const struct cupti_kernel *kernel = at;
        char name[NAME_BYTES];
        gpu_recorder_name(kernel->name ? kernel->name : "kernel", name, sizeof name);
        if ((int32_t)kernel->device == of->ordinal)
            report_activity(of, to, SEQLSTM_ACTIVITY_KERNEL, name, kernel->start, kernel->end, 0);
    } else if (record->kind == CUPTI_KIND_MEMCPY_) {
        const struct cupti_memcpy *copy = at;
        const char *name = copy->copy_kind == CUPTI_COPY_TO_DEVICE_ ? "copy to the device"
                           : copy->copy_kind == CUPTI_COPY_TO_HOST_ ? "copy to the host"
                                                                    : "copy on the device";
        if ((int32_t)copy->device == of->ordinal)
            report_activity(of, to, SEQLSTM_ACTIVITY_COPY, name, copy->start, copy->end, copy->bytes);
    } else if (record->kind == CUPTI_KIND_MEMSET_) {
        const struct cupti_memset *fill = at;
        if ((int32_t)fill->device == of->ordinal)
            report_activity(of, to, SEQLSTM_ACTIVITY_FILL, "fill", fill->start, fill->end, fill->bytes);
    }
}

/* to: NULL: what was recorded of the device is forgotten. */
static void read_buffers(int device, const struct seqlstm_report *to)
{
    const uint32_t bit = (uint32_t)1 << device;
    for (struct buffer *buffer = take_full(), *next; buffer != NULL; buffer = next) {
        struct cupti_record *record = NULL;
        next = buffer->next;
        uint8_t *records = (uint8_t *)buffer + HEAD;
        while (to != NULL && (buffer->unread & bit) &&
               cupti.ActivityGetNextRecord(records, buffer->valid_bytes, &record) == CUPTI_SUCCESS_)
            report_record(&recording.devices[device], to, record);
        leave_buffer(buffer, bit);
    }
}

/* ---- the extension ---------------------------------------------------------------------------------------------- */

static struct gpu_domain *get_domain(struct seqlstm_instance *instance)
{
    return (struct gpu_domain *)(void *)instance;
}

static void disable(size_t count)
{
    for (size_t k = 0; k < count; k++)
        cupti.ActivityDisable(kinds[k]);
}

static seqlstm_status enable(struct seqlstm_error *err)
{
    SEQLSTM_TRY(check(cupti.ActivityRegisterCallbacks(give_buffer, take_buffer), "ActivityRegisterCallbacks", err));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const seqlstm_status status = check(cupti.ActivityEnable(kinds[k]), "ActivityEnable", err);
        if (status != SEQLSTM_OK) {
            disable(k);
            return status;
        }
    }
    return SEQLSTM_OK;
}

/* The first device begins a turn. */
static void set_active(uint32_t active)
{
    pthread_mutex_lock(&lock);
    if (recording.active == 0) {
        recording.buffers = 0;
        recording.turn++;
    }
    recording.active = active;
    pthread_mutex_unlock(&lock);
}

/* The place of a device that is recorded; -1: it is not. instance NULL: a free place. */
static int find_place(const struct seqlstm_instance *instance, int32_t ordinal)
{
    for (int k = 0; k < GPU_DEVICES_MAX; k++)
        if (recording.devices[k].instance == instance && (instance == NULL || recording.devices[k].ordinal == ordinal))
            return k;
    return -1;
}

/* Only the last device ends what CUPTI does. */
static void end(int place)
{
    const uint32_t left = recording.active & ~((uint32_t)1 << place);
    if (left == 0)
        disable(sizeof kinds / sizeof *kinds);
    cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED_);
    read_buffers(place, NULL);
    recording.devices[place].instance = NULL;
    set_active(left);
}

static seqlstm_status recorder_start(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_error *err)
{
    struct gpu_domain *domain = get_domain(instance);
    const int place = find_place(NULL, 0);
    if (place < 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%d devices of this process are recorded already", GPU_DEVICES_MAX);
    if (!loaded)
        SEQLSTM_TRY(load(domain->cupti, err));
    if (recording.active == 0)
        read_buffers(place, NULL); /* of earlier turns, which came late */
    const uint32_t others = recording.active;
    recording.devices[place] =
        (struct recorded){.instance = instance, .ordinal = domain->devices[device].ordinal, .zero_ns = UINT64_MAX};
    set_active(others | (uint32_t)1 << place);
    seqlstm_status status = others == 0 ? enable(err) : SEQLSTM_OK;
    if (status != SEQLSTM_OK) {
        recording.devices[place].instance = NULL;
        set_active(0);
        return status;
    }
    status = check(cupti.GetTimestamp(&recording.devices[place].zero_ns), "GetTimestamp", err);
    if (status != SEQLSTM_OK)
        end(place);
    return status;
}

static seqlstm_status recorder_report(struct seqlstm_instance *instance, uint32_t device,
                                      const struct seqlstm_report *to, struct seqlstm_error *err)
{
    const int32_t ordinal = get_domain(instance)->devices[device].ordinal;
    const int place = find_place(instance, ordinal);
    struct seqlstm_counter memory = {.struct_size = sizeof memory, .name = "memory in use, bytes"};
    uint64_t bytes;
    if (place >= 0) {
        SEQLSTM_TRY(check(cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED_), "ActivityFlushAll", err));
        read_buffers(place, to);
    }
    SEQLSTM_TRY(gpu_memory_in_use(ordinal, &bytes, err));
    memory.value = (double)bytes;
    to->counter(to->context, &memory);
    return SEQLSTM_OK;
}

static void recorder_stop(struct seqlstm_instance *instance, uint32_t device)
{
    const int place = find_place(instance, get_domain(instance)->devices[device].ordinal);
    if (place >= 0)
        end(place);
}

const struct seqlstm_recorder gpu_recorder = {
    .struct_size = sizeof gpu_recorder, .start = recorder_start, .report = recorder_report, .stop = recorder_stop};
