/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and exit statuses of the command line, and the values of its flags at both ends of their ranges. */
#include "captured.h"

#include <errno.h>
#include <math.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "oom.h"

static const struct cli_flag flags[] = {
    {.name = "number", .letter = 'n', .argument = "N", .env = "CLI_TEST_NUMBER", .help = ""},
    {.name = "many", .argument = "TEXT", .repeats = true, .help = ""},
    {.name = "on", .letter = 'o', .env = "CLI_TEST_ON", .help = ""},
    {.name = "maybe", .argument = "TEXT", .otherwise = "usual", .help = ""},
    {0}};
static const struct cli_command command = {
    .name = "try", .usage = "FILE [flags]", .flags = flags, .operands_min = 0, .operands_max = 2, .has_no_json = true};

static struct sl_interrupt interrupt;

static struct cli_context make_context(void)
{
    interrupt = (struct sl_interrupt){0};
    return (struct cli_context){.command = &command, .interrupt = &interrupt};
}

/* ---- exit statuses ------------------------------------------------------------------------------------------ */

static void test_each_status_has_its_exit(void **state)
{
    static const struct {
        seqlstm_status status;
        int code;
        const char *name;
    } rows[] = {
        {SEQLSTM_INVALID_ARGUMENT, 2, "E0601"}, {SEQLSTM_INVALID_CONFIG, 2, NULL},
        {SEQLSTM_NOT_FOUND, 2, NULL},           {SEQLSTM_UNSUPPORTED, 3, NULL},
        {SEQLSTM_UNAVAILABLE, 3, NULL},         {SEQLSTM_ABI_MISMATCH, 3, NULL},
        {SEQLSTM_CORRUPT_DATA, 4, NULL},        {SEQLSTM_NUMERIC, 5, NULL},
        {SEQLSTM_NO_MEMORY, 6, NULL},           {SEQLSTM_IO, 1, NULL},
        {SEQLSTM_CANCELLED, 1, NULL},
    };
    (void)state;
    assert_int_equal(cli_get_exit(SEQLSTM_OK), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cli_context cli = make_context();
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf out = {0};
        assert_int_equal(cli_get_exit(rows[k].status), rows[k].code);
        seqlstm_error_set(&err, rows[k].status, "file.c", 3, "it is so; use that");
        capture_begin();
        assert_int_equal(cli_fail(&cli, rows[k].status, &err), rows[k].code);
        capture_end(&out);
        assert_int_equal(strncmp(sl_buf_text(&out), "error[E0", 8), 0);
        assert_non_null(strstr(sl_buf_text(&out), "]: it is so\n  = help: use that\n"));
        assert_null(strstr(sl_buf_text(&out), "file.c")); /* the source is for those who ask */
        sl_buf_deinit(&out);
    }
}

static void test_errors_say_where(void **state)
{
    struct cli_context cli = make_context();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    seqlstm_error_set(&err, SEQLSTM_IO, "core/file.c", 3, "two\nlines\033");
    cli.verbosity = 1;
    capture_begin();
    assert_int_equal(cli_fail(&cli, SEQLSTM_IO, &err), 1);
    struct sl_buf out = {0};
    capture_end(&out);
    assert_non_null(strstr(sl_buf_text(&out), ": two\\nlines\\x1b\n  --> file.c:3\n"));
    sl_buf_deinit(&out);
    cli.verbosity = 0;
    strcpy(err.where, "m.yaml:7:3");
    err.message[0] = '\0';
    capture_begin();
    cli_fail(&cli, SEQLSTM_IO, &err);
    out = (struct sl_buf){0};
    capture_end(&out);
    assert_non_null(strstr(sl_buf_text(&out), ": it gave no reason\n  --> m.yaml:7:3\n"));
    sl_buf_deinit(&out);
}

