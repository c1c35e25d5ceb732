/* SPDX-License-Identifier: Apache-2.0 */
/* Charts of characters: as many lines as a chart may have, with and without colours. */
#include "golden.h"
#include "oom.h"

#include "runs/text_chart.h"

enum { COLUMNS = 60, ROWS = 4 * SL_CHART_LINES, COLORS = 6, POINTS = 5 }; /* each line has a row of its own */

/* Line k is level, at the height k, and has the letter 'A' + k. */
static void draw(int lines, bool color, struct sl_buf *out)
{
    char names[SL_CHART_LINES][2] = {{0}};
    struct sl_chart chart = {.title = "loss"};
    for (int k = 0; k < lines; k++) {
        names[k][0] = (char)('A' + k);
        chart.names[k] = names[k];
        for (int i = 0; i < POINTS; i++)
            assert_true(sl_chart_line_add(&chart.lines[k], i, k));
    }
    sl_text_chart_append(&chart, COLUMNS, ROWS, color, out);
    sl_chart_deinit(&chart);
}

/* Takes the colours out of a text. `colors`: that of each letter, or 0. Each must be closed behind its letter. */
static void take_out_colors(const char *text, struct sl_buf *plain, long *colors)
{
    while (*text) {
        if (*text != '\033') {
            sl_buf_append_char(plain, *text++);
            continue;
        }
        char *end;
        const long color = strtol(text + 2, &end, 10);
        const char letter = end[1];
        assert_true(*end == 'm' && letter >= 'A' && letter < 'A' + SL_CHART_LINES);
        assert_true(colors[letter - 'A'] == 0 || colors[letter - 'A'] == color);
        colors[letter - 'A'] = color;
        sl_buf_append_char(plain, letter);
        assert_int_equal(strncmp(end + 2, "\033[0m", 4), 0);
        text = end + 6;
    }
}

static void each_line_has_a_color_and_they_repeat(void **state)
{
    (void)state;
    for (int lines = 1; lines <= SL_CHART_LINES; lines++) {
        struct sl_buf with = {0}, without = {0}, plain = {0};
        long colors[SL_CHART_LINES] = {0};
        draw(lines, true, &with);
        draw(lines, false, &without);
        take_out_colors(sl_buf_text(&with), &plain, colors);
        assert_string_equal(sl_buf_text(&plain), sl_buf_text(&without));
        assert_null(strchr(sl_buf_text(&without), '\033'));
        for (int k = 0; k < lines; k++) {
            assert_true(colors[k] >= 31 && colors[k] <= 37); /* those that terminals have */
            for (int other = 0; other < k; other++)
                assert_true((colors[other] == colors[k]) == ((k - other) % COLORS == 0));
        }
        sl_buf_deinit(&with);
        sl_buf_deinit(&without);
        sl_buf_deinit(&plain);
    }
}

static void no_chart_is_drawn_without_room_or_points(void **state)
{
    (void)state;
    static const struct {
        int columns, rows, points;
        bool drawn;
    } cases[] = {{30, 3, 1, true}, {29, 3, 1, false}, {30, 2, 1, false}, {30, 3, 0, false}, {4000, 3, 1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_chart chart = {.title = "loss", .names = {"train"}};
        struct sl_buf out = {0};
        if (cases[i].points > 0)
            assert_true(sl_chart_line_add(&chart.lines[0], 1, 2));
        sl_text_chart_append(&chart, cases[i].columns, cases[i].rows, false, &out);
        assert_true((out.length_bytes > 0) == cases[i].drawn);
        assert_true(!cases[i].drawn || strstr(sl_buf_text(&out), "loss: t train\n")); /* the only point has a name */
        for (const char *line = sl_buf_text(&out); *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= (size_t)cases[i].columns);
        sl_chart_deinit(&chart);
        sl_buf_deinit(&out);
    }
}

/* Lines that cross, end early, begin late, or have one point; scales that are logarithmic from a ratio of 20 on. */
static void charts_as_a_whole(void **state)
{
    static const struct {
        const char *title;
        int columns, rows;
        struct sl_chart_point train[6], valid[6];
        int train_count, valid_count;
    } charts[] = {
        {"crossing", 40, 6, {{0, 0}, {10, 10}}, {{0, 10}, {10, 0}}, 2, 2},
        {"of other lengths", 33, 5, {{0, 1}, {3, 4}, {4, 2}, {9, 2.5}}, {{6, 3}}, 4, 1},
        {"begins late", 50, 4, {{20, 5}, {40, 7}, {41, 6}}, {{0, 0}}, 3, 0},
        {"down and up", 47, 7, {{1, 8}, {2, 3}, {3, 1}, {5, 2}, {8, 6}, {13, 7}}, {{2, -1}, {13, -2}}, 6, 2},
        {"twenty", 40, 5, {{0, 1}, {1, 20}}, {{0, 0}}, 2, 0},
        {"more than twenty", 40, 5, {{0, 1}, {1, 20.5}}, {{1, 4}}, 2, 1},
        {"thousands", 40, 6, {{0, 1000}, {50, 100}, {100, 10}}, {{0, 3}, {100, 2000}}, 3, 2},
        {"zero", 40, 5, {{0, 0}, {1, 20.5}}, {{0, 0}}, 2, 0},
        {"level", 40, 3, {{1, 2}, {2, 2}}, {{0, 0}}, 2, 0},
        {"a point at zero", 40, 3, {{0, 7}}, {{0, 0}}, 1, 0},
        {"many rows", 30, 101, {{0, 0}, {1, 1}}, {{0, 0}}, 2, 0},
        {"many columns", 401, 3, {{0, 0}, {1, 1}}, {{0, 0}}, 2, 0},
    };
    struct sl_buf out = {0};
    (void)state;
    for (size_t k = 0; k < sizeof charts / sizeof *charts; k++) {
        struct sl_chart chart = {.title = "loss", .names = {"train", "valid"}};
        for (int i = 0; i < charts[k].train_count; i++)
            assert_true(sl_chart_line_add(&chart.lines[0], charts[k].train[i].x, charts[k].train[i].y));
        for (int i = 0; i < charts[k].valid_count; i++)
            assert_true(sl_chart_line_add(&chart.lines[1], charts[k].valid[i].x, charts[k].valid[i].y));
        sl_buf_printf(&out, "== %s\n", charts[k].title);
        sl_text_chart_append(&chart, charts[k].columns, charts[k].rows, false, &out);
        sl_chart_deinit(&chart);
    }
    golden_expect("reports/text_charts.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_has_a_color_and_they_repeat),
        cmocka_unit_test(charts_as_a_whole),
        cmocka_unit_test(no_chart_is_drawn_without_room_or_points),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
