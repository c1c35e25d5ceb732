/* SPDX-License-Identifier: Apache-2.0 */
/* What a block takes by what of it is touched: as counted, and as the system has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "base/memory/pages.h"
#include "oom.h"

enum { SMALL = SL_MEMORY_PAGE, LARGE = SL_MEMORY_LARGE_PAGE };

/* Of a block of `bytes` on pages of `large_bytes`, of which [begin, end) is touched. */
static int64_t count(int64_t bytes, int64_t large_bytes, int64_t begin, int64_t end)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pages pages;
    assert_int_equal(sl_pages_init(&pages, bytes, &err), SEQLSTM_OK);
    assert_int_equal(sl_pages_count(&pages), 0);
    pages.large_bytes = large_bytes;
    sl_pages_touch(&pages, begin, end);
    const int64_t counted = sl_pages_count(&pages);
    sl_pages_touch(&pages, begin, end);
    assert_int_equal(sl_pages_count(&pages), counted);
    sl_pages_deinit(&pages);
    return counted;
}

static void pages_count_whole(void **state)
{
    (void)state;
    const int64_t bytes = 3 * (int64_t)LARGE + 5 * SMALL + 100;
    assert_int_equal(count(bytes, LARGE, 7, 8), LARGE);
    assert_int_equal(count(bytes, LARGE, LARGE - 1, LARGE + 1), 2 * LARGE);
    assert_int_equal(count(bytes, LARGE, LARGE, 2 * LARGE), LARGE);
    assert_int_equal(count(bytes, LARGE, 5, 5), 0);
    assert_int_equal(count(bytes, LARGE, 6, 5), 0);
    /* the rest, of less than a large page, lies on small ones */
    assert_int_equal(count(bytes, LARGE, 3 * LARGE, 3 * LARGE + 1), SMALL);
    assert_int_equal(count(bytes, LARGE, 3 * LARGE - 1, 3 * LARGE + SMALL + 1), LARGE + 2 * SMALL);
    assert_int_equal(count(bytes, LARGE, 0, bytes), bytes);
    assert_int_equal(count(bytes, LARGE, 0, bytes + 9 * LARGE), bytes);
    assert_int_equal(count(bytes, SMALL, SMALL - 1, SMALL + 1), 2 * SMALL);
    assert_int_equal(count(bytes, SMALL, 0, bytes), bytes);
    assert_int_equal(count(100, SMALL, 0, 1), 100); /* a block takes no more than it has */
    assert_int_equal(count(0, SMALL, 0, 1), 0);
}

/* Counting takes little memory and time, however large the block is, and is off by no more than a millionth. */
static void huge_blocks_are_counted_in_larger_units(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pages pages;
    const int64_t bytes = (INT64_C(64) << 40) + 12345, half = bytes / 2;
    assert_int_equal(sl_pages_init(&pages, bytes, &err), SEQLSTM_OK);
    assert_true(bytes / pages.small_bytes <= 1 << 22 && pages.large_bytes >= pages.small_bytes);
    sl_pages_touch(&pages, 100, half);
    const int64_t counted = sl_pages_count(&pages);
    assert_true(counted >= half - 100 && counted - half <= half >> 20);
    sl_pages_touch(&pages, 0, bytes);
    assert_int_equal(sl_pages_count(&pages), bytes);
    sl_pages_deinit(&pages);
    assert_int_equal(sl_pages_init(&pages, INT64_C(16) << 30, &err), SEQLSTM_OK);
    assert_int_equal(pages.small_bytes, SMALL);
    sl_pages_deinit(&pages);
}

static void only_large_blocks_have_large_pages(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pages pages;
    assert_int_equal(sl_pages_init(&pages, SL_MEMORY_LARGE - 1, &err), SEQLSTM_OK);
    assert_int_equal(pages.large_bytes, SMALL);
    sl_pages_deinit(&pages);
    assert_int_equal(sl_pages_init(&pages, SL_MEMORY_LARGE, &err), SEQLSTM_OK);
    assert_int_equal(pages.large_bytes, sl_memory_get_large_page());
    sl_pages_deinit(&pages);
    oom_fail_at(1);
    assert_int_equal(sl_pages_init(&pages, 100, &err), SEQLSTM_NO_MEMORY);
    assert_true(oom_disarm());
    sl_pages_deinit(&pages);
}

/* Bytes of the block that are in memory. */
static int64_t measure(const char *block, int64_t bytes)
{
    static unsigned char is_there[(64 << 20) / SMALL];
    const size_t pages = (size_t)(bytes + SMALL - 1) / SMALL;
    int64_t there = 0;
    assert_true(pages <= sizeof is_there);
    assert_int_equal(mincore((void *)(uintptr_t)block, (size_t)bytes, is_there), 0);
    for (size_t p = 0; p < pages; p++)
        there += is_there[p] & 1;
    return there * SMALL;
}

/* The system may have no large page left, and gives small ones then: never more than counted. */
static void blocks_take_what_is_counted(void **state)
{
    (void)state;
    static const int64_t places[] = {0, 3 * (int64_t)LARGE - 1, 7 * (int64_t)LARGE + 12345,
                                     10 * (int64_t)LARGE + SMALL};
    const int64_t bytes = 10 * (int64_t)LARGE + 3 * SMALL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_pages pages;
    for (int zeroed = 0; zeroed < 2; zeroed++) {
        char *block = zeroed ? sl_memory_alloc_zeroed(NULL, (size_t)bytes) : sl_memory_alloc(NULL, (size_t)bytes);
        assert_non_null(block);
        assert_int_equal(sl_pages_init(&pages, bytes, &err), SEQLSTM_OK);
        assert_int_equal(measure(block, bytes), 0);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            block[places[i]] = 1;
            sl_pages_touch(&pages, places[i], places[i] + 1);
            assert_true(measure(block, bytes) >= (int64_t)(i + 1) * SMALL);
            assert_true(measure(block, bytes) <= sl_pages_count(&pages));
        }
        sl_pages_deinit(&pages);
        sl_memory_free(NULL, block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_count_whole),
        cmocka_unit_test(huge_blocks_are_counted_in_larger_units),
        cmocka_unit_test(only_large_blocks_have_large_pages),
        cmocka_unit_test(blocks_take_what_is_counted),
    };
    return cmocka_run_group_tests_name("pages", tests, oom_group_begin, oom_group_end);
}