static void test_what_has_no_message(void **state)
{
    struct cli_context cli = make_context();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    capture_begin();
    seqlstm_error_set(&err, SEQLSTM_IO, "f.c", 1, "cannot write");
    err.native_code = EPIPE; /* the reader of stdout has gone */
    assert_int_equal(cli_fail(&cli, SEQLSTM_IO, &err), 0);
    interrupt.stop = 15;
    seqlstm_error_set(&err, SEQLSTM_CANCELLED, "f.c", 1, "interrupted");
    assert_int_equal(cli_fail(&cli, SEQLSTM_CANCELLED, &err), 128 + 15);
    interrupt.stop = 0;
    cli.is_rank = true;
    err.native_code = 1; /* another rank has ended */
    assert_int_equal(cli_fail(&cli, SEQLSTM_CANCELLED, &err), CLI_OTHER_RANK);
    capture_expect("");
}

static void test_ranks_name_themselves(void **state)
{
    struct cli_context cli = make_context();
    (void)state;
    cli.is_rank = true;
    cli.rank.rank = 2;
    cli.rank.ranks = 3;
    capture_begin();
    assert_int_equal(cli_usage_error(&cli, "%s %d", "bad", 7), CLI_USAGE);
    cli.rank.ranks = 1;
    cli.color = true;
    assert_int_equal(cli_usage_error(&cli, "alone"), CLI_USAGE);
    capture_expect("error[E0601]: rank 2: bad 7\n\033[1;31merror[E0601]\033[0m: alone\n");
}

static void test_notes(void **state)
{
    struct cli_context cli = make_context();
    (void)state;
    capture_begin();
    cli_note(&cli, "one %d", 1);
    cli_note_lines(&cli, "two\nthree\n");
    cli_note_lines(&cli, "");
    cli.verbosity = -1;
    cli_note(&cli, "quiet");
    cli_note_lines(&cli, "quiet\n");
    cli_say(stderr, "%s\a\t|\n", "always");
    capture_expect("one 1\ntwo\nthree\nalways\\x07\t|\n");
}

/* Findings about files are shown once. `-q` shows errors alone, and what is being measured shows warnings to no one. */
static void test_findings_and_quiet(void **state)
{
    static const struct {
        int verbosity;
        bool mute, warns, fails, shown;
    } rows[] = {
        {0, false, true, false, true},   {-1, false, true, false, false}, {-1, false, true, true, true},
        {-1, false, false, true, true},  {0, true, true, false, false},   {0, true, true, true, true},
        {1, false, false, false, false}, {1, false, true, false, true},
    };
    const struct sl_place nowhere = {0};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cli_context cli = make_context();
        struct sl_buf out = {0};
        assert_int_equal(sl_diagnostics_create(&cli.diagnostics, NULL), SEQLSTM_OK);
        cli.verbosity = rows[k].verbosity;
        cli.mute = rows[k].mute;
        if (rows[k].warns)
            sl_diagnostics_addf(cli.diagnostics, "W0001", nowhere, "odd");
        if (rows[k].fails)
            sl_diagnostics_addf(cli.diagnostics, "E0301", nowhere, "wrong");
        capture_begin();
        cli_show_diagnostics(&cli);
        cli_show_diagnostics(&cli);
        capture_end(&out);
        const char *text = sl_buf_text(&out), *error = strstr(text, "wrong");
        if ((text[0] != '\0') != rows[k].shown || (error != NULL) != rows[k].fails ||
            (error && strstr(error + 1, "wrong")))
            fail_msg("row %zu: %s", k, text);
        sl_buf_deinit(&out);
        sl_diagnostics_destroy(cli.diagnostics);
    }
}

/* Tabs and ends of lines stay, whether a message names paths as they were written or there are no files at all; what
 * else controls a terminal is shown. */
static void test_messages_keep_tabs_and_lines(void **state)
{
    struct cli_context cli = make_context();
    (void)state;
    for (int has_files = 0; has_files < 2; has_files++) {
        if (has_files)
            assert_int_equal(sl_diagnostics_create(&cli.diagnostics, NULL), SEQLSTM_OK);
        capture_begin();
        cli_print_text(&cli, "a\tb\n\tc\033[1m\a\x7f\r\n");
        cli_print_text(&cli, "");
        cli_print_error(&cli, "E0301", "m.yaml:7:3", "x\ty\033; use z\tz\a");
        capture_expect("a\tb\n\tc\\x1b[1m\\x07\\x7f\\r\n"
                       "error[E0301]: x\ty\\x1b\n  --> m.yaml:7:3\n  = help: use z\tz\\x07\n");
    }
    sl_diagnostics_destroy(cli.diagnostics);
}

