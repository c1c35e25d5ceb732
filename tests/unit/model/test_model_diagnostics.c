/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: order, repetition, pictures of odd lines, JSON. */
#include "oom.h"
#include "model_fixture.h"

#include <stdio.h>

#include "base/value/text.h"
#include "model/doc_limits.h"

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
    /* the longest counts, whichever was added first */
    sl_diagnostics_add_path(diagnostics, "/d/e/f", "long");
    sl_diagnostics_add_path(diagnostics, "/d/e", "short");
    sl_buf_truncate(&out, 0);
    sl_diagnostics_write_text(diagnostics, "/d/e/f/x, /d/e/x", &out);
    assert_string_equal(sl_buf_text(&out), "long/x, short/x");
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

static const char *write_count(void)
{
    sl_buf_truncate(&out, 0);
    sl_diagnostics_write_count(diagnostics, "main", &out);
    return sl_buf_text(&out);
}

/* Files with errors only, in the order in which they were read; a name is escaped, and its lines are shown all the
 * same.
 */
static void test_count_names_files(void **state)
{
    (void)state;
    add_file("main", "one\n");
    add_file("b\x1b", "uno\n");
    add_file("c", "un\n");
    sl_diagnostics_addf(diagnostics, "W0301", (struct sl_place){"c", 1, 1, 1}, "warning");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){NULL, 0, 0, 0}, "nowhere");
    assert_string_equal(write_count(), "1 error in main");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"b\x1b", 1, 1, 3}, "another");
    assert_string_equal(write_count(), "2 errors in b\\x1b");
    assert_non_null(strstr(render(false), " --> b\\x1b:1:1\n  |\n1 | uno\n"));
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"c", 1, 1, 1}, "more");
    sl_diagnostics_addf(diagnostics, "E0103", (struct sl_place){"main", 1, 1, 1}, "more");
    assert_string_equal(write_count(), "4 errors in main, b\\x1b and c");
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

/* The caret stands below its character, however wide those before it are; what steers a terminal is replaced. */
static void test_widths(void **state)
{
    (void)state;
    enum { REPLACED = -1 };
    static const struct {
        uint32_t c;
        int width;
    } cases[] = {
        {0x01, REPLACED},   {0x1b, REPLACED},   {0x1f, REPLACED},   {0x21, 1},    {0x7e, 1},
        {0x7f, REPLACED},   {0x80, REPLACED},   {0x9f, REPLACED},   {0xa0, 1},    {0x2ff, 1},
        {0x300, 0},         {0x36f, 0},         {0x370, 1},         {0x10ff, 1},  {0x1100, 2},
        {0x115f, 2},        {0x1160, 1},        {0x200a, 1},        {0x200b, 0},  {0x200f, 0},
        {0x2010, 1},        {0x202a, REPLACED}, {0x202e, REPLACED}, {0x202f, 1},  {0x2065, 1},
        {0x2066, REPLACED}, {0x2069, REPLACED}, {0x206a, 1},        {0x20cf, 1},  {0x20d0, 0},
        {0x20ff, 0},        {0x2100, 1},        {0x2e7f, 1},        {0x2e80, 2},  {0xa4cf, 2},
        {0xa4d0, 1},        {0xabff, 1},        {0xac00, 2},        {0xd7a3, 2},  {0xd7a4, 1},
        {0xf8ff, 1},        {0xf900, 2},        {0xfaff, 2},        {0xfb00, 1},  {0xfdff, 1},
        {0xfe00, 0},        {0xfe0f, 0},        {0xfe10, 1},        {0xfe2f, 1},  {0xfe30, 2},
        {0xfe6f, 2},        {0xfe70, 1},        {0xff00, 2},        {0xff60, 2},  {0xff61, 1},
        {0xffdf, 1},        {0xffe0, 2},        {0xffe6, 2},        {0xffe7, 1},  {0x1f2ff, 1},
        {0x1f300, 2},       {0x1faff, 2},       {0x1fb00, 1},       {0x20000, 2}, {0x3fffd, 2},
        {0x3fffe, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[16], line[32], encoded[8] = "", expected[128];
        snprintf(name, sizeof name, "%u", (unsigned)i);
        sl_text_utf8_encode(encoded, cases[i].c);
        snprintf(line, sizeof line, "a%sbc", encoded);
        add_file(name, line);
        const struct sl_place place = {name, 1, 3, 1};
        sl_diagnostics_addf(diagnostics, "E1", place, "x");
        snprintf(expected, sizeof expected, " --> %s:1:3\n  |\n1 | a%sbc\n  | %*s^\n", name,
                 cases[i].width == REPLACED ? "\xef\xbf\xbd" : encoded,
                 1 + (cases[i].width == REPLACED ? 1 : cases[i].width), "");
        if (strstr(render(false), expected) == NULL)
            fail_msg("U+%04X: %s", cases[i].c, render(false));
    }
}

/* Every end of a line that YAML knows ends one, and a line without any text has its place too. */
static void test_ends_of_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {"one", "two", "three", "", "four", "five", "six", "seven"};
    add_file("f", "one\ntwo\rthree\r\n\nfour\xc2\x85"
                  "five\xe2\x80\xa8six\xe2\x80\xa9seven");
    for (int i = 0; i < 8; i++)
        sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", i + 1, 1, 1}, "x");
    sl_diagnostics_addf(diagnostics, "E1", (struct sl_place){"f", 9, 1, 1}, "x");
    const char *text = render(false);
    for (int i = 0; i < 8; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "f:%d:1\n  |\n%d | %s\n  | ^\n", i + 1, i + 1, lines[i]);
        assert_non_null(strstr(text, expected));
    }
    assert_non_null(strstr(text, "f:9:1\n\n"));
    assert_null(strstr(text, "9 |"));
}

