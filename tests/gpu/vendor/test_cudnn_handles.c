/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-cudnn makes of a status of cuDNN, and how streams share its handles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "handles.h"

struct cudnnContext {
    int32_t ordinal;
    void *stream;
};

static int32_t used = -1; /* the device that is current */
static int alive;
static cudnnStatus_t starts = CUDNN_STATUS_SUCCESS;
static const char *last_error = "";
static char streams[3];

seqlstm_status gpu_use(int32_t ordinal, struct seqlstm_error *err)
{
    (void)err;
    used = ordinal;
    return SEQLSTM_OK;
}

static cudnnStatus_t create(cudnnHandle_t *out_handle)
{
    if (starts != CUDNN_STATUS_SUCCESS)
        return starts;
    *out_handle = calloc(1, sizeof **out_handle);
    (*out_handle)->ordinal = used;
    alive++;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(cudnnHandle_t handle)
{
    assert_int_equal(handle->ordinal, used);
    alive--;
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
    assert_int_equal(handle->ordinal, used);
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

static const char *get_error(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "NOT_SUPPORTED" : "ANOTHER";
}

static void get_last_error(char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", last_error);
}

/* ---- a status ---------------------------------------------------------------------------------------------------- */

static void a_status_is_a_refusal_a_lack_of_memory_or_a_failure(void **state)
{
    static const struct {
        cudnnStatus_t status;
        seqlstm_status ours;
        const char *last, *message;
    } rows[] = {
        {CUDNN_STATUS_NOT_SUPPORTED, SEQLSTM_UNSUPPORTED, "", "cuDNN  refuses cudnnCall: NOT_SUPPORTED"},
        {CUDNN_STATUS_BAD_PARAM, SEQLSTM_UNSUPPORTED, "why", "cuDNN  refuses cudnnCall: ANOTHER: why"},
        {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, SEQLSTM_NO_MEMORY, "",
         "cuDNN  failed in cudnnCall: ANOTHER"},
        {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, SEQLSTM_NO_MEMORY, "why",
         "cuDNN  failed in cudnnCall: ANOTHER: why"},
        {CUDNN_STATUS_INTERNAL_ERROR, SEQLSTM_DEVICE, "", "cuDNN  failed in cudnnCall: ANOTHER"},
        {CUDNN_STATUS_EXECUTION_FAILED, SEQLSTM_DEVICE, "why", "cuDNN  failed in cudnnCall: ANOTHER: why"},
        {CUDNN_STATUS_NOT_INITIALIZED, SEQLSTM_DEVICE, "", "cuDNN  failed in cudnnCall: ANOTHER"},
    };
    (void)state;
    assert_string_equal(cdn_library_version(), ""); /* none is loaded here */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        last_error = rows[k].last;
        assert_int_equal(cdn_check(rows[k].status, "Call", &err), rows[k].ours);
        assert_int_equal(err.code, rows[k].ours);
        assert_int_equal(err.native_code, rows[k].status);
        assert_string_equal(err.message, rows[k].message);
        assert_int_equal(cdn_is_refusal(rows[k].status), rows[k].ours == SEQLSTM_UNSUPPORTED);
    }
    last_error = "";
    assert_int_equal(cdn_check(CUDNN_STATUS_SUCCESS, "Call", NULL), SEQLSTM_OK);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static struct cdn_handles handles;

static int open_handles(void **state)
{
    (void)state;
    cdn.Create = create;
    cdn.Destroy = destroy;
    cdn.SetStream = set_stream;
    cdn.GetErrorString = get_error;
    cdn.GetLastErrorString = get_last_error;
    starts = CUDNN_STATUS_SUCCESS;
    cdn_handles_init(&handles);
    return 0;
}

static int close_handles(void **state)
{
    (void)state;
    used = -1;
    cdn_handles_deinit(&handles);
    return alive;
}

static struct cdn_handle *acquire(int32_t ordinal, int stream)
{
    struct cdn_handle *handle = NULL;
    assert_int_equal(cdn_handles_acquire(&handles, ordinal, &streams[stream], &handle, NULL), SEQLSTM_OK);
    assert_int_equal(handle->native->ordinal, ordinal);
    assert_ptr_equal(handle->native->stream, &streams[stream]);
    assert_int_equal(used, ordinal);
    return handle;
}

/* Its users are all on one stream; devices may name their streams alike. */
static void a_stream_of_a_device_has_one_handle(void **state)
{
    (void)state;
    struct cdn_handle *const first = acquire(4, 0), *const other = acquire(4, 1), *const apart = acquire(2, 0);
    assert_true(first != other && first != apart && other != apart);
    assert_ptr_equal(acquire(4, 0), first);
    assert_ptr_equal(acquire(2, 0), apart);
    assert_int_equal(alive, 3);
    cdn_handles_release(&handles, first); /* one user is left */
    assert_ptr_equal(first->native->stream, &streams[0]);
    assert_ptr_not_equal(acquire(4, 2), first);
}

/* An idle handle has no stream, which may be gone, and serves any other of its device alone. */
static void an_idle_handle_serves_the_next_stream_of_its_device(void **state)
{
    (void)state;
    struct cdn_handle *const first = acquire(4, 0);
    cdn_handles_release(&handles, first);
    assert_null(first->stream);
    assert_null(first->native->stream);
    struct cdn_handle *const apart = acquire(2, 1);
    assert_ptr_not_equal(apart, first);
    assert_ptr_equal(acquire(4, 1), first);
    assert_int_equal(alive, 2);
    cdn_handles_release(&handles, apart);
    cdn_handles_release(&handles, first);
    assert_ptr_equal(acquire(2, 2), apart);
    assert_ptr_equal(acquire(4, 2), first);
    assert_int_equal(alive, 2);
    cdn_handles_release(&handles, NULL);
}

/* Other backends may go on, but for a lack of memory. */
static void cudnn_that_does_not_start_is_a_refusal(void **state)
{
    static const struct {
        cudnnStatus_t status;
        seqlstm_status ours;
        const char *message;
    } rows[] = {
        {CUDNN_STATUS_NOT_INITIALIZED, SEQLSTM_UNSUPPORTED,
         "cuDNN does not start on CUDA device 4: cuDNN  failed in cudnnCreate: ANOTHER"},
        {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, SEQLSTM_NO_MEMORY,
         "cuDNN does not start on CUDA device 4: cuDNN  failed in cudnnCreate: ANOTHER"},
    };
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct cdn_handle *handle = NULL;
        starts = rows[k].status;
        assert_int_equal(cdn_handles_acquire(&handles, 4, &streams[0], &handle, &err), rows[k].ours);
        assert_null(handle);
        assert_string_equal(err.message, rows[k].message);
    }
    starts = CUDNN_STATUS_SUCCESS;
    acquire(4, 0);
    assert_int_equal(alive, 1);
}

static void handles_are_bounded(void **state)
{
    static char many[CDN_HANDLES_MAX + 1];
    (void)state;
    struct cdn_handle *last = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < CDN_HANDLES_MAX; k++)
        assert_int_equal(cdn_handles_acquire(&handles, k % 2, &many[k], &last, &err), SEQLSTM_OK);
    struct cdn_handle *none = NULL;
    assert_int_equal(cdn_handles_acquire(&handles, 1, &many[CDN_HANDLES_MAX], &none, &err), SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "more than 64 streams use cuda-cudnn at once");
    cdn_handles_release(&handles, last);
    assert_int_equal(cdn_handles_acquire(&handles, 1, &many[CDN_HANDLES_MAX], &none, &err), SEQLSTM_OK);
    assert_ptr_equal(none, last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_status_is_a_refusal_a_lack_of_memory_or_a_failure, open_handles,
                                        close_handles),
        cmocka_unit_test_setup_teardown(a_stream_of_a_device_has_one_handle, open_handles, close_handles),
        cmocka_unit_test_setup_teardown(an_idle_handle_serves_the_next_stream_of_its_device, open_handles,
                                        close_handles),
        cmocka_unit_test_setup_teardown(cudnn_that_does_not_start_is_a_refusal, open_handles, close_handles),
        cmocka_unit_test_setup_teardown(handles_are_bounded, open_handles, close_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
