/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of plugins/common/cuda_domain.c over a runtime library that writes down what it is asked: each function
 * asks the device that the host means, whose number is another one, for its own work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../fakes/recorded_runtime.h"
#include "common/cuda_domain.h"
#include "common/cuda_frame.h"
#include "common/cuda_recorder.h"

const struct seqlstm_recorder gpu_recorder = {.struct_size = sizeof gpu_recorder};

/* Of the devices 0 to 3 the host sees two: its first one is 1, its second one 3. */
static struct gpu_domain domain;
static struct seqlstm_instance *const instance = (struct seqlstm_instance *)(void *)&domain;
static const struct seqlstm_memory *const memory = &gpu_domain_memory;
static const struct seqlstm_streams *const streams = &gpu_domain_streams;
static void *const other_stream = (void *)448, *const from = (void *)8;

static cudaError_t frame_code;

static int say_frame(const char *which, const void *stream, const struct seqlstm_frame *frame)
{
    say("%s %zu %u ", which, (size_t)stream, frame->copy_count);
    return (int)frame_code;
}

int gpu_frame_begin(void *stream, const struct seqlstm_frame *frame)
{
    return say_frame("begin", stream, frame);
}

int gpu_frame_end(void *stream, const struct seqlstm_frame *frame)
{
    return say_frame("end", stream, frame);
}

/* ---- an instance ------------------------------------------------------------------------------------------------- */

static int allocated;

static void *allocate(void *context, uint64_t bytes)
{
    void *block = context == NULL ? malloc((size_t)bytes) : NULL;
    allocated += block != NULL;
    if (block != NULL)
        memset(block, 0xAB, (size_t)bytes);
    return block;
}

static void release(void *context, void *block)
{
    (void)context;
    allocated -= block != NULL;
    free(block);
}

static void describe_devices(void)
{
    device_count = 4;
    for (int k = 0; k < 4; k++) {
        properties[k] =
            (struct cudaDeviceProp){.major = k % 2 ? 8 + k / 2 : 3, .minor = k, .totalGlobalMem = 100 + (size_t)k};
        snprintf(properties[k].name, sizeof properties[k].name, "number %d", k);
        properties[k].uuid.bytes[15] = (char)k;
    }
}

