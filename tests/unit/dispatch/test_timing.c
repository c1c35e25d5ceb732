/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of candidates on a clock of the test, where each takes what is written down: the times of a mean batch, which
 * candidates are left early, what one that fails says, budgets, and that all is released. meson.build leads what timing
 * calls here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"

#include "base/system/interrupt.h"
#include "dispatch/cost/testbed.h"
#include "dispatch/cost/timing.h"
#include "registry/plugin.h"

enum { OPS = 4 };

/* What a candidate does. */
struct behaviour {
    double forward_ns, backward_ns; /* for a row */
    int fails_at;                   /* its n-th run; 0: never */
    bool fails_to_bind;
    char domain; /* the letter of its memory */
};

static struct {
    struct behaviour ops[OPS];
    int runs[OPS];
    int64_t now_ns, preemptions;
    bool disturbed;    /* another program takes the processor in every run */
    double slow_first; /* the first run of each takes this many times as long */
    int testbeds, bindings, domains_made;
    struct sl_testbed_request last; /* the newest testbed's, without its pointers */
    struct seqlstm_sizes sizes;
    struct sl_interrupt interrupt;
    int stop_at; /* the run after which the user interrupts; 0: never */
} lab;

struct sl_testbed {
    int32_t first, count;
    int64_t steps_most;
    const struct sl_profiles *profiles;
    bool on_steps;
    char domain;
};

struct seqlstm_binding {
    const struct sl_testbed *testbed;
    int op;
    int32_t profile;
};

/* Backends and operations are numbers. */
static const struct sl_backend *make_backend(int op)
{
    return (const struct sl_backend *)(uintptr_t)(0x1000 + op);
}

static const struct seqlstm_op *make_op(int op)
{
    return (const struct seqlstm_op *)(uintptr_t)(0x2000 + op);
}

static int get_number(const struct seqlstm_op *op)
{
    return (int)((uintptr_t)op - 0x2000);
}

int64_t __wrap_sl_clock_ns(void);
int64_t __wrap_sl_clock_ns(void)
{
    return lab.now_ns;
}

int64_t __wrap_sl_rounds_count_preemptions(void);
int64_t __wrap_sl_rounds_count_preemptions(void)
{
    return lab.preemptions;
}

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index);
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t index)
{
    static struct seqlstm_device_info info[OPS];
    const int op = (int)((uintptr_t)backend - 0x1000);
    assert_int_equal(index, op);
    info[op].domain[0] = lab.ops[op].domain;
    return &info[op];
}

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    (void)backend;
    return NULL;
}

seqlstm_status __wrap_sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                        struct seqlstm_error *err);
seqlstm_status __wrap_sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                        struct seqlstm_error *err)
{
    (void)err;
    const int op = (int)((uintptr_t)request->backend - 0x1000);
    assert_int_equal(request->device, op);
    assert_in_range(request->profile_first + request->profile_count, 1, request->profiles->count);
    struct sl_testbed *testbed = calloc(1, sizeof *testbed);
    assert_non_null(testbed);
    *testbed = (struct sl_testbed){request->profile_first, request->profile_count, request->steps_most,
                                   request->profiles,      request->on_steps,      lab.ops[op].domain};
    lab.testbeds++;
    lab.domains_made++;
    lab.last = *request;
    lab.sizes = *request->sizes;
    *out_testbed = testbed;
    return SEQLSTM_OK;
}

void __wrap_sl_testbed_destroy(struct sl_testbed *testbed);
void __wrap_sl_testbed_destroy(struct sl_testbed *testbed)
{
    lab.testbeds -= testbed != NULL;
    free(testbed);
}

static int64_t count_rows(const struct sl_profile *profile, bool on_steps, int64_t steps_most)
{
    int64_t rows = 0;
    for (int64_t k = 0; k < profile->sequences; k++)
        rows += !on_steps ? 1 : profile->lengths[k] < steps_most ? profile->lengths[k] : steps_most;
    return rows;
}

int64_t __wrap_sl_testbed_get_rows(const struct sl_testbed *testbed, int32_t profile);
int64_t __wrap_sl_testbed_get_rows(const struct sl_testbed *testbed, int32_t profile)
{
    assert_in_range(profile, 0, testbed->count - 1);
    return count_rows(&testbed->profiles->items[testbed->first + profile], testbed->on_steps, testbed->steps_most);
}