static void test_the_live_line_is_cleared_once(void **state)
{
    (void)state;
    capture_begin();
    cli_clear_line();
    cli_set_line();
    cli_say(stderr, "a\n");
    cli_say(stderr, "b\n");
    capture_expect("\r\033[Ka\nb\n");
}

/* Longer than the buffer on the stack. */
static void test_long_lines_are_whole(void **state)
{
    char text[5001], expected[5002];
    (void)state;
    for (int bytes = 2046; bytes <= 2050; bytes++) {
        memset(text, 'x', sizeof text);
        text[bytes] = '\0';
        snprintf(expected, sizeof expected, "%s\n", text);
        capture_begin();
        cli_say(stderr, "%s\n", text);
        capture_expect(expected);
    }
}

static void test_who_draws_a_line(void **state)
{
    static const struct {
        enum cli_progress progress;
        int verbosity;
        bool draws;
    } rows[] = {{CLI_PROGRESS_BAR, 0, true},    {CLI_PROGRESS_BAR, -1, false}, {CLI_PROGRESS_AUTO, 0, false},
                {CLI_PROGRESS_LINES, 0, false}, {CLI_PROGRESS_NONE, 0, false}, {CLI_PROGRESS_BAR, 2, true}};
    (void)state;
    capture_begin(); /* no terminal */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cli_context cli = make_context();
        cli.progress = rows[k].progress;
        cli.verbosity = rows[k].verbosity;
        assert_int_equal(cli_draws_line(&cli), rows[k].draws);
    }
    assert_int_equal(cli_get_width(), 80);
    capture_expect("");
}

/* ---- flags -------------------------------------------------------------------------------------------------- */

/* Parses the words, which end with NULL. */
static int parse(struct cli_context *cli, const char *const *words)
{
    char *arguments[16];
    int count = 0;
    *cli = make_context();
    while (words[count]) {
        arguments[count] = (char *)(uintptr_t)words[count];
        count++;
    }
    return cli_parse(cli, count, arguments);
}

#define PARSE(cli, ...) parse(cli, (const char *const[]){__VA_ARGS__, NULL})

