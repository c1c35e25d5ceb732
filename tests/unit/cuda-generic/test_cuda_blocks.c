/* SPDX-License-Identifier: Apache-2.0 */
/* The store of small blocks (blocks.h), with a device that only counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counted_host.h"
#include "cuda-generic/blocks.h"

enum { KEPT = 256 };

static int on_device; /* blocks that are allocated there */
static void *released_last;
static char streams[2];

seqlstm_status gpu_allocate(int32_t ordinal, uint32_t kind, uint64_t bytes, void **out_pointer,
                            struct seqlstm_error *err)
{
    (void)ordinal, (void)kind, (void)err;
    *out_pointer = calloc(1, bytes);
    on_device++;
    return SEQLSTM_OK;
}

void gpu_release(int32_t ordinal, uint32_t kind, void *pointer)
{
    (void)ordinal, (void)kind;
    if (pointer == NULL)
        return;
    on_device--;
    released_last = pointer;
    free(pointer);
}

seqlstm_status gpu_fill(int32_t ordinal, void *stream, void *to, uint32_t value, uint64_t bytes,
                        struct seqlstm_error *err)
{
    (void)ordinal, (void)stream, (void)err;
    memset(to, (int)value, bytes);
    return SEQLSTM_OK;
}

static const struct seqlstm_host host = COUNTED_HOST;

static int create(void **state)
{
    struct cg_blocks *blocks = NULL;
    on_device = on_host = 0;
    const seqlstm_status status = cg_blocks_create(&host, &blocks, NULL);
    *state = blocks;
    return (int)status;
}

static int destroy(void **state)
{
    cg_blocks_destroy(&host, *state);
    return on_device + on_host;
}

static void *take(struct cg_blocks *blocks, int32_t ordinal, int stream, uint64_t bytes)
{
    void *block = NULL;
    assert_int_equal(cg_blocks_take(blocks, ordinal, &streams[stream], bytes, &block, NULL), SEQLSTM_OK);
    assert_non_null(block);
    return block;
}

static void a_block_is_taken_again_by_its_stream_only(void **state)
{
    struct cg_blocks *blocks = *state;
    void *block = take(blocks, 0, 0, 600), *others[3];
    cg_blocks_give(blocks, 0, &streams[0], 600, block);
    others[0] = take(blocks, 0, 1, 600); /* what the first stream does with it may not have ended */
    others[1] = take(blocks, 1, 0, 600);
    others[2] = take(blocks, 0, 0, 1025);
    for (int k = 0; k < 3; k++)
        assert_ptr_not_equal(others[k], block);
    assert_ptr_equal(take(blocks, 0, 0, 1024), block);
    assert_int_equal(on_device, 4);
    cg_blocks_give(blocks, 0, &streams[0], 1024, block);
    cg_blocks_give(blocks, 0, &streams[1], 600, others[0]);
    cg_blocks_give(blocks, 1, &streams[0], 600, others[1]);
    cg_blocks_give(blocks, 0, &streams[0], 1025, others[2]);
}

static void the_oldest_makes_room(void **state)
{
    struct cg_blocks *blocks = *state;
    void *taken[KEPT + 1];
    for (int k = 0; k <= KEPT; k++)
        taken[k] = take(blocks, 0, k % 2, 8);
    for (int k = 0; k <= KEPT; k++)
        cg_blocks_give(blocks, 0, &streams[k % 2], 8, taken[k]);
    assert_int_equal(on_device, KEPT);
    assert_ptr_equal(released_last, taken[0]);
    assert_ptr_equal(take(blocks, 0, KEPT % 2, 8), taken[KEPT]);
    cg_blocks_give(blocks, 0, &streams[KEPT % 2], 8, taken[KEPT]);
}

static void large_blocks_are_not_kept(void **state)
{
    struct cg_blocks *blocks = *state;
    const uint64_t bytes = (1 << 20) + 1;
    cg_blocks_give(blocks, 0, &streams[0], bytes, take(blocks, 0, 0, bytes));
    assert_int_equal(on_device, 0);
    cg_blocks_give(blocks, 0, &streams[0], 8, NULL);
}

static void each_stream_has_one_counter(void **state)
{
    unsigned *counters[3];
    for (int k = 0; k < 3; k++)
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &streams[k % 2], &counters[k], NULL), SEQLSTM_OK);
    assert_ptr_equal(counters[0], counters[2]);
    assert_ptr_not_equal(counters[0], counters[1]);
    assert_int_equal(*counters[0], 0);
}

