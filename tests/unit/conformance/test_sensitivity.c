/* SPDX-License-Identifier: Apache-2.0 */
/* Results that rounding of the inputs alone moves: how far they may be off, when a case cannot be judged, and that a
 * value which is not finite is no question of rounding. Then the movements themselves, which are measured where a
 * result is beyond its tolerance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "offender.h"
#include "conformance/workbench.h"
#include "judge/condition.h"
#include "judge/data.h"
#define OOM_ARENAS
#include "oom.h"

seqlstm_status __wrap_sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                          const struct sl_data *data, struct sl_condition **out_condition,
                                          struct seqlstm_error *err);
seqlstm_status __real_sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                          const struct sl_data *data, struct sl_condition **out_condition,
                                          struct seqlstm_error *err);

/* ---- movements that the test makes up ---------------------------------------------------------------------------- */

static double moves;    /* of each element; < 0: they cannot be measured */
static float off;       /* by how much the first element is wrong: */
static bool is_forward; /* of y; or of dx */
static int conditions;  /* that were measured */

seqlstm_status __wrap_sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                          const struct sl_data *data, struct sl_condition **out_condition,
                                          struct seqlstm_error *err)
{
    conditions++;
    if (moves < 0)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "it cannot be measured");
    SEQLSTM_TRY(__real_sl_condition_create(arena, reference, data, out_condition, err));
    for (int32_t k = 0; k < data->count; k++)
        for (int64_t i = 0; i < data->elems[k]; i++) {
            if ((*out_condition)->outputs[k])
                (*out_condition)->outputs[k][i] = moves;
            if ((*out_condition)->grads[k])
                (*out_condition)->grads[k][i] = moves;
        }
    return SEQLSTM_OK;
}

static const struct seqlstm_backend *inner;

static seqlstm_status offend_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    SEQLSTM_TRY(inner->forward(binding, queue, args, err));
    if (is_forward)
        ((float *)args->slots[SEQLSTM_SLOT_DENSE_Y])[0] += off;
    return SEQLSTM_OK;
}

static seqlstm_status offend_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    SEQLSTM_TRY(inner->backward(binding, queue, args, err));
    if (!is_forward && args->grads[SEQLSTM_SLOT_DENSE_X])
        ((float *)args->grads[SEQLSTM_SLOT_DENSE_X])[0] += off;
    return SEQLSTM_OK;
}

static const struct seqlstm_backend *offend_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.forward = offend_forward;
    table.backward = offend_backward;
    return &table;
}

static void what_may_not_be_judged_is_skipped(void **state)
{
    static const struct {
        double moves;
        float off;
        enum sl_verdict verdict;
        int conditions;
    } rows[] = {
        {0, 0, SL_VERDICT_PASS, 0},        {1, 0, SL_VERDICT_PASS, 0},        {0, 1e-3f, SL_VERDICT_FAIL, 1},
        {1e-5, 3e-5f, SL_VERDICT_PASS, 1}, {1e-5, 1e-3f, SL_VERDICT_FAIL, 1}, {-1, 3e-5f, SL_VERDICT_FAIL, 1},
        {1, 3, SL_VERDICT_PASS, 1},        {1, 10, SL_VERDICT_SKIP, 1},       {1, NAN, SL_VERDICT_FAIL, 1},
        {1, INFINITY, SL_VERDICT_FAIL, 1}, {-1, NAN, SL_VERDICT_FAIL, 1},
    };
    static const char *const cases[][3] = {{"dense:inf:R5I2O3:f32:flat", "y", "forward: y[0, 0] is "},
                                           {"dense:bwd:R5I2O3:f32:flat", "dx", "backward: dx[0, 0] is "}};
    static const struct sl_backend_builtin builtin = {"reference", offend_query};
    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const struct sl_conformance_request request = {.file = "reference",
                                                           .builtins = &builtin,
                                                           .builtin_count = 1,
                                                           .reference = seqlstm_reference_query_v0,
                                                           .cases = cases[c],
                                                           .case_count = 1};
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_conformance_report *report = NULL;
            char skipped[160];
            snprintf(skipped, sizeof skipped,
                     "too sensitive to judge: rounding of the inputs alone moves %s by a thousandth", cases[c][1]);
            conditions = 0;
            moves = rows[k].moves;
            off = rows[k].off;
            is_forward = c == 0;
            if (sl_conformance_run(&request, &report, &err) != SEQLSTM_OK)
                fail_msg("%s", err.message);
            const struct sl_check_result *result = &sl_conformance_report_get(report, 0)->check;
            const char *wanted = rows[k].verdict == SL_VERDICT_FAIL   ? cases[c][2]
                                 : rows[k].verdict == SL_VERDICT_SKIP ? skipped
                                                                      : "";
            if (result->verdict != rows[k].verdict || strncmp(result->detail, wanted, strlen(wanted)) != 0 ||
                conditions != rows[k].conditions)
                fail_msg("%s, row %zu: %s '%s', %d conditions", cases[c][0], k, sl_verdict_name(result->verdict),
                         result->detail, conditions);
            sl_conformance_report_destroy(report);
        }
}

/* ---- the movements ----------------------------------------------------------------------------------------------- */

static struct sl_workbench bench;

