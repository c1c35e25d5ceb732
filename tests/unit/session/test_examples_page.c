/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a report that shows what a model answered, as a whole: the plot of values, the matrix of classes, the
 * list of confused pairs, and the worst rows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/text/vocabulary.h"
#include "session/report/examples_page.h"
#include "oom.h"

static void expect_page(const struct sl_examples *examples, const char *expected)
{
    struct sl_buf out = {0};
    sl_examples_write(examples, &out);
    assert_string_equal(sl_buf_text(&out), expected);
    sl_buf_deinit(&out);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The plot begins at (70, 14) and is 280 wide and high. */
struct axes {
    double low, high;
};

static void expect_at(const struct axes *axes, const char *what, double actual, double x, double predicted, double y)
{
    const double width = 280 / (axes->high - axes->low);
    if (!(fabs(x - (70 + (actual - axes->low) * width)) <= 0.051) ||
        !(fabs(y - (294 - (predicted - axes->low) * width)) <= 0.051))
        fail_msg("%s: (%g, %g) is at (%g, %g)", what, actual, predicted, x, y);
}

/* Reads the marks: a line and a number beside it; every other one also has a number below. Returns what follows. */
static const char *check_marks(const char *at, struct axes *axes)
{
    double values[16], heights[16], places[16];
    int marks = 0, bytes;
    for (double y2, y; marks < 16; marks++) {
        double below = NAN;
        bytes = -1;
        sscanf(at,
               "<line class=\"grid\" x1=\"70\" x2=\"350\" y1=\"%lf\" y2=\"%lf\"/><text x=\"63\" dy=\"4\" "
               "text-anchor=\"end\" y=\"%lf\">%lf</text>%n",
               &heights[marks], &y2, &y, &values[marks], &bytes);
        if (bytes < 0)
            break;
        assert_true(y2 == heights[marks] && y == heights[marks]);
        at += bytes;
        places[marks] = NAN;
        bytes = -1;
        sscanf(at, "<text text-anchor=\"middle\" x=\"%lf\" y=\"313\">%lf</text>\n%n", &places[marks], &below, &bytes);
        assert_int_equal(bytes >= 0, marks % 2 == 0);
        if (bytes >= 0) {
            assert_true(below == values[marks]);
            at += bytes;
        }
    }
    assert_true(marks >= 3);
    *axes = (struct axes){values[0], values[marks - 1]};
    for (int k = 0; k < marks; k++)
        expect_at(axes, "mark", k % 2 ? axes->low : values[k], k % 2 ? 70 : places[k], values[k], heights[k]);
    return at;
}

/* Each mark stands where a point of its value does: upwards on the vertical axis, to the right on the other one. */
static void marks_and_points_have_one_scale(void **state)
{
    static const float points[][2] = {{1, 7}, {6, -1.5f}, {3, 3}, {NAN, 1}, {2, INFINITY}, {0, 7.3f}};
    static const char head[] = "<h2>Answers on the valid split</h2>\n"
                               "<p>Predicted (upwards) against actual values: 6 of 1234. On the dashed line they are "
                               "equal.</p>\n<svg class=\"scatter\" viewBox=\"0 0 364 320\" role=\"img\" "
                               "aria-label=\"predicted against actual values\">\n",
                      ideal[] = "<line class=\"ideal\" x1=\"70\" y1=\"294\" x2=\"350\" y2=\"14\"/>\n";
    struct sl_examples *examples = calloc(1, sizeof *examples);
    struct sl_buf out = {0};
    struct axes axes;
    (void)state;
    assert_non_null(examples);
    examples->kind = SL_EXAMPLES_VALUES;
    examples->split = SL_SPLIT_VALID;
    examples->rows = examples->point_count = sizeof points / sizeof *points;
    examples->values = 1234;
    memcpy(examples->points, points, sizeof points);
    sl_examples_write(examples, &out);
    const char *at = sl_buf_text(&out);
    assert_int_equal(strncmp(at, head, strlen(head)), 0);
    at = check_marks(at + strlen(head), &axes);
    assert_true(axes.low <= -1.5 && axes.low > -8 && axes.high >= 7.3 && axes.high < 16);
    at = strstr(at, "<line");
    assert_int_equal(strncmp(at, ideal, strlen(ideal)), 0);
    at += strlen(ideal);
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        double x, y;
        int bytes = -1;
        if (!isfinite(points[k][0]) || !isfinite(points[k][1]))
            continue;
        sscanf(at, "<circle r=\"2.5\" cx=\"%lf\" cy=\"%lf\"/>\n%n", &x, &y, &bytes);
        assert_true(bytes > 0);
        expect_at(&axes, "point", points[k][0], x, points[k][1], y);
        at += bytes;
    }
    assert_string_equal(at, "</svg>\n");
    sl_buf_deinit(&out);
    free(examples);
}

