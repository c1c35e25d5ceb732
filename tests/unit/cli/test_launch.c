/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that end in every way, and what the launcher says and returns. The ranks are this program itself, which plays
 * what the variable RANKS_DO says: a word for each start, with a letter for each rank. */
#include "captured.h"

#include <signal.h>

#include "cli/cli.h"
#include "cli/restart.h"
#include "scratch.h"

/* How often this rank was started before. */
static size_t count_starts(int rank)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%d", getenv("RANKS_FOLDER"), rank);
    FILE *file = fopen(path, "a");
    if (file == NULL)
        _exit(99);
    const long before = ftell(file);
    fputc('.', file);
    fclose(file);
    return (size_t)before;
}

static _Noreturn void play(int rank)
{
    const size_t ranks = strtoul(getenv("SEQLSTM_RANKS"), NULL, 10);
    const char *letters = getenv("RANKS_DO");
    const size_t at = count_starts(rank) * (ranks + 1) + (size_t)rank;
    const char letter = at < strlen(letters) ? letters[at] : '9';
    if (letter == 'k')
        raise(SIGKILL);
    if (letter == 's') {
        signal(SIGSEGV, SIG_DFL); /* sanitizers handle it */
        raise(SIGSEGV);
    }
    if (letter == 'o') { /* ends because of another one, and later */
        usleep(30000);
        _exit(CLI_OTHER_RANK);
    }
    _exit(letter - '0');
}

static const struct cli_command command = {.name = "run", .usage = "model.yaml"};

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", sl_log_level_name(level), message);
}

/* Plays what `letters` says; the launcher must return `code` and say `expected`. */
static void launch(int ranks, int64_t restarts, const char *letters, int code, const char *expected)
{
    static int number;
    char path[128], name[32];
    struct cli_context cli = {.command = &command, .log = {.write = write_log, .level = SL_LOG_INFO}};
    snprintf(name, sizeof name, "%d", number++);
    snprintf(path, sizeof path, "mkdir -p %s", scratch_path(name));
    assert_int_equal(system(path), 0);
    setenv("RANKS_FOLDER", scratch_path(name), 1);
    setenv("RANKS_DO", letters, 1);
    capture_begin();
    const int got = cli_launch_ranks(&cli, ranks, restarts);
    capture_expect(expected);
    if (got != code)
        fail_msg("%s: exit status %d, expected %d", letters, got, code);
    for (int r = 0; r < ranks; r++) { /* each start was played */
        const size_t starts = (strlen(letters) + 1) / ((size_t)ranks + 1);
        char file[160];
        snprintf(file, sizeof file, "%s/%d", getenv("RANKS_FOLDER"), r);
        FILE *count = fopen(file, "r");
        assert_non_null(count);
        assert_int_equal(fseek(count, 0, SEEK_END), 0);
        assert_int_equal(ftell(count), (long)starts);
        fclose(count);
    }
    unsetenv("SEQLSTM_RANK");
}

#define AGAIN(rank, left)                                                                                              \
    "warning: rank " rank " was ended by signal 9 (Killed), so all ranks start again; " left " left after that\n"
#define LAST(rank, signal)                                                                                             \
    "error[E0615]: rank " rank " was ended by signal " signal ", so all ranks end\n"                                   \
    "  = help: use `seqlstm resume`, which goes on from the last checkpoint\n"

static void test_all_end_well(void **state)
{
    (void)state;
    launch(1, 0, "0", 0, "");
    launch(3, 0, "000", 0, "");
    launch(2, 3, "00", 0, "");
}

static void test_the_first_that_fails_says_how(void **state)
{
    (void)state;
    launch(2, 0, "4o", 4, "");
    launch(2, 0, "o5", 5, "");
    launch(3, 2, "o1o", 1, ""); /* no restart, since none was killed */
    launch(2, 0, "oo", 1, "");  /* none says why */
}

static void test_a_killed_rank_is_named(void **state)
{
    (void)state;
    launch(2, 0, "ko", 137, LAST("0", "9 (Killed)"));
    launch(3, 0, "oos", 139, LAST("2", "11 (Segmentation fault)"));
}

static void test_restarts_are_counted_down(void **state)
{
    (void)state;
    launch(2, 1, "ok 00", 0, AGAIN("1", "0 restarts are"));
    launch(2, 3, "ok ko 00", 0, AGAIN("1", "2 restarts are") AGAIN("0", "1 restart is"));
    launch(2, 3, "ok ko ok ok", 137,
           AGAIN("1", "2 restarts are") AGAIN("0", "1 restart is") AGAIN("1", "0 restarts are")
               LAST("1", "9 (Killed)"));
    launch(2, 5, "ok o3", 3, AGAIN("1", "4 restarts are"));
}

/* The flags of the command in their order, without those of the environment and those that only a new run has. */
static void test_a_resume_has_the_flags_that_it_takes(void **state)
{
    (void)state;
    static const struct cli_flag set = {.name = "set"}, out = {.name = "out"}, quiet = {.name = "quiet"},
                                 restarts = {.name = "restarts"}, threads = {.name = "threads"},
                                 output = {.name = "output"};
    static const struct {
        struct cli_value values[6];
        int count;
        const char *expected;
    } rows[] = {
        {{{0}}, 0, "seqlstm resume runs/a b"},
        {{{&out, "r", false}}, 1, "seqlstm resume runs/a b"},
        {{{&restarts, "2", false}, {&out, "r", false}}, 2, "seqlstm resume runs/a b"},
        {{{&set, "a=b c", false}, {&out, "r", false}, {&quiet, NULL, false}, {&set, "x=", false}},
         4,
         "seqlstm resume runs/a b|--set=a=b c|--quiet|--set=x="},
        {{{&threads, "3", true}, {&restarts, "1", false}, {&threads, "2", false}, {&out, "", true}},
         4,
         "seqlstm resume runs/a b|--threads=2"},
        {{{&output, "", false}, {&out, "out", false}, {&out, "again", false}, {&output, "restarts", false}},
         4,
         "seqlstm resume runs/a b|--output=|--output=restarts"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cli_context cli = {.command = &command, .values = {.count = rows[i].count}};
        struct sl_buf text = {0};
        memcpy(cli.values.items, rows[i].values, sizeof rows[i].values);
        char **arguments = cli_make_resume(&cli, "runs/a b");
        assert_non_null(arguments);
        for (int k = 0; arguments[k]; k++)
            sl_buf_printf(&text, "%s%s", k == 0 ? "" : k < 3 ? " " : "|", arguments[k]);
        assert_string_equal(sl_buf_text(&text), rows[i].expected);
        sl_buf_deinit(&text);
        free(arguments);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_end_well),
        cmocka_unit_test(test_the_first_that_fails_says_how),
        cmocka_unit_test(test_a_killed_rank_is_named),
        cmocka_unit_test(test_restarts_are_counted_down),
        cmocka_unit_test(test_a_resume_has_the_flags_that_it_takes),
    };
    (void)argc, (void)argv;
    if (getenv("SEQLSTM_RANK"))
        play(atoi(getenv("SEQLSTM_RANK")));
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