seqlstm_status __wrap_sl_testbed_bind(struct sl_testbed *testbed, const struct sl_backend *backend,
                                      const struct seqlstm_op *op, int32_t profile,
                                      struct seqlstm_binding **out_binding, struct seqlstm_error *err);
seqlstm_status __wrap_sl_testbed_bind(struct sl_testbed *testbed, const struct sl_backend *backend,
                                      const struct seqlstm_op *op, int32_t profile,
                                      struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    const int number = get_number(op);
    assert_ptr_equal(backend, make_backend(number));
    assert_int_equal(testbed->domain, lab.ops[number].domain);
    if (lab.ops[number].fails_to_bind)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "no place on the device");
    *out_binding = calloc(1, sizeof **out_binding);
    **out_binding = (struct seqlstm_binding){testbed, number, profile};
    lab.bindings++;
    return SEQLSTM_OK;
}

void __wrap_sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding);
void __wrap_sl_plugin_destroy_binding(const struct seqlstm_backend *table, struct seqlstm_binding *binding)
{
    (void)table;
    lab.bindings -= binding != NULL;
    free(binding);
}

seqlstm_status __wrap_sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend,
                                     const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                     struct seqlstm_binding *binding, double *out_forward_ns, double *out_backward_ns,
                                     struct seqlstm_error *err);
seqlstm_status __wrap_sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend,
                                     const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                     struct seqlstm_binding *binding, double *out_forward_ns, double *out_backward_ns,
                                     struct seqlstm_error *err)
{
    const int number = get_number(op);
    const struct behaviour *does = &lab.ops[number];
    assert_ptr_equal(backend, make_backend(number));
    assert_int_equal(sizes->workspace_bytes, 100 + number);
    assert_true(binding->testbed == testbed && binding->op == number);
    if (++lab.runs[number] == does->fails_at)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the device has gone");
    const double rows = (double)__wrap_sl_testbed_get_rows(testbed, binding->profile),
                 times = lab.runs[number] == 1 && lab.slow_first > 0 ? lab.slow_first : 1;
    *out_forward_ns = does->forward_ns * rows * times;
    *out_backward_ns = does->backward_ns * rows * times;
    lab.now_ns += (int64_t)(*out_forward_ns + *out_backward_ns);
    lab.preemptions += lab.disturbed;
    int all = 0;
    for (int k = 0; k < OPS; k++)
        all += lab.runs[k];
    if (lab.stop_at > 0 && all >= lab.stop_at)
        lab.interrupt.stop = 2;
    return SEQLSTM_OK;
}

/* ---- a laboratory -------------------------------------------------------------------------------------------------
 */

static struct sl_profiles profiles;
static double mean_rows, mean_sequences;

/* Three batches, most rows first, that stand for shares of an epoch. */
static int open_lab(void **state)
{
    static const int32_t long_ones[] = {40, 31, 9}, middle[] = {20, 17, 3, 1}, short_ones[] = {5, 4};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    oom_group_begin(state);
    memset(&profiles, 0, sizeof profiles);
    ok(sl_profiles_add(&profiles, 3, long_ones, NULL, 0.5, &err), &err);
    ok(sl_profiles_add(&profiles, 4, middle, NULL, 0.375, &err), &err);
    ok(sl_profiles_add(&profiles, 2, short_ones, NULL, 0.125, &err), &err);
    mean_rows = 0.5 * 80 + 0.375 * 41 + 0.125 * 9;
    mean_sequences = 0.5 * 3 + 0.375 * 4 + 0.125 * 2;
    return 0;
}

static int close_lab(void **state)
{
    sl_profiles_deinit(&profiles);
    return oom_group_end(state);
}

