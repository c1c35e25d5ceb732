/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a case for collectives whose ranks are processes: which cases a request runs, and the verdict over
 * ranks that say or do something else each. The ranks are shells: $2 is the rank, and descriptor 3 is for the result.
 * Those of a launcher write theirs to files. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "conformance/collectives/kit.h"
#include "descriptors.h"
#include "oom.h"
#include "scratch.h"

enum { RANKS = 3 };

struct heard {
    char names[400];
    struct sl_collectives_result last;
};

static void note(void *context, const struct sl_collectives_result *result)
{
    struct heard *h = context;
    const size_t used = strlen(h->names);
    snprintf(h->names + used, sizeof h->names - used, "%s%s", used ? " " : "", result->name);
    h->last = *result;
}

static seqlstm_status run(struct sl_collectives_kit_request request, const char *script, struct heard *out,
                          struct seqlstm_error *err)
{
    const char *worker[] = {"/bin/sh", "-c", script, "sh", NULL};
    memset(out, 0, sizeof *out);
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    request.on_result = note;
    request.context = out;
    request.worker = request.worker ? request.worker : worker;
    request.timeout_ns = request.timeout_ns ? request.timeout_ns : INT64_C(600000000000);
    const int open_before = descriptors_count();
    const seqlstm_status status = sl_collectives_kit_run(&request, err);
    assert_int_equal(descriptors_count(), open_before); /* nothing stays behind: no pipe, and no process */
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    return status;
}

