/* SPDX-License-Identifier: Apache-2.0 */
/* A worker keeps its processor while it has it to itself, and else runs anywhere for a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/compute/processor.h"

#define MS ((int64_t)1000000)

static cpu_set_t all;

static cpu_set_t read_set(void)
{
    cpu_set_t set;
    assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
    return set;
}

static int remember(void **state)
{
    (void)state;
    all = read_set();
    return 0;
}

static int restore(void **state)
{
    (void)state;
    return pthread_setaffinity_np(pthread_self(), sizeof all, &all);
}

/* The calling thread is the worker, and its processor is the first one. */
static struct sl_processor start(void)
{
    struct sl_processor processor = {.used = true, .all = all};
    for (size_t cpu = 0; CPU_COUNT(&processor.own) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &processor.own);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof processor.own, &processor.own), 0);
    return processor;
}

static void expect(const struct sl_processor *processor, bool left)
{
    const cpu_set_t set = read_set();
    assert_true(processor->used && processor->left == left);
    assert_true(CPU_EQUAL(&set, left ? &processor->all : &processor->own));
}

/* One of eight parts without a processor is borne, a little more is not; short batches count together. */
static void a_crowded_processor_is_left(void **state)
{
    struct sl_processor processor = start();
    (void)state;
    for (int64_t k = 1; k <= 10; k++)
        sl_processor_note(&processor, 100 * k * MS, 100 * MS, 875 * MS / 10);
    expect(&processor, false);
    for (int64_t k = 1; k < 100; k++)
        sl_processor_note(&processor, 1000 * MS + k * MS, MS, 87 * MS / 100);
    expect(&processor, false);
    sl_processor_note(&processor, 1100 * MS, MS, 87 * MS / 100);
    expect(&processor, true);
}

/* It is tried again after a second, then after two, and so on up to five minutes; a calm time ends the row. */
static void it_is_tried_again_ever_later(void **state)
{
    struct sl_processor processor = start();
    int64_t now = 0, pause = 1000 * MS;
    (void)state;
    for (int k = 0; k < 12; k++) {
        sl_processor_note(&processor, now, 100 * MS, 50 * MS);
        expect(&processor, true);
        sl_processor_note(&processor, now + pause - 1, 100 * MS, 100 * MS);
        expect(&processor, true);
        now += pause;
        sl_processor_note(&processor, now, 100 * MS, 50 * MS);
        expect(&processor, false);
        pause = 2 * pause < 300000 * MS ? 2 * pause : 300000 * MS;
    }
    assert_int_equal(pause, 300000 * MS);
    sl_processor_note(&processor, now, 100 * MS, 100 * MS);
    expect(&processor, false);
    sl_processor_note(&processor, now, 100 * MS, 50 * MS);
    sl_processor_note(&processor, now + 1000 * MS, MS, MS);
    expect(&processor, false);
}

static void none_is_kept_where_processors_are_to_spare(void **state)
{
    (void)state;
    const int32_t count = CPU_COUNT(&all);
    for (int32_t workers = 0; workers <= count + 1; workers++) {
        struct sl_pinning pinning;
        struct sl_processor processor;
        sl_pinning_begin(&pinning, workers);
        const cpu_set_t left = read_set();
        assert_int_equal(pinning.used, workers == count - 1);
        assert_int_equal(CPU_COUNT(&left), pinning.used ? 1 : count);
        for (int32_t k = 0; k < workers; k++) {
            sl_processor_init(&processor, &pinning, k);
            assert_int_equal(processor.used, pinning.used);
            if (processor.used) {
                cpu_set_t both;
                CPU_AND(&both, &processor.own, &left);
                assert_true(CPU_COUNT(&processor.own) == 1 && CPU_COUNT(&both) == 0);
            }
        }
        sl_pinning_end(&pinning);
        const cpu_set_t after = read_set();
        assert_true(CPU_EQUAL(&after, &all));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_crowded_processor_is_left, restore),
        cmocka_unit_test_teardown(it_is_tried_again_ever_later, restore),
        cmocka_unit_test_teardown(none_is_kept_where_processors_are_to_spare, restore),
    };
    return cmocka_run_group_tests(tests, remember, NULL);
}
