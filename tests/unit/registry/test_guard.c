/* SPDX-License-Identifier: Apache-2.0 */
/* The guard sees and undoes each change to the process, and nothing else; the fence sees a byte beyond a buffer. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "ok.h"
#include "oom.h"
#include "registry/record.h"
#include "registry/watch/fence.h"
#include "registry/watch/guard.h"

static void do_nothing(void)
{
    volatile double x = 1;
    x /= 3; /* sets the flags of inexact arithmetic: no mode */
    (void)!chdir(".");
    setenv("PATH", getenv("PATH"), 1);
}

static void round_up(void)
{
    fesetround(FE_UPWARD);
}

static void trap(void)
{
    feenableexcept(FE_DIVBYZERO);
}

static void go_away(void)
{
    assert_int_equal(chdir("/"), 0);
}

static void set_locale(void)
{
    setlocale(LC_TIME, "C.UTF-8");
}

static locale_t another_locale;

static void set_thread_locale(void)
{
    if (!another_locale)
        another_locale = newlocale(LC_NUMERIC_MASK, "C.UTF-8", (locale_t)0);
    uselocale(another_locale);
}

static void ignore_signal(void)
{
    signal(SIGUSR2, SIG_IGN);
}

static void take_signals(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
}

static void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void set_variable(void)
{
    setenv("SEQLSTM_GUARD_TEST", "other", 1);
}

static void add_variable(void)
{
    setenv("SEQLSTM_GUARD_NEW", "new", 1);
}

static void remove_variable(void)
{
    unsetenv("SEQLSTM_GUARD_TEST");
}

static void remove_all_variables(void)
{
    clearenv();
}

static void set_umask(void)
{
    umask(0123);
}

static void lower_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_cur == 0 ? 1 : 0;
    limit.rlim_cur = limit.rlim_cur > limit.rlim_max ? limit.rlim_max : limit.rlim_cur;
    setrlimit(RLIMIT_CORE, &limit);
}

static void close_input(void)
{
    close(STDIN_FILENO);
}

static void replace_error(void)
{
    int other = open("/dev/zero", O_WRONLY);
    dup2(other, STDERR_FILENO);
    close(other);
}

/* An hour: it does not end in a test. */
static void start_timer(int which)
{
    static const struct itimerval hour = {.it_value = {.tv_sec = 3600}};
    assert_int_equal(setitimer(which, &hour, NULL), 0);
}

static bool runs(int which)
{
    struct itimerval now;
    assert_int_equal(getitimer(which, &now), 0);
    return now.it_value.tv_sec > 0;
}

static void start_real_timer(void)
{
    start_timer(ITIMER_REAL);
}

static void start_virtual_timer(void)
{
    start_timer(ITIMER_VIRTUAL);
}

static void start_profiling_timer(void)
{
    start_timer(ITIMER_PROF);
}

static const struct {
    void (*change)(void);
    uint32_t bits;
    const char *text;
} changes[] = {
    {do_nothing, 0, ""},
    {round_up, SL_CHANGED_MODE, "floating-point mode"},
    {trap, SL_CHANGED_MODE, "floating-point mode"},
    {go_away, SL_CHANGED_FOLDER, "changed the current folder"},
    {set_locale, SL_CHANGED_LOCALE, "changed the locale (from "},
    {set_thread_locale, SL_CHANGED_LOCALE, "changed the locale of its thread"},
    {ignore_signal, SL_CHANGED_HANDLER, "installed a handler for signal 12"},
    {take_signals, SL_CHANGED_HANDLER, "for signal 2 (Interrupt) and 1 more"},
    {block_signals, SL_CHANGED_MASK, "which signals are blocked"},
    {set_variable, SL_CHANGED_ENVIRONMENT, "(variable SEQLSTM_GUARD_TEST)"},
    {add_variable, SL_CHANGED_ENVIRONMENT, "(variable SEQLSTM_GUARD_NEW)"},
    {remove_variable, SL_CHANGED_ENVIRONMENT, "changed the environment"},
    {remove_all_variables, SL_CHANGED_ENVIRONMENT, "changed the environment"},
    {set_umask, SL_CHANGED_UMASK, "to 123)"},
    {close_input, SL_CHANGED_FILE, "closed stdin"},
    {replace_error, SL_CHANGED_FILE, "replaced stderr"},
    {start_real_timer, SL_CHANGED_TIMER, "started a timer that sends a signal"},
    {start_virtual_timer, SL_CHANGED_TIMER, "started a timer that sends a signal"},
    {start_profiling_timer, SL_CHANGED_TIMER, "started a timer that sends a signal"},
};

