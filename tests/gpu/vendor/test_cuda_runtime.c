/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/common/cuda_runtime.c over a runtime library of ours, which writes down what it is asked and fails when it is
 * told to. Each function: the calls that it makes, in their order; what it answers if one of them fails; that a device
 * which has failed for good is not asked again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/cuda_runtime.h"
#include "../fakes/recorded_runtime.h"

/* ---- what each function asks ------------------------------------------------------------------------------------ */

enum action {
    ALLOCATE,
    ALLOCATE_PINNED,
    IN_USE,
    COPY_TO_DEVICE,
    COPY_TO_HOST,
    COPY_WITHIN,
    FILL,
    STREAM_CREATE,
    STREAM_SYNCHRONIZE,
    EVENT_CREATE,
    EVENT_RECORD,
    EVENT_WAIT,
    EVENT_SYNCHRONIZE,
    EVENT_QUERY,
    EVENT_ELAPSED,
    CAPTURE_BEGIN,
    CAPTURE_END,
    CAPTURE_LAUNCH,
    ACTIONS
};

static const char *const expected[ACTIONS] = {
    [ALLOCATE] = "use 2 malloc 1000 ",
    [ALLOCATE_PINNED] = "use 2 host_alloc 1000 0 ",
    [IN_USE] = "use 2 memory ",
    [COPY_TO_DEVICE] = "use 2 copy 64 8 24 1 128 ",
    [COPY_TO_HOST] = "use 2 copy 64 8 24 2 128 use 2 finish 128 ",
    [COPY_WITHIN] = "use 2 copy 64 8 24 3 128 ",
    [FILL] = "use 2 fill 64 170 24 128 ",
    [STREAM_CREATE] = "use 2 stream 1 ",
    [STREAM_SYNCHRONIZE] = "use 2 finish 128 ",
    [EVENT_CREATE] = "use 2 event ",
    [EVENT_RECORD] = "use 2 record 192 128 ",
    [EVENT_WAIT] = "use 2 wait 128 192 0 ",
    [EVENT_SYNCHRONIZE] = "use 2 finish_event 192 ",
    [EVENT_QUERY] = "use 2 query 192 ",
    [EVENT_ELAPSED] = "use 2 elapsed 192 256 ",
    [CAPTURE_BEGIN] = "use 2 capture 128 1 ",
    [CAPTURE_END] = "end_capture 128 instantiate 320 0 end_graph 320 ",
    [CAPTURE_LAUNCH] = "use 2 launch 384 128 ",
};

/* What an action gave. */
struct gift {
    void *pointer;
    uint64_t bytes;
    double ns;
    bool happened;
};

static seqlstm_status act(enum action action, int32_t d, struct gift *gift, struct seqlstm_error *err)
{
    void *const from = (void *)8;
    *gift = (struct gift){.pointer = NULL};
    switch (action) {
    case ALLOCATE:
        return gpu_allocate(d, SEQLSTM_MEMORY_DEVICE, 1000, &gift->pointer, err);
    case ALLOCATE_PINNED:
        return gpu_allocate(d, SEQLSTM_MEMORY_PINNED, 1000, &gift->pointer, err);
    case IN_USE:
        return gpu_memory_in_use(d, &gift->bytes, err);
    case COPY_TO_DEVICE:
        return gpu_copy(d, some_stream, SEQLSTM_COPY_TO_DEVICE, some_memory, from, 24, err);
    case COPY_TO_HOST:
        return gpu_copy(d, some_stream, SEQLSTM_COPY_TO_HOST, some_memory, from, 24, err);
    case COPY_WITHIN:
        return gpu_copy(d, some_stream, SEQLSTM_COPY_WITHIN, some_memory, from, 24, err);
    case FILL:
        return gpu_fill(d, some_stream, some_memory, 0xAA, 24, err);
    case STREAM_CREATE:
        return gpu_stream_create(d, &gift->pointer, err);
    case STREAM_SYNCHRONIZE:
        return gpu_stream_synchronize(d, some_stream, err);
    case EVENT_CREATE:
        return gpu_event_create(d, &gift->pointer, err);
    case EVENT_RECORD:
        return gpu_event_record(d, some_event, some_stream, err);
    case EVENT_WAIT:
        return gpu_event_wait(d, some_event, some_stream, err);
    case EVENT_SYNCHRONIZE:
        return gpu_event_synchronize(d, some_event, err);
    case EVENT_QUERY:
        return gpu_event_query(d, some_event, &gift->happened, err);
    case EVENT_ELAPSED:
        return gpu_event_elapsed(d, some_event, other_event, &gift->ns, err);
    case CAPTURE_BEGIN:
        return gpu_capture_begin(d, some_stream, err);
    case CAPTURE_END:
        return gpu_capture_end(d, some_stream, &gift->pointer, err);
    default:
        return gpu_capture_launch(d, some_capture, some_stream, err);
    }
}

