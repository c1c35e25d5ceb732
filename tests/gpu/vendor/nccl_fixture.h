/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks of comm-nccl in one process, on the emulated device and the fake NCCL. `main` sets `library`. */
#ifndef NCCL_FIXTURE_H
#define NCCL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <seqlstm/collectives.h>

#include "common/cuda_runtime.h"

const struct seqlstm_collectives *seqlstm_collectives_query_v0(uint32_t host_minor);

enum { RANKS = 4, DEVICES = 6, GROUPS = 8, STAGE_BYTES = 4 << 20 };
#define SHORT_NS INT64_C(20000000)
#define LONG_NS  INT64_C(60000000000)

static const int32_t device_of[RANKS] = {5, 0, 3, 1};
static const int32_t all[RANKS] = {0, 1, 2, 3};
static const char *library;
static const struct seqlstm_collectives *table;
static int blocks;

static inline void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return calloc(1, bytes);
}

static inline void release(void *context, void *memory)
{
    (void)context;
    __atomic_sub_fetch(&blocks, memory != NULL, __ATOMIC_RELAXED);
    free(memory);
}

static const struct seqlstm_host host = {.struct_size = sizeof host, .allocate = allocate, .release = release};

/* ---- the device ------------------------------------------------------------------------------------------------- */

static int streams[DEVICES];    /* that are open on each device */
static int events;              /* of all devices */
static _Atomic int lost;        /* the call that makes something of a device and fails, counted from 1; 0: none */
static _Atomic int broken = -1; /* a device on which no event can be recorded */
static _Atomic int slow = -1;   /* a device whose events seem to be on their way, */
static _Atomic int queries;     /* for so many questions */

seqlstm_status __real_gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                                   struct seqlstm_error *err);
seqlstm_status __wrap_gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                                   struct seqlstm_error *err);
seqlstm_status __real_gpu_stream_create(int32_t ordinal, void **out_stream, struct seqlstm_error *err);
seqlstm_status __wrap_gpu_stream_create(int32_t ordinal, void **out_stream, struct seqlstm_error *err);
seqlstm_status __real_gpu_event_record(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err);
seqlstm_status __wrap_gpu_event_record(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err);
seqlstm_status __real_gpu_event_create(int32_t ordinal, void **out_event, struct seqlstm_error *err);
seqlstm_status __wrap_gpu_event_create(int32_t ordinal, void **out_event, struct seqlstm_error *err);
void __real_gpu_event_destroy(int32_t ordinal, void *event);
void __wrap_gpu_event_destroy(int32_t ordinal, void *event);
void __real_gpu_stream_destroy(int32_t ordinal, void *stream);
void __wrap_gpu_stream_destroy(int32_t ordinal, void *stream);
seqlstm_status __real_gpu_event_query(int32_t ordinal, void *event, bool *out_happened, struct seqlstm_error *err);
seqlstm_status __wrap_gpu_event_query(int32_t ordinal, void *event, bool *out_happened, struct seqlstm_error *err);

static inline seqlstm_status lose(struct seqlstm_error *err)
{
    if (atomic_load(&lost) <= 0 || atomic_fetch_sub(&lost, 1) != 1)
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "the device is lost");
    return SEQLSTM_DEVICE;
}

seqlstm_status __wrap_gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                                   struct seqlstm_error *err)
{
    SEQLSTM_TRY(lose(err));
    return __real_gpu_allocate(ordinal, kind, bytes, out_pointer, err);
}

seqlstm_status __wrap_gpu_stream_create(int32_t ordinal, void **out_stream, struct seqlstm_error *err)
{
    SEQLSTM_TRY(lose(err));
    __atomic_add_fetch(&streams[ordinal], 1, __ATOMIC_RELAXED);
    return __real_gpu_stream_create(ordinal, out_stream, err);
}

void __wrap_gpu_stream_destroy(int32_t ordinal, void *stream)
{
    __atomic_sub_fetch(&streams[ordinal], stream != NULL, __ATOMIC_RELAXED);
    __real_gpu_stream_destroy(ordinal, stream);
}