static void each_change_is_seen_and_undone(void **state)
{
    (void)state;
    char text[400];
    struct sl_process_guard whole;
    setenv("SEQLSTM_GUARD_TEST", "kept", 1);
    sl_process_guard_begin(&whole);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct sl_process_guard guard;
        sl_process_guard_begin(&guard);
        changes[i].change();
        const uint32_t found = sl_process_guard_end(&guard, text, sizeof text);
        if (found != changes[i].bits || !strstr(text, changes[i].text))
            fail_msg("change %d: found %#x, `%s`; expected %#x, `%s`", (int)i, found, text, changes[i].bits,
                     changes[i].text);
        assert_null(strstr(text, "could not be restored"));
        assert_string_equal(getenv("SEQLSTM_GUARD_TEST"), "kept");
        assert_null(getenv("SEQLSTM_GUARD_NEW"));
    }
    if (sl_process_guard_end(&whole, text, sizeof text) != 0)
        fail_msg("not undone: it %s", text);
    freelocale(another_locale);
    another_locale = (locale_t)0;
}

/* A guard asks for what a program may lack, such as stdin; a plugin is called with the errno that was. */
static void the_error_number_stays(void **state)
{
    (void)state;
    char text[400];
    struct sl_process_guard guard;
    const int input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    errno = ERANGE;
    sl_process_guard_begin(&guard);
    assert_int_equal(errno, ERANGE);
    errno = EDOM;
    assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), 0);
    assert_int_equal(errno, EDOM);
    dup2(input, STDIN_FILENO);
    close(input);
}

static void changes_together_are_all_named(void **state)
{
    (void)state;
    char text[400], little[20];
    struct rlimit before, after;
    struct sl_process_guard guard;
    getrlimit(RLIMIT_CORE, &before);
    for (int round = 0; round < 2; round++) {
        sl_process_guard_begin(&guard);
        go_away();
        round_up();
        set_umask();
        if (before.rlim_max > 0)
            lower_limit();
        const uint32_t found = round ? sl_process_guard_end(&guard, little, sizeof little)
                                     : sl_process_guard_end(&guard, text, sizeof text);
        assert_int_equal(found, SL_CHANGED_MODE | SL_CHANGED_FOLDER | SL_CHANGED_UMASK |
                                    (before.rlim_max > 0 ? SL_CHANGED_LIMIT : 0));
    }
    assert_non_null(strstr(text, "changed the floating-point mode"));
    assert_non_null(strstr(text, ", changed the current folder, changed the mask of file permissions"));
    assert_true(strlen(little) < sizeof little);
    getrlimit(RLIMIT_CORE, &after);
    assert_true(before.rlim_cur == after.rlim_cur);
}

/* Timers that the program had run on, and only others are stopped: each set of its timers, with each that is started.
 */
static void timers_of_the_program_run_on(void **state)
{
    static const int timers[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    static const struct itimerval none;
    char text[400];
    (void)state;
    for (unsigned had = 0; had < 8; had++)
        for (int started = -1; started < 3; started++) {
            struct sl_process_guard guard;
            for (int k = 0; k < 3; k++)
                if (had >> k & 1)
                    start_timer(timers[k]);
            sl_process_guard_begin(&guard);
            if (started >= 0)
                start_timer(timers[started]);
            const bool is_new = started >= 0 && !(had >> started & 1);
            assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), is_new ? SL_CHANGED_TIMER : 0);
            assert_string_equal(text, is_new ? "started a timer that sends a signal" : "");
            for (int k = 0; k < 3; k++) {
                assert_int_equal(runs(timers[k]), had >> k & 1);
                assert_int_equal(setitimer(timers[k], &none, NULL), 0);
            }
        }
}

/* What the program itself had changed before is no change, and stays. */
static void what_was_so_before_is_no_change(void **state)
{
    char text[400];
    struct sl_process_guard whole, guard;
    struct sigaction action;
    sigset_t mask;
    (void)state;
    setenv("SEQLSTM_GUARD_TEST", "kept", 1);
    sl_process_guard_begin(&whole);
    round_up();
    go_away();
    set_thread_locale();
    ignore_signal();
    block_signals();
    set_variable();
    set_umask();
    close_input();
    sl_process_guard_begin(&guard);
    if (sl_process_guard_end(&guard, text, sizeof text) != 0)
        fail_msg("%s", text);
    assert_int_equal(fegetround(), FE_UPWARD);
    assert_true(uselocale((locale_t)0) == another_locale);
    assert_int_equal(sigaction(SIGUSR2, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_IGN);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &mask), 0);
    assert_true(sigismember(&mask, SIGUSR1) == 1);
    assert_string_equal(getenv("SEQLSTM_GUARD_TEST"), "other");
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    assert_int_equal(sl_process_guard_end(&whole, text, sizeof text),
                     SL_CHANGED_MODE | SL_CHANGED_FOLDER | SL_CHANGED_LOCALE | SL_CHANGED_HANDLER | SL_CHANGED_MASK |
                         SL_CHANGED_ENVIRONMENT | SL_CHANGED_UMASK | SL_CHANGED_FILE);
    freelocale(another_locale);
    another_locale = (locale_t)0;
}