static void each_function_asks_for_what_it_says(void **state)
{
    (void)state;
    struct gift gift;
    void *const given[ACTIONS] = {[ALLOCATE] = some_memory,
                                  [ALLOCATE_PINNED] = some_memory,
                                  [STREAM_CREATE] = some_stream,
                                  [EVENT_CREATE] = some_event,
                                  [CAPTURE_END] = some_capture};
    for (int a = 0; a < ACTIONS; a++) {
        forget(0, cudaSuccess);
        assert_int_equal(act((enum action)a, 2, &gift, NULL), SEQLSTM_OK);
        assert_string_equal(said, expected[a]);
        assert_ptr_equal(gift.pointer, given[a]);
        assert_true(gift.happened == (a == EVENT_QUERY));
        assert_true(gift.bytes == (a == IN_USE ? 2000000 : 0));
        assert_true(gift.ns == (a == EVENT_ELAPSED ? 1.5e6 : 0));
    }
}

/* Each call of each function fails once. What had been made of a capture is destroyed all the same. */
static void each_failed_call_is_reported(void **state)
{
    (void)state;
    struct gift gift;
    for (int a = 0; a < ACTIONS; a++) {
        const int asked = a == COPY_TO_HOST ? 4 : 2;
        for (int k = 1; k <= asked; k++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            forget(k, cudaErrorInvalidValue);
            assert_int_equal(act((enum action)a, 2, &gift, &err), SEQLSTM_DEVICE);
            assert_int_equal(err.native_code, cudaErrorInvalidValue);
            assert_non_null(strstr(err.message, "failed on CUDA device 2: a reason (cudaErrorName, 1)"));
            assert_true(calls == k || a == CAPTURE_END);
            assert_false(gift.happened);
            if (a == CAPTURE_END) {
                assert_null(gift.pointer);
                assert_true((strstr(said, "end_graph 320") != NULL) == (k > 1));
            }
        }
    }
}

static void no_memory_says_how_much_is_left(void **state)
{
    (void)state;
    struct gift gift;
    for (int pinned = 0; pinned < 2; pinned++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        forget(2, cudaErrorMemoryAllocation);
        assert_int_equal(act(pinned ? ALLOCATE_PINNED : ALLOCATE, 1, &gift, &err), SEQLSTM_NO_MEMORY);
        assert_string_equal(err.message, "no memory for 1000 bytes on CUDA device 1: 3 of 5 MB are free");
    }
}

static void an_event_that_has_not_happened_is_no_failure(void **state)
{
    (void)state;
    bool happened = true;
    forget(2, cudaErrorNotReady);
    assert_int_equal(gpu_event_query(1, some_event, &happened, NULL), SEQLSTM_OK);
    assert_false(happened);
}