/* All of it is zero but for what is known, and a list of devices that cannot be made leaves nothing. */
static void an_instance_lists_its_devices(void **state)
{
    (void)state;
    struct seqlstm_host host = {.struct_size = sizeof host, .allocate = allocate, .release = release};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *made = NULL;
    uint32_t count = 0;
    const uint64_t bytes = sizeof(struct gpu_domain) + 24;
    assert_int_equal(gpu_domain_create(&host, bytes, "cuda-x", "/some/libcupti.so", &made, &err), SEQLSTM_OK);
    const struct gpu_domain *d = (const struct gpu_domain *)(const void *)made;
    assert_string_equal(d->cupti, "/some/libcupti.so");
    assert_ptr_equal(d->host.allocate, allocate);
    for (uint64_t k = sizeof *d; k < bytes; k++)
        assert_int_equal(((const unsigned char *)d)[k], 0);
    assert_int_equal(gpu_domain_device_count(made, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 2);
    domain = *d;
    release(NULL, made);
    made = NULL;
    device_count = 0;
    assert_int_equal(gpu_domain_create(&host, bytes, "cuda-x", "none", &made, &err), SEQLSTM_UNAVAILABLE);
    assert_null(made);
    assert_int_equal(allocated, 0);
    device_count = 4;
    host.context = &host;
    assert_int_equal(gpu_domain_create(&host, bytes, "cuda-x", "none", &made, &err), SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "no memory for the instance of cuda-x");
}

static void a_device_is_described(void **state)
{
    static const struct {
        const char *name, *device_class, *domain;
        uint64_t bytes;
    } rows[] = {{"number 1", "cuda:sm_81", "cuda:00000000-0000-0000-0000-000000000001", 101},
                {"number 3", "cuda:sm_93", "cuda:00000000-0000-0000-0000-000000000003", 103}};
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_device_info info;
        memset(&info, 0xFF, sizeof info);
        info.struct_size = sizeof info;
        assert_int_equal(gpu_domain_device_info(instance, k, &info, &err), SEQLSTM_OK);
        assert_string_equal(info.name, rows[k].name);
        assert_string_equal(info.device_class, rows[k].device_class);
        assert_string_equal(info.domain, rows[k].domain);
        assert_int_equal(info.memory_bytes, rows[k].bytes);
        assert_int_equal(info.flags, 0);
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    assert_int_equal(gpu_domain_device_info(instance, 2, &info, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(gpu_domain_device_info(instance, 5, &info, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "CUDA device 5 of 2");
    assert_ptr_equal(gpu_domain_get_extension(instance, SEQLSTM_RECORDER_EXTENSION), &gpu_recorder);
    assert_null(gpu_domain_get_extension(instance, "recorder"));
}

static void a_queue_needs_a_stream(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .native_stream = some_stream};
    assert_int_equal(gpu_domain_check_queue(&queue, "cuda-x", &err), SEQLSTM_OK);
    queue.native_stream = NULL;
    assert_int_equal(gpu_domain_check_queue(&queue, "cuda-x", &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "cuda-x needs a queue of a CUDA device");
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

#define EXPECT(call, calls_wanted)                                                                                     \
    do {                                                                                                               \
        forget(0, cudaSuccess);                                                                                        \
        assert_int_equal((call), SEQLSTM_OK);                                                                          \
        assert_string_equal(said, (calls_wanted));                                                                     \
    } while (0)

static void each_function_asks_its_device(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *made = NULL;
    double ns = 0;
    EXPECT(memory->allocate(instance, 1, SEQLSTM_MEMORY_DEVICE, 40, &made, &err), "use 3 malloc 40 ");
    assert_ptr_equal(made, some_memory);
    EXPECT(memory->allocate(instance, 0, SEQLSTM_MEMORY_PINNED, 40, &made, &err), "use 1 host_alloc 40 0 ");
    EXPECT(memory->copy(instance, 1, some_stream, SEQLSTM_COPY_TO_DEVICE, some_memory, from, 24, &err),
           "use 3 copy 64 8 24 1 128 ");
    EXPECT(memory->fill(instance, 1, some_stream, some_memory, 170, 24, &err), "use 3 fill 64 170 24 128 ");
    EXPECT(streams->create(instance, 1, &made, &err), "use 3 stream 1 ");
    assert_ptr_equal(made, some_stream);
    EXPECT(streams->synchronize(instance, 1, some_stream, &err), "use 3 finish 128 ");
    EXPECT(streams->event_create(instance, 1, &made, &err), "use 3 event ");
    assert_ptr_equal(made, some_event);
    EXPECT(streams->event_record(instance, 1, some_event, some_stream, &err), "use 3 record 192 128 ");
    EXPECT(streams->event_wait(instance, 1, some_event, some_stream, &err), "use 3 wait 128 192 0 ");
    EXPECT(streams->event_synchronize(instance, 1, some_event, &err), "use 3 finish_event 192 ");
    EXPECT(streams->event_elapsed(instance, 1, some_event, other_event, &ns, &err), "use 3 elapsed 192 256 ");
    assert_true(ns == 1.5e6);
    EXPECT(streams->capture_begin(instance, 1, some_stream, &err), "use 3 capture 128 1 ");
    EXPECT(streams->capture_end(instance, 1, some_stream, &made, &err),
           "end_capture 128 instantiate 320 0 end_graph 320 ");
    assert_ptr_equal(made, some_capture);
    EXPECT(streams->capture_launch(instance, 1, some_capture, some_stream, &err), "use 3 launch 384 128 ");
    forget(0, cudaSuccess);
    memory->release(instance, 1, SEQLSTM_MEMORY_DEVICE, some_memory);
    memory->release(instance, 0, SEQLSTM_MEMORY_PINNED, some_memory);
    streams->destroy(instance, 1, some_stream);
    streams->event_destroy(instance, 1, some_event);
    streams->capture_destroy(instance, 1, some_capture);
    assert_string_equal(said, "use 3 free 64 use 1 free_host 64 use 3 finish 128 end_stream 128 use 3 end_event 192 "
                              "use 3 end_launches 384 ");
}

/* After what was started on either stream, and before what is started on either later. */
static const char before[] = "use 1 event use 1 record 192 448 use 3 wait 128 192 0 use 1 end_event 192 ",
                  after[] = "use 3 event use 3 record 192 128 use 1 wait 448 192 0 use 3 end_event 192 ";

static void a_copy_between_devices_waits_for_both(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[512];
    snprintf(expected, sizeof expected, "%suse 3 can_reach 3 1 reach 1 0 peer_copy 64 3 8 1 24 128 %s", before, after);
    EXPECT(memory->copy_across(instance, 1, some_stream, some_memory, 0, other_stream, from, 24, &err), expected);
    snprintf(expected, sizeof expected, "%s%s", before, after);
    EXPECT(memory->copy_across(instance, 1, some_stream, some_memory, 0, other_stream, from, 0, &err), expected);
    /* a wait that fails: no event is left */
    forget(6, cudaErrorInvalidValue);
    assert_int_equal(memory->copy_across(instance, 1, some_stream, some_memory, 0, other_stream, from, 24, &err),
                     SEQLSTM_DEVICE);
    assert_string_equal(said, before);
}

static void a_copy_does_not_overlap(void **state)
{
    static const struct {
        uintptr_t to, from;
        uint64_t bytes;
        bool overlaps;
    } rows[] = {{1000, 1000, 1, true},  {1000, 1000, 0, false},  {1000, 1024, 25, true}, {1000, 1024, 24, false},
                {1024, 1000, 25, true}, {1024, 1000, 24, false}, {1000, 1010, 5, false}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[96];
        forget(0, cudaSuccess);
        const seqlstm_status status = memory->copy_across(instance, 1, some_stream, (void *)rows[k].to, 1, other_stream,
                                                          (const void *)rows[k].from, rows[k].bytes, &err);
        snprintf(expected, sizeof expected, "a copy of %llu bytes to memory that overlaps with its source",
                 (unsigned long long)rows[k].bytes);
        if (status != (rows[k].overlaps ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK) ||
            strcmp(err.message, rows[k].overlaps ? expected : "") != 0 || (calls == 0) != rows[k].overlaps)
            fail_msg("row %zu: status %d, %s", k, (int)status, err.message);
    }
}

static void a_frame_has_slots_and_not_too_many_copies(void **state)
{
    static const struct {
        uint32_t struct_size, copies, slots;
        bool accepted;
    } rows[] = {{sizeof(struct seqlstm_frame), 0, 1, true},
                {sizeof(struct seqlstm_frame), SEQLSTM_FRAME_COPIES, 3, true},
                {sizeof(struct seqlstm_frame), SEQLSTM_FRAME_COPIES + 1, 3, false},
                {sizeof(struct seqlstm_frame), 2, 0, false},
                {offsetof(struct seqlstm_frame, copies), 0, 1, false}};
    (void)state;
    static struct seqlstm_frame frame;
    for (int end = 0; end < 2; end++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            char expected[64];
            frame.struct_size = rows[k].struct_size;
            frame.copy_count = rows[k].copies;
            frame.slots = rows[k].slots;
            forget(0, cudaSuccess);
            const seqlstm_status status =
                (end ? streams->frame_end : streams->frame_begin)(instance, 1, some_stream, &frame, &err);
            assert_int_equal(status, rows[k].accepted ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
            snprintf(expected, sizeof expected, "use 3 %s 128 %u ", end ? "end" : "begin", rows[k].copies);
            assert_string_equal(said, rows[k].accepted ? expected : "");
            snprintf(expected, sizeof expected, "a frame of %u copies and %u slots", rows[k].copies, rows[k].slots);
            assert_string_equal(err.message, rows[k].accepted ? "" : expected);
        }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    frame = (struct seqlstm_frame){.struct_size = sizeof frame, .slots = 1};
    frame_code = cudaErrorInvalidValue;
    forget(0, cudaSuccess);
    assert_int_equal(streams->frame_begin(instance, 1, some_stream, &frame, &err), SEQLSTM_DEVICE);
    assert_non_null(strstr(err.message, "the frame of a step failed on CUDA device 3"));
    frame_code = cudaSuccess;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_instance_lists_its_devices),
        cmocka_unit_test(a_device_is_described),
        cmocka_unit_test(a_queue_needs_a_stream),
        cmocka_unit_test(each_function_asks_its_device),
        cmocka_unit_test(a_copy_between_devices_waits_for_both),
        cmocka_unit_test(a_copy_does_not_overlap),
        cmocka_unit_test(a_frame_has_slots_and_not_too_many_copies),
    };
    describe_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