static seqlstm_status time_ops(const struct behaviour *ops, int count, bool on_steps, double budget_ns,
                               struct sl_timed_op *timed, struct seqlstm_error *err)
{
    static struct seqlstm_sizes sizes[OPS];
    static union seqlstm_any_desc desc;
    memcpy(lab.ops, ops, (size_t)count * sizeof *ops);
    for (int k = 0; k < count; k++) {
        sizes[k] = (struct seqlstm_sizes){
            .workspace_bytes = 100 + (uint64_t)k, .reserve_bytes = 300 - (uint64_t)k, .packed_bytes = k == 1 ? 900 : 7};
        timed[k] = (struct sl_timed_op){
            .backend = make_backend(k), .device = (uint32_t)k, .op = make_op(k), .sizes = &sizes[k], .failed = true};
    }
    const struct sl_timing_request request = {.desc = &desc,
                                              .on_steps = on_steps,
                                              .backward = true,
                                              .input_grad = true,
                                              .profiles = &profiles,
                                              .interrupt = &lab.interrupt,
                                              .budget_ns = (int64_t)budget_ns};
    const seqlstm_status status = sl_timing_run(&request, timed, count, err);
    assert_int_equal(lab.testbeds, 0);
    assert_int_equal(lab.bindings, 0);
    return status;
}

static void reset(void)
{
    memset(&lab, 0, sizeof lab);
    lab.now_ns = 5000;
}

static void expect_times(const struct sl_timed_op *timed, const struct behaviour *does, double rows)
{
    assert_false(timed->failed);
    if (!(fabs(timed->forward_ns - does->forward_ns * rows) <= 1e-9 * timed->forward_ns) ||
        !(fabs(timed->backward_ns - does->backward_ns * rows) <= 1e-9 * (timed->backward_ns + 1)))
        fail_msg("%g and %g, expected %g and %g", timed->forward_ns, timed->backward_ns, does->forward_ns * rows,
                 does->backward_ns * rows);
}

/* Whatever part of the profiles fits in the budget, and however long its sequences: the time is that of a mean batch.
 */
static void times_are_those_of_a_mean_batch(void **state)
{
    (void)state;
    static const struct behaviour ops[] = {
        {3000, 7000, .domain = 'h'}, {4000, 5500, .domain = 'h'}, {9e3, 0, .domain = 'h'}};
    static const double budgets[] = {1e12, 3e7, 1e7, 3e6, 1e6, 0};
    int64_t rows_least = INT64_MAX;
    for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
        for (int on_steps = 0; on_steps < 2; on_steps++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_timed_op timed[OPS];
            reset();
            ok(time_ops(ops, 3, on_steps, budgets[b], timed, &err), &err);
            for (int k = 0; k < 3; k++)
                expect_times(&timed[k], &ops[k], on_steps ? mean_rows : mean_sequences);
            assert_true(lab.last.backward && lab.last.input_grad && !lab.last.param_grad);
            assert_int_equal(lab.last.on_steps, on_steps);
            assert_int_equal(lab.sizes.workspace_bytes, 102);
            assert_int_equal(lab.sizes.reserve_bytes, 300);
            assert_int_equal(lab.sizes.packed_bytes, 900);
            const int64_t rows = lab.now_ns;
            if (on_steps) { /* a smaller budget is spent on less work */
                assert_true(rows <= rows_least);
                rows_least = rows;
            }
            assert_int_equal(lab.last.profile_count, b == 0 ? 3 : lab.last.profile_count);
            assert_true(lab.last.steps_most == INT64_MAX || (on_steps && lab.last.steps_most >= 4));
        }
    assert_int_equal(lab.last.profile_count, 1);
    assert_int_equal(lab.last.profile_first, 1);
}

/* The slower, the sooner one is left; its time is what was seen of it. */
static void slow_ones_are_left(void **state)
{
    (void)state;
    static const struct {
        double times;    /* as slow as the first */
        double row_ns;   /* of the first */
        int least, most; /* runs of the second */
    } cases[] = {
        {100, 1e6, 1, 1},   /* hopeless and long: one run */
        {100, 1e5, 2, 2},   /* hopeless, but not so long */
        {4, 1e5, 2, 2},     /* after the second probe */
        {4, 1e3, 4, 99},    /* slow, but so short that one run says little */
        {2, 1e5, 11, 11},   /* after two probes, a warm-up and two rounds, each of three profiles */
        {1.3, 1e5, 14, 14}, /* three rounds, which suffice: it cannot be faster */
    };
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        const size_t c = k / 2;
        const double back = k % 2 ? 0.75 * cases[c].row_ns : 0, forth = cases[c].row_ns - back;
        const struct behaviour ops[] = {{forth, back, .domain = 'h'},
                                        {forth * cases[c].times, back * cases[c].times, .domain = 'h'}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_timed_op timed[OPS];
        reset();
        ok(time_ops(ops, 2, true, 1e13, timed, &err), &err);
        if (lab.runs[1] < cases[c].least || lab.runs[1] > cases[c].most)
            fail_msg("%g times as slow as %g: %d runs, and %d of the best", cases[c].times, cases[c].row_ns,
                     lab.runs[1], lab.runs[0]);
        for (int op = 0; op < 2; op++)
            expect_times(&timed[op], &ops[op], mean_rows);
    }
}