/* A device asks once for each peer whether it reaches its memory. */
static void a_copy_between_devices_opens_the_way(void **state)
{
    (void)state;
    static const char copy[] = "use 4 peer_copy 64 4 8 5 24 128 ";
    void *const from = (void *)8;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int failing = 2; failing <= 3; failing++) { /* what has failed is tried again */
        forget(failing, cudaErrorInvalidValue);
        assert_int_equal(gpu_copy_peer(4, some_stream, some_memory, 5, from, 24, &err), SEQLSTM_DEVICE);
        assert_null(strstr(said, "peer_copy"));
    }
    forget(0, cudaSuccess);
    assert_int_equal(gpu_copy_peer(4, some_stream, some_memory, 5, from, 24, &err), SEQLSTM_OK);
    assert_string_equal(said, "use 4 can_reach 4 5 reach 5 0 peer_copy 64 4 8 5 24 128 ");
    forget(0, cudaSuccess);
    assert_int_equal(gpu_copy_peer(4, some_stream, some_memory, 5, from, 24, &err), SEQLSTM_OK);
    assert_string_equal(said, copy);
    forget(2, cudaErrorInvalidValue);
    assert_int_equal(gpu_copy_peer(4, some_stream, some_memory, 5, from, 24, &err), SEQLSTM_DEVICE);
    assert_non_null(strstr(err.message, "a copy between devices failed on CUDA device 4"));
    access_code = cudaErrorPeerAccessAlreadyEnabled; /* by another library */
    forget(0, cudaSuccess);
    assert_int_equal(gpu_copy_peer(5, some_stream, some_memory, 4, from, 24, &err), SEQLSTM_OK);
    assert_string_equal(said, "use 5 can_reach 5 4 reach 4 0 peer_copy 64 5 8 4 24 128 ");
    access_code = cudaSuccess;
    reaches_peers = 0; /* CUDA copies through the host by itself */
    forget(0, cudaSuccess);
    assert_int_equal(gpu_copy_peer(4, some_stream, some_memory, 6, from, 24, &err), SEQLSTM_OK);
    assert_string_equal(said, "use 4 can_reach 4 6 peer_copy 64 4 8 6 24 128 ");
    reaches_peers = 1;
    forget(0, cudaSuccess); /* within a device */
    assert_int_equal(gpu_copy_peer(6, some_stream, some_memory, 6, from, 24, &err), SEQLSTM_OK);
    assert_string_equal(said, "use 6 peer_copy 64 6 8 6 24 128 ");
}

static void what_is_released_was_made_so(void **state)
{
    (void)state;
    forget(0, cudaSuccess);
    gpu_release(3, SEQLSTM_MEMORY_DEVICE, some_memory);
    gpu_release(3, SEQLSTM_MEMORY_PINNED, some_memory);
    gpu_stream_destroy(3, some_stream); /* not before its work has ended */
    gpu_event_destroy(3, some_event);
    gpu_capture_destroy(3, some_capture);
    assert_string_equal(said, "use 3 free 64 use 3 free_host 64 use 3 finish 128 end_stream 128 use 3 end_event 192 "
                              "use 3 end_launches 384 ");
    forget(0, cudaSuccess);
    gpu_release(3, SEQLSTM_MEMORY_DEVICE, NULL);
    gpu_stream_destroy(3, NULL);
    gpu_event_destroy(3, NULL);
    gpu_capture_destroy(3, NULL);
    assert_string_equal(said, "");
}

static void a_capture_is_seen(void **state)
{
    (void)state;
    forget(0, cudaSuccess);
    capture_status = cudaStreamCaptureStatusNone;
    assert_false(gpu_is_capturing(0, some_stream));
    capture_status = cudaStreamCaptureStatusActive;
    assert_true(gpu_is_capturing(0, some_stream));
    forget(1, cudaErrorInvalidValue);
    assert_false(gpu_is_capturing(0, some_stream));
}

