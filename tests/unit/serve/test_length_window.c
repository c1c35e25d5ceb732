/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of whole sequences: the one that has waited longest, and those of the nearest lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/compute/length_window.h"
#include "serve/job/queue.h"

enum { STEPS = 100 };

static void choose(struct sl_length_window *window, const int64_t *lengths, int count, int64_t most)
{
    sl_length_window_clear(window);
    for (int k = 0; k < count; k++)
        sl_length_window_add(window, lengths[k], 1);
    sl_length_window_choose(window, most);
}

static void expect(const struct sl_length_window *window, int64_t low, int64_t high)
{
    for (int64_t length = 0; length <= STEPS; length++)
        assert_int_equal(sl_length_window_has(window, length), length >= low && length <= high);
}

static void lengths_near_the_oldest_are_chosen(void **state)
{
    static const int64_t lengths[] = {20, 5, 90, 22, 17, 5, 40, 19};
    struct sl_length_window window;
    (void)state;
    assert_true(sl_length_window_init(&window, STEPS));
    choose(&window, lengths, 8, 1);
    expect(&window, 20, 20);
    choose(&window, lengths, 8, 3);
    expect(&window, 19, 22);
    choose(&window, lengths, 8, 4);
    expect(&window, 17, 22);
    choose(&window, lengths, 8, 5); /* both of length 5 */
    expect(&window, 5, 22);
    choose(&window, lengths, 8, 9); /* there are fewer */
    expect(&window, 5, 90);
    choose(&window, lengths + 2, 6, 2);
    expect(&window, 40, 90);
    choose(&window, lengths + 1, 1, 64); /* nothing of what waited before is left */
    expect(&window, 5, 5);
    sl_length_window_deinit(&window);
}

static void equal_distances_and_ends(void **state)
{
    static const int64_t lengths[] = {50, 60, 40}, ends[] = {0, STEPS, STEPS + 7};
    struct sl_length_window window;
    (void)state;
    assert_true(sl_length_window_init(&window, STEPS));
    choose(&window, lengths, 3, 2); /* the shorter one costs less */
    expect(&window, 40, 50);
    choose(&window, ends, 3, 2);
    expect(&window, 0, STEPS);
    choose(&window, ends + 2, 1, 1);
    expect(&window, STEPS, STEPS);
    sl_length_window_clear(&window);
    sl_length_window_choose(&window, 3); /* nothing waits */
    sl_length_window_deinit(&window);
    assert_true(sl_length_window_has(&window, 3)); /* lengths do not matter */
}

/* ---- the queue --------------------------------------------------------------------------------------------- */

struct seen {
    int64_t looked, chosen, asked;
    int64_t refused; /* rows of the job that is not wanted */
};

static void look(void *context, const struct sl_job *job)
{
    struct seen *seen = context;
    assert_int_equal(job->rows, seen->looked++);
    assert_int_equal(seen->chosen, 0);
}

static void note_choice(void *context)
{
    ((struct seen *)context)->chosen++;
}

static bool wants(void *context, const struct sl_job *job)
{
    struct seen *seen = context;
    assert_int_equal(seen->chosen, 1);
    seen->asked++;
    return job->rows != seen->refused;
}

static void workers_that_sleep_get_their_share(void **state)
{
    struct sl_job jobs[6] = {{.rows = 0}, {.rows = 1}, {.rows = 2}, {.rows = 3}, {.rows = 4}, {.rows = 5}};
    struct sl_job_queue queue;
    struct sl_job *taken;
    struct seen seen = {.refused = 1};
    const struct sl_job_taker taker = {&seen, look, note_choice, wants};
    (void)state;
    sl_job_queue_init(&queue, 5);
    for (int k = 0; k < 6; k++)
        assert_int_equal(sl_job_queue_add(&queue, &jobs[k]), k < 5);
    queue.sleeping = 1;
    assert_true(sl_job_queue_take(&queue, true, &taker, &taken));
    queue.sleeping = 0;
    assert_int_equal(seen.looked, 5);
    assert_int_equal(seen.asked, 4);
    assert_ptr_equal(taken, &jobs[0]); /* three of five, without the one that is not wanted */
    assert_ptr_equal(jobs[0].next, &jobs[2]);
    assert_ptr_equal(jobs[2].next, &jobs[3]);
    assert_null(jobs[3].next);
    assert_int_equal(sl_job_queue_count(&queue), 2);
    assert_ptr_equal(queue.first, &jobs[1]);
    assert_ptr_equal(queue.last, &jobs[4]);
    sl_job_queue_deinit(&queue);
}

/* The oldest one is that of the present round. */
static void each_round_begins_anew(void **state)
{
    struct sl_length_window window;
    (void)state;
    assert_true(sl_length_window_init(&window, STEPS));
    for (int round = 0; round < 3; round++) {
        const int64_t oldest = round == 1 ? 12 : 5 + round, other = round == 1 ? 3 : 16;
        sl_length_window_add(&window, oldest, 1);
        sl_length_window_add(&window, other, 4);
        sl_length_window_choose(&window, 1);
        expect(&window, oldest, oldest);
        assert_true(sl_length_window_has(&window, oldest) && !sl_length_window_has(&window, other));
        sl_length_window_clear(&window);
    }
    sl_length_window_deinit(&window);
}

/* Many sequences of one length count as many. */
static void sequences_of_a_request_count_each(void **state)
{
    struct sl_length_window window;
    (void)state;
    assert_true(sl_length_window_init(&window, STEPS));
    sl_length_window_add(&window, 8, 3);
    sl_length_window_add(&window, 9, 1);
    sl_length_window_add(&window, 11, 1);
    sl_length_window_choose(&window, 3);
    expect(&window, 8, 8);
    sl_length_window_choose(&window, 4);
    expect(&window, 8, 9);
    sl_length_window_add(&window, 4, 9); /* farther below, and not yet counted when 9 and 11 are chosen */
    sl_length_window_choose(&window, 5);
    expect(&window, 8, 11);
    sl_length_window_choose(&window, 6);
    expect(&window, 4, 11);
    sl_length_window_deinit(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_near_the_oldest_are_chosen),
        cmocka_unit_test(equal_distances_and_ends),
        cmocka_unit_test(each_round_begins_anew),
        cmocka_unit_test(sequences_of_a_request_count_each),
        cmocka_unit_test(workers_that_sleep_get_their_share),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
