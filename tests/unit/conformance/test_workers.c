/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of the conformance kit, which are shells here: they read names from descriptor 3 and answer on 4. What each
 * answer and each end of a worker becomes, that the next case has a new worker, and that none stays behind. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory/arena.h"
#include "conformance/record_line.h"
#include "conformance/workers.h"
#include "descriptors.h"
#include "oom.h"

static const int64_t ms = 1000000;

static int open_before;

static struct sl_workers *start(const char *const *argv, int64_t timeout_ns)
{
    struct sl_workers *workers = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_before = descriptors_count();
    if (sl_workers_create(argv, timeout_ns, &workers, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return workers;
}

static void end(struct sl_workers *workers)
{
    sl_workers_destroy(workers);
    assert_int_equal(descriptors_count(), open_before);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* No child of this process runs, although the workers are still there. */
static void expect_no_child(void)
{
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* Did a worker that was to compute too long get too little of a busy processor? Then it is tried again. */
static bool is_starved(const char *detail, const char *expected)
{
    return strstr(expected, "of processor time") && strstr(detail, "mostly waiting");
}

#define READ "read -r name <&3; "

/* Each script answers one name, or ends. */
static void a_worker_answers_or_ends(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int timeout_ms;
        enum sl_verdict verdict;
        const char *variant, *detail;
        bool goes_on; /* the worker is still there */
    } cases[] = {
        {READ "printf 'pass\\t0.5\\tfast\\t\\n' >&4; read name <&3", 0, SL_VERDICT_PASS, "fast", "", true},
        {READ "printf 'fail\\t0.5\\tfast\\tof %s\\n' $name >&4; read name <&3", 0, SL_VERDICT_FAIL, "fast", "of a:case",
         true},
        {READ "printf 'unsupported\\t0.5\\t\\tno\\tmore\\n' >&4; read name <&3", 0, SL_VERDICT_UNSUPPORTED, "",
         "no\tmore", true},
        {"printf 'skip\\t0.5\\t\\tsaid' >&4; sleep 0.1; printf ' late\\n' >&4; read name <&3", 0, SL_VERDICT_SKIP, "",
         "said late", true},
        {READ "test /proc/$$/fd/1 -ef /proc/$$/fd/2 && printf 'pass\\t0.5\\t\\t\\n' >&4; read name <&3", 0,
         SL_VERDICT_PASS, "", "", true},
        {READ "printf 'passed\\t0.5\\tfast\\t\\n' >&4; read name <&3", 0, SL_VERDICT_CRASH, "",
         "the worker died of signal 9 (Killed)", false},
        {READ "printf 'pass\\thalf\\tfast\\t\\n' >&4; read name <&3", 0, SL_VERDICT_CRASH, "",
         "the worker died of signal 9 (Killed)", false},
        {READ "exit 3", 0, SL_VERDICT_CRASH, "", "the worker ended with exit status 3", false},
        {READ "printf pass >&4; exit 0", 0, SL_VERDICT_CRASH, "", "the worker ended with exit status 0", false},
        {READ "kill -6 $$", 0, SL_VERDICT_CRASH, "", "the worker died of signal 6 (Aborted)", false},
        {READ "printf '\\014\\000\\000\\000' 1<>/proc/self/fd/5; exit 3", 0, SL_VERDICT_CRASH, "",
         "the worker ended with exit status 3 in its function forward", false},
        {READ "printf '\\013\\000\\000\\000' 1<>/proc/self/fd/5; kill -6 $$", 0, SL_VERDICT_CRASH, "",
         "the worker died of signal 6 (Aborted) in its function weights_pack", false},
        {READ "while :; do :; done", 100, SL_VERDICT_CRASH, "",
         "no answer within 100 ms of processor time; the worker was killed", false},
        {READ "exec sleep 1000", 20, SL_VERDICT_CRASH, "",
         "no answer within 200 ms, mostly waiting; the worker was killed", false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *const argv[] = {"/bin/sh", "-c", cases[k].script, NULL};
        struct sl_workers *workers = start(argv, cases[k].timeout_ms * ms);
        struct sl_check_result result;
        memset(&result, 0x7f, sizeof result);
        sl_workers_run(workers, "a:case", &result);
        const bool has_variant = result.verdict == SL_VERDICT_CRASH || strcmp(result.variant, cases[k].variant) == 0;
        if (is_starved(result.detail, cases[k].detail)) {
            k--;
            end(workers);
            continue;
        }
        if (result.verdict != cases[k].verdict || strcmp(result.detail, cases[k].detail) != 0 || !has_variant ||
            (cases[k].goes_on && result.worst != 0.5))
            fail_msg("script %zu: %s, `%s`, `%s`, %g", k, sl_verdict_name(result.verdict), result.variant,
                     result.detail, result.worst);
        if (!cases[k].goes_on)
            expect_no_child();
        end(workers);
    }
}

/* A worker that is well answers all cases; after one that has died, there is a new one, which knows of no function. */
static void the_next_case_has_a_new_worker(void **state)
{
    (void)state;
    static const char script[] =
        "n=0; while read -r name <&3; do n=$((n + 1)); test $name = bad && printf '\\014\\000\\000\\000' "
        "1<>/proc/self/fd/5; test $name = die && exit 7; test $name = bad || printf 'pass\\t%s\\t\\t%s\\n' $n $name "
        ">&4; "
        "test $name != bad || exit 8; done";
    static const char *const names[] = {"one", "two", "bad", "three", "die", "four", "five"};
    static const char *const details[] = {"one",
                                          "two",
                                          "the worker ended with exit status 8 in its function forward",
                                          "three",
                                          "the worker ended with exit status 7",
                                          "four",
                                          "five"};
    static const double numbers[] = {1, 2, 0, 1, 0, 1, 2};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct sl_workers *workers = start(argv, 0);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct sl_check_result result;
        sl_workers_run(workers, names[k], &result);
        assert_string_equal(result.detail, details[k]);
        assert_int_equal(result.verdict, numbers[k] > 0 ? SL_VERDICT_PASS : SL_VERDICT_CRASH);
        assert_true(numbers[k] == 0 || result.worst == numbers[k]);
    }
    end(workers);
    end(start(argv, 0)); /* none was ever needed */
    sl_workers_destroy(NULL);
}

/* Writing to it is no signal that ends this process. */
static void a_worker_that_listens_no_more(void **state)
{
    (void)state;
    static const char *const argv[] = {"/bin/sh", "-c",
                                       READ "exec 3<&-; printf 'pass\\t1\\t\\t\\n' >&4; sleep 0.1; exit 5", NULL};
    struct sl_workers *workers = start(argv, 0);
    struct sl_check_result result;
    sl_workers_run(workers, "a:case", &result);
    assert_int_equal(result.verdict, SL_VERDICT_PASS);
    sl_workers_run(workers, "a:case", &result);
    assert_int_equal(result.verdict, SL_VERDICT_CRASH);
    assert_string_equal(result.detail, "the worker ended with exit status 5");
    end(workers);
}

static void a_worker_that_cannot_be_started(void **state)
{
    (void)state;
    static const char *const argv[] = {"/no/such/program", NULL};
    struct sl_workers *workers = start(argv, 0);
    struct sl_check_result result;
    struct sl_backend_record record;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    const int before = descriptors_count();
    sl_arena_init(&arena);
    sl_workers_run(workers, "a:case", &result);
    assert_int_equal(result.verdict, SL_VERDICT_CRASH);
    assert_string_equal(result.detail, "the worker /no/such/program could not be started");
    assert_int_equal(descriptors_count(), before);
    sl_workers_end(workers, &result);
    assert_int_equal(result.verdict, SL_VERDICT_CRASH);
    assert_string_equal(result.detail, "the worker /no/such/program could not be started");
    assert_int_equal(sl_workers_load(workers, &arena, &record, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the backend was not loaded and opened: the worker /no/such/program could not be "
                                     "started");
    assert_int_equal(descriptors_count(), before);
    sl_arena_deinit(&arena);
    end(workers);
}

/* The record of the backend that a worker has opened, or why it has not. */
static void a_worker_loads_the_backend(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        seqlstm_status status;
        const char *message;
    } cases[] = {
        {READ "test $name = record && printf '%s\\n' \"$1\" >&4; read name <&3", SEQLSTM_OK, ""},
        {READ "printf '%s\\n' \"$2\" >&4; read name <&3", SEQLSTM_UNAVAILABLE, "no device"},
        {READ "echo nonsense >&4; read name <&3", SEQLSTM_INTERNAL,
         "the worker answered with something else than the record of the backend"},
        {READ "printf '\\001\\000\\000\\000' 1<>/proc/self/fd/5; exit 2", SEQLSTM_INVALID_ARGUMENT,
         "the backend was not loaded and opened: the worker ended with exit status 2 in its function load"},
        {READ "kill -11 $$", SEQLSTM_INVALID_ARGUMENT,
         "the backend was not loaded and opened: the worker died of signal 11 (Segmentation fault)"},
        {READ "while :; do :; done", SEQLSTM_INVALID_ARGUMENT,
         "the backend was not loaded and opened: no answer within 100 ms of processor time; the worker was killed"},
    };
    char version[4000]; /* longer than the answer to a case may be */
    memset(version, 'v', sizeof version - 1);
    version[sizeof version - 1] = 0;
    const struct sl_backend_record record = {.id = "mine", .version = version};
    char *good = sl_record_line_print(&record, SEQLSTM_OK, "");
    char *bad = sl_record_line_print(NULL, SEQLSTM_UNAVAILABLE, "no device");
    assert_true(good && bad);
    good[strlen(good) - 1] = bad[strlen(bad) - 1] = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *const argv[] = {"/bin/sh", "-c", cases[k].script, "sh", good, bad, NULL};
        struct sl_workers *workers = start(argv, k == 5 ? 100 * ms : 0);
        struct sl_backend_record got = {.id = ""};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_arena arena;
        sl_arena_init(&arena);
        const seqlstm_status status = sl_workers_load(workers, &arena, &got, &err);
        if (is_starved(err.message, cases[k].message)) {
            k--;
            sl_arena_deinit(&arena);
            end(workers);
            continue;
        }
        if (status != cases[k].status || strcmp(err.message, cases[k].message) != 0)
            fail_msg("script %zu: %d, `%s`", k, (int)status, err.message);
        if (status == SEQLSTM_OK) {
            assert_string_equal(got.id, "mine");
            assert_string_equal(got.version, version);
        }
        sl_arena_deinit(&arena);
        end(workers);
    }
    free(good);
    free(bad);
}

/* A worker whose pipes are closed must end by itself, and well. */
static void a_worker_ends_well_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        enum sl_verdict verdict;
        const char *detail;
    } cases[] = {
        {READ "echo yes >&4; read -r name <&3; exit 0", SL_VERDICT_PASS, ""},
        {READ "echo yes >&4; read -r name <&3; exit 4", SL_VERDICT_CRASH, "the worker ended with exit status 4"},
        {READ "echo yes >&4; read -r name <&3; kill -6 $$", SL_VERDICT_CRASH, "the worker died of signal 6 (Aborted)"},
        {READ "exit 6", SL_VERDICT_CRASH, "the worker ended with exit status 6"},
        {READ "echo yes >&4; exec sleep 1000", SL_VERDICT_CRASH, "the worker died of signal 9 (Killed)"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *const argv[] = {"/bin/sh", "-c", cases[k].script, NULL};
        struct sl_workers *workers = start(argv, k == 4 ? 100 * ms : 0);
        struct sl_check_result result;
        memset(&result, 0x7f, sizeof result);
        sl_workers_end(workers, &result);
        if (result.verdict != cases[k].verdict || strcmp(result.detail, cases[k].detail) != 0)
            fail_msg("script %zu: %s, `%s`", k, sl_verdict_name(result.verdict), result.detail);
        expect_no_child();
        end(workers);
    }
}

static void no_memory_for_workers(void **state)
{
    (void)state;
    static const char *const argv[] = {"/bin/sh", "-c", READ "echo no >&4", NULL};
    struct sl_workers *workers = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_record record;
    struct sl_arena arena;
    sl_arena_init(&arena);
    oom_fail_at(1);
    seqlstm_status status = sl_workers_create(argv, 0, &workers, &err);
    assert_true(oom_disarm());
    assert_int_equal(status, SEQLSTM_NO_MEMORY);
    workers = start(argv, 0);
    oom_fail_at(1);
    status = sl_workers_load(workers, &arena, &record, &err);
    assert_true(oom_disarm());
    assert_int_equal(status, SEQLSTM_NO_MEMORY);
    assert_string_equal(err.message, "out of memory for the workers");
    sl_arena_deinit(&arena);
    end(workers);
}

/* The worker's side where the backend does not load: the first question is answered with the reason. */
static void a_worker_without_a_backend_says_why(void **state)
{
    (void)state;
    int in[2], out[2];
    char text[300] = "";
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    assert_true(write(in[1], "record\n", 7) == 7);
    assert_true(sl_worker_refuse(NULL, SEQLSTM_UNAVAILABLE, "no device", in[0], out[1]));
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    struct sl_backend_record record;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    sl_arena_init(&arena);
    assert_int_equal(sl_record_line_parse(text, &arena, &record, &err), SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, "no device");
    sl_arena_deinit(&arena);
    assert_true(write(in[1], "record\n", 7) == 7);
    close(out[0]); /* no reader is left: no signal, but an answer that could not be given */
    assert_false(sl_worker_refuse(NULL, SEQLSTM_UNAVAILABLE, "no device", in[0], out[1]));
    close(in[1]);
    assert_false(sl_worker_refuse(NULL, SEQLSTM_UNAVAILABLE, "no device", in[0], out[1]));
    close(in[0]);
    close(out[1]);
}

static void hear(int number)
{
    (void)number;
}

/* A signal that comes while an answer is awaited, such as a change of the size of the terminal, is no end of it. */
static void signals_do_not_end_a_worker(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c",
                                       READ "sleep 0.05; printf 'pass\\t0.5\\tfast\\t\\n' >&4; read name <&3", NULL};
    const struct sigaction heard = {.sa_handler = hear};
    const struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    struct sigaction before;
    struct sl_check_result result;
    (void)state;
    struct sl_workers *workers = start(argv, 1000 * ms);
    sigaction(SIGALRM, &heard, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    sl_workers_run(workers, "a:case", &result);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    if (result.verdict != SL_VERDICT_PASS)
        fail_msg("%s: %s", sl_verdict_name(result.verdict), result.detail);
    end(workers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_do_not_end_a_worker),         cmocka_unit_test(a_worker_answers_or_ends),
        cmocka_unit_test(the_next_case_has_a_new_worker),      cmocka_unit_test(a_worker_that_listens_no_more),
        cmocka_unit_test(a_worker_that_cannot_be_started),     cmocka_unit_test(a_worker_loads_the_backend),
        cmocka_unit_test(a_worker_ends_well_or_not),           cmocka_unit_test(no_memory_for_workers),
        cmocka_unit_test(a_worker_without_a_backend_says_why),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