seqlstm_status __wrap_gpu_event_create(int32_t ordinal, void **out_event, struct seqlstm_error *err)
{
    SEQLSTM_TRY(lose(err));
    const seqlstm_status status = __real_gpu_event_create(ordinal, out_event, err);
    __atomic_add_fetch(&events, status == SEQLSTM_OK, __ATOMIC_RELAXED);
    return status;
}

void __wrap_gpu_event_destroy(int32_t ordinal, void *event)
{
    __atomic_sub_fetch(&events, event != NULL, __ATOMIC_RELAXED);
    __real_gpu_event_destroy(ordinal, event);
}

seqlstm_status __wrap_gpu_event_record(int32_t ordinal, void *event, void *stream, struct seqlstm_error *err)
{
    if (ordinal != broken)
        return __real_gpu_event_record(ordinal, event, stream, err);
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "the device is lost");
    err->native_code = 3;
    return SEQLSTM_DEVICE;
}

seqlstm_status __wrap_gpu_event_query(int32_t ordinal, void *event, bool *out_happened, struct seqlstm_error *err)
{
    if (ordinal != slow || atomic_fetch_sub(&queries, 1) <= 0)
        return __real_gpu_event_query(ordinal, event, out_happened, err);
    *out_happened = false;
    return SEQLSTM_OK;
}

