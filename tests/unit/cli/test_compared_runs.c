/* SPDX-License-Identifier: Apache-2.0 */
/* `seqlstm runs compare`, on runs that the test makes up: how many there may be, and whichever cell is the widest, its
 * column is as wide. */
#include "command_line.h"

#include <string.h>

#include "cli/commands.h"
#include "cli/commands/runs/selection.h"
#include "runs/comparison.h"

enum { RUNS = 3, ROWS_MOST = 4, LINES_MOST = 2 + 2 * ROWS_MOST };

static struct sl_run_facts facts[RUNS], none = {.name = "n"};
static const struct sl_run_facts *runs[SL_COMPARED_MOST + 1];
static size_t selected = RUNS;
static struct sl_compared_row config[ROWS_MOST], metrics[ROWS_MOST];
static size_t config_count, metric_count;

int __wrap_cli_selection_find(struct cli_context *cli, struct cli_selection *selection);
void __wrap_cli_selection_release(struct cli_selection *selection);
bool __wrap_sl_run_comparison_make(struct sl_arena *arena, const struct sl_run_facts *const *of, size_t count,
                                   struct sl_run_comparison *comparison);

int __wrap_cli_selection_find(struct cli_context *cli, struct cli_selection *selection)
{
    *selection = (struct cli_selection){.runs = runs, .count = selected};
    return cli_prepare(cli, NULL);
}

void __wrap_cli_selection_release(struct cli_selection *selection)
{
    assert_ptr_equal(selection->runs, runs);
}

bool __wrap_sl_run_comparison_make(struct sl_arena *arena, const struct sl_run_facts *const *of, size_t count,
                                   struct sl_run_comparison *comparison)
{
    (void)arena;
    assert_ptr_equal(of, runs);
    assert_int_equal(count, selected);
    *comparison = (struct sl_run_comparison){count, config, config_count, metrics, metric_count};
    return true;
}

/* The cell at a line of the table, where line 0 has the names of the runs and then come the rows; column 0 has keys. */
static const char **find_cell(size_t line, size_t column)
{
    if (line == 0)
        return (const char **)&facts[column - 1].name;
    struct sl_compared_row *row = line <= config_count ? &config[line - 1] : &metrics[line - 1 - config_count];
    return column == 0 ? &row->key : &row->values[column - 1].text;
}

static void fill(size_t config_rows, size_t metric_rows)
{
    config_count = config_rows;
    metric_count = metric_rows;
    for (size_t k = 0; k < RUNS; k++)
        runs[k] = &facts[k];
    for (size_t line = 0; line <= config_rows + metric_rows; line++)
        for (size_t column = line == 0; column <= RUNS; column++)
            *find_cell(line, column) = column == 0 ? "key" : column == 1 ? "a" : column == 2 ? "bb" : "cccc";
}

/* Every line of the table has `bytes` bytes, but an empty one between configuration and metrics. */
static void expect_lines(size_t bytes, const char *what, size_t line, size_t column)
{
    char *text = strdup(sl_buf_text(&out)), *rest = text, *at;
    size_t lines = 0, empty = 0;
    assert_int_equal(strncmp(strsep(&rest, "\n"), "$ ", 2), 0);
    while ((at = strsep(&rest, "\n")) != NULL && strncmp(at, "exit ", 5) != 0 && strncmp(at, "! ", 2) != 0) {
        empty += *at == '\0';
        lines += *at != '\0';
        if (*at && strlen(at) != bytes)
            fail_msg("%zu rows and %zu, %s at line %zu, column %zu: expected %zu characters in\n%s", config_count,
                     metric_count, what, line, column, bytes, sl_buf_text(&out));
    }
    assert_int_equal(lines, 1 + config_count + metric_count);
    assert_int_equal(empty, config_count > 0 && metric_count > 0);
    free(text);
    sl_buf_deinit(&out);
}

static void test_the_widest_cell_may_be_any(void **state)
{
    (void)state;
    static const char wide[] = "twelve bytes";
    static const size_t rows[][2] = {{3, 4}, {1, 2}, {0, 3}, {2, 0}};
    static const size_t widths[] = {3, 1, 2, 4}; /* of other cells */
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t line = 0; line <= rows[r][0] + rows[r][1]; line++)
            for (size_t column = line == 0; column <= RUNS; column++) {
                fill(rows[r][0], rows[r][1]);
                *find_cell(line, column) = wide;
                run("runs compare a b c");
                expect_lines(3 + 2 + 1 + 2 + 2 + 2 + 4 + strlen(wide) - widths[column], "the widest", line, column);
            }
}

static void test_cells_are_shown_where_they_belong(void **state)
{
    (void)state;
    fill(2, 1);
    *find_cell(0, 1) = "m/001";
    *find_cell(0, 2) = "m/002";
    *find_cell(0, 3) = "other/1";
    *find_cell(1, 0) = "seed";
    *find_cell(1, 3) = "a\nb";
    *find_cell(2, 1) = "adam";
    *find_cell(3, 0) = "test.loss";
    *find_cell(3, 2) = "0.25";
    run("runs compare m other");
    assert_string_equal(sl_buf_text(&out), "$ seqlstm runs compare m other\n"
                                           "           m/001  m/002  other/1\n"
                                           "seed           a     bb     a\\nb\n"
                                           "key         adam     bb     cccc\n"
                                           "\n"
                                           "test.loss      a   0.25     cccc\n"
                                           "exit 0\n");
    sl_buf_deinit(&out);
}

static void test_how_many_are_compared(void **state)
{
    static const struct {
        size_t count;
        const char *said; /* NULL: they are compared */
    } cases[] = {{0, "0 are selected"}, {1, "1 is selected"}, {2, NULL}, {12, NULL}, {13, "13 are selected"}};
    (void)state;
    config_count = metric_count = 0;
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++)
        runs[k] = &none;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char expected[200] = "! the configurations are equal\nexit 0\n";
        selected = cases[k].count;
        if (cases[k].said)
            snprintf(expected, sizeof expected, "! error[E0601]: 2 to 12 runs can be compared, and %s\nexit 2\n",
                     cases[k].said);
        run("runs compare m");
        if (strstr(sl_buf_text(&out), expected) == NULL)
            fail_msg("%s\nof %zu runs, expected\n%s", sl_buf_text(&out), selected, expected);
        sl_buf_deinit(&out);
    }
    selected = RUNS;
}

static void test_nothing_is_lost_without_memory(void **state)
{
    (void)state;
    fill(2, 1);
    run_without_memory("runs compare a b c", 0);
    run_without_memory("runs compare a b c --json", 0);
}

static int setup(void **state)
{
    (void)state;
    cli_set_commands(cli_commands);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_widest_cell_may_be_any),
        cmocka_unit_test(test_cells_are_shown_where_they_belong),
        cmocka_unit_test(test_how_many_are_compared),
        cmocka_unit_test(test_nothing_is_lost_without_memory),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