static void test_a_picture_in_color(void **state)
{
    (void)state;
    add_file("f", "a: 1\nb: 2\n\n\n\n\n\n\n\nk: long\n");
    static const struct sl_diagnostic findings[] = {
        {.code = "E0203", .place = {"f", 1, 4, 1}, .message = "wrong", .label = "here", .help = "mend it", .note = "n"},
        {.code = "W0301", .place = {"f", 10, 1, 3}, .message = "odd", .note = "look"},
        {.code = "E0001", .place = {"other", 0, 0, 0}, .message = "none"},
    };
    for (size_t i = 0; i < sizeof findings / sizeof *findings; i++)
        sl_diagnostics_add(diagnostics, &findings[i]);
#define RED    "\033[1;31m"
#define YELLOW "\033[1;33m"
#define BLUE   "\033[1;34m"
#define BOLD   "\033[1m"
#define END    "\033[0m"
    assert_string_equal(render(true),
                        RED "error[E0203]" END BOLD ": wrong" END "\n " BLUE "-->" END " f:1:4\n  " BLUE "|" END
                            "\n" BLUE "1 |" END " a: 1\n  " BLUE "|" END "    " RED "^ here" END "\n  " BLUE "=" END
                            " " BOLD "help" END ": mend it\n  " BLUE "=" END " " BOLD "note" END ": n\n\n" YELLOW
                            "warning[W0301]" END BOLD ": odd" END "\n  " BLUE "-->" END " f:10:1\n   " BLUE "|" END
                            "\n" BLUE "10 |" END " k: long\n   " BLUE "|" END " " YELLOW "^^^" END "\n   " BLUE "=" END
                            " " BOLD "note" END ": look\n\n" RED "error[E0001]" END BOLD ": none" END "\n " BLUE
                            "-->" END " other\n\n");
    sl_buf_truncate(&out, 0);
    assert_int_equal(sl_diagnostics_write_json(diagnostics, &out, NULL), SEQLSTM_OK);
    assert_string_equal(sl_buf_text(&out),
                        "[{\"severity\": \"error\", \"code\": \"E0203\", \"file\": \"f\", \"line\": 1, "
                        "\"column\": 4, \"length\": 1, \"message\": \"wrong\", \"label\": \"here\", \"help\": "
                        "\"mend it\", \"note\": \"n\"},\n {\"severity\": \"warning\", \"code\": \"W0301\", "
                        "\"file\": \"f\", \"line\": 10, \"column\": 1, \"length\": 3, \"message\": \"odd\", "
                        "\"label\": null, \"help\": null, \"note\": \"look\"},\n {\"severity\": \"error\", "
                        "\"code\": \"E0001\", \"file\": \"other\", \"line\": 0, \"column\": 0, \"length\": 0, "
                        "\"message\": \"none\", \"label\": null, \"help\": null, \"note\": null}]");
}

/* A map may have so many keys, and not one more. */
static void test_most_keys(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct sl_buf text = {0};
        sl_buf_append_text(&text, "seqlstm: 1\nmany:\n");
        for (int k = 0; k < SL_DOC_MAX_KEYS + more; k++)
            sl_buf_printf(&text, "  k%d: 1\n", k);
        struct loaded l = load(sl_buf_text(&text));
        const bool refused = strstr(sl_buf_text(&l.text), "a map has more than 10000 keys") != NULL;
        assert_int_equal(refused, more);
        unload(&l);
        sl_buf_deinit(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_paths, make, unmake),
        cmocka_unit_test_setup_teardown(test_order_and_repetition, make, unmake),
        cmocka_unit_test_setup_teardown(test_count_names_files, make, unmake),
        cmocka_unit_test_setup_teardown(test_odd_lines, make, unmake),
        cmocka_unit_test_setup_teardown(test_long_lines, make, unmake),
        cmocka_unit_test_setup_teardown(test_color_and_json, make, unmake),
        cmocka_unit_test_setup_teardown(test_very_many, make, unmake),
        cmocka_unit_test_setup_teardown(test_widths, make, unmake),
        cmocka_unit_test_setup_teardown(test_ends_of_lines, make, unmake),
        cmocka_unit_test_setup_teardown(test_a_picture_in_color, make, unmake),
        cmocka_unit_test(test_most_keys),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