/* Each signal, the first and the last one, too: blocked where it was free, free where it was blocked, and with another
 * handler. */
static void each_signal_is_watched(void **state)
{
    char text[400], expected[100];
    (void)state;
    for (int s = 1; s < SL_GUARD_SIGNALS; s++) {
        struct sl_process_guard guard;
        struct sigaction action;
        sigset_t one, before, after;
        if (s == SIGKILL || s == SIGSTOP)
            continue;
        sigemptyset(&one);
        sigaddset(&one, s);
        for (int blocked = 0; blocked < 2; blocked++) {
            assert_int_equal(sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &one, &before), 0);
            sl_process_guard_begin(&guard);
            assert_int_equal(sigprocmask(blocked ? SIG_UNBLOCK : SIG_BLOCK, &one, NULL), 0);
            assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_MASK);
            assert_string_equal(text, "changed which signals are blocked");
            assert_int_equal(sigprocmask(SIG_SETMASK, &before, &after), 0);
            assert_int_equal(sigismember(&after, s), blocked);
        }
        assert_int_equal(sigaction(s, NULL, &action), 0);
        sl_process_guard_begin(&guard);
        signal(s, action.sa_handler == SIG_IGN ? SIG_DFL : SIG_IGN);
        assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_HANDLER);
        snprintf(expected, sizeof expected, "installed a handler for signal %d (%s)", s, strsignal(s));
        assert_string_equal(text, expected);
        struct sigaction now;
        assert_int_equal(sigaction(s, NULL, &now), 0);
        assert_true(now.sa_handler == action.sa_handler);
    }
}

/* Whichever limit is another, it is named, and restored. */
static void each_limit_is_watched(void **state)
{
    static const struct {
        int limit;
        const char *name;
    } rows[] = {
        {RLIMIT_NOFILE, "number of open files"},
        {RLIMIT_AS, "address space"},
        {RLIMIT_FSIZE, "size of files"},
        {RLIMIT_STACK, "stack"},
        {RLIMIT_CORE, "core files"},
        {RLIMIT_DATA, "data segment"},
        {RLIMIT_CPU, "processor time"},
        {RLIMIT_NPROC, "number of processes"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_process_guard guard;
        struct rlimit was, other, after;
        char text[400], expected[80];
        assert_int_equal(getrlimit(rows[k].limit, &was), 0);
        other = was;
        other.rlim_cur = was.rlim_cur == 0               ? 1
                         : was.rlim_cur != RLIM_INFINITY ? was.rlim_cur - 1
                         : rows[k].limit == RLIMIT_CPU   ? (rlim_t)1 << 30
                                                         : (rlim_t)1 << 46;
        if (other.rlim_cur > other.rlim_max)
            continue; /* it cannot be changed */
        sl_process_guard_begin(&guard);
        assert_int_equal(setrlimit(rows[k].limit, &other), 0);
        assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_LIMIT);
        snprintf(expected, sizeof expected, "changed the limit of the %s", rows[k].name);
        assert_string_equal(text, expected);
        assert_int_equal(getrlimit(rows[k].limit, &after), 0);
        assert_true(after.rlim_cur == was.rlim_cur && after.rlim_max == was.rlim_max);
    }
}

static void a_fence_sees_one_byte(void **state)
{
    (void)state;
    unsigned char block[200];
    struct sl_fence fence;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const struct seqlstm_backend table = {.id = "mine"};
    memset(block, 7, sizeof block);
    sl_fence_begin(&fence, block, 100);
    block[99] = 8;
    block[100 + SL_FENCE_BYTES] = 8;
    assert_int_equal(sl_fence_end(&fence, &table, SL_FUNCTION_FORWARD, "workspace", &err), SEQLSTM_OK);
    for (int k = 0; k < SL_FENCE_BYTES; k += SL_FENCE_BYTES - 1) {
        block[100 + k] = 8;
        assert_int_equal(sl_fence_end(&fence, &table, SL_FUNCTION_FORWARD, "workspace", &err), SEQLSTM_INTERNAL);
        block[100 + k] = 7;
    }
    assert_non_null(
        strstr(err.message, "the backend mine is faulty: its forward wrote beyond the 100 bytes of workspace"));
    sl_fence_begin(&fence, NULL, 100);
    assert_int_equal(sl_fence_end(&fence, &table, SL_FUNCTION_FORWARD, "workspace", &err), SEQLSTM_OK);
}

