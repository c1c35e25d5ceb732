/* SPDX-License-Identifier: Apache-2.0 */
/* What is expected of operations that were not timed: from those of the same backend, device, variant and kind alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatch/cost/experience.h"
#include "oom.h"

static int marks[2];
#define BACKEND(k) ((struct sl_backend *)(void *)&marks[k])

static const struct sl_candidate own = {.backend = BACKEND(0), .device = 1, .variant_index = 2};
static const struct sl_candidate others[] = {{.backend = BACKEND(1), .device = 1, .variant_index = 2},
                                             {.backend = BACKEND(0), .device = 0, .variant_index = 2},
                                             {.backend = BACKEND(0), .device = 1, .variant_index = 1}};
enum { OTHERS = sizeof others / sizeof *others };

static void add(struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op, double work_ns,
                double forward_ns, double backward_ns)
{
    const struct sl_cost cost = {SL_COST_MEASURED, forward_ns, backward_ns};
    assert_int_equal(sl_experience_add(experience, candidate, op, work_ns, &cost, NULL), SEQLSTM_OK);
}

static void expect(const struct sl_experience *experience, double work_ns, double forward_ns, double backward_ns,
                   double bound)
{
    struct sl_cost cost = {SL_COST_NONE, 0, 0};
    assert_true(sl_experience_predict(experience, &own, SEQLSTM_OP_DENSE, work_ns, &cost));
    assert_int_equal(cost.source, SL_COST_ESTIMATE);
    assert_true(cost.forward_ns == forward_ns && cost.backward_ns == backward_ns);
    assert_true(sl_experience_get_bound(experience, &own, SEQLSTM_OP_DENSE, work_ns) == bound);
}

/* The most similar amount of work is that of the smallest factor, up or down; the bound is that of no more work. */
static void time_follows_work(void **state)
{
    (void)state;
    struct sl_experience experience = {0};
    add(&experience, &own, SEQLSTM_OP_DENSE, 8, 16, 4);
    add(&experience, &own, SEQLSTM_OP_DENSE, 100, 50, 25);
    add(&experience, &own, SEQLSTM_OP_DENSE, 64, 256, 0);
    expect(&experience, 4, 8, 2, 0);
    expect(&experience, 8, 16, 4, 20);
    expect(&experience, 16, 32, 8, 20);  /* twice as much as 8, a quarter of 64 */
    expect(&experience, 32, 128, 0, 20); /* half of 64 */
    expect(&experience, 64, 256, 0, 256);
    expect(&experience, 200, 100, 50, 256); /* what took longest, of less work */
    sl_experience_deinit(&experience);
    assert_int_equal(experience.count, 0);
}

static void other_candidates_tell_nothing(void **state)
{
    (void)state;
    struct sl_experience experience = {0};
    struct sl_cost cost;
    assert_false(sl_experience_predict(&experience, &own, SEQLSTM_OP_DENSE, 8, &cost));
    for (int k = 0; k < OTHERS; k++)
        add(&experience, &others[k], SEQLSTM_OP_DENSE, 8, 1, 1);
    add(&experience, &own, SEQLSTM_OP_MERGE, 8, 1, 1);
    assert_false(sl_experience_predict(&experience, &own, SEQLSTM_OP_DENSE, 8, &cost));
    assert_true(sl_experience_get_bound(&experience, &own, SEQLSTM_OP_DENSE, 8) == 0);
    add(&experience, &own, SEQLSTM_OP_DENSE, 800, 7, 3);
    expect(&experience, 800, 7, 3, 10);
    sl_experience_deinit(&experience);
}

/* What was known before is not lost. */
static void experience_without_memory(void **state)
{
    (void)state;
    struct sl_experience experience = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_cost cost = {SL_COST_MEASURED, 1, 2};
    for (int k = 0; k < 100; k++) {
        const int32_t count = experience.count;
        oom_fail_at(1);
        const seqlstm_status status = sl_experience_add(&experience, &own, SEQLSTM_OP_DENSE, k + 1, &cost, &err);
        assert_int_equal(status, oom_disarm() ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        if (status != SEQLSTM_OK) {
            assert_int_equal(experience.count, count);
            add(&experience, &own, SEQLSTM_OP_DENSE, k + 1, 1, 2);
        }
        expect(&experience, k + 1, 1, 2, 3);
    }
    sl_experience_deinit(&experience);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_follows_work),
        cmocka_unit_test(other_candidates_tell_nothing),
        cmocka_unit_test(experience_without_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
