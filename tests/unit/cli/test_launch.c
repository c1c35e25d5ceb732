/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that end in every way, and what the launcher says and returns. The ranks are this program itself, which plays
 * what the variable RANKS_DO says: a word for each start, with a letter for each rank. */
#include "captured.h"

#include <fcntl.h>
#include <signal.h>

#include "cli/cli.h"
#include "cli/restart.h"
#include "oom.h"
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

static void test_without_memory(void **state)
{
    static const struct cli_flag set = {.name = "set"};
    struct cli_context cli = {.command = &command, .values = {.items = {{&set, "a=b", false}}, .count = 1}};
    (void)state;
    oom_fail_at(1);
    char **arguments = cli_make_resume(&cli, "runs/a");
    assert_true(oom_disarm() && arguments == NULL);
    oom_fail_at(1);
    const int code = cli_launch_ranks(&cli, 2, 0); /* starts none */
    assert_true(oom_disarm());
    assert_int_equal(code, CLI_NO_MEMORY);
}

/* ---- the folder of the run ----------------------------------------------------------------------------------------
 */

/* What the launcher reads once the process with this end of the pipe has told `folder`; NULL: it tells none. */
static void expect_read(const char *folder, const char *before, const char *expected)
{
    int ends[2];
    char number[16], got[CLI_FOLDER_BYTES];
    snprintf(got, sizeof got, "%s", before);
    assert_true(cli_open_folder_pipe(ends));
    assert_non_null(getenv("SEQLSTM_FOLDER_FD"));
    assert_int_equal(atoi(getenv("SEQLSTM_FOLDER_FD")), ends[1]);
    assert_int_equal(fcntl(ends[0], F_GETFD), FD_CLOEXEC); /* the other end alone goes to the process */
    assert_int_equal(fcntl(ends[1], F_GETFD), 0);
    snprintf(number, sizeof number, "%d", dup(ends[1])); /* that of the process */
    cli_keep_folder_pipe(ends);
    assert_true(ends[1] == -1 && getenv("SEQLSTM_FOLDER_FD") == NULL);
    setenv("SEQLSTM_FOLDER_FD", number, 1);
    if (folder) {
        cli_tell_folder(NULL, folder);
        cli_tell_folder(NULL, "told twice");
    } else {
        close(atoi(number));
    }
    cli_read_folder(ends, got);
    assert_int_equal(ends[0], -1);
    assert_string_equal(got, expected);
    cli_read_folder(ends, got); /* nothing more comes */
    assert_string_equal(got, expected);
    unsetenv("SEQLSTM_FOLDER_FD");
}

static void test_a_folder_is_told_once(void **state)
{
    static char longest[CLI_FOLDER_BYTES];
    (void)state;
    memset(longest, 'f', sizeof longest - 1);
    expect_read("runs/a b/001", "", "runs/a b/001");
    expect_read("short", "runs/a-longer-one", "short");
    expect_read(longest, "", longest);
    expect_read(NULL, "runs/of/before", "runs/of/before");
}

/* ---- what a rank is ---------------------------------------------------------------------------------------------- */

/* All ranks but the first are silent; without `parallel`, processes of a launcher train by themselves. */
static void test_ranks_of_a_divided_training(void **state)
{
    static const struct sl_parallel_config none = {.data = 1, .pipeline = 1}, data = {.data = 2, .pipeline = 1},
                                           pipeline = {.data = 1, .pipeline = 2},
                                           shards = {.data = 1, .pipeline = 1, .shards = 1};
    static const struct {
        bool is_rank;
        int32_t rank, ranks;
        const struct sl_parallel_config *parallel;
        bool stays, silent;
        const char *said;
    } rows[] = {
        {false, 0, 0, &none, false, false, ""},
        {false, 1, 4, &data, false, false, ""},
        {true, 0, 1, &none, false, false, ""},
        {true, 2, 0, &none, false, false, ""}, /* how many there are is not known */
        {true, 0, 4, &none, false, false,
         "warning: this is rank 0 of 4 that Slurm started, but the model has no `parallel`: each trains by itself\n"},
        {true, 3, 4, &none, false, false,
         "warning: this is rank 3 of 4 that Slurm started, but the model has no `parallel`: each trains by itself\n"},
        {true, 0, 4, &data, true, false, ""},
        {true, 1, 4, &data, true, true, ""},
        {true, 3, 4, &pipeline, true, true, ""},
        {true, 0, 4, &pipeline, true, false, ""},
        {true, 2, 3, &shards, true, true, ""},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_model model = {.parallel = *rows[k].parallel};
        struct cli_context cli = {
            .command = &command, .json = true, .progress = CLI_PROGRESS_BAR, .is_rank = rows[k].is_rank};
        cli.log = (struct sl_log){.write = write_log, .level = SL_LOG_INFO};
        cli.rank = (struct sl_rank_identity){.rank = rows[k].rank, .ranks = rows[k].ranks, .launcher = "Slurm"};
        capture_begin();
        cli_begin_rank(&cli, &model);
        capture_expect(rows[k].said);
        assert_int_equal(cli.is_rank, rows[k].stays);
        assert_int_equal(cli.verbosity, rows[k].silent ? -1 : 0);
        assert_int_equal(cli.json, !rows[k].silent);
        assert_int_equal(cli.log.level, rows[k].silent ? SL_LOG_ERROR : SL_LOG_INFO);
        assert_int_equal(cli.progress, rows[k].silent ? CLI_PROGRESS_NONE : CLI_PROGRESS_BAR);
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
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_a_folder_is_told_once),
        cmocka_unit_test(test_ranks_of_a_divided_training),
    };
    (void)argc, (void)argv;
    if (getenv("SEQLSTM_RANK"))
        play(atoi(getenv("SEQLSTM_RANK")));
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
