/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `data stats`, of statistics that the test makes up: where bars, marks and the edges of buckets stand, and
 * what the table of strategies holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/output/data_page.h"
#include "data/dataset/lengths.h"
#include "ok.h"
#include "oom.h"

static struct {
    struct sl_lengths lengths, source; /* source: of pairs, with records */
    int64_t vocabulary, source_vocabulary, split, parts;
    struct sl_batching_cost costs[3];
    int count;
} stats;

const struct sl_batching_cost *__wrap_sl_data_stats_get_costs(const struct sl_data_stats *of, int *out_count);
const struct sl_lengths *__wrap_sl_data_stats_get_lengths(const struct sl_data_stats *of);
const struct sl_lengths *__wrap_sl_data_stats_find_source_lengths(const struct sl_data_stats *of);
int64_t __wrap_sl_data_stats_get_vocabulary(const struct sl_data_stats *of);
int64_t __wrap_sl_data_stats_get_source_vocabulary(const struct sl_data_stats *of);
int64_t __wrap_sl_data_stats_get_split(const struct sl_data_stats *of, int64_t *out_parts);

const struct sl_batching_cost *__wrap_sl_data_stats_get_costs(const struct sl_data_stats *of, int *out_count)
{
    (void)of;
    *out_count = stats.count;
    return stats.costs;
}

const struct sl_lengths *__wrap_sl_data_stats_get_lengths(const struct sl_data_stats *of)
{
    (void)of;
    return &stats.lengths;
}

const struct sl_lengths *__wrap_sl_data_stats_find_source_lengths(const struct sl_data_stats *of)
{
    (void)of;
    return stats.source.records ? &stats.source : NULL;
}

int64_t __wrap_sl_data_stats_get_vocabulary(const struct sl_data_stats *of)
{
    (void)of;
    return stats.vocabulary;
}

int64_t __wrap_sl_data_stats_get_source_vocabulary(const struct sl_data_stats *of)
{
    (void)of;
    return stats.source_vocabulary;
}

int64_t __wrap_sl_data_stats_get_split(const struct sl_data_stats *of, int64_t *out_parts)
{
    (void)of;
    *out_parts = stats.parts;
    return stats.split;
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static void make_page(struct sl_buf *out, const struct sl_step_cost *cost)
{
    const struct cli_data_content none = {.counts = NULL};
    cli_write_data_page(out, "a & b", NULL, &none, cost);
    assert_false(out->failed);
}

/* The text must come next behind *at. */
static SEQLSTM_PRINTF(2, 3) void expect_next(const char **at, const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strncmp(*at, text, strlen(text)) != 0)
        fail_msg("expected %s\nfound %.300s", text, *at);
    *at += strlen(text);
}

static void skip_to(const char **at, const char *text)
{
    const char *found = strstr(*at, text);
    if (found == NULL)
        fail_msg("there is no %s", text);
    *at = found;
}

static void set_lengths(struct sl_lengths *lengths, const int32_t *values, int64_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_lengths_init(lengths, values, count, &err), &err);
}