static int open_bench(void **state)
{
    static const struct sl_backend_builtin builtin = {"reference", seqlstm_reference_query_v0};
    static const struct sl_conformance_request request = {
        .file = "reference", .builtins = &builtin, .builtin_count = 1, .reference = seqlstm_reference_query_v0};
    (void)state;
    return sl_workbench_init(&bench, &request, NULL) == SEQLSTM_OK ? 0 : -1;
}

static int close_bench(void **state)
{
    (void)state;
    sl_workbench_deinit(&bench);
    return 0;
}

/* The largest movement; -1: there is none for the slot. None is negative or not finite. */
static double find_largest(const double *movement, int64_t elems)
{
    double largest = movement ? 0 : -1;
    for (int64_t i = 0; movement && i < elems; i++) {
        assert_true(isfinite(movement[i]) && movement[i] >= 0);
        largest = fmax(largest, movement[i]);
    }
    return largest;
}

/* Results of smooth functions of the inputs move, in inference and in training, and gradients in training alone. None
 * moves by more than a small multiple of 2^-20 of such values. */
static void results_move_with_the_inputs(void **state)
{
    static const char *const cases[] = {
        "dense:inf:R5I3O4:f32:flat",         "dense:bwd:R5I3O4:f32:flat",   "lstm:inf:T3B2I3H5:f32:ragged",
        "lstm:bwd:T3B2I3H5:f32:ragged",      "loss:bwd:R5C3:f32:flat",      "activation:inf:R5C3:f32:flat",
        "attention:bwd:R9B4T5K6V7:f32:flat", "layer_norm:inf:R5C7:f32:flat"};
    (void)state;
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct sl_arena arena = {0};
        struct sl_case c;
        struct sl_data *data = NULL;
        struct sl_condition *condition = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const bool training = strstr(cases[n], ":bwd:") != NULL;
        if (sl_case_parse(cases[n], &c, &err) != SEQLSTM_OK ||
            sl_data_create(&arena, &c, 1, 1, &data, &err) != SEQLSTM_OK ||
            __real_sl_condition_create(&arena, &bench.bench.reference, data, &condition, &err) != SEQLSTM_OK)
            fail_msg("%s: %s", cases[n], err.message);
        int moving = 0, gradients = 0;
        for (int32_t k = 0; k < data->count; k++) {
            const struct sl_slot *slot = &data->slots[k];
            const bool is_result = slot->role == SL_SLOT_OUTPUT || slot->role == SL_SLOT_INOUT;
            const double output = find_largest(condition->outputs[k], data->elems[k]);
            const double gradient = find_largest(condition->grads[k], data->elems[k]);
            if (output > 1e-3 || gradient > 1e-3 || (gradient > 0 && !training))
                fail_msg("%s: %s moves by %g, its gradient by %g", cases[n], slot->name, output, gradient);
            moving += is_result && output > 0;
            gradients += (slot->role == SL_SLOT_INPUT || slot->role == SL_SLOT_PARAM) && gradient > 0;
        }
        if (moving == 0 || (training && gradients == 0))
            fail_msg("%s: %d results move, and %d gradients", cases[n], moving, gradients);
        sl_arena_deinit(&arena);
    }
}

/* y = w x: both move by 2^-20 of their size, at least once in the same direction. */
static void the_largest_of_several_draws_counts(void **state)
{
    struct sl_arena arena = {0};
    struct sl_case c;
    struct sl_data *data = NULL;
    struct sl_condition *condition = NULL;
    (void)state;
    assert_int_equal(sl_case_parse("dense:inf:R9I1O1:f32:flat:no_bias", &c, NULL), SEQLSTM_OK);
    assert_int_equal(sl_data_create(&arena, &c, 1, 1, &data, NULL), SEQLSTM_OK);
    assert_int_equal(__real_sl_condition_create(&arena, &bench.bench.reference, data, &condition, NULL), SEQLSTM_OK);
    const double w = data->values[SEQLSTM_SLOT_DENSE_W][0], *x = data->values[SEQLSTM_SLOT_DENSE_X];
    double largest = 0;
    for (int64_t i = 0; i < 9; i++) {
        const double share = condition->outputs[SEQLSTM_SLOT_DENSE_Y][i] / fabs(w * x[i]) * 0x1p20;
        assert_true(share >= 0 && share < 2.001);
        largest = fmax(largest, share);
    }
    assert_true(largest > 1.999);
    sl_arena_deinit(&arena);
}

static void without_memory_there_is_none(void **state)
{
    bool failed = true;
    (void)state;
    for (int n = 1; failed; n++) {
        struct sl_arena arena = {0}, data_arena = {0};
        struct sl_case c;
        struct sl_data *data = NULL;
        struct sl_condition *condition = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_case_parse("dense:bwd:R5I3O4:f32:flat", &c, NULL), SEQLSTM_OK);
        assert_int_equal(sl_data_create(&data_arena, &c, 1, 1, &data, NULL), SEQLSTM_OK);
        arena_fail_at(n);
        const seqlstm_status status =
            __real_sl_condition_create(&arena, &bench.bench.reference, data, &condition, &err);
        failed = arena_disarm();
        if (status != (failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK) || (condition != NULL) == failed)
            fail_msg("allocation %d: %d, %s", n, (int)status, err.message);
        sl_arena_deinit(&arena);
        sl_arena_deinit(&data_arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_not_be_judged_is_skipped),
        cmocka_unit_test_setup_teardown(results_move_with_the_inputs, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(the_largest_of_several_draws_counts, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(without_memory_there_is_none, open_bench, close_bench),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