/* Devices may name their streams alike. */
static void each_device_has_counters_of_its_own(void **state)
{
    unsigned *counters[2], *again;
    for (int32_t k = 0; k < 2; k++)
        assert_int_equal(cg_blocks_find_counter(&host, *state, k, &streams[0], &counters[k], NULL), SEQLSTM_OK);
    assert_ptr_not_equal(counters[0], counters[1]);
    for (int32_t k = 0; k < 2; k++) {
        assert_int_equal(cg_blocks_find_counter(&host, *state, k, &streams[0], &again, NULL), SEQLSTM_OK);
        assert_ptr_equal(again, counters[k]);
    }
}

/* One stream whose bindings come and go is one stream. */
static void a_counter_that_is_used_again_stays(void **state)
{
    unsigned *first, *counter;
    assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &streams[0], &first, NULL), SEQLSTM_OK);
    *first = 7;
    for (int k = 0; k < 60; k++) {
        cg_blocks_leave_counter(&host, *state, first);
        assert_int_equal(on_device, 1);
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &streams[0], &counter, NULL), SEQLSTM_OK);
        assert_true(counter == first && *counter == 7);
    }
}

/* The kit holds a plugin to it that what it allocated while operations lived is released with them. */
static void few_streams_need_no_memory_of_the_host(void **state)
{
    enum { FEW = 32, MANY = 70 };
    static char queues[MANY];
    unsigned *counters[MANY], *again;
    const int before = on_host;
    for (int k = 0; k < MANY; k++) {
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[k], &counters[k], NULL), SEQLSTM_OK);
        assert_int_equal(*counters[k], 0);
        assert_int_equal(on_host, before + (k < FEW ? 0 : k + 1 - FEW));
        *counters[k] = (unsigned)k;
    }
    for (int k = 0; k < MANY; k++) {
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[k], &again, NULL), SEQLSTM_OK);
        assert_true(again == counters[k] && *again == (unsigned)k);
    }
    assert_int_equal(on_device, MANY);
}

/* Streams come and go; the counters of those that are gone do not pile up, and those in use stay. */
static void counters_of_streams_that_are_gone_are_released(void **state)
{
    enum { KEPT_UNUSED = 16, STREAMS = 200 };
    static char queues[STREAMS];
    unsigned *kept[2], *counter, *again;
    const int before = on_host;
    for (int k = 0; k < 2; k++) /* two bindings of one stream */
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[0], &kept[k], NULL), SEQLSTM_OK);
    for (int k = 1; k < STREAMS; k++) {
        assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[k], &counter, NULL), SEQLSTM_OK);
        assert_int_equal(*counter, 0);
        *counter = (unsigned)k;
        cg_blocks_leave_counter(&host, *state, counter);
        assert_int_equal(on_device, 1 + (k < KEPT_UNUSED ? k : KEPT_UNUSED));
    }
    assert_int_equal(on_host, before);
    cg_blocks_leave_counter(&host, *state, kept[0]);
    assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[0], &again, NULL), SEQLSTM_OK);
    assert_ptr_equal(again, kept[1]);
    assert_int_equal(cg_blocks_find_counter(&host, *state, 0, &queues[STREAMS - 1], &again, NULL), SEQLSTM_OK);
    assert_int_equal(*again, STREAMS - 1); /* kept, since its stream may come back */
    cg_blocks_leave_counter(&host, *state, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_block_is_taken_again_by_its_stream_only, create, destroy),
        cmocka_unit_test_setup_teardown(the_oldest_makes_room, create, destroy),
        cmocka_unit_test_setup_teardown(large_blocks_are_not_kept, create, destroy),
        cmocka_unit_test_setup_teardown(each_stream_has_one_counter, create, destroy),
        cmocka_unit_test_setup_teardown(each_device_has_counters_of_its_own, create, destroy),
        cmocka_unit_test_setup_teardown(a_counter_that_is_used_again_stays, create, destroy),
        cmocka_unit_test_setup_teardown(counters_of_streams_that_are_gone_are_released, create, destroy),
        cmocka_unit_test_setup_teardown(few_streams_need_no_memory_of_the_host, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
