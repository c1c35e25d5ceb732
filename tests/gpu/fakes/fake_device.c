/* SPDX-License-Identifier: Apache-2.0 */
/* A fake device: the reference behind a memory domain of its own.
 *
 * Its addresses are those of ordinary memory plus 2^62, so a host that dereferences one crashes. Its streams are
 * threads that process a queue, late on purpose, so a host that does not wait reads old numbers. This shows that the
 * core and the conformance kit keep the rules of ext/draft/memory.h.
 *
 * A copy from pinned memory reads it when the copy runs, as a copy engine does. With SEQLSTM_FAKE_MEET in the
 * environment, a backward call waits until a new copy out of pinned memory begins, one that had not begun when the call
 * was queued. If nothing overlaps, it fails after 20 s.
 *
 * With SEQLSTM_FAKE_FAIL_AFTER=N in the environment, job number N fails as on a real device: later, and permanently.
 * With SEQLSTM_FAKE_FAIL_READ, the next copy to the host fails, and the variable is removed.
 *
 * With SEQLSTM_FAKE_PEERS, the fake devices of a process know each other: the second device of fake-a is that of
 * fake-b, and the third of fake-b that of fake-a. SEQLSTM_FAKE_ACROSS becomes the number of copies between them. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/memory.h>

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

#define MOVED ((uintptr_t)1 << 62)
enum { VENDOR_CODE = 719 };

static const struct seqlstm_backend *inner;
static struct seqlstm_backend table;
static char domain[64];

static uint32_t count_devices(void)
{
    return getenv("SEQLSTM_FAKE_PEERS") == NULL ? 1 : strcmp(FAKE_ID, "fake-a") == 0 ? 2 : 3;
}

static void *to_device(void *pointer)
{
    return pointer ? (void *)((uintptr_t)pointer + MOVED) : NULL;
}

/* Translates a device address to what the device accesses. A host address is not translated, and crashes if it is
 * used. */
static void *from_device(const void *pointer)
{
    return pointer ? (void *)((uintptr_t)pointer - MOVED) : NULL;
}

/* ---- streams ------------------------------------------------------------------------------------------ */

enum kind { COPY, FILL, FORWARD, BACKWARD, PACK };

struct job {
    struct job *next;
    enum kind kind;
    int staged; /* COPY: `from` is the job's own */
    int64_t
        copies; /* BACKWARD: copies out of pinned memory that had begun when it was queued; COPY: it is such a copy */
    void *to;
    void *from;
    uint64_t bytes;
    uint32_t value;
    struct seqlstm_binding *binding;
    const struct seqlstm_op *op;
    struct seqlstm_step step;
    uint32_t slot_count, parts;
    void **slots, **grads; /* behind the struct */
    void *workspace, *reserve, *packed;
};

struct stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *first, **last;
    int64_t given, done;
    int stopping;
    struct seqlstm_queue queue; /* the reference's */
    struct seqlstm_error failure;
};

static int64_t fail_after = -1, started;

/* Copies to the device out of pinned memory which have begun. Other copies run in the stream that computes. */
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t met = PTHREAD_COND_INITIALIZER;
static int64_t pinned_copies;
static int meets;

/* The pinned memory that is allocated. */
enum { PINNED_MOST = 64 };
static struct {
    const char *begin;
    uint64_t bytes;
} pinned[PINNED_MOST];

static int is_pinned(const void *pointer)
{
    int found = 0;
    pthread_mutex_lock(&meeting);
    for (int i = 0; i < PINNED_MOST; i++)
        found = found || (pinned[i].begin && (const char *)pointer >= pinned[i].begin &&
                          (const char *)pointer < pinned[i].begin + pinned[i].bytes);
    pthread_mutex_unlock(&meeting);
    return found;
}

static void note_pinned(const void *before, const void *pointer, uint64_t bytes)
{
    pthread_mutex_lock(&meeting);
    for (int i = 0; i < PINNED_MOST; i++)
        if (pinned[i].begin == before) {
            pinned[i].begin = pointer;
            pinned[i].bytes = bytes;
            break;
        }
    pthread_mutex_unlock(&meeting);
}

static int64_t count_pinned_copies(int more)
{
    pthread_mutex_lock(&meeting);
    pinned_copies += more;
    int64_t count = pinned_copies;
    pthread_cond_broadcast(&met);
    pthread_mutex_unlock(&meeting);
    return count;
}

