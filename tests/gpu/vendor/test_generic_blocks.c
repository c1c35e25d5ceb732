/* SPDX-License-Identifier: Apache-2.0 */
/* The free blocks and the counters of cuda-generic on two emulated devices: work that is queued on a stream may still
 * use what was left there, so that nothing goes to another stream or device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/cuda_runtime.h"
#include "cuda-generic/blocks.h"

enum { DEVICES = 2, MORE = 70, STREAMS = MORE + 1 };

static int64_t live; /* allocations of the host */
static void *streams[STREAMS];
static struct cg_blocks *blocks;

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    live++;
    return malloc((size_t)bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    live -= memory != NULL;
    free(memory);
}

static const struct seqlstm_host services = {.struct_size = sizeof services, .allocate = allocate, .release = release};

static void *take(int32_t device, const void *stream, uint64_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *block = NULL;
    assert_int_equal(cg_blocks_take(blocks, device, (void *)(uintptr_t)stream, bytes, &block, &err), SEQLSTM_OK);
    assert_non_null(block);
    return block;
}

static unsigned *find(int32_t device, void *stream)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    unsigned *counter = NULL;
    assert_int_equal(cg_blocks_find_counter(&services, blocks, device, stream, &counter, &err), SEQLSTM_OK);
    return counter;
}

static int set_up(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    return cg_blocks_create(&services, &blocks, &err) != SEQLSTM_OK;
}

static int tear_down(void **state)
{
    (void)state;
    cg_blocks_destroy(&services, blocks);
    return live != 0;
}

/* A stream's handle may be the same on both devices: that of the default one is. */
static void a_block_is_for_its_stream_and_device(void **state)
{
    (void)state;
    void *block = take(0, NULL, 1000);
    cg_blocks_give(blocks, 0, NULL, 1000, block);
    void *on_other_device = take(1, NULL, 1000), *on_other_stream = take(0, streams[0], 1000);
    assert_ptr_not_equal(on_other_device, block);
    assert_ptr_not_equal(on_other_stream, block);
    void *larger = take(0, NULL, 1025);
    assert_ptr_not_equal(larger, block);
    assert_ptr_equal(take(0, NULL, 600), block); /* of the same power of two */
    cg_blocks_give(blocks, 1, NULL, 1000, on_other_device);
    cg_blocks_give(blocks, 0, streams[0], 1000, on_other_stream);
    cg_blocks_give(blocks, 0, NULL, 1025, larger);
    cg_blocks_give(blocks, 0, NULL, 600, block);
}

static void a_counter_is_for_its_stream_and_device(void **state)
{
    (void)state;
    unsigned *first = find(0, streams[0]);
    assert_ptr_equal(find(0, streams[0]), first);
    assert_ptr_not_equal(find(1, streams[0]), first);
    assert_ptr_not_equal(find(0, streams[1]), first);
    assert_ptr_not_equal(find(0, streams[2]), find(0, streams[1]));
}

/* Of streams that are gone, only a few counters are kept; those in use stay. */
static void counters_without_users_are_given_up(void **state)
{
    unsigned *used[MORE];
    (void)state;
    unsigned *const stays = find(0, streams[MORE]);
    const int64_t before = live;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < MORE; k++)
            used[k] = find(0, streams[k]);
        assert_true(live > before); /* more than have room in the list itself */
        for (int k = 0; k < MORE; k++)
            cg_blocks_leave_counter(&services, blocks, used[k]);
        assert_ptr_equal(find(0, streams[MORE]), stays);
        assert_true(live < before + MORE / 2);
        if (round == 0) { /* the newest is kept */
            assert_ptr_equal(find(0, streams[MORE - 1]), used[MORE - 1]);
            cg_blocks_leave_counter(&services, blocks, used[MORE - 1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_is_for_its_stream_and_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_counter_is_for_its_stream_and_device, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counters_without_users_are_given_up, set_up, tear_down),
    };
    struct gpu_device devices[GPU_DEVICES_MAX];
    uint32_t count = 0;
    setenv("SEQLSTM_EMULATED_DEVICES", "2", 1);
    if (gpu_runtime_open(devices, &count, NULL) != SEQLSTM_OK || count != DEVICES)
        return 1;
    for (int k = 0; k < STREAMS; k++)
        if (gpu_stream_create(0, &streams[k], NULL) != SEQLSTM_OK)
            return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int k = 0; k < STREAMS; k++)
        gpu_stream_destroy(0, streams[k]);
    return failed;
}