/* Old and new value, which of several limits, and what cannot be undone. */
static void changes_are_told_in_full(void **state)
{
    (void)state;
    char text[400], expected[400];
    struct sl_process_guard guard;
    const mode_t mask = umask(0);
    umask(mask);
    sl_process_guard_begin(&guard);
    umask(0127);
    assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_UMASK);
    snprintf(expected, sizeof expected, "changed the mask of file permissions (umask %03o to 127)", (unsigned)mask);
    assert_string_equal(text, expected);
    struct rlimit before, after;
    getrlimit(RLIMIT_CORE, &before);
    if (before.rlim_max > 0) {
        sl_process_guard_begin(&guard);
        lower_limit();
        assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_LIMIT);
        assert_string_equal(text, "changed the limit of the core files");
    }
    sl_process_guard_begin(&guard);
    close(guard.folder.duplicate);
    assert_int_equal(sl_process_guard_end(&guard, text, sizeof text), SL_CHANGED_DESCRIPTOR | SL_CHANGED_FOR_GOOD);
    assert_string_equal(text, "closed files of the program (which could not be restored)");
    if (before.rlim_max <= before.rlim_cur)
        return;
    /* the hard limit alone: it is told, and undone where the system allows it */
    sl_process_guard_begin(&guard);
    after = (struct rlimit){.rlim_cur = before.rlim_cur, .rlim_max = before.rlim_cur};
    assert_int_equal(setrlimit(RLIMIT_CORE, &after), 0);
    const uint32_t told = sl_process_guard_end(&guard, text, sizeof text);
    getrlimit(RLIMIT_CORE, &after);
    const bool restored = after.rlim_max == before.rlim_max;
    assert_int_equal(told, restored ? SL_CHANGED_LIMIT : SL_CHANGED_LIMIT | SL_CHANGED_FOR_GOOD);
    assert_true(after.rlim_cur == before.rlim_cur);
    assert_string_equal(text, restored ? "changed the limit of the core files"
                                       : "changed the limit of the core files (which could not be restored)");
}

/* When it is loaded: the rest only warns, of everything that it did. */
static void changes_that_could_make_results_wrong_refuse_a_plugin(void **state)
{
    (void)state;
    const uint32_t refused = SL_CHANGED_MODE | SL_CHANGED_FOLDER | SL_CHANGED_LOCALE | SL_CHANGED_HANDLER |
                             SL_CHANGED_FILE | SL_CHANGED_DESCRIPTOR;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    sl_arena_init(&arena);
    for (uint32_t change = 1; change <= SL_CHANGED_FOR_GOOD; change *= 2) {
        struct sl_backend_record record = {.status = SL_BACKEND_OK};
        ok(sl_record_note_output(&arena, &record, "query", "wrote", &err), &err);
        ok(sl_record_note_change(&arena, &record, change | SL_CHANGED_MASK, "open", "did that", &err), &err);
        if (change & refused) {
            assert_int_equal(record.status, SL_BACKEND_REFUSED);
            assert_string_equal(record.reason, "its open did that");
            assert_string_equal(record.warning, "its query wrote");
        } else {
            assert_int_equal(record.status, SL_BACKEND_OK);
            assert_null(record.reason);
            assert_string_equal(record.warning, change == SL_CHANGED_FOR_GOOD
                                                    ? "its query wrote; its open did that"
                                                    : "its query wrote; its open did that; seqlstm undid it");
        }
    }
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_is_seen_and_undone),
        cmocka_unit_test(the_error_number_stays),
        cmocka_unit_test(changes_together_are_all_named),
        cmocka_unit_test(timers_of_the_program_run_on),
        cmocka_unit_test(what_was_so_before_is_no_change),
        cmocka_unit_test(each_signal_is_watched),
        cmocka_unit_test(each_limit_is_watched),
        cmocka_unit_test(a_fence_sees_one_byte),
        cmocka_unit_test(changes_are_told_in_full),
        cmocka_unit_test(changes_that_could_make_results_wrong_refuse_a_plugin),
    };
    const int before = descriptors_count(), failed = cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
    if (descriptors_count() != before)
        print_error("%d file descriptors were left open\n", descriptors_count() - before);
    return failed + (descriptors_count() != before);
}