/* None is hidden. */
static inline void set_devices(int count)
{
    char text[8];
    snprintf(text, sizeof text, "%d", count);
    setenv("SEQLSTM_EMULATED_DEVICES", text, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

struct rank {
    int32_t number;
    struct seqlstm_connection *connection;
    struct seqlstm_group *groups[GROUPS];
    seqlstm_status status;
    struct seqlstm_error err;
};

static struct rank ranks[RANKS];

/* What all ranks that `each` starts are to do. */
static struct {
    char job[64];
    int64_t timeout_ns;
    uint32_t group;
    const int32_t *members;
    int32_t count;
} task;

static inline void *join(void *context)
{
    struct rank *r = context;
    const struct seqlstm_setting settings[] = {{"library", library}};
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = r->number,
                                                  .ranks = RANKS,
                                                  .local_ranks = RANKS,
                                                  .device = device_of[r->number],
                                                  .job = task.job,
                                                  .timeout_ns = task.timeout_ns};
    r->status = table->open(&host, settings, 1, &rendezvous, &r->connection, &r->err);
    return NULL;
}

static inline void *make_group(void *context)
{
    struct rank *r = context;
    r->status =
        table->group_create(r->connection, task.group, task.members, task.count, &r->groups[task.group], &r->err);
    return NULL;
}

static inline void *end_group(void *context)
{
    struct rank *r = context;
    table->group_destroy(r->groups[task.group]);
    r->groups[task.group] = NULL;
    return NULL;
}

static inline void *leave(void *context)
{
    struct rank *r = context;
    for (int g = 0; g < GROUPS; g++)
        table->group_destroy(r->groups[g]);
    table->close(r->connection);
    *r = (struct rank){.number = r->number};
    return NULL;
}

/* Lets each of these ranks do it at the same time. */
static inline void each(const int32_t *who, int32_t count, void *(*work)(void *))
{
    pthread_t ids[RANKS];
    for (int32_t k = 0; k < count; k++) {
        ranks[who[k]].err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        assert_int_equal(pthread_create(&ids[k], NULL, work, &ranks[who[k]]), 0);
    }
    for (int32_t k = 0; k < count; k++)
        pthread_join(ids[k], NULL);
}

static inline void join_within(int64_t timeout_ns)
{
    static int jobs;
    snprintf(task.job, sizeof task.job, "nccl-ranks-%d-%d", (int)getpid(), jobs++);
    task.timeout_ns = timeout_ns;
    for (int32_t r = 0; r < RANKS; r++)
        ranks[r] = (struct rank){.number = r};
    each(all, RANKS, join);
    for (int r = 0; r < RANKS; r++)
        if (ranks[r].status != SEQLSTM_OK)
            fail_msg("rank %d: %s", r, ranks[r].err.message);
}

static inline int join_all(void **state)
{
    (void)state;
    table = seqlstm_collectives_query_v0(SEQLSTM_COLLECTIVES_MINOR);
    join_within(LONG_NS);
    return 0;
}

static inline int leave_all(void **state)
{
    (void)state;
    broken = slow = -1;
    each(all, RANKS, leave);
    assert_int_equal(blocks, 0);
    assert_int_equal(events, 0);
    return 0;
}

static inline void make(uint32_t group, const int32_t *members, int32_t count)
{
    task.group = group;
    task.members = members;
    task.count = count;
    each(members, count, make_group);
    for (int32_t m = 0; m < count; m++)
        if (ranks[members[m]].status != SEQLSTM_OK)
            fail_msg("group %u, rank %d: %s", group, members[m], ranks[members[m]].err.message);
}

/* ---- exchanges -------------------------------------------------------------------------------------------------- */

/* Of bytes, with a peer where the kind has one. */
static inline struct seqlstm_exchange exchange(uint32_t kind, int32_t peer, int64_t timeout_ns)
{
    static unsigned char from[2 * RANKS], to[2 * RANKS];
    return (struct seqlstm_exchange){.struct_size = sizeof(struct seqlstm_exchange),
                                     .kind = kind,
                                     .dtype = SEQLSTM_DTYPE_UINT8,
                                     .peer = peer,
                                     .elems = kind == SEQLSTM_COLLECTIVE_BARRIER ? 0 : 2,
                                     .from = from,
                                     .to = to,
                                     .timeout_ns = timeout_ns};
}

static inline void expect(const char *what, seqlstm_status status, const struct seqlstm_error *err,
                          seqlstm_status expected, int32_t native, const char *message)
{
    if (status != expected || err->native_code != native || strcmp(err->message, message) != 0)
        fail_msg("%s: status %d, '%s' (%d), expected %d, '%s' (%d)", what, (int)status, err->message, err->native_code,
                 (int)expected, message, native);
}

static inline void expect_run(int32_t rank, uint32_t group, const struct seqlstm_exchange *e, seqlstm_status expected,
                              int32_t native, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = table->run(ranks[rank].groups[group], NULL, e, &err);
    expect("run", status, &err, expected, native, message);
}

static inline void expect_poll(int32_t rank, seqlstm_status expected, int32_t native, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = table->poll(ranks[rank].connection, &err);
    expect("poll", status, &err, expected, native, message);
}

/* A stream with two buffers on the device of a rank. */
struct lane {
    void *stream, *from, *to;
    struct seqlstm_queue queue;
};

static inline void open_lane(struct lane *l, int32_t rank, uint64_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int32_t device = device_of[rank];
    assert_int_equal(gpu_stream_create(device, &l->stream, &err), SEQLSTM_OK);
    assert_int_equal(gpu_allocate(device, 0, bytes, &l->from, &err), SEQLSTM_OK);
    assert_int_equal(gpu_allocate(device, 0, bytes, &l->to, &err), SEQLSTM_OK);
    l->queue = (struct seqlstm_queue){.struct_size = sizeof l->queue, .members = 1, .native_stream = l->stream};
}

static inline void close_lane(struct lane *l, int32_t rank)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(gpu_stream_synchronize(device_of[rank], l->stream, &err), SEQLSTM_OK);
    gpu_stream_destroy(device_of[rank], l->stream);
    gpu_release(device_of[rank], 0, l->from);
    gpu_release(device_of[rank], 0, l->to);
}

/* Runs the tests with the library that the only argument names. */
#define RUN_TESTS(tests)                                                                                               \
    if (count != 2)                                                                                                    \
        return 2;                                                                                                      \
    library = arguments[1];                                                                                            \
    set_devices(DEVICES);                                                                                              \
    return cmocka_run_group_tests(tests, NULL, NULL)

#endif