static void test_ranges_of_numbers(void **state)
{
    static const struct {
        const char *text;
        bool whole, real, share; /* are they taken? */
        double value;
    } rows[] = {
        {"-3", true, true, false, -3},       {"5", true, true, true, 5},         {"-4", false, false, false, 0},
        {"6", false, false, true, 6},        {"2.5", false, true, true, 2.5},    {"-3.01", false, false, false, 0},
        {"5.01", false, false, true, 5.01},  {"x", false, false, false, 0},      {"", false, false, false, 0},
        {"3x", false, false, false, 0},      {" 3", false, false, false, 0},     {"nan", false, false, false, 0},
        {"100", false, false, true, 100},    {"100.1", false, false, false, 0},  {"5%", false, false, true, 0.05},
        {"10000%", false, false, true, 100}, {"10001%", false, false, false, 0}, {"-1%", false, false, false, 0},
        {"%", false, false, false, 0},       {"0", true, true, true, 0},         {"0%", false, false, true, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cli_context cli;
        int64_t whole = 99;
        double real = 99, share = 99;
        char argument[40], expected[400];
        snprintf(argument, sizeof argument, "--number=%s", rows[k].text);
        assert_int_equal(PARSE(&cli, argument), CLI_OK);
        capture_begin();
        const bool takes_whole = cli_get_int(&cli, "number", -3, 5, &whole),
                   takes_real = cli_get_float(&cli, "number", -3, 5, &real),
                   takes_share = cli_get_share(&cli, "number", &share);
        snprintf(expected, sizeof expected, "%s%s%s%s%s%s%s%s%s", rows[k].whole ? "" : "error[E0601]: `--number ",
                 rows[k].whole ? "" : rows[k].text, rows[k].whole ? "" : "`: expected a whole number from -3 to 5\n",
                 rows[k].real ? "" : "error[E0601]: `--number ", rows[k].real ? "" : rows[k].text,
                 rows[k].real ? "" : "`: expected a number from -3 to 5\n",
                 rows[k].share ? "" : "error[E0601]: `--number ", rows[k].share ? "" : rows[k].text,
                 rows[k].share ? "" : "`: expected a share such as 5% or 0.05\n");
        capture_expect(expected);
        if (takes_whole != rows[k].whole || takes_real != rows[k].real || takes_share != rows[k].share)
            fail_msg("'%s'", rows[k].text);
        assert_true(whole == (takes_whole ? (int64_t)rows[k].value : 99));
        assert_true(real == (takes_real ? rows[k].value : 99));
        assert_true(fabs(share - (takes_share ? rows[k].value : 99)) < 1e-12);
    }
}

static void test_a_flag_that_is_not_given_changes_nothing(void **state)
{
    struct cli_context cli;
    int64_t whole = 7;
    double real = 8, share = 9;
    (void)state;
    assert_int_equal(PARSE(&cli, "file"), CLI_OK);
    assert_true(cli_get_int(&cli, "number", 0, 1, &whole) && whole == 7);
    assert_true(cli_get_float(&cli, "number", 0, 1, &real) && real == 8);
    assert_true(cli_get_share(&cli, "number", &share) && share == 9);
    assert_null(cli_get(&cli, "number"));
    assert_false(cli_has(&cli, "on"));
}

/* A variable asks for JSON where there is some; the flag says more than that, and is refused where there is none. */
static void test_json_of_a_command_without(void **state)
{
    struct cli_context cli;
    (void)state;
    setenv("SEQLSTM_JSON", "1", 1);
    capture_begin();
    assert_int_equal(PARSE(&cli, "file"), CLI_OK);
    assert_true(cli_has(&cli, "json"));
    assert_int_equal(PARSE(&cli, "file", "--json"), CLI_USAGE);
    assert_int_equal(PARSE(&cli, "file", "--json", "--help"), CLI_OK);
    unsetenv("SEQLSTM_JSON");
    capture_expect("error[E0601]: `seqlstm try` has no JSON output, so `--json` has no use\n");
}

/* The command line before a variable, the last of several, and how messages name them. */
static void test_which_value_counts(void **state)
{
    struct cli_context cli;
    char said[CLI_GIVEN_BYTES];
    (void)state;
    setenv("CLI_TEST_NUMBER", "1", 1);
    assert_int_equal(PARSE(&cli, "--many", "a", "--many=b"), CLI_OK);
    assert_string_equal(cli_get(&cli, "number"), "1");
    assert_string_equal(cli_get(&cli, "many"), "b");
    cli_format_given(&cli, "number", said);
    assert_string_equal(said, "CLI_TEST_NUMBER=1");
    cli_format_given(&cli, "many", said);
    assert_string_equal(said, "--many b");
    assert_int_equal(PARSE(&cli, "-n2"), CLI_OK);
    assert_string_equal(cli_get(&cli, "number"), "2");
    cli_format_given(&cli, "number", said);
    assert_string_equal(said, "--number 2");
    setenv("CLI_TEST_NUMBER", "", 1);
    assert_int_equal(PARSE(&cli, "-o"), CLI_OK);
    assert_null(cli_get(&cli, "number"));
    assert_true(cli_has(&cli, "on"));
    unsetenv("CLI_TEST_NUMBER");
    static const struct {
        const char *value;
        bool on;
    } switches[] = {{"1", true}, {"yes", true}, {"", false}, {"0", false}, {"false", false}, {"no", false}};
    for (size_t k = 0; k < sizeof switches / sizeof *switches; k++) {
        setenv("CLI_TEST_ON", switches[k].value, 1);
        assert_int_equal(PARSE(&cli, "file"), CLI_OK);
        if (cli_has(&cli, "on") != switches[k].on)
            fail_msg("CLI_TEST_ON=%s", switches[k].value);
    }
    unsetenv("CLI_TEST_ON");
}

static void test_forms_of_flags(void **state)
{
    struct cli_context cli;
    (void)state;
    assert_int_equal(PARSE(&cli, "--maybe", "file"), CLI_OK);
    assert_string_equal(cli_get(&cli, "maybe"), "usual");
    assert_int_equal(cli.values.operand_count, 1);
    assert_int_equal(PARSE(&cli, "--maybe=other", "-", "--", "--on"), CLI_OK);
    assert_string_equal(cli_get(&cli, "maybe"), "other");
    assert_int_equal(cli.values.operand_count, 2);
    assert_string_equal(cli.values.operands[0], "-");
    assert_string_equal(cli.values.operands[1], "--on");
    assert_false(cli_has(&cli, "on"));
    capture_begin();
    assert_int_equal(PARSE(&cli, "-on", "4", "--number=5"), CLI_USAGE);
    capture_expect("error[E0601]: `--number` is given twice\n");
    assert_int_equal(PARSE(&cli, "-on", "4"), CLI_OK);
    assert_string_equal(cli_get(&cli, "number"), "4");
    assert_int_equal(PARSE(&cli, "--number=a=b"), CLI_OK);
    assert_string_equal(cli_get(&cli, "number"), "a=b");
}

static void test_command_lines_that_are_refused(void **state)
{
    struct cli_context cli;
    (void)state;
    capture_begin();
    assert_int_equal(PARSE(&cli, "a", "b", "c"), CLI_USAGE);
    assert_int_equal(PARSE(&cli, "--number"), CLI_USAGE);
    assert_int_equal(PARSE(&cli, "-n"), CLI_USAGE);
    assert_int_equal(PARSE(&cli, "--on=1"), CLI_USAGE);
    assert_int_equal(PARSE(&cli, "--json"), CLI_USAGE);
    capture_expect("error[E0601]: unexpected argument `c`: seqlstm try FILE [flags]\n"
                   "error[E0601]: `--number` needs a value: --number N\n"
                   "error[E0601]: `-n` needs a value: -n N\n"
                   "error[E0601]: `--on` takes no value\n"
                   "error[E0601]: `seqlstm try` has no JSON output, so `--json` has no use\n");
}

/* ---- no memory ---------------------------------------------------------------------------------------------- */

/* A manual page is whole, or it is known that it is not. */
static void test_no_memory_for_a_manual_page(void **state)
{
    const struct cli_command *const pages[] = {NULL, &cli_command_runs_compare};
    (void)state;
    cli_set_commands(cli_commands);
    for (size_t k = 0; k < 2; k++) {
        bool failed = true;
        for (int n = 1; failed; n++) {
            struct sl_buf page = {0};
            oom_fail_at(n);
            cli_write_man(pages[k], &page);
            failed = oom_disarm();
            assert_int_equal(page.failed, failed);
            sl_buf_deinit(&page);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_status_has_its_exit),
        cmocka_unit_test(test_errors_say_where),
        cmocka_unit_test(test_what_has_no_message),
        cmocka_unit_test(test_ranks_name_themselves),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_findings_and_quiet),
        cmocka_unit_test(test_messages_keep_tabs_and_lines),
        cmocka_unit_test(test_the_live_line_is_cleared_once),
        cmocka_unit_test(test_long_lines_are_whole),
        cmocka_unit_test(test_who_draws_a_line),
        cmocka_unit_test(test_ranges_of_numbers),
        cmocka_unit_test(test_a_flag_that_is_not_given_changes_nothing),
        cmocka_unit_test(test_json_of_a_command_without),
        cmocka_unit_test(test_which_value_counts),
        cmocka_unit_test(test_forms_of_flags),
        cmocka_unit_test(test_command_lines_that_are_refused),
        cmocka_unit_test(test_no_memory_for_a_manual_page),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