static seqlstm_status meet(int64_t copies, struct seqlstm_error *err)
{
    struct timespec end;
    int late = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    pthread_mutex_lock(&meeting);
    while (meets && pinned_copies <= copies && !late)
        late = pthread_cond_timedwait(&met, &meeting, &end) != 0;
    pthread_mutex_unlock(&meeting);
    if (late)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "no copy began while the fake device computed");
    return SEQLSTM_OK;
}

static void parallel_for(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                         void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    (void)queue;
    (void)grain;
    fn(argument, 0, count);
}

static const struct seqlstm_queue_services services = {.struct_size = sizeof services, .parallel_for = parallel_for};

static seqlstm_status work(struct stream *s, struct job *job, struct seqlstm_error *err)
{
    if (fail_after >= 0 && __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED) > fail_after) {
        seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "the fake device failed on purpose");
        err->native_code = VENDOR_CODE;
        return SEQLSTM_DEVICE;
    }
    struct seqlstm_forward f = {.struct_size = sizeof f,
                                .slot_count = job->slot_count,
                                .slots = job->slots,
                                .workspace = job->workspace,
                                .reserve = job->reserve,
                                .packed = job->packed,
                                .step = &job->step};
    struct seqlstm_backward b = {.struct_size = sizeof b,
                                 .slot_count = job->slot_count,
                                 .slots = job->slots,
                                 .grads = job->grads,
                                 .parts = job->parts,
                                 .workspace = job->workspace,
                                 .reserve = job->reserve,
                                 .packed = job->packed,
                                 .step = &job->step};
    switch (job->kind) {
    case COPY:
        if (job->copies)
            count_pinned_copies(1);
        memcpy(job->to, job->from, job->bytes);
        return SEQLSTM_OK;
    case FILL:
        memset(job->to, (int)job->value, job->bytes);
        return SEQLSTM_OK;
    case FORWARD:
        return inner->forward(job->binding, &s->queue, &f, err);
    case BACKWARD:
        SEQLSTM_TRY(meet(job->copies, err));
        return inner->backward(job->binding, &s->queue, &b, err);
    default:
        return inner->weights_pack(job->op, &s->queue, job->slots, job->packed, &job->step, err);
    }
}

static void *run(void *argument)
{
    struct stream *s = argument;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->stopping)
            pthread_cond_wait(&s->changed, &s->lock);
        struct job *job = s->first;
        if (!job)
            break;
        s->first = job->next;
        if (!s->first)
            s->last = &s->first;
        int failed = s->failure.code != SEQLSTM_OK;
        pthread_mutex_unlock(&s->lock);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct timespec late = {0, 20000};
        nanosleep(&late, NULL);
        seqlstm_status rc = failed ? SEQLSTM_OK : work(s, job, &err);
        if (job->staged)
            free(job->from);
        free(job);
        pthread_mutex_lock(&s->lock);
        if (rc != SEQLSTM_OK)
            s->failure = err;
        s->done++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static seqlstm_status submit(struct stream *s, struct job *job, struct seqlstm_error *err)
{
    pthread_mutex_lock(&s->lock);
    struct seqlstm_error failure = s->failure;
    if (failure.code == SEQLSTM_OK) {
        *s->last = job;
        s->last = &job->next;
        s->given++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (failure.code == SEQLSTM_OK)
        return SEQLSTM_OK;
    if (job->staged)
        free(job->from);
    free(job);
    if (err)
        *err = failure;
    return failure.code;
}

static seqlstm_status stream_create(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                                    struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a stream");
    s->last = &s->first;
    s->failure = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    s->queue = (struct seqlstm_queue){.struct_size = sizeof s->queue, .members = 1, .services = &services};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, run, s) != 0) {
        free(s);
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "no thread for a stream");
    }
    *out_stream = s;
    return SEQLSTM_OK;
}

