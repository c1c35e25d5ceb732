/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: zeroed, aligned, disjoint, stable; checked sizes; failure leaves it usable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/arena.h"
#include "oom.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
enum { APART = 32, GUARDED = 1 }; /* two parts of 16 bytes */
#else
#define __asan_region_is_poisoned(from, bytes) ((void)(from), (void *)NULL)
#define __asan_address_is_poisoned(at)         1
enum { APART = 16, GUARDED = 0 };
#endif

static void blocks_are_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    struct sl_arena arena;
    sl_arena_init(&arena);
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    static size_t sizes[COUNT];
    uint32_t random = 1;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525u + 1013904223u;
        sizes[i] = i % 100 == 7 ? random >> 14 : random >> 24;
        blocks[i] = sl_arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], 0);
        memset(blocks[i], i & 0xFF, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(blocks[i][k], i & 0xFF);
    sl_arena_deinit(&arena);
    assert_null(arena.blocks);
    assert_int_equal(arena.total_bytes, 0);
}

static void empty_requests_are_distinct(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    void *a = sl_arena_alloc(&arena, 0), *b = sl_arena_alloc_array(&arena, 0, 8);
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_not_equal(a, b);
    sl_arena_deinit(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    assert_null(sl_arena_alloc_array(&arena, SIZE_MAX / 2, 4));
    assert_null(sl_arena_alloc(&arena, SIZE_MAX));
    assert_null(sl_arena_alloc(&arena, SIZE_MAX - 20));
    assert_non_null(sl_arena_alloc(&arena, 1));
    assert_null(sl_arena_alloc(&arena, SIZE_MAX - 20));
    sl_arena_deinit(&arena);
}

static void strings_are_copied(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    char source[] = "hello";
    char *copy = sl_arena_strdup(&arena, source);
    source[0] = 'j';
    assert_string_equal(copy, "hello");
    assert_string_equal(sl_arena_strndup(&arena, "hello", 3), "hel");
    assert_string_equal(sl_arena_strndup(&arena, "he\0lo", 5), "he");
    assert_string_equal(sl_arena_strndup(&arena, "x", 0), "");
    assert_string_equal(sl_arena_printf(&arena, "%d %s %.2f", 7, "b", 0.5), "7 b 0.50");
    char *longer = sl_arena_printf(&arena, "%5000d", 1);
    assert_int_equal(strlen(longer), 5000);
    sl_arena_deinit(&arena);
}

static void large_block_does_not_waste_the_small_one(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    char *first = sl_arena_alloc(&arena, 16);
    assert_non_null(sl_arena_alloc(&arena, 100000));
    char *second = sl_arena_alloc(&arena, 16);
    assert_ptr_equal(second, first + APART);
    assert_non_null(sl_arena_alloc(&arena, 4090)); /* neither does one that is not much smaller than a block */
    assert_ptr_equal(sl_arena_alloc(&arena, 16), second + APART);
    sl_arena_deinit(&arena);
}

/* Behind a part, and in what is not handed out yet, however large it is. */
static void the_sanitizer_sees_the_end_of_each_part(void **state)
{
    (void)state;
    if (!GUARDED) {
        print_message("only under the address sanitizer\n");
        return;
    }
    static const size_t sizes[] = {1, 7, 8, 16, 100, 4090, 100000};
    struct sl_arena arena = {0};
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        const size_t bytes = sizes[k % (sizeof sizes / sizeof *sizes)];
        char *part = sl_arena_alloc(&arena, bytes);
        assert_null(__asan_region_is_poisoned(part, bytes));
        assert_true(__asan_address_is_poisoned(part + bytes) && __asan_address_is_poisoned(part + bytes + 15));
    }
    sl_arena_deinit(&arena);
}

/* Blocks grow with what is asked for, but not without end: a little more never costs much more. */
static void blocks_are_at_most_a_mebibyte(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    size_t asked = 0;
    for (int k = 0; k < 24000; k++, asked += 512) {
        assert_non_null(sl_arena_alloc(&arena, 512));
        assert_true(arena.total_bytes <= asked + (2u << 20));
        assert_true(arena.total_bytes <= 4 * asked + 10000);
    }
    sl_arena_deinit(&arena);
}

static void stays_usable_when_memory_runs_out(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    char *kept = sl_arena_strdup(&arena, "kept");
    assert_false(arena.failed);
    oom_fail_at(1);
    assert_null(sl_arena_alloc(&arena, 100000));
    assert_true(oom_disarm());
    assert_true(arena.failed);
    sl_arena_deinit(&arena);
    assert_false(arena.failed);
    assert_null(sl_arena_alloc_array(&arena, SIZE_MAX, 2));
    assert_true(arena.failed);
    kept = sl_arena_strdup(&arena, "kept");
    oom_fail_at(1);
    assert_null(sl_arena_printf(&arena, "%10000d", 1));
    assert_true(oom_disarm());
    assert_string_equal(kept, "kept");
    assert_non_null(sl_arena_alloc(&arena, 100000));
    assert_true(arena.failed); /* it stays so */
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_aligned_and_disjoint),
        cmocka_unit_test(empty_requests_are_distinct),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(large_block_does_not_waste_the_small_one),
        cmocka_unit_test(the_sanitizer_sees_the_end_of_each_part),
        cmocka_unit_test(blocks_are_at_most_a_mebibyte),
        cmocka_unit_test(stays_usable_when_memory_runs_out),
    };
    return cmocka_run_group_tests_name("arena", tests, oom_group_begin, oom_group_end);
}