/* The worst of values: what was meant, what was predicted, and by how much. */
static void rows_of_values(void **state)
{
    struct sl_examples *examples = calloc(1, sizeof *examples);
    (void)state;
    assert_non_null(examples);
    examples->kind = SL_EXAMPLES_VALUES;
    examples->split = SL_SPLIT_TRAIN;
    examples->rows = 4; /* of which no point is a number */
    examples->worst_count = 2;
    examples->worst[0] = (struct sl_example){.error = 9.5, .record = 2, .actual = 1.25f, .predicted = 10.75f};
    examples->worst[1] = (struct sl_example){.error = 3, .record = 0, .actual = -1, .predicted = -4};
    expect_page(examples, "<h2>Answers on the train split</h2>\n<p>The rows where it was most wrong.</p>\n"
                          "<div class=\"scroll\"><table><tr><th>record</th><th>actual</th><th>predicted</th>"
                          "<th>error</th></tr>\n<tr><td>2</td><td>1.25</td><td>10.75</td><td>9.5</td></tr>\n"
                          "<tr><td>0</td><td>-1</td><td>-4</td><td>3</td></tr>\n</table></div>\n");
    free(examples);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* A row for each class, and a column for each answer: neither is the other. */
static void a_matrix_has_a_row_for_each_class(void **state)
{
    static const struct sl_vocabulary_entry entries[] = {{"one", 3, 1}, {"<b>", 3, 1}, {"c", 1, 1}};
    struct sl_examples *examples = calloc(1, sizeof *examples);
    struct sl_vocabulary *names;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    assert_non_null(examples);
    assert_int_equal(sl_vocabulary_create(entries, 3, NULL, &names, &err), SEQLSTM_OK);
    *examples = (struct sl_examples){.kind = SL_EXAMPLES_CLASSES, .split = SL_SPLIT_TEST, .classes = 3, .names = names};
    expect_page(examples, ""); /* there are no rows */
    examples->rows = 17;
    examples->counts[0][0] = 6;
    examples->counts[0][2] = 2;
    examples->counts[1][0] = 5;
    examples->counts[3][1] = 4; /* of a class that the training does not have */
    examples->worst_count = 2;
    examples->worst[0] = (struct sl_example){.error = 7, .record = 3, .target = 3, .answer = 0, .predicted = 0.75};
    examples->worst[1] = (struct sl_example){
        .error = 5, .record = 12, .step = 3, .target = 1, .answer = 2, .predicted = 0.125, .text = "a [x<y] b"};
#define CELL(right, color, share, text)                                                                                \
    "<td" right " style=\"background:color-mix(in srgb,var(--" color ") " share "%,transparent)\">" text "</td>"
#define RIGHT(share, text) CELL(" class=\"right\"", "train", share, text)
#define WRONG(share, text) CELL("", "valid", share, text)
    expect_page(
        examples,
        "<h2>Answers on the test split</h2>\n<p>A row for each class, a column for each answer.</p>\n"
        "<div class=\"scroll\"><table class=\"matrix\"><tr><th></th><th>one</th><th>&lt;b&gt;</th><th>c</th></tr>\n"
        "<tr><td>one</td>" RIGHT("38", "6") WRONG("0", "") WRONG(
            "12",
            "2") "</tr>\n"
                 "<tr><td>&lt;b&gt;</td>" WRONG("50", "5") RIGHT("0", "") WRONG(
                     "0",
                     "") "</tr>\n"
                         "<tr><td>c</td>" WRONG("0", "") WRONG("0", "") RIGHT(
                             "0",
                             "") "</tr>\n"
                                 "<tr><td>(not in training)</td>" WRONG("0", "") WRONG("50", "4") WRONG(
                                     "0",
                                     "") "</tr>\n"
                                         "</table></div>\n"
                                         "<p>The rows where it was most wrong.</p>\n<div "
                                         "class=\"scroll\"><table><tr><th>record</th><th>step</th>"
                                         "<th>class</th><th>answer</th><th>probability</th><th>input</th></tr>\n"
                                         "<tr><td>3</td><td>0</td><td>(not in training)</td><td>one</td><td>0.750</td>"
                                         "<td class=\"example\"></td></tr>\n<tr><td>12</td><td>3</td><td>"
                                         "&lt;b&gt;</td><td>c</td><td>0.125</td><td class=\"example\">"
                                         "a [x&lt;y] b</td></tr>\n</table></div>\n");
    sl_vocabulary_destroy(names);
    free(examples);
}

/* Of more classes, the pairs that are confused most, of equal ones the first; 15 of them. */
static void many_classes_have_a_list_of_pairs(void **state)
{
    enum { CLASSES = 21 };
    struct sl_vocabulary_entry entries[CLASSES];
    static char texts[CLASSES][4];
    struct sl_examples *examples = calloc(1, sizeof *examples);
    struct sl_vocabulary *names;
    struct sl_buf out = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    assert_non_null(examples);
    for (int k = 0; k < CLASSES; k++) {
        snprintf(texts[k], sizeof texts[k], "k%d", k % 100);
        entries[k] = (struct sl_vocabulary_entry){texts[k], strlen(texts[k]), 1};
    }
    assert_int_equal(sl_vocabulary_create(entries, CLASSES, NULL, &names, &err), SEQLSTM_OK);
    *examples = (struct sl_examples){
        .kind = SL_EXAMPLES_CLASSES, .split = SL_SPLIT_TRAIN, .rows = 9, .classes = CLASSES, .names = names};
    examples->counts[2][2] = 90;
    expect_page(examples, "<h2>Answers on the train split</h2>\n<p>No class was confused with another.</p>\n");
    examples->counts[2][7] = 3; /* of 93 + 17 */
    examples->counts[2][5] = 17;
    examples->counts[20][0] = 3;
    examples->counts[CLASSES][20] = 4;
    examples->worst_count = 1;
    examples->worst[0] = (struct sl_example){.record = 8, .target = 20, .answer = 0, .predicted = 0.5};
#define HEAD                                                                                                           \
    "<h2>Answers on the train split</h2>\n<p>The classes that are confused most.</p>\n<div class=\"scroll\"><table>"   \
    "<tr><th>class</th><th>answer</th><th>rows</th><th>of the class</th></tr>\n"
    expect_page(examples,
                HEAD "<tr><td>k2</td><td>k5</td><td>17</td><td>15.5 %</td></tr>\n"
                     "<tr><td>(not in training)</td><td>k20</td><td>4</td><td>100.0 %</td></tr>\n"
                     "<tr><td>k2</td><td>k7</td><td>3</td><td>2.7 %</td></tr>\n"
                     "<tr><td>k20</td><td>k0</td><td>3</td><td>100.0 %</td></tr>\n</table></div>\n"
                     "<p>The rows where it was most wrong.</p>\n<div class=\"scroll\"><table><tr><th>record</th>"
                     "<th>class</th><th>answer</th><th>probability</th></tr>\n"
                     "<tr><td>8</td><td>k20</td><td>k0</td><td>0.500</td></tr>\n</table></div>\n");
    for (int k = 0; k < CLASSES; k++) /* one less for each class */
        examples->counts[k][(k + 1) % CLASSES] = 100 - k;
    sl_examples_write(examples, &out);
    const char *at = sl_buf_text(&out);
    for (int k = 0; k < 15; k++) {
        char row[64];
        snprintf(row, sizeof row, "<tr><td>k%d</td><td>k%d</td><td>%d</td>", k, k + 1, 100 - k);
        at = strstr(at, row);
        assert_non_null(at);
    }
    assert_null(strstr(at, "<td>k16</td>"));
    sl_buf_truncate(&out, 0);
    examples->classes = CLASSES - 1;
    sl_examples_write(examples, &out);
    assert_non_null(strstr(sl_buf_text(&out), "<table class=\"matrix\">"));
    assert_null(strstr(sl_buf_text(&out), "confused"));
    sl_buf_deinit(&out);
    sl_vocabulary_destroy(names);
    free(examples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_and_points_have_one_scale),
        cmocka_unit_test(rows_of_values),
        cmocka_unit_test(a_matrix_has_a_row_for_each_class),
        cmocka_unit_test(many_classes_have_a_list_of_pairs),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
