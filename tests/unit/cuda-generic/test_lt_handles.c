/* SPDX-License-Identifier: Apache-2.0 */
/* The handles of cuBLASLt, one for each device, and the algorithms that are remembered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "counted_host.h"
#include "cuda-generic/cublaslt/handles.h"
#include "cuda-generic/cublaslt/library.h"
#include "common/cuda_runtime.h"

struct cg_lt_context {
    int32_t ordinal;
};

struct cg_lt_functions cg_lt;
static int32_t used = -1; /* the device that is current */
static int contexts;
static bool starts;

seqlstm_status gpu_use(int32_t ordinal, struct seqlstm_error *err)
{
    (void)err;
    used = ordinal;
    return SEQLSTM_OK;
}

const char *cg_lt_version(void)
{
    return "1.2.3";
}

static int create(struct cg_lt_context **out_handle)
{
    static struct cg_lt_context leftover;
    *out_handle = &leftover; /* not to be used */
    if (!starts)
        return 1;
    *out_handle = malloc(sizeof **out_handle);
    (*out_handle)->ordinal = used;
    contexts++;
    return CG_LT_SUCCESS;
}

static int destroy(struct cg_lt_context *handle)
{
    assert_int_equal(handle->ordinal, used);
    free(handle);
    contexts--;
    return CG_LT_SUCCESS;
}

static const char *name_status(int status)
{
    return status == 1 ? "NOT_INITIALIZED" : "?";
}

static const struct seqlstm_host host = COUNTED_HOST;

static struct cg_lt_handles *open_handles(void)
{
    struct cg_lt_handles *handles = NULL;
    cg_lt.Create = create;
    cg_lt.Destroy = destroy;
    cg_lt.GetStatusName = name_status;
    starts = true;
    assert_int_equal(cg_lt_handles_create(&host, &handles, NULL), SEQLSTM_OK);
    return handles;
}

static void close_handles(struct cg_lt_handles *handles)
{
    used = -1;
    cg_lt_handles_destroy(&host, handles);
    assert_int_equal(contexts, 0);
    assert_int_equal(on_host, 0);
}

/* The host's device k is CUDA's 3 - k: a handle is made on its device, found again, and given back there. */
static void each_device_has_a_handle_of_its_own(void **state)
{
    (void)state;
    struct cg_lt_handles *handles = open_handles();
    struct cg_lt_context *found[3], *again;
    for (int round = 0; round < 2; round++)
        for (uint32_t k = 0; k < 3; k++) {
            struct cg_lt_context **out = round == 0 ? &found[k] : &again;
            assert_int_equal(cg_lt_handles_find(handles, k, 3 - (int32_t)k, out, NULL), SEQLSTM_OK);
            assert_int_equal((*out)->ordinal, 3 - (int32_t)k);
            assert_int_equal(used, 3 - (int32_t)k);
            assert_ptr_equal(*out, found[k]);
        }
    assert_int_equal(contexts, 3);
    close_handles(handles);
}

/* By CUDA's number of the device; a later try may succeed. */
static void a_library_that_does_not_start_is_named_with_its_device(void **state)
{
    (void)state;
    struct cg_lt_handles *handles = open_handles();
    struct cg_lt_context *found = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    starts = false;
    assert_int_equal(cg_lt_handles_find(handles, 1, 6, &found, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "cuBLASLt 1.2.3 does not start on CUDA device 6: NOT_INITIALIZED");
    starts = true;
    assert_int_equal(cg_lt_handles_find(handles, 1, 6, &found, &err), SEQLSTM_OK);
    assert_int_equal(contexts, 1);
    close_handles(handles);
}

/* A recommendation is for what it was asked for, each member of it. */
static void an_algorithm_is_recalled_for_the_same_product(void **state)
{
    (void)state;
    struct cg_lt_handles *handles = open_handles();
    const struct cg_lt_key key = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct cg_lt_algorithm algorithm = {{0}}, recalled = {{0}};
    const size_t sizes[] = {8, 8, 8, 8, 4, 4, 4, 4, 4, 4};
    assert_false(cg_lt_handles_recall(handles, &key, &recalled));
    size_t at = 0;
    for (uint64_t k = 0; k <= 10; k++) { /* of the last one all members are as in `key` */
        struct cg_lt_key other = key;
        if (k < 10)
            ((unsigned char *)&other)[at] ^= 0x40;
        at += k < 10 ? sizes[k] : 0;
        algorithm.data[0] = 100 + k;
        algorithm.data[7] = k;
        assert_false(cg_lt_handles_recall(handles, &other, &recalled));
        cg_lt_handles_remember(handles, &other, &algorithm);
    }
    assert_true(cg_lt_handles_recall(handles, &key, &recalled));
    assert_int_equal(recalled.data[0], 110);
    assert_int_equal(recalled.data[7], 10);
    close_handles(handles);
}

static void the_oldest_algorithm_makes_room(void **state)
{
    enum { KEPT = 256, MORE = 3 };
    (void)state;
    struct cg_lt_handles *handles = open_handles();
    struct cg_lt_algorithm algorithm = {{0}}, recalled;
    for (int64_t k = 0; k < KEPT + MORE; k++) {
        const struct cg_lt_key key = {.a_rows = k};
        algorithm.data[3] = (uint64_t)k;
        cg_lt_handles_remember(handles, &key, &algorithm);
    }
    for (int64_t k = 0; k < KEPT + MORE; k++) {
        const struct cg_lt_key key = {.a_rows = k};
        assert_int_equal(cg_lt_handles_recall(handles, &key, &recalled), k >= MORE);
        if (k >= MORE)
            assert_int_equal(recalled.data[3], k);
    }
    close_handles(handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_has_a_handle_of_its_own),
        cmocka_unit_test(a_library_that_does_not_start_is_named_with_its_device),
        cmocka_unit_test(an_algorithm_is_recalled_for_the_same_product),
        cmocka_unit_test(the_oldest_algorithm_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
