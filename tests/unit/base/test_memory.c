/* SPDX-License-Identifier: Apache-2.0 */
/* Counted memory, the clock and the interrupt flag. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "base/memory/memory.h"
#include "oom.h"

static void counts_what_is_held(void **state)
{
    (void)state;
    struct sl_memory memory;
    sl_memory_init(&memory);
    char *a = sl_memory_alloc(&memory, 1000);
    char *b = sl_memory_alloc_zeroed(&memory, 77);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    for (int i = 0; i < 77; i++)
        assert_int_equal(b[i], 0);
    memset(a, 1, 1000);
    assert_int_equal(memory.live_bytes, 1077);
    assert_int_equal(memory.live_blocks, 2);
    sl_memory_free(&memory, a);
    assert_int_equal(memory.live_bytes, 77);
    a = sl_memory_alloc(&memory, 500);
    assert_int_equal(memory.peak_bytes, 1077);
    assert_int_equal(memory.n_allocs, 3);
    sl_memory_free(&memory, a);
    sl_memory_free(&memory, b);
    sl_memory_free(&memory, NULL);
    assert_int_equal(memory.live_bytes, 0);
    assert_int_equal(memory.live_blocks, 0);
    assert_int_equal(memory.peak_bytes, 1077);
}

static void alignments_and_edges(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 1 << 16; alignment *= 2) {
        char *p = sl_memory_alloc_aligned(NULL, 3, alignment);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignment, 0);
        memset(p, 1, 3);
        sl_memory_free(NULL, p);
    }
    struct sl_memory memory = {0};
    void *empty = sl_memory_alloc(&memory, 0);
    assert_non_null(empty);
    assert_int_equal(memory.live_blocks, 1);
    sl_memory_free(&memory, empty);
    assert_null(sl_memory_alloc(&memory, SIZE_MAX - 10));
    oom_fail_at(1);
    assert_null(sl_memory_alloc_zeroed(&memory, 100));
    assert_true(oom_disarm());
    assert_int_equal(memory.live_blocks, 0);
    assert_int_equal(memory.n_allocs, 1);
}

static void large_blocks_begin_with_a_large_page(void **state)
{
    (void)state;
    struct sl_memory memory;
    sl_memory_init(&memory);
    for (size_t alignment = 64; alignment <= (size_t)4 * SL_MEMORY_LARGE_PAGE; alignment *= 256) {
        const size_t bytes = SL_MEMORY_LARGE + alignment - 1; /* its last vector is read whole */
        char *block = sl_memory_alloc_aligned(&memory, bytes, alignment);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % SL_MEMORY_LARGE_PAGE, 0);
        assert_int_equal((uintptr_t)block % alignment, 0);
        assert_int_equal(block[0] + block[bytes - 1] + block[(bytes + 63) / 64 * 64 - 1], 0);
        memset(block, 1, bytes);
        assert_int_equal(memory.live_bytes, bytes);
        sl_memory_free(&memory, block);
        assert_int_equal(memory.live_blocks, 0);
    }
    char *blocks[40];
    for (int i = 0; i < 40; i++) { /* none lies in another */
        blocks[i] = sl_memory_alloc_zeroed(&memory, SL_MEMORY_LARGE + (size_t)i * 5000);
        assert_non_null(blocks[i]);
        memset(blocks[i], i + 1, SL_MEMORY_LARGE + (size_t)i * 5000);
    }
    for (int i = 0; i < 40; i++) {
        for (size_t at = 0; at < SL_MEMORY_LARGE + (size_t)i * 5000; at += 999)
            assert_int_equal(blocks[i][at], i + 1);
        sl_memory_free(&memory, blocks[i]);
    }
    assert_int_equal(memory.live_bytes, 0);
    assert_null(sl_memory_alloc(&memory, SIZE_MAX / 2));
    assert_null(sl_memory_alloc_aligned(&memory, SIZE_MAX / 2, SIZE_MAX / 2 + 1));
    assert_int_equal(memory.live_blocks, 0);
}