/* Of the codes after which a context is lost, each: the first failure stays, on that device alone. */
static void a_lost_device_stays_lost(void **state)
{
    (void)state;
    static const cudaError_t lost[] = {
        cudaErrorIllegalAddress,     cudaErrorLaunchFailure,       cudaErrorLaunchTimeout,
        cudaErrorMisalignedAddress,  cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,
        cudaErrorIllegalInstruction, cudaErrorHardwareStackError,  cudaErrorAssert,
        cudaErrorECCUncorrectable,   cudaErrorDevicesUnavailable};
    enum { LOST = sizeof lost / sizeof *lost, FIRST = GPU_DEVICES_MAX - LOST };
    struct gift gift;
    for (int k = 0; k < LOST; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT, later = SEQLSTM_ERROR_INIT;
        assert_int_equal(gpu_check_launch(FIRST + k, (int)lost[k], "a kernel", &err), SEQLSTM_DEVICE);
        assert_int_equal(err.native_code, lost[k]);
        gpu_check_launch(FIRST + k, (int)lost[(k + 1) % LOST], "another kernel", NULL);
        for (int a = 0; a < ACTIONS; a++) {
            forget(0, cudaSuccess);
            if (a == CAPTURE_END) /* the stream must leave its capture in any case */
                continue;
            assert_int_equal(act((enum action)a, FIRST + k, &gift, &later), SEQLSTM_DEVICE);
            assert_string_equal(said, "");
            assert_string_equal(later.message, err.message);
            assert_int_equal(later.native_code, lost[k]);
        }
    }
    assert_int_equal(gpu_use(0, NULL), SEQLSTM_OK);
    gpu_check_launch(0, (int)cudaErrorInvalidConfiguration, "a kernel", NULL); /* which loses nothing */
    assert_int_equal(gpu_use(0, NULL), SEQLSTM_OK);
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

static void describe(int device, int major, int minor, const char *name)
{
    properties[device] = (struct cudaDeviceProp){.major = major,
                                                 .minor = minor,
                                                 .multiProcessorCount = 100 + device,
                                                 .sharedMemPerBlockOptin = 1000 + (size_t)device,
                                                 .totalGlobalMem = 10000 + (size_t)device};
    snprintf(properties[device].name, sizeof properties[device].name, "%s", name);
    for (int i = 0; i < 16; i++)
        properties[device].uuid.bytes[i] = (char)(16 * i + device);
}

static void old_devices_and_silent_ones_are_left_out(void **state)
{
    (void)state;
    struct gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    device_count = 4;
    describe(0, 3, 5, "old");
    describe(1, 9, 0, "large");
    describe(2, 9, 0, "silent");
    describe(3, 12, 0, "new");
    property_codes[2] = cudaErrorInvalidValue;
    assert_int_equal(gpu_runtime_open(devices, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 2);
    const struct gpu_device *d = &devices[1];
    assert_int_equal(devices[0].ordinal, 1);
    assert_int_equal(d->ordinal, 3);
    assert_int_equal(d->major, 12);
    assert_int_equal(d->minor, 0);
    assert_int_equal(d->multiprocessors, 103);
    assert_int_equal(d->shared_bytes, 1003);
    assert_int_equal(d->memory_bytes, 10003);
    assert_int_equal(d->cooperative, 13);
    assert_string_equal(d->name, "new");
    assert_string_equal(d->uuid, "03132333-4353-6373-8393-a3b3c3d3e3f3");
}

static void check_refusal(const char *reason, int native_code)
{
    struct gpu_device devices[GPU_DEVICES_MAX];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint32_t count = 7;
    assert_int_equal(gpu_runtime_open(devices, &count, &err), SEQLSTM_UNAVAILABLE);
    if (!strstr(err.message, reason))
        fail_msg("`%s` does not say `%s`", err.message, reason);
    assert_int_equal(err.native_code, native_code);
}

static void each_reason_for_no_device_is_told(void **state)
{
    (void)state;
    device_count = 2;
    memset(property_codes, 0, sizeof property_codes);
    describe(0, 3, 5, "old");
    describe(1, 2, 0, "older");
    check_refusal("older has compute capability 2.0; this backend was built for", 0);
    property_codes[0] = property_codes[1] = cudaErrorInvalidValue;
    check_refusal("no CUDA device tells its properties", 0);
    count_code = cudaErrorNoDevice;
    check_refusal("the NVIDIA driver finds no device", 0);
    count_code = cudaErrorUnknown;
    check_refusal("CUDA does not start: a reason (cudaErrorName, 999)", cudaErrorUnknown);
    count_code = cudaSuccess;
    device_count = 0;
    check_refusal("the NVIDIA driver finds no device", 0);
    driver_version = CUDART_VERSION - 1000;
    check_refusal("update it", 0);
    driver_version = -1;
    check_refusal("does not tell its version", 0);
    driver_version = 0;
    check_refusal("this machine has no NVIDIA driver (it is not there)", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_function_asks_for_what_it_says),
        cmocka_unit_test(each_failed_call_is_reported),
        cmocka_unit_test(no_memory_says_how_much_is_left),
        cmocka_unit_test(an_event_that_has_not_happened_is_no_failure),
        cmocka_unit_test(a_copy_between_devices_opens_the_way),
        cmocka_unit_test(what_is_released_was_made_so),
        cmocka_unit_test(a_capture_is_seen),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(old_devices_and_silent_ones_are_left_out),
        cmocka_unit_test(each_reason_for_no_device_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
