/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: order, repetition, pictures of odd lines, JSON. */
#include "model_fixture.h"

static struct sl_diagnostics *diagnostics;
static struct sl_buf out;

static int make(void **state)
{
    (void)state;
    sl_buf_init(&out);
    return sl_diagnostics_create(&diagnostics, NULL);
}

static int unmake(void **state)
{
    (void)state;
    sl_buf_deinit(&out);
    sl_diagnostics_destroy(diagnostics);
    return 0;
}

static const char *render(bool color)
{
    sl_buf_truncate(&out, 0);
    assert_int_equal(sl_diagnostics_render(diagnostics, color, &out, NULL), SEQLSTM_OK);
    return sl_buf_text(&out);
}

static void add_file(const char *name, const char *text)
{
    sl_diagnostics_add_file(diagnostics, name, text, strlen(text));
}

/* Whole paths only, and of several that fit the longest. */
static void test_paths(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"/a/b.csv:3: `/a/b.csv`, /a/b.csv.", "b.csv:3: `b.csv`, b.csv."},
        {"/a/b.csv.old /a/b.csvx /x/a/b.csv ./a/b.csv", "/a/b.csv.old /a/b.csvx /x/a/b.csv ./a/b.csv"},
        {"/a/c/d /a/c /a/cd", "./d . /a/cd"},
        {"/a/c/e/f", "e/f"},
        {"", ""},
    };
    sl_diagnostics_add_path(diagnostics, "/a/b.csv", "b.csv");
    sl_diagnostics_add_path(diagnostics, "/a/c", ".");
    sl_diagnostics_add_path(diagnostics, "/a/c/e", "e");
    sl_diagnostics_add_path(diagnostics, "/a/c/e", "another");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sl_buf_truncate(&out, 0);
        sl_diagnostics_write_text(diagnostics, cases[i].text, &out);
        assert_string_equal(sl_buf_text(&out), cases[i].shown);
    }
    sl_diagnostics_addf(diagnostics, "E0501", (struct sl_place){NULL, 0, 0, 0}, "no `/a/b.csv`");
    assert_non_null(strstr(render(false), "no `b.csv`"));
}

static void test_order_and_repetition(void **state)
{
    (void)state;
    add_file("b", "one\ntwo\nthree\n");
    add_file("a", "uno\n");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"a", 1, 1, 3}, "fourth");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"b", 2, 3, 1}, "third");
    sl_diagnostics_addf(diagnostics, "W0301", (struct sl_place){"b", 2, 1, 2}, "second");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"b", 1, 1, 1}, "first");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"b", 1, 1, 1}, "first");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){NULL, 0, 0, 0}, "last, %d", 5);
    assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR), 4);
    assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_WARNING), 1);
    assert_string_equal(render(false), "error[E0103]: first\n --> b:1:1\n  |\n1 | one\n  | ^\n\n"
                                       "warning[W0301]: second\n --> b:2:1\n  |\n2 | two\n  | ^^\n\n"
                                       "error[E0103]: third\n --> b:2:3\n  |\n2 | two\n  |   ^\n\n"
                                       "error[E0103]: fourth\n --> a:1:1\n  |\n1 | uno\n  | ^^^\n\n"
                                       "error[E0103]: last, 5\n\n");
}

static void test_odd_lines(void **state)
{
    (void)state;
    add_file("f", "\xef\xbb\xbfkey: 1\r\n\tkey: \xe6\x97\xa5\xe6\x9c\xac x\r\n\x1b[31mred: 2");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 1, 6, 1}, "mark, CR LF");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 2, 10, 5}, "tab, wide letters");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 3, 6, 3}, "escape");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 3, 500, 3}, "behind the line");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 9, 1, 1}, "behind the file");
    assert_string_equal(render(false),
                        "error[E1]: mark, CR LF\n --> f:1:6\n  |\n1 | key: 1\n  |      ^\n\n"
                        "error[E1]: tab, wide letters\n --> f:2:10\n  |\n"
                        "2 |     key: \xe6\x97\xa5\xe6\x9c\xac x\n  |               ^\n\n"
                        "error[E1]: escape\n --> f:3:6\n  |\n3 | \xef\xbf\xbd[31mred: 2\n  |      ^^^\n\n"
                        "error[E1]: behind the line\n --> f:3:500\n  |\n3 | ...\n  |    ^\n\n"
                        "error[E1]: behind the file\n --> f:9:1\n\n");
}

static void test_long_lines(void **state)
{
    (void)state;
    char line[1001];
    memset(line, 'x', 1000);
    line[1000] = 0;
    memcpy(line + 499, "here", 4);
    add_file("f", line);
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 1, 500, 4}, "far");
    const char *text = render(false);
    const char *shown = strstr(text, "1 | "), *carets = strstr(text, "^^^^\n");
    assert_non_null(shown);
    assert_non_null(carets);
    assert_true(strstr(shown, "...\n") != NULL && strncmp(shown, "1 | ...", 7) == 0);
    const char *line_start = carets;
    while (line_start[-1] != '\n')
        line_start--;
    assert_memory_equal(shown + (carets - line_start), "here", 4); /* the carets stand below it */
}

static void test_color_and_json(void **state)
{
    (void)state;
    add_file("f", "a: \"b\"\n");
    struct sl_diagnostic finding = {.code = "E0203",
                                    .place = {"f", 1, 1, 1},
                                    .message = "unknown \"key\"\n\x1b[2J",
                                    .label = "a label",
                                    .help = "help\\",
                                    .note = NULL};
    sl_diagnostics_add(diagnostics, &finding);
    const char *text = render(true);
    assert_non_null(strstr(text, "\033[1;31merror[E0203]\033[0m"));
    assert_null(strstr(text, "\033[2J")); /* what the user wrote cannot steer the terminal */
    sl_buf_truncate(&out, 0);
    assert_int_equal(sl_diagnostics_write_json(diagnostics, &out, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&out),
                        "[{\"severity\": \"error\", \"code\": \"E0203\", \"file\": \"f\", \"line\": 1, "
                        "\"column\": 1, \"length\": 1, \"message\": \"unknown \\\"key\\\"\\\\n\\\\x1b[2J\", "
                        "\"label\": \"a label\", \"help\": \"help\\\\\", \"note\": null}]");
}

/* A hopeless file does not fill the screen, or the memory, without end. */
static void test_very_many(void **state)
{
    (void)state;
    for (int i = 1; i <= 2000; i++)
        sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", i, 1, 1}, "wrong");
    assert_int_equal(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR), 2000);
    const char *text = render(false);
    assert_non_null(strstr(text, "and 1500 more\n"));
    assert_non_null(strstr(text, "f:500:1"));
    assert_null(strstr(text, "f:501:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_paths, make, unmake),
        cmocka_unit_test_setup_teardown(test_order_and_repetition, make, unmake),
        cmocka_unit_test_setup_teardown(test_odd_lines, make, unmake),
        cmocka_unit_test_setup_teardown(test_long_lines, make, unmake),
        cmocka_unit_test_setup_teardown(test_color_and_json, make, unmake),
        cmocka_unit_test_setup_teardown(test_very_many, make, unmake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