/* Pages of this process's addresses. */
static long count_pages(void)
{
    char text[128] = "";
    const int file = open("/proc/self/statm", O_RDONLY);
    const ssize_t bytes = read(file, text, sizeof text - 1);
    close(file);
    return bytes > 0 ? strtol(text, NULL, 10) : -1;
}

/* Their ends and the pages of their headers, too, wherever they begin. */
static void large_blocks_are_given_back_whole(void **state)
{
    (void)state;
    long before = 0;
    for (int turn = 0; turn < 20; turn++) {
        if (turn == 2)
            before = count_pages();
        for (size_t bytes = SL_MEMORY_LARGE; bytes < SL_MEMORY_LARGE + 20000; bytes += 4999) {
            char *small = sl_memory_alloc_aligned(NULL, bytes, 64);
            char *wide = sl_memory_alloc_aligned(NULL, bytes, (size_t)4 * SL_MEMORY_LARGE_PAGE);
            assert_true(small && wide);
            sl_memory_free(NULL, small);
            sl_memory_free(NULL, wide);
        }
    }
    assert_true(before > 0);
    assert_int_equal(count_pages(), before);
}

/* The sanitizers watch what lies behind a block. */
static void whole_vectors_are_read(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 200; bytes += 7)
        for (size_t alignment = 1; alignment <= 256; alignment *= 16) {
            volatile char *block = sl_memory_alloc_aligned(NULL, bytes, alignment), sum = 0;
            for (size_t k = 0; k < (bytes + 63) / 64 * 64; k++)
                sum = (char)(sum ^ block[k]);
            sl_memory_free(NULL, (void *)(uintptr_t)block);
        }
}

/* Also one that begins at the last byte. What follows the pages of a large block cannot be read. */
static void whole_vectors_of_large_blocks_are_read(void **state)
{
    static const size_t more[] = {0, 1, SL_MEMORY_PAGE - 64, SL_MEMORY_PAGE - 1, SL_MEMORY_PAGE};
    (void)state;
    for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
        const size_t bytes = SL_MEMORY_LARGE + more[m];
        volatile char *block = sl_memory_alloc(NULL, bytes), sum = 0;
        assert_int_equal((uintptr_t)block % SL_MEMORY_LARGE_PAGE, 0); /* also the smallest of them */
        for (size_t k = bytes - 64; k < bytes - 1 + 64; k++)
            sum = (char)(sum ^ block[k]);
        sl_memory_free(NULL, (void *)(uintptr_t)block);
    }
}

static void clock_moves_forward(void **state)
{
    (void)state;
    int64_t before = sl_clock_ns(), cpu = sl_clock_process_cpu_ns();
    assert_true(before > 0 && cpu > 0);
    while (sl_clock_ns() - before < 2000000)
        continue;
    assert_true(sl_clock_process_cpu_ns() > cpu);
}

static struct sl_interrupt from_handler;

static void handler(int number)
{
    from_handler.stop = number;
    from_handler.save = 1;
}

static void interrupt_is_seen_once(void **state)
{
    (void)state;
    assert_int_equal(sl_interrupt_get_stop(NULL), 0);
    assert_false(sl_interrupt_take_save(NULL));
    assert_int_equal(sl_interrupt_get_stop(&from_handler), 0);
    signal(SIGUSR2, handler);
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_DFL);
    assert_int_equal(sl_interrupt_get_stop(&from_handler), SIGUSR2);
    assert_int_equal(sl_interrupt_get_stop(&from_handler), SIGUSR2);
    assert_true(sl_interrupt_take_save(&from_handler));
    assert_false(sl_interrupt_take_save(&from_handler));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_held),
        cmocka_unit_test(alignments_and_edges),
        cmocka_unit_test(large_blocks_begin_with_a_large_page),
        cmocka_unit_test(large_blocks_are_given_back_whole),
        cmocka_unit_test(whole_vectors_are_read),
        cmocka_unit_test(whole_vectors_of_large_blocks_are_read),
        cmocka_unit_test(clock_moves_forward),
        cmocka_unit_test(interrupt_is_seen_once),
    };
    return cmocka_run_group_tests_name("memory", tests, oom_group_begin, oom_group_end);
}