static void stream_destroy(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    (void)instance;
    (void)device;
    struct stream *s = stream;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

static seqlstm_status stream_synchronize(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                         struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    struct stream *s = stream;
    pthread_mutex_lock(&s->lock);
    while (s->done < s->given)
        pthread_cond_wait(&s->changed, &s->lock);
    struct seqlstm_error failure = s->failure;
    pthread_mutex_unlock(&s->lock);
    if (failure.code != SEQLSTM_OK && err)
        *err = failure;
    return failure.code;
}

/* An event is the number of jobs queued on a stream so far. */
struct event {
    struct stream *stream;
    int64_t given;
    struct timespec at;
};

static seqlstm_status event_create(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    *out_event = calloc(1, sizeof(struct event));
    if (!*out_event)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an event");
    return SEQLSTM_OK;
}

static void event_destroy(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    (void)instance;
    (void)device;
    free(event);
}

static seqlstm_status event_record(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    struct event *e = event;
    SEQLSTM_TRY(stream_synchronize(instance, device, stream, err));
    e->stream = stream;
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    return SEQLSTM_OK;
}

static seqlstm_status event_wait(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    (void)instance; /* recording has waited already */
    (void)device;
    (void)event;
    (void)stream;
    (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status event_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    (void)err;
    const struct event *a = begin, *b = end;
    *out_ns = (double)(b->at.tv_sec - a->at.tv_sec) * 1e9 + (double)(b->at.tv_nsec - a->at.tv_nsec);
    return SEQLSTM_OK;
}

static const struct seqlstm_streams streams = {.struct_size = sizeof streams,
                                               .create = stream_create,
                                               .destroy = stream_destroy,
                                               .synchronize = stream_synchronize,
                                               .event_create = event_create,
                                               .event_destroy = event_destroy,
                                               .event_record = event_record,
                                               .event_wait = event_wait,
                                               .event_elapsed = event_elapsed};

/* ---- memory ------------------------------------------------------------------------------------------- */

static seqlstm_status memory_allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                                      void **out_pointer, struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    void *pointer = NULL;
    if (posix_memalign(&pointer, SEQLSTM_ALIGNMENT, bytes) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)bytes);
    memset(pointer, 0xFF, bytes);
    if (kind == SEQLSTM_MEMORY_PINNED)
        note_pinned(NULL, pointer, bytes);
    *out_pointer = kind == SEQLSTM_MEMORY_DEVICE ? to_device(pointer) : pointer;
    return SEQLSTM_OK;
}

static void memory_release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance;
    (void)device;
    if (kind == SEQLSTM_MEMORY_PINNED && pointer)
        note_pinned(pointer, NULL, 0);
    free(kind == SEQLSTM_MEMORY_DEVICE ? from_device(pointer) : pointer);
}

static struct job *make_job(enum kind kind, uint32_t slot_count)
{
    struct job *job = calloc(1, sizeof *job + 2 * slot_count * sizeof(void *));
    if (job) {
        job->kind = kind;
        job->slot_count = slot_count;
        job->slots = (void **)(void *)(job + 1);
        job->grads = job->slots + slot_count;
    }
    return job;
}

static seqlstm_status memory_copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                                  void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    if (direction == SEQLSTM_COPY_TO_HOST && getenv("SEQLSTM_FAKE_FAIL_READ")) {
        unsetenv("SEQLSTM_FAKE_FAIL_READ");
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "a read of the fake device failed on purpose");
    }
    struct job *job = make_job(COPY, 0);
    if (!job)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a copy");
    job->bytes = bytes;
    job->to = direction == SEQLSTM_COPY_TO_HOST ? to : from_device(to);
    job->copies = direction == SEQLSTM_COPY_TO_DEVICE && is_pinned(from);
    job->staged = direction == SEQLSTM_COPY_TO_DEVICE && !job->copies;
    job->from = job->copies ? (void *)(uintptr_t)from : job->staged ? malloc(bytes ? bytes : 1) : from_device(from);
    if (job->staged)
        memcpy(job->from, from, bytes);
    SEQLSTM_TRY(submit(stream, job, err));
    return direction == SEQLSTM_COPY_TO_HOST ? stream_synchronize(instance, device, stream, err) : SEQLSTM_OK;
}

static seqlstm_status memory_fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to,
                                  uint32_t value, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance;
    (void)device;
    struct job *job = make_job(FILL, 0);
    if (!job)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a fill");
    job->to = from_device(to);
    job->value = value;
    job->bytes = bytes;
    return submit(stream, job, err);
}

static seqlstm_status memory_copy_across(struct seqlstm_instance *instance, uint32_t to_device, void *to_stream,
                                         void *to, uint32_t from_device, void *from_stream, const void *from,
                                         uint64_t bytes, struct seqlstm_error *err)
{
    const char *before = getenv("SEQLSTM_FAKE_ACROSS");
    char text[24];
    if (to_device >= count_devices() || from_device >= count_devices())
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a copy from device %u to %u of " FAKE_ID ", which has %u",
                     (unsigned)from_device, (unsigned)to_device, (unsigned)count_devices());
    snprintf(text, sizeof text, "%d", before ? atoi(before) + 1 : 1);
    setenv("SEQLSTM_FAKE_ACROSS", text, 1);
    if ((const char *)to < (const char *)from + bytes && (const char *)from < (const char *)to + bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the ranges of a copy overlap");
    SEQLSTM_TRY(stream_synchronize(instance, from_device, from_stream, err));
    SEQLSTM_TRY(memory_copy(instance, to_device, to_stream, SEQLSTM_COPY_WITHIN, to, from, bytes, err));
    return stream_synchronize(instance, to_device, to_stream, err);
}