/* As many profiles as there may be: each has a binding, and all of them are given back. */
static void every_profile_is_timed(void **state)
{
    (void)state;
    static const struct behaviour ops[] = {{1e5, 2e5, .domain = 'h'}, {1.1e5, 2e5, .domain = 'h'}};
    const struct sl_profiles kept = profiles;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_timed_op timed[OPS];
    memset(&profiles, 0, sizeof profiles);
    for (int p = 0; p < SL_PROFILES; p++)
        ok(sl_profiles_add(&profiles, 2, (int32_t[]){4 + p, 2}, NULL, 1.0 / SL_PROFILES, &err), &err);
    reset();
    ok(time_ops(ops, 2, true, 1e13, timed, &err), &err);
    assert_int_equal(lab.last.profile_count, SL_PROFILES);
    for (int op = 0; op < 2; op++)
        expect_times(&timed[op], &ops[op], 6 + (SL_PROFILES - 1) / 2.0);
    sl_profiles_deinit(&profiles);
    profiles = kept;
}

/* Two that are equally fast are timed until there are no more rounds, or the budget is spent. Short ones are repeated.
 */
static void equals_are_timed_to_the_end(void **state)
{
    (void)state;
    static const struct {
        double row_ns, budget_ns;
        int runs; /* of each */
    } cases[] = {
        {1e5, 1e13, 2 + 3 + 31 * 3},      /* all rounds */
        {1e5, 1e6, 2 + 1 + 3},            /* no time: one profile, three rounds */
        {1, 1e13, 2 + 3 + 31 * 3 * 20},   /* at most twenty times in a round */
        {500, 1e13, 2 + 3 + 31 * 3 * 16}, /* 12 rows in the probe, 6 us: 16 times make 100 us */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct behaviour ops[] = {{cases[c].row_ns, 0, .domain = 'h'}, {cases[c].row_ns, 0, .domain = 'h'}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_timed_op timed[OPS];
        reset();
        ok(time_ops(ops, 2, true, cases[c].budget_ns, timed, &err), &err);
        if (lab.runs[0] != cases[c].runs || lab.runs[1] != cases[c].runs)
            fail_msg("a row of %g ns: %d and %d runs, expected %d", cases[c].row_ns, lab.runs[0], lab.runs[1],
                     cases[c].runs);
    }
}

/* Where other programs take the processor, the first runs are repeated, and one slow run does not count. */
static void disturbed_runs_are_repeated(void **state)
{
    (void)state;
    const struct behaviour ops[] = {{1e5, 0, .domain = 'h'}, {1.4e5, 0, .domain = 'h'}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_timed_op timed[OPS];
    reset();
    ok(time_ops(ops, 1, true, 1e13, timed, &err), &err);
    assert_int_equal(lab.runs[0], 2 + 3 + 3 * 3);
    for (int slow = 0; slow < 2; slow++) { /* a first run that takes very long is not repeated */
        reset();
        lab.disturbed = true;
        lab.slow_first = slow ? 1000 : 10;
        ok(time_ops(ops, 2, true, 1e13, timed, &err), &err);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(lab.runs[k], (slow ? 1 : 4) + 4 + 3 + 12 * 3);
            expect_times(&timed[k], &ops[k], mean_rows);
        }
    }
}

/* One that fails is said to, with its own words, and the others are timed as ever. */
static void one_that_fails_is_told(void **state)
{
    (void)state;
    for (int fails_at = 0; fails_at < 9; fails_at++) {
        const struct behaviour ops[] = {{1e5, 5, .domain = 'h'},
                                        {1e5, 5, .fails_at = fails_at, .fails_to_bind = fails_at == 0, .domain = 'h'},
                                        {1.2e5, 7, .domain = 'h'}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_timed_op timed[OPS];
        reset();
        ok(time_ops(ops, 3, true, 1e13, timed, &err), &err);
        assert_true(timed[1].failed);
        assert_string_equal(timed[1].failure, fails_at == 0 ? "it failed when it was timed: no place on the device"
                                                            : "it failed when it was timed: the device has gone");
        assert_int_equal(lab.runs[1], fails_at);
        expect_times(&timed[0], &ops[0], mean_rows);
        expect_times(&timed[2], &ops[2], mean_rows);
    }
}

/* One testbed for each memory, for the probe and for the rounds. */
static void each_memory_has_a_testbed(void **state)
{
    (void)state;
    static const struct {
        const char *domains;
        int testbeds;
    } cases[] = {{"hhhh", 2}, {"hdhd", 4}, {"dhhh", 4}, {"abcd", 8}, {"abcb", 6}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct behaviour ops[OPS];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_timed_op timed[OPS];
        for (int k = 0; k < OPS; k++)
            ops[k] = (struct behaviour){1e5 + 1e4 * k, 0, .domain = cases[c].domains[k]};
        reset();
        ok(time_ops(ops, OPS, true, 1e12, timed, &err), &err);
        assert_int_equal(lab.domains_made, cases[c].testbeds);
        for (int k = 0; k < OPS; k++)
            expect_times(&timed[k], &ops[k], mean_rows);
    }
}

/* Training that meets the same shapes again launches its calls as captures; with three kinds of batches it does not. */
static void calls_are_replayed_where_shapes_come_again(void **state)
{
    (void)state;
    static const uint32_t modes[] = {SEQLSTM_MODE_TRAINING, SEQLSTM_MODE_INFERENCE};
    for (int32_t count = 1; count <= 3; count++)
        for (int m = 0; m < 2; m++) {
            const union seqlstm_any_desc desc = {.head = {.mode = modes[m]}};
            const struct seqlstm_sizes sizes = {.workspace_bytes = 100, .reserve_bytes = 300, .packed_bytes = 7};
            struct sl_timed_op timed = {.backend = make_backend(0), .op = make_op(0), .sizes = &sizes};
            struct sl_profiles some = profiles;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            some.count = count;
            reset();
            lab.ops[0] = (struct behaviour){.forward_ns = 1000, .backward_ns = 2000, .domain = 'h'};
            const struct sl_timing_request request = {
                .desc = &desc, .on_steps = true, .profiles = &some, .interrupt = &lab.interrupt, .budget_ns = 1000000};
            ok(sl_timing_run(&request, &timed, 1, &err), &err);
            assert_int_equal(lab.last.replays, count <= 2 && modes[m] == SEQLSTM_MODE_TRAINING);
        }
}

/* The user may interrupt at any run. */
static void interrupted_at_any_time(void **state)
{
    (void)state;
    const struct behaviour ops[] = {{1e5, 0, .domain = 'h'}, {1e5, 0, .domain = 'd'}};
    for (int at = 1; at < 30; at++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_timed_op timed[OPS];
        reset();
        lab.stop_at = at;
        assert_int_equal(time_ops(ops, 2, true, 1e13, timed, &err), SEQLSTM_CANCELLED);
        assert_true(lab.runs[0] + lab.runs[1] <= at + 6); /* at most to the end of the warm-up */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_those_of_a_mean_batch), cmocka_unit_test(slow_ones_are_left),
        cmocka_unit_test(every_profile_is_timed),          cmocka_unit_test(equals_are_timed_to_the_end),
        cmocka_unit_test(disturbed_runs_are_repeated),     cmocka_unit_test(one_that_fails_is_told),
        cmocka_unit_test(each_memory_has_a_testbed),       cmocka_unit_test(calls_are_replayed_where_shapes_come_again),
        cmocka_unit_test(interrupted_at_any_time),
    };
    return cmocka_run_group_tests(tests, open_lab, close_lab);
}