static int close_stats(void **state)
{
    (void)state;
    sl_lengths_deinit(&stats.lengths);
    sl_lengths_deinit(&stats.source);
    memset(&stats, 0, sizeof stats);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Two of 1 step, six of 3, three of 4. The plot is 760 wide from 64 on, and 260 high from 24 on. */
static const int32_t lengths[] = {3, 1, 4, 3, 3, 4, 3, 1, 4, 3, 3};
static const int64_t edges_of_auto[] = {1, 2, 4}, edges_of_count[] = {3, 4};

static void bars_marks_and_edges(void **state)
{
    static const int held[] = {0, 2, 0, 6, 3};
    struct sl_buf out = {0};
    (void)state;
    set_lengths(&stats.lengths, lengths, 11);
    stats.count = 3;
    stats.vocabulary = 50;
    stats.costs[0] = (struct sl_batching_cost){.name = "pools", .description = "", .chosen = true};
    stats.costs[1] =
        (struct sl_batching_cost){.name = "auto", .description = "", .edges = edges_of_auto, .edge_count = 3};
    stats.costs[2] = (struct sl_batching_cost){
        .name = "count", .description = "", .chosen = true, .edges = edges_of_count, .edge_count = 2};
    make_page(&out, NULL);
    const char *at = sl_buf_text(&out);
    skip_to(&at, "<h1>");
    expect_next(&at, "<h1>a &amp; b</h1>\n<p>11 sequences, 32 real steps, 1 to 4 long, mean 2.9, vocabulary 50</p>\n");
    expect_next(&at, "<h2>Sequences by length</h2>\n<svg class=\"lengths\" viewBox=\"0 0 848 328\" role=\"img\" "
                     "aria-label=\"histogram of the lengths\">\n");
    for (int mark = 0; mark <= 6; mark += 2) {
        const double y = 24 + 260 * (1 - mark / 6.0);
        expect_next(&at, "<line class=\"grid\" x1=\"64\" x2=\"824\" y1=\"%.1f\" y2=\"%.1f\"/>", y, y);
        expect_next(&at, "<text text-anchor=\"end\" x=\"58\" y=\"%.1f\">%d</text>\n", y + 4, mark);
    }
    for (int mark = 0; mark <= 4; mark++)
        expect_next(&at, "<text text-anchor=\"middle\" x=\"%.1f\" y=\"302\">%d</text>\n", 64 + 152 * (mark + 0.5),
                    mark);
    for (int length = 0; length <= 4; length++) {
        const double tall = 260 * held[length] / 6.0;
        if (held[length])
            expect_next(&at,
                        "<rect class=\"bar\" x=\"%.2f\" width=\"130.72\" y=\"%.2f\" height=\"%.2f\"><title>%d steps: "
                        "%d</title></rect>\n",
                        64.0 + 152 * length, 284 - tall, tall, length, held[length]);
    }
    for (int e = 0; e < 2; e++) { /* between the bars of this length and of the next */
        const double x = 64 + 152 * (double)(edges_of_count[e] + 1) - 10.64;
        expect_next(&at,
                    "<line class=\"edge\" x1=\"%.2f\" x2=\"%.2f\" y1=\"24\" y2=\"284\"><title>a bucket ends at "
                    "%d</title></line>\n",
                    x, x, (int)edges_of_count[e]);
    }
    expect_next(&at, "<text text-anchor=\"middle\" x=\"444\" y=\"326\">steps</text>\n</svg>\n"
                     "<p>Lines: the edges of the 2 buckets of <b>count</b>.</p>\n");
    sl_buf_deinit(&out);
    stats.costs[2].chosen = false; /* then those of "auto", which comes first */
    make_page(&out, NULL);
    assert_non_null(strstr(sl_buf_text(&out), "the edges of the 3 buckets of <b>auto</b>"));
    sl_buf_deinit(&out);
    stats.count = 1;
    make_page(&out, NULL);
    assert_null(strstr(sl_buf_text(&out), "class=\"edge\""));
    assert_null(strstr(sl_buf_text(&out), "<p>Lines"));
    sl_buf_deinit(&out);
}

/* Bars of several lengths, up to 160 of them; marks are round. */
static void long_sequences_share_bars(void **state)
{
    enum { RECORDS = 130 };
    int32_t many[RECORDS];
    struct sl_buf out = {0};
    (void)state;
    for (int k = 0; k < RECORDS; k++)
        many[k] = k < 120 ? 4 + k % 2 : 330; /* one bar has 120, the last one 10 */
    set_lengths(&stats.lengths, many, RECORDS);
    make_page(&out, NULL);
    const char *at = sl_buf_text(&out);
    skip_to(&at, "<line class=\"grid\"");
    for (int mark = 0; mark <= 120; mark += 50) {
        const double y = 24 + 260 * (1 - mark / 120.0);
        expect_next(&at, "<line class=\"grid\" x1=\"64\" x2=\"824\" y1=\"%.1f\" y2=\"%.1f\"/>", y, y);
        expect_next(&at, "<text text-anchor=\"end\" x=\"58\" y=\"%.1f\">%d</text>\n", y + 4, mark);
    }
    for (int mark = 0; mark <= 330; mark += 100)
        expect_next(&at, "<text text-anchor=\"middle\" x=\"%.1f\" y=\"302\">%d</text>\n",
                    64 + 760 / 331.0 * (mark + 0.5), mark);
    const double width = 0.86 * 760 * 3 / 331.0;
    expect_next(&at, "<rect class=\"bar\" x=\"%.2f\" width=\"%.2f\" y=\"24.00\" height=\"260.00\">",
                64 + 760 * 3 / 331.0, width);
    expect_next(&at, "<title>3 to 5 steps: 120</title></rect>\n");
    expect_next(&at, "<rect class=\"bar\" x=\"%.2f\" width=\"%.2f\" y=\"%.2f\" height=\"%.2f\">",
                64 + 760 * 330 / 331.0, width, 284 - 260 / 12.0, 260 / 12.0);
    expect_next(&at, "<title>330 to 332 steps: 10</title></rect>\n<text text-anchor=\"middle\"");
    sl_buf_deinit(&out);
}

/* Sides of pairs, each with its own numbers; the edges of buckets are of the targets. */
static void pairs_have_two_histograms(void **state)
{
    static const int32_t source[] = {2, 2, 2, 7};
    static const struct sl_step_cost cost = {.source_points = {{2, 3500}},
                                             .source_count = 1,
                                             .points = {{1, 1000}, {4, 2000}},
                                             .count = 2,
                                             .batch_ns = 12000};
    struct sl_buf out = {0};
    (void)state;
    set_lengths(&stats.lengths, lengths, 4);
    set_lengths(&stats.source, source, 4);
    stats.source_vocabulary = 30;
    stats.split = 2;
    stats.parts = 5;
    stats.count = 2;
    stats.costs[0] = (struct sl_batching_cost){.name = "pools",
                                               .description = "in pools",
                                               .rows_computed = 11,
                                               .steps = 12,
                                               .source_rows = 13,
                                               .source_steps = 14,
                                               .batches = 15,
                                               .shapes = 16,
                                               .rows_lost = 17,
                                               .seconds = 18.25,
                                               .above_bound = 0.195};
    stats.costs[1] = (struct sl_batching_cost){.name = "count",
                                               .description = "by count",
                                               .chosen = true,
                                               .rows_computed = 21,
                                               .steps = 22,
                                               .source_rows = 23,
                                               .source_steps = 24,
                                               .batches = 25,
                                               .shapes = 26,
                                               .rows_lost = 27,
                                               .seconds = 28.5,
                                               .edges = edges_of_count,
                                               .edge_count = 2,
                                               .above_bound = 0.3};
    make_page(&out, &cost);
    const char *at = sl_buf_text(&out);
    skip_to(&at, "<p>4 sequences");
    expect_next(&at, "<p>4 sequences; source: 13 real steps, 2 to 7 long, mean 3.2, vocabulary 30; target: 11 real "
                     "steps, 1 to 4 long, mean 2.8. 2 longer sequences were split into 5 parts, which count as "
                     "sequences</p>\n<h2>Sources by length</h2>\n");
    const char *targets = strstr(at, "<h2>Targets by length</h2>\n"), *edge = strstr(at, "class=\"edge\"");
    assert_true(targets && edge > targets);
    at = targets;
    skip_to(&at, "<h2>One epoch");
    expect_next(&at, "<h2>One epoch, by strategy</h2>\n<div class=\"scroll\"><table><tr><th>batching</th><th>rows</th>"
                     "<th>steps</th><th>batches</th><th>shapes</th><th>above the bound</th><th>source rows</th>"
                     "<th>source steps</th><th>seconds</th><th>rows lost</th><th class=\"words\">description</th></tr>"
                     "\n");
    expect_next(&at, "<tr><td>pools</td><td>11</td><td>12</td><td>15</td><td>16</td><td>19.5 %%</td><td>13</td>"
                     "<td>14</td><td>18.2</td><td>17</td><td class=\"words\">in pools</td></tr>\n");
    expect_next(&at, "<tr class=\"chosen\"><td>count</td><td>21</td><td>22</td><td>25</td><td>26</td><td>30.0 %%</td>"
                     "<td>23</td><td>24</td><td>28.5</td><td>27</td><td class=\"words\">by count</td></tr>\n");
    skip_to(&at, "<h2>Cost");
    expect_next(&at,
                "<h2>Cost of a step of the source</h2>\n<table><tr><th>sequences in parallel</th><th>µs a step</th>"
                "<th>µs a sequence</th></tr>\n<tr><td>2</td><td>3.5</td><td>1.75</td></tr>\n</table>\n"
                "<h2>Cost of a step of the target</h2>\n<table><tr><th>sequences in parallel</th><th>µs a step</th>"
                "<th>µs a sequence</th></tr>\n<tr><td>1</td><td>1.0</td><td>1.00</td></tr>\n"
                "<tr><td>4</td><td>2.0</td><td>0.50</td></tr>\n</table>\n<p>Each batch costs another 12 µs.</p>\n");
    sl_buf_deinit(&out);
}

/* Their rows are those of the table, whose number is not that of the columns; the first 200 are shown. */
static void columns_of_a_table_have_its_rows(void **state)
{
    static struct sl_column items[202];
    static const int32_t counts[] = {1, 200, 201, 202};
    static const char *const ends[] = {"", "", "<p>and 1 more column</p>\n", "<p>and 2 more columns</p>\n"};
    (void)state;
    set_lengths(&stats.lengths, lengths, 4);
    for (int k = 0; k < 202; k++) {
        items[k] =
            (struct sl_column){.use = "input", .missing = 7, .is_number = true, .low = -1, .high = 2, .mean = 0.5};
        snprintf(items[k].name, sizeof items[k].name, "c<%d", k);
    }
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const struct cli_data_content content = {
            .columns = {.rows = k ? 12345678901 : 1, .items = items, .count = counts[k]}};
        struct sl_buf out = {0};
        cli_write_data_page(&out, "m", NULL, &content, NULL);
        const char *at = sl_buf_text(&out);
        skip_to(&at, "<h2>Columns");
        expect_next(&at, "<h2>Columns of %s</h2>\n<div class=\"scroll\"><table><tr><th>column</th>",
                    k ? "12345678901 rows" : "1 row");
        skip_to(&at, "<tr><td>");
        for (int c = 0; c < counts[k] && c < 200; c++)
            expect_next(&at,
                        "<tr><td>c&lt;%d</td><td class=\"words\">input</td><td>7</td><td class=\"words\">-1 to 2, mean "
                        "0.5</td></tr>\n",
                        c);
        expect_next(&at, "</table></div>\n%s<h2>One epoch", ends[k]);
        sl_buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(bars_marks_and_edges, close_stats),
        cmocka_unit_test_teardown(long_sequences_share_bars, close_stats),
        cmocka_unit_test_teardown(pairs_have_two_histograms, close_stats),
        cmocka_unit_test_teardown(columns_of_a_table_have_its_rows, close_stats),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
