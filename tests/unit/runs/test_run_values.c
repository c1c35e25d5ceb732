/* SPDX-License-Identifier: Apache-2.0 */
/* Values of runs: how they are read and shown, their order, and the conditions that they meet. */
#include "ok.h"
#include "oom.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/memory/arena.h"
#include "runs/condition.h"
#include "runs/run_value.h"

static struct sl_arena arena;

static int setup(void **state)
{
    oom_group_begin(state);
    sl_arena_init(&arena);
    return 0;
}

static int teardown(void **state)
{
    sl_arena_deinit(&arena);
    return oom_group_end(state);
}

/* Quotes are taken off where they are a pair; what is in them is a text. */
static void test_texts_and_numbers_of_a_configuration(void **state)
{
    static const struct {
        const char *text, *shown;
        bool is_number;
    } rows[] = {{"\"a\"", "a", false},    {"'3'", "3", false},     {"\"a'", "\"a'", false}, {"'a", "'a", false},
                {"\"", "\"", false},      {"\"\"", "", false},     {"1e-3", "0.001", true}, {"3.50", "3.5", true},
                {"-0.25", "-0.25", true}, {"a'b'", "a'b'", false}, {".inf", ".inf", false}, {"inf", "inf", false},
                {"nan", "nan", false}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_run_value value;
        assert_true(sl_run_value_read(&arena, rows[k].text, &value));
        if (strcmp(value.text, rows[k].shown) != 0 || (value.kind == SL_RUN_VALUE_NUMBER) != rows[k].is_number)
            fail_msg("%s is shown as %s", rows[k].text, value.text);
    }
}

/* Every operator, with a number and a text on either side. */
static void test_conditions(void **state)
{
    static const char *const signs[] = {"<", "<=", ">", ">=", "=", "==", "!="};
    static const struct {
        struct sl_run_value value;
        const char *right;
        const char *holds; /* a letter for each sign: y, n; r: refused */
    } rows[] = {
        {{SL_RUN_VALUE_NUMBER, 2, "2"}, "3", "yynnnny"}, {{SL_RUN_VALUE_NUMBER, 3, "3"}, "3.0", "nynyyyn"},
        {{SL_RUN_VALUE_NUMBER, 4, "4"}, "3", "nnyynny"}, {{SL_RUN_VALUE_NUMBER, 3, "3"}, "three", "rrrrnny"},
        {{SL_RUN_VALUE_TEXT, NAN, "b"}, "b", "rrrryyn"}, {{SL_RUN_VALUE_TEXT, NAN, "b"}, "a", "rrrrnny"},
        {{SL_RUN_VALUE_TEXT, NAN, "3"}, "3", "nnnnyyn"}, {{SL_RUN_VALUE_NONE, NAN, "-"}, "3", "nnnnnnn"},
        {{SL_RUN_VALUE_NONE, NAN, "-"}, "-", "rrrrnnn"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int s = 0; s < 7; s++)
            for (int spaces = 0; spaces < 2; spaces++) {
                char text[64];
                struct sl_run_condition condition;
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                snprintf(text, sizeof text, spaces ? "  a.b  %s  %s  " : "a.b%s%s", signs[s], rows[k].right);
                const seqlstm_status status = sl_run_condition_read(&arena, text, &condition, &err);
                if ((status == SEQLSTM_INVALID_CONFIG) != (rows[k].holds[s] == 'r'))
                    fail_msg("%s: %s", text, err.message);
                if (status != SEQLSTM_OK) {
                    assert_non_null(strstr(err.message, "which is no number: use = or !="));
                    continue;
                }
                assert_string_equal(condition.key, "a.b");
                assert_string_equal(condition.text, rows[k].right);
                if (sl_run_condition_holds(&condition, &rows[k].value) != (rows[k].holds[s] == 'y'))
                    fail_msg("%s %s", rows[k].value.text, text);
            }
}

static void test_what_is_no_condition(void **state)
{
    static const char *const rows[][2] = {{"loss", "is no condition"},     {"", "is no condition"},
                                          {"a!b", "is no condition"},      {"<3", "lacks its key"},
                                          {"  =3", "lacks its key"},       {"loss<", "lacks its value"},
                                          {"loss!=  ", "lacks its value"}, {"loss<few", "compares with `few`"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_run_condition condition;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_run_condition_read(&arena, rows[k][0], &condition, &err), SEQLSTM_INVALID_CONFIG);
        if (!strstr(err.message, rows[k][1]))
            fail_msg("'%s': %s", rows[k][0], err.message);
    }
}

/* Numbers by value, then texts, numbers in them by value, then what is missing; and the other way round. */
static void test_order_of_values(void **state)
{
    static const struct sl_run_value sorted[] = {
        {SL_RUN_VALUE_NUMBER, -1, "-1"}, {SL_RUN_VALUE_NUMBER, 2, "2"},   {SL_RUN_VALUE_NUMBER, 10, "10"},
        {SL_RUN_VALUE_TEXT, NAN, "a9"},  {SL_RUN_VALUE_TEXT, NAN, "a10"}, {SL_RUN_VALUE_TEXT, NAN, "b"},
        {SL_RUN_VALUE_NONE, NAN, "-"},
    };
    const int count = sizeof sorted / sizeof *sorted;
    (void)state;
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            const int got = sl_run_value_compare(&sorted[a], &sorted[b]);
            if ((got > 0) - (got < 0) != (a > b) - (a < b))
                fail_msg("%s and %s: %d", sorted[a].text, sorted[b].text, got);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_and_numbers_of_a_configuration),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_what_is_no_condition),
        cmocka_unit_test(test_order_of_values),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