static const struct seqlstm_memory memory = {.struct_size = sizeof memory,
                                             .allocate = memory_allocate,
                                             .release = memory_release,
                                             .copy = memory_copy,
                                             .fill = memory_fill,
                                             .copy_across = memory_copy_across};

/* ---- calls -------------------------------------------------------------------------------------------- */

static struct job *make_call(enum kind kind, uint32_t slot_count, void *const *slots, void *const *grads,
                             void *workspace, void *reserve, const void *packed, const struct seqlstm_step *step)
{
    struct job *job = make_job(kind, slot_count);
    if (!job)
        return NULL;
    for (uint32_t k = 0; k < slot_count; k++) {
        job->slots[k] = from_device(slots[k]);
        job->grads[k] = grads ? from_device(grads[k]) : NULL;
    }
    job->workspace = from_device(workspace);
    job->reserve = from_device(reserve);
    job->packed = from_device(packed);
    job->step = *step;
    return job;
}

static seqlstm_status fake_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct job *job = make_call(FORWARD, args->slot_count, args->slots, NULL, args->workspace, args->reserve,
                                args->packed, args->step);
    if (!job)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a call");
    job->binding = binding;
    return submit(queue->native_stream, job, err);
}

static seqlstm_status fake_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    struct job *job = make_call(BACKWARD, args->slot_count, args->slots, args->grads, args->workspace, args->reserve,
                                args->packed, args->step);
    if (!job)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a call");
    job->binding = binding;
    job->copies = count_pinned_copies(0);
    job->parts = args->parts;
    return submit(queue->native_stream, job, err);
}

static seqlstm_status fake_open(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                uint32_t setting_count, struct seqlstm_instance **out_instance,
                                struct seqlstm_error *err)
{
    const char *text = getenv("SEQLSTM_FAKE_FAIL_AFTER");
    fail_after = text ? atoll(text) : -1;
    meets = getenv("SEQLSTM_FAKE_MEET") != NULL;
    started = 0;
    return inner->open(host, settings, setting_count, out_instance, err);
}

static seqlstm_status fake_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                        struct seqlstm_error *err)
{
    (void)instance;
    (void)err;
    *out_count = count_devices();
    return SEQLSTM_OK;
}

static seqlstm_status fake_device_info(struct seqlstm_instance *instance, uint32_t device,
                                       struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    const uint32_t count = count_devices();
    const bool is_other = device > 0 && device < count; /* of another backend */
    SEQLSTM_TRY(inner->device_info(instance, is_other ? 0 : device, info, err));
    snprintf(info->name, sizeof info->name, "a device that does not exist");
    snprintf(info->device_class, sizeof info->device_class, "fake:1");
    snprintf(info->domain, sizeof info->domain, "%s", domain);
    if (is_other)
        snprintf(info->domain, sizeof info->domain, "fake:%s",
                 device + 1 < count               ? "of another one"
                 : strcmp(FAKE_ID, "fake-a") == 0 ? "fake-b"
                                                  : "fake-a");
    return SEQLSTM_OK;
}

static seqlstm_status fake_supports(const char *device_class, const struct seqlstm_desc *desc,
                                    struct seqlstm_answer *answer, struct seqlstm_error *err)
{
    return inner->supports(strcmp(device_class, "fake:1") == 0 ? "cpu:any" : device_class, desc, answer, err);
}

static seqlstm_status fake_op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                   struct seqlstm_error *err)
{
    if (queue->native_stream == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a queue of the host's, expected one of the fake device's");
    return inner->op_bind(op, queue, bind, out_binding, err);
}

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    if (inner)
        return &table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = FAKE_ID;
    table.build = "the reference behind another memory domain";
    table.open = fake_open;
    table.device_count = fake_device_count;
    table.device_info = fake_device_info;
    table.supports = fake_supports;
    table.op_bind = fake_op_bind;
    table.forward = fake_forward;
    table.backward = fake_backward;
    table.memory = &memory;
    table.streams = &streams;
    table.get_extension = NULL;
    snprintf(domain, sizeof domain, "fake:%s", FAKE_ID);
    return &table;
}