static void a_request_selects_cases(void **state)
{
    (void)state;
    static const char *const one[] = {"barrier"}, *const two[] = {"times", "large"},
                             *const wrong[] = {"barrier", "juggling"};
    static const char usual[] =
        "all_reduce shared reduce_scatter all_gather broadcast send_receive barrier groups many "
        "rounding ordered_sum time_out late_peer death leaving abort";
    static const struct {
        const char *const *cases;
        uint32_t count;
        bool full, times;
        const char *more; /* after the usual ones, if those run */
        bool usual;
    } requests[] = {{NULL, 0, false, false, "", true},
                    {NULL, 0, true, false, " large", true},
                    {NULL, 0, true, true, "times", false},
                    {one, 1, true, false, "barrier", false},
                    {one, 1, false, true, "barrier times", false},
                    {two, 2, false, false, "large times", false}};
    struct heard heard;
    struct seqlstm_error err;
    for (size_t k = 0; k < sizeof requests / sizeof *requests; k++) {
        const struct sl_collectives_kit_request request = {.ranks = 1,
                                                           .cases = requests[k].cases,
                                                           .case_count = requests[k].count,
                                                           .full = requests[k].full,
                                                           .times = requests[k].times};
        char expected[400];
        assert_int_equal(run(request, "echo pass >&3", &heard, &err), SEQLSTM_OK);
        snprintf(expected, sizeof expected, "%s%s", requests[k].usual ? usual : "", requests[k].more);
        assert_string_equal(heard.names, expected);
    }
    const struct sl_collectives_kit_request request = {.ranks = 1, .cases = wrong, .case_count = 2};
    assert_int_equal(run(request, "echo pass >&3", &heard, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "there is no case juggling");
    assert_string_equal(heard.names, "");
}

static void the_first_rank_that_did_not_pass_decides(void **state)
{
    (void)state;
    static const struct {
        const char *name, *script;
        enum sl_verdict verdict;
        const char *detail, *report;
    } cases[] = {
        {"barrier", "echo pass >&3", SL_VERDICT_PASS, "", ""},
        {"barrier", "printf 'pass\\nof rank %s\\n' $2 >&3", SL_VERDICT_PASS, "", "of rank 0\n"},
        {"barrier", "test $2 = 0 && echo pass >&3 || printf 'fail no %s\\nmore' $2 >&3", SL_VERDICT_FAIL,
         "rank 1: no 1", ""},
        {"barrier", "test $2 = 2 && echo fail late >&3 || echo pass >&3", SL_VERDICT_FAIL, "rank 2: late", ""},
        {"barrier", "echo pass >&3; test $2 = 1 && kill -11 $$; exit $2", SL_VERDICT_CRASH, "rank 1 ended by signal 11",
         ""},
        {"barrier", "echo pass >&3; test $2 = 2 && kill -9 $$; exit 0", SL_VERDICT_CRASH, "rank 2 ended by signal 9",
         ""},
        {"barrier", "echo fail first >&3; kill -9 $$", SL_VERDICT_FAIL, "rank 0: first", ""},
        {"barrier", "echo pass >&3; exit $(($2 * 3))", SL_VERDICT_FAIL, "rank 1 ended with status 3 and said 'pass'",
         ""},
        {"barrier", "exit 0", SL_VERDICT_FAIL, "rank 0 ended with status 0 and said ''", ""},
        {"barrier", "echo passed >&3; exit 4", SL_VERDICT_FAIL, "rank 0 ended with status 4 and said 'passed'", ""},
        {"death", "test $2 = 2 && kill -9 $$; echo pass >&3", SL_VERDICT_PASS, "", ""},
        {"death", "test $2 = 2 && kill -11 $$; echo pass >&3", SL_VERDICT_CRASH, "rank 2 ended by signal 11", ""},
        {"death", "test $2 = 0 || kill -9 $$; echo pass >&3", SL_VERDICT_CRASH, "rank 1 ended by signal 9", ""},
        {"death", "test $2 = 2 && kill -9 $$; echo fail $2 >&3", SL_VERDICT_FAIL, "rank 0: 0", ""},
        {"death", "echo fail $2 >&3", SL_VERDICT_FAIL, "rank 0: 0", ""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const struct sl_collectives_kit_request request = {.ranks = RANKS, .cases = &cases[k].name, .case_count = 1};
        struct heard heard;
        struct seqlstm_error err;
        assert_int_equal(run(request, cases[k].script, &heard, &err), SEQLSTM_OK);
        if (heard.last.verdict != cases[k].verdict || strcmp(heard.last.detail, cases[k].detail) != 0 ||
            strcmp(heard.last.report, cases[k].report) != 0)
            fail_msg("case %zu: %s, '%s', '%s'", k, sl_verdict_name(heard.last.verdict), heard.last.detail,
                     heard.last.report);
    }
}

static void what_does_not_end_or_start_is_no_pass(void **state)
{
    (void)state;
    static const char *const name = "barrier", *const absent[] = {"/no/such/program", NULL};
    struct sl_interrupt interrupt = {.stop = 15};
    struct sl_collectives_kit_request request = {
        .ranks = RANKS, .cases = &name, .case_count = 1, .timeout_ns = 1000000};
    char expected[120];
    struct heard heard;
    struct seqlstm_error err;
    assert_int_equal(run(request, "test $2 = 1 && exec sleep 1000; echo pass >&3", &heard, &err), SEQLSTM_OK);
    assert_int_equal(heard.last.verdict, SL_VERDICT_CRASH);
    assert_string_equal(heard.last.detail, "not all ranks had ended after 0 s");
    request.connection.interrupt = &interrupt;
    assert_int_equal(run(request, "exec sleep 1000", &heard, &err), SEQLSTM_CANCELLED);
    assert_string_equal(heard.names, "");
    request.connection.interrupt = NULL;
    request.worker = absent;
    assert_int_equal(run(request, "", &heard, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected, "a rank cannot be started: %s", strerror(ENOENT));
    assert_string_equal(err.message, expected);
    assert_string_equal(heard.names, "");
    oom_fail_at(1);
    const seqlstm_status status = run(request, "", &heard, &err);
    assert_true(oom_disarm());
    assert_int_equal(status, SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "no memory for the ranks");
}

/* ---- a clock that goes a second each time it is looked at ---------------------------------------------------------
 */

static int64_t clock_s; /* 0: the clock of the system */
int64_t __real_sl_clock_ns(void);
int64_t __wrap_sl_clock_ns(void);

int64_t __wrap_sl_clock_ns(void)
{
    return clock_s > 0 ? ++clock_s * INT64_C(1000000000) : __real_sl_clock_ns();
}

/* ---- under a launcher ------------------------------------------------------------------------------------------- */

static uint32_t count_entries(const char *folder)
{
    uint32_t count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *e; (e = readdir(entries)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(entries);
    return count;
}

/* The words behind the script: -n RANKS program its --job JOB --case NAME --results FOLDER. */
static void results_of_a_launcher_are_files(void **state)
{
    (void)state;
    static const struct {
        const char *name, *script;
        enum sl_verdict verdict;
        const char *detail, *report;
    } cases[] = {
        {"barrier", "for r in 0 1 2; do echo pass > ${10}/$r; done", SL_VERDICT_PASS, "", ""},
        {"barrier", "for r in 0 1 2; do printf 'pass\\nof %s' $r > ${10}/$r; done; exit 1", SL_VERDICT_PASS, "",
         "of 0"},
        {"barrier", "echo pass > ${10}/0; for r in 1 2; do echo fail no $r > ${10}/$r; done", SL_VERDICT_FAIL,
         "rank 1: no 1", ""},
        {"barrier", "echo pass > ${10}/0; echo pass > ${10}/2", SL_VERDICT_CRASH, "rank 1: it wrote no result", ""},
        {"barrier", "printf 'rank 1 aborts' >&2; echo pass > ${10}/0", SL_VERDICT_CRASH, "rank 1: rank 1 aborts", ""},
        {"barrier", "printf \"at $1 $2 $4 $5 $7 $8 $9\"", SL_VERDICT_CRASH,
         "rank 0: at -n 3 its --job --case barrier --results", ""},
        {"death", "echo pass > ${10}/0; echo 9000000000000000000 > ${10}/died", SL_VERDICT_PASS, "", ""},
        {"death", "echo pass > ${10}/0; echo 1 > ${10}/died", SL_VERDICT_FAIL, "rank 2: its death was noticed too late",
         ""},
        {"death", "echo pass > ${10}/0", SL_VERDICT_FAIL, "rank 2: it has not died", ""},
        {"death", "echo fail early > ${10}/1", SL_VERDICT_FAIL, "rank 1: early", ""},
    };
    setenv("TMPDIR", scratch_folder, 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *const launcher[] = {"/bin/sh", "-c", cases[k].script, "sh", NULL}, *const worker[] = {"it", "its",
                                                                                                          NULL};
        struct heard heard;
        struct seqlstm_error err;
        const struct sl_collectives_kit_request request = {
            .ranks = RANKS, .cases = &cases[k].name, .case_count = 1, .launcher = launcher, .worker = worker};
        if (run(request, "", &heard, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        if (heard.last.verdict != cases[k].verdict || strcmp(heard.last.detail, cases[k].detail) != 0 ||
            strcmp(heard.last.report, cases[k].report) != 0)
            fail_msg("case %zu: %s, '%s', '%s'", k, sl_verdict_name(heard.last.verdict), heard.last.detail,
                     heard.last.report);
        assert_int_equal(count_entries(scratch_folder), 0);
    }
    unsetenv("TMPDIR");
}

static seqlstm_status launch(const char *const *launcher, int64_t timeout_ns, const struct sl_interrupt *interrupt,
                             struct heard *heard, struct seqlstm_error *err)
{
    static const char *const name = "barrier", *const worker[] = {"it", "its", NULL};
    const struct sl_collectives_kit_request request = {.connection = {.interrupt = interrupt},
                                                       .ranks = RANKS,
                                                       .cases = &name,
                                                       .case_count = 1,
                                                       .timeout_ns = timeout_ns,
                                                       .launcher = launcher,
                                                       .worker = worker};
    const seqlstm_status status = run(request, "", heard, err);
    if (status != SEQLSTM_OK)
        assert_string_equal(heard->names, "");
    return status;
}

/* Neither is a launcher that does not end, cannot be started or has no folder, and its files go with it. */
static void a_launcher_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static const char *const sleeper[] = {"/bin/sh", "-c", "echo pass > ${10}/0; exec sleep 1000", "sh", NULL},
                             *const absent[] = {"/no/such/launcher", NULL},
                             *const sound[] = {"/bin/sh", "-c", "for r in 0 1 2; do echo pass > ${10}/$r; done", "sh",
                                               NULL};
    struct sl_interrupt interrupt = {.stop = 15};
    struct heard heard;
    struct seqlstm_error err;
    char expected[160];
    setenv("TMPDIR", scratch_folder, 1);
    assert_int_equal(launch(sleeper, 1, NULL, &heard, &err), SEQLSTM_OK);
    assert_int_equal(heard.last.verdict, SL_VERDICT_CRASH);
    assert_string_equal(heard.last.detail, "not all ranks had ended after 0 s");
    assert_true(heard.last.took_ns > 0 && heard.last.took_ns < INT64_C(100000000000));
    assert_int_equal(launch(sleeper, 0, &interrupt, &heard, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "the conformance test was interrupted");
    assert_int_equal(launch(absent, 0, NULL, &heard, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected, "`/no/such/launcher` cannot be started: %s", strerror(ENOENT));
    assert_string_equal(err.message, expected);
    assert_int_equal(count_entries(scratch_folder), 0);
    setenv("TMPDIR", scratch_path("absent"), 1);
    assert_int_equal(launch(sound, 0, NULL, &heard, &err), SEQLSTM_IO);
    snprintf(expected, sizeof expected, "no folder for the results of the ranks: %s", strerror(ENOENT));
    assert_string_equal(err.message, expected);
    assert_int_equal(count_entries(scratch_folder), 0);
    unsetenv("TMPDIR");
    assert_int_equal(launch(sound, 0, NULL, &heard, &err), SEQLSTM_OK);
    assert_int_equal(heard.last.verdict, SL_VERDICT_PASS);
}

/* One that ignores the signal is killed five seconds after it, not after its time. */
static void a_launcher_that_does_not_end_is_killed(void **state)
{
    (void)state;
    static const char *const stubborn[] = {"/bin/sh", "-c", "exec sleep 1000", "sh", NULL};
    struct sl_interrupt interrupt = {.stop = 15};
    struct heard heard;
    struct seqlstm_error err;
    setenv("TMPDIR", scratch_folder, 1);
    void (*const handler)(int) = signal(SIGTERM, SIG_IGN); /* of the launcher, too */
    clock_s = 1;
    const seqlstm_status stopped = launch(stubborn, INT64_C(400000000000), &interrupt, &heard, &err);
    const int64_t first_s = clock_s;
    clock_s = 1;
    const seqlstm_status late = launch(stubborn, INT64_C(9000000000), NULL, &heard, &err);
    const int64_t second_s = clock_s;
    clock_s = 0;
    signal(SIGTERM, handler);
    assert_int_equal(stopped, SEQLSTM_CANCELLED);
    assert_in_range(first_s, 6, 200);
    assert_int_equal(late, SEQLSTM_OK);
    assert_int_equal(heard.last.verdict, SL_VERDICT_CRASH);
    assert_in_range(second_s, 15, 200);
    assert_int_equal(count_entries(scratch_folder), 0);
    unsetenv("TMPDIR");
}

/* A rank of a launcher: its own number, and what it found. */
static void a_rank_of_a_launcher_writes_its_own_file(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_trial trials[] = {{.rank = 0, .ranks = 1, .report = "a row\n"},
                                {.rank = 0, .ranks = 1, .failed = true, .detail = "why"}};
    static const char *const texts[] = {"pass\na row\n", "fail why\n"};
    for (int k = 0; k < 2; k++) {
        char text[100] = "";
        assert_int_equal(sl_trial_write(&trials[k], scratch_folder, &err), SEQLSTM_OK);
        FILE *file = fopen(scratch_path("0"), "r");
        assert_non_null(file);
        assert_true(fread(text, 1, sizeof text - 1, file) > 0);
        fclose(file);
        assert_string_equal(text, texts[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_selects_cases),
        cmocka_unit_test(the_first_rank_that_did_not_pass_decides),
        cmocka_unit_test(what_does_not_end_or_start_is_no_pass),
        cmocka_unit_test(results_of_a_launcher_are_files),
        cmocka_unit_test(a_launcher_that_fails_leaves_nothing),
        cmocka_unit_test(a_launcher_that_does_not_end_is_killed),
        cmocka_unit_test(a_rank_of_a_launcher_writes_its_own_file),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
