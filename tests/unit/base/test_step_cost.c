/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a step as JSON and back, and tables that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/operation/cost_json.h"
#include "oom.h"

static void what_was_written_is_read_back(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_step_cost cost = {.batch_ns = 12.5, .shape_ns = 99.25}, back;
    for (int sources = 0; sources < 2; sources++)
        for (cost.count = 0; cost.count <= SL_STEP_COST_MOST; cost.count += 8) {
            cost.source_count = sources ? cost.count / 2 : 0;
            for (int p = 0; p < cost.count; p++)
                cost.points[p] = (struct sl_step_cost_point){1 + p * p, 100.5 + p};
            for (int p = 0; p < cost.source_count; p++)
                cost.source_points[p] = (struct sl_step_cost_point){2 + 3 * p, 7.75 * (p + 1)};
            json_t *json = sl_step_cost_to_json(&cost);
            memset(&back, 0x5A, sizeof back);
            assert_int_equal(sl_step_cost_from_json("plan.json", json, &back, &err), SEQLSTM_OK);
            assert_true(back.count == cost.count && back.source_count == cost.source_count);
            for (int p = 0; p < cost.count; p++)
                assert_true(back.points[p].width == cost.points[p].width &&
                            back.points[p].step_ns == cost.points[p].step_ns);
            for (int p = 0; p < cost.source_count; p++)
                assert_true(back.source_points[p].width == cost.source_points[p].width &&
                            back.source_points[p].step_ns == cost.source_points[p].step_ns);
            assert_true(back.batch_ns == 12.5 && back.shape_ns == 99.25);
            assert_int_equal(json_object_get(json, "source_points") != NULL, cost.source_count > 0);
            json_decref(json);
        }
}

static void check(const char *text, seqlstm_status status, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_step_cost cost;
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_int_equal(sl_step_cost_from_json("plan.json", json, &cost, &err), status);
    if (status != SEQLSTM_OK)
        assert_string_equal(err.message, message);
    else
        assert_true(cost.batch_ns >= 0 && cost.shape_ns >= 0);
    json_decref(json);
}

#define POINT(width, ns) "{\"width\": " #width ", \"step_ns\": " #ns "}"
#define POINTS(list)     "{\"points\": [" list "]}"

static void tables_that_are_none_are_refused(void **state)
{
    (void)state;
    char many[2048] = "{\"points\": [";
    check(POINTS(POINT(1, 0.5)), SEQLSTM_OK, NULL);
    check("{\"batch_ns\": -3, \"shape_ns\": -1}", SEQLSTM_OK, NULL);
    check(POINTS(POINT(0, 1)), SEQLSTM_CORRUPT_DATA, "plan.json: point 0 of \"step_cost\" is out of order");
    check(POINTS(POINT(2, 1) "," POINT(2, 1)), SEQLSTM_CORRUPT_DATA,
          "plan.json: point 1 of \"step_cost\" is out of order");
    check(POINTS(POINT(2, 1) "," POINT(4, 1) "," POINT(3, 1)), SEQLSTM_CORRUPT_DATA,
          "plan.json: point 2 of \"step_cost\" is out of order");
    check(POINTS(POINT(2, 0)), SEQLSTM_CORRUPT_DATA, "plan.json: point 0 of \"step_cost\" is out of order");
    check(POINTS("{\"width\": 2}"), SEQLSTM_CORRUPT_DATA, "plan.json: point 0 of \"step_cost\" is out of order");
    check("{\"source_points\": [" POINT(3, 1) "," POINT(1, 1) "]}", SEQLSTM_CORRUPT_DATA,
          "plan.json: point 1 of \"step_cost\" is out of order");
    for (int p = 0; p <= SL_STEP_COST_MOST; p++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%s{\"width\": %d, \"step_ns\": 1}", p ? "," : "",
                 p + 1);
    strcat(many, "]}");
    check(many, SEQLSTM_CORRUPT_DATA, "plan.json: point 16 of \"step_cost\" is out of order");
}

/* The points of the target and of the source, of which there are other numbers: per step never less where it is wider,
 * per sequence never more. */
static void both_curves_are_made_smooth(void **state)
{
    (void)state;
    struct sl_step_cost cost = {
        .count = 2, .points = {{1, 3}, {2, 8}}, .source_count = 3, .source_points = {{1, 10}, {2, 4}, {4, 8}}};
    static const double source[] = {10, 10, 10};
    sl_step_cost_smooth(&cost);
    assert_true(cost.points[0].step_ns == 4 && cost.points[1].step_ns == 8);
    for (int k = 0; k < 3; k++)
        assert_true(cost.source_points[k].step_ns == source[k]);
    cost.source_count = 1;
    cost.points[1].step_ns = 3;
    sl_step_cost_smooth(&cost);
    assert_true(cost.points[0].step_ns == 4 && cost.points[1].step_ns == 4);
}

/* On lines between the points, and on the first and the last line beyond them; through zero below the first. */
static void costs_lie_between_their_points(void **state)
{
    (void)state;
    static const struct sl_step_cost cost = {
        .count = 4, .points = {{2, 10}, {4, 30}, {8, 40}, {16, 200}}, .source_count = 1, .source_points = {{4, 12}}};
    static const double rows[][2] = {{1, 5},  {2, 10},   {3, 20},   {4, 30},  {6, 35},
                                     {8, 40}, {12, 120}, {16, 200}, {20, 280}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        assert_true(sl_step_cost_at(&cost, rows[k][0]) == rows[k][1]);
    assert_true(sl_step_cost_source_at(&cost, 1) == 3 && sl_step_cost_source_at(&cost, 8) == 24);
    assert_true(sl_step_cost_at(NULL, 0.5) == 0.5 && sl_step_cost_at(NULL, 7) == 1); /* nothing was measured */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(tables_that_are_none_are_refused),
        cmocka_unit_test(both_curves_are_made_smooth),
        cmocka_unit_test(costs_lie_between_their_points),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
